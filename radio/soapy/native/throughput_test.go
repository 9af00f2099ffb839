//go:build soapy && cgo

package native_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/soapytest"
)

const fullRate = 20_000_000 // samples a second

// seconds of signal that the throughput tests move: a minute where time does not matter.
func seconds() int {
	if os.Getenv("RINGWAVE_LONG") == "1" {
		return 60
	}
	return 1
}

// cpu returns the processor time that this process has taken.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	ok(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestThroughput receives and transmits at 20 Msps in real time samples that count, so that
// each one that is lost is seen, and has a C++ program do the same over the same module. Losses
// are failures only in the long run, which is for a machine that does nothing else; ones
// that nobody tells of always are.
func TestThroughput(t *testing.T) {
	b := bench(t)
	source, err := os.ReadFile("testdata/loop.cpp")
	ok(t, err)
	loop := soapytest.Program(t, source)
	const options = "counter=on,mtu=16384,buffer=4194304,txbuffer=1048576,latency_us=20000"
	for _, way := range []struct {
		name string
		at   soapy.Channel
		move func(testing.TB, soapy.Board, int) (lost uint32)
	}{{"rx", rx, count}, {"tx", tx, send}} {
		t.Run(way.name, func(t *testing.T) {
			board := made(t, b, "FAST-"+way.name, options)
			ok(t, board.SetSampleRate(t.Context(), way.at, fullRate))
			began, used := time.Now(), cpu(t)
			lost := way.move(t, board, seconds()*fullRate)
			took := time.Since(began)
			t.Logf("this binding: %d lost, %.2f s, %.0f %% of a core, the module included", lost, took.Seconds(), 100*(cpu(t)-used).Seconds()/took.Seconds())
			if lost > 0 && os.Getenv("RINGWAVE_LONG") == "1" {
				t.Errorf("%d samples were lost", lost)
			}
			cmd := exec.Command(loop, "driver="+soapytest.Driver+",serial=LOOP-"+way.name+","+options, way.name, strconv.Itoa(seconds()*fullRate))
			out, err := cmd.CombinedOutput()
			ok(t, err)
			t.Logf("a C++ program: %s", out)
		})
	}
}

// count receives samples that count, and returns how many are missing. What is missing must be
// what the times of blocks tell.
func count(t testing.TB, board soapy.Board, samples int) (lost uint32) {
	s := streaming(t, board, rx)
	block := make([]byte, 4*s.MTU())
	var next uint32
	var first soapy.Time
	for moved := 0; moved < samples; {
		n, info, err := s.Read(t.Context(), block, radiotest.Patience)
		if errors.Is(err, soapy.ErrOverflow) {
			continue
		}
		ok(t, err)
		if moved == 0 {
			first = info.At
		}
		told := uint32((int64(info.At-first)*(fullRate/1e6) + 500) / 1000)
		for i := 0; i < n; i += 4 {
			k := binary.LittleEndian.Uint32(block[i:])
			if k != next {
				lost += k - next
			}
			next = k + 1
		}
		if k := binary.LittleEndian.Uint32(block); k != told {
			t.Fatalf("sample %d came with the time of sample %d", k, told)
		}
		moved += n / 4
	}
	ok(t, s.Close())
	return lost
}

// send transmits samples that count, and returns how many the module misses.
func send(t testing.TB, board soapy.Board, samples int) (lost uint32) {
	s := streaming(t, board, tx)
	block := make([]byte, 4*s.MTU())
	dry := 0
	var next uint32
	for moved := 0; moved < samples; moved += s.MTU() {
		for i := 0; i < len(block); i += 4 {
			binary.LittleEndian.PutUint32(block[i:], next)
			next++
		}
		var info soapy.BlockInfo
		if moved+s.MTU() >= samples {
			info.Flags = soapy.EndBurst
		}
		for left := block; len(left) > 0; {
			n, err := s.Write(t.Context(), left, info, radiotest.Patience)
			ok(t, err)
			left = left[n:]
		}
	}
	for {
		_, err := s.Status(t.Context(), radiotest.Patience)
		if err == nil {
			break // the end is on air
		}
		if !errors.Is(err, soapy.ErrUnderflow) {
			t.Fatal(err)
		}
		dry++
	}
	t.Logf("the board ran dry %d times", dry)
	ok(t, s.Close())
	missing, err := board.ReadSensor(t.Context(), "tx_lost")
	ok(t, err)
	n, err := strconv.ParseUint(missing, 10, 32)
	ok(t, err)
	return uint32(n) + uint32(dry)
}
