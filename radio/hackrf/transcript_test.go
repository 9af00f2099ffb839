//go:build linux

package hackrf_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
)

// theirs returns the requests that hackrf_transfer makes of a board.
func theirs(t *testing.T, api uint16, args []string) []string {
	tool, err := exec.LookPath("hackrf_transfer")
	if err != nil {
		radiotest.Missing(t, "hackrf_transfer is not installed (on Debian: apt-get install hackrf)")
	}
	bus := radiotest.Bus(t)
	b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(0), API: api})
	ok(t, err)
	other, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(1)})
	ok(t, err)
	bench, err := virtual.NewBench(virtual.Config{
		Boards: []virtual.Place{{Radio: b}, {Radio: other}}, Clock: loopback.WallClock(),
		Triggers: []virtual.Wire{{From: 1, To: 0}},
	})
	ok(t, err)
	t.Cleanup(func() { ok(t, bench.Close()) })
	_, err = bus.Plug(b)
	ok(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	env, err := bus.Env()
	ok(t, err)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ok(t, cmd.Start())
	if slices.Contains(args, "-H") {
		until(t, "the board to be armed", b.Armed, func() {})
		d, err := hackrf.NewOpener(context.Background(), virtual.NewHost(other), radio.TransmitPermit{}, nil).Open(ctx, radio.URI{Scheme: "hackrf"})
		ok(t, err)
		start(t, receiver(t, d.(*hackrf.Device))) // which triggers the other
		defer d.Close()
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &out)
	}
	return lines(b)
}

func lines(b *virtual.HackRF) (all []string) {
	for _, q := range b.Transcript() {
		all = append(all, q.String())
	}
	return all
}

// number returns the number of a request that was printed.
func number(line string) (n int) {
	if _, err := fmt.Sscanf(line[len("out "):], "%d", &n); err != nil {
		panic(line)
	}
	return n
}

// extras are requests that the driver makes on purpose and hackrf_transfer does
// not: it asks who the board is (14, 15, 45), what it has counted (41) and for its
// clock (44), and bounds shortfalls (42, 43).
var extras = []int{14, 15, 41, 42, 43, 44, 45}

// effect returns of a transcript what matters: rate and filters in their order, the
// last of each other request before the mode is set, and the modes. A board that is
// off is switched off again by both, once or more.
func effect(all []string, without ...int) (e []string) {
	last := map[int]string{}
	began := false
	for _, line := range all {
		switch n := number(line); {
		case slices.Contains(without, n):
		case n == 1 && strings.Contains(line, "value 0000"):
			if began && e[len(e)-1] != line {
				e = append(e, line)
			}
		case n == 1:
			var sorted []string
			for _, l := range last {
				sorted = append(sorted, l)
			}
			slices.Sort(sorted)
			e, began = append(append(e, sorted...), line), true
		case n == 6 || n == 7 || began:
			e = append(e, line)
		default:
			last[n] = line
		}
	}
	return e
}

func receiveSome(t *testing.T, d *hackrf.Device) {
	rx := receiver(t, d)
	start(t, rx)
	_, _, err := radio.ReadFull(limited(t), rx, make([]complex64, 65536))
	ok(t, err, rx.Close())
}

func receiveExplicit(t *testing.T, d *hackrf.Device) {
	ok(t, d.SetExplicit(limited(t), hackrf.Explicit{IF: 2.5e9, LO: 1.2e9, Path: hackrf.HighPass}))
	receiveSome(t, d)
}

func armOnly(t *testing.T, d *hackrf.Device) {
	rx := receiver(t, d)
	start(t, rx)
	ok(t, rx.Close())
}

func sendSome(t *testing.T, d *hackrf.Device) {
	tx := transmitter(t, d)
	start(t, tx)
	_, err := tx.Write(limited(t), make([]complex64, 200000), radio.TxMeta{BurstEnd: true})
	ok(t, err, tx.Close())
}

// TestTranscript compares what the driver asks of a board with what libhackrf does
// through hackrf_transfer, with the same settings: the same requests to the byte,
// but for extras. The driver also sends the gains of the other direction, and
// switches off what could transmit before it sets anything; so it is the last of
// each that is compared.
func TestTranscript(t *testing.T) {
	dir := t.TempDir()
	source, sink := filepath.Join(dir, "source"), filepath.Join(dir, "sink")
	ok(t, os.WriteFile(source, make([]byte, 400000), 0o600))
	for _, c := range []struct {
		name   string
		args   string // of hackrf_transfer
		params string // of ours
		do     func(*testing.T, *hackrf.Device)
	}{
		{"receive", "-r SINK -n 65536 -f 433920000 -s 8000000 -a 1 -p 0 -l 24 -g 30", "freq_hz=433920000&rate_hz=8e6&rx_amp=11&lna=24&vga=30", receiveSome},
		{"receive at 20 Msps", "-r SINK -n 65536 -f 2412000000 -s 20000000 -b 9000000 -a 0 -p 1 -l 40 -g 62", "freq_hz=2412000000&rate_hz=20e6&filter_hz=9e6&bias=on&lna=40&vga=62", receiveSome},
		{"off the grid", "-r SINK -n 65536 -f 5999999999 -s 12500000 -a 0 -p 0 -l 39 -g 21", "freq_hz=5999999999&rate_hz=12.5e6&lna=39&vga=21", receiveSome},
		{"explicit", "-r SINK -n 65536 -i 2500000000 -o 1200000000 -m 2 -s 8000000 -a 0 -p 0 -l 0 -g 0", "rate_hz=8e6&lna=0&vga=0", receiveExplicit},
		{"trigger", "-r SINK -n 65536 -H -f 100000000 -s 8000000 -a 0 -p 0 -l 0 -g 0", "trigger=trigger-in&freq_hz=100e6&rate_hz=8e6&lna=0&vga=0", armOnly},
		{"transmit", "-t SOURCE -f 915000001 -s 10000000 -a 1 -p 0 -x 33", "freq_hz=915000001&rate_hz=10e6&tx_amp=11&txvga=33&feed=strict", sendSome},
		{"transmit slowly", "-t SOURCE -f 1000000 -s 2000000 -b 1750000 -a 0 -p 1 -x 47", "freq_hz=1e6&rate_hz=2e6&filter_hz=1750000&bias=on&txvga=47&feed=strict", sendSome},
	} {
		for _, api := range []uint16{virtual.API2018, virtual.API2022} {
			t.Run(fmt.Sprintf("%s %04x", c.name, api), func(t *testing.T) {
				t.Parallel() // theirs waits for seconds
				args := strings.NewReplacer("SINK", sink, "SOURCE", source).Replace(c.args)
				want := theirs(t, api, strings.Fields(args+" -d "+serial(0)))
				r := newRig(t, rigConfig{boards: 1, api: api, clock: loopback.WallClock()})
				params := c.params
				if api == virtual.API2018 {
					params += "&limit_ms=0"
				}
				d := r.open(0, params)
				c.do(t, d)
				ok(t, d.Close())
				without := append(slices.Clone(extras), 21)
				if strings.Contains(c.args, "-t ") {
					without = append(slices.Clone(extras), 19, 20)
				}
				if strings.Contains(c.args, "-i ") { // the driver has tuned before
					without = append(without, 16)
				}
				ours := lines(r.boards[0])
				if got, want := effect(ours, without...), effect(want); !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				first := ours[0]
				if number(first) != 1 || !strings.Contains(first, "value 0000") {
					t.Errorf("the first request is %s", first)
				}
			})
		}
	}
}
