//go:build linux

package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/remote"
	"ringwave/radio/virtual"
)

// clientVar has the test's program be a client in place of running tests: it transmits with
// the board of a URI at a rate ("transmit 4e6 URI"), or receives, and says so, and also what
// is lost.
const clientVar = "RINGWAVE_TEST_SOAPY_CLIENT"

func TestMain(m *testing.M) {
	if what := os.Getenv(clientVar); what != "" {
		fmt.Println(beClient(what))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func beClient(what string) error {
	words := strings.Fields(what)
	at, ctx := receive, context.Background()
	if words[0] == "transmit" {
		at = transmit
	}
	rate, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		return err
	}
	u, err := radio.ParseURI(words[2])
	if err != nil {
		return err
	}
	b, err := remote.New(&net.Dialer{}).Make(ctx, u, soapy.Args{"driver": "hackrf"})
	if err != nil {
		return err
	}
	if err := b.SetSampleRate(ctx, at, rate); err != nil {
		return err
	}
	s, err := b.SetupStream(ctx, at, "CS8", nil)
	if err != nil {
		return err
	}
	if err := s.Activate(ctx, 0, 0); err != nil {
		return err
	}
	if at == transmit {
		go func() {
			for {
				if _, err := s.Status(ctx, time.Second); errors.Is(err, soapy.ErrUnderflow) {
					fmt.Println("underflow")
				}
			}
		}()
		// Some frames, so that all of the server's buffers have held one.
		buf := make([]byte, 2*s.MTU())
		for i := 0; ; i++ {
			if _, err := s.Write(ctx, buf, soapy.BlockInfo{}, time.Second); err != nil {
				return err
			}
			if i == 40 {
				fmt.Println("streaming")
			}
		}
	}
	buf := make([]byte, 2*s.MTU())
	for i := 0; ; i++ {
		if _, _, err := s.Read(ctx, buf, time.Second); errors.Is(err, soapy.ErrOverflow) {
			fmt.Println("overflow")
		} else if err != nil {
			return err
		}
		if i == 40 {
			fmt.Println("streaming")
		}
	}
}

// client runs one until it streams, and returns what it goes on to say.
func client(t *testing.T, way, rate, uri string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), clientVar+"="+way+" "+rate+" "+uri)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said := bufio.NewReader(out)
	for {
		switch line, err := said.ReadString('\n'); line {
		case "streaming\n":
			return cmd, said
		case "overflow\n", "underflow\n": // as it begins
		default:
			t.Fatalf("the client says %q: %v", line, err)
		}
	}
}

// A client that is killed leaves no carrier on, and its board to others, also when it stood
// still before; while it stands still the board goes on. The server itself may not survive the
// end of a receiver: the module for HackRFs frees what samples are still put into.
func TestKilled(t *testing.T) {
	for _, way := range []string{"transmit", "receive"} {
		for _, params := range []string{"", "?stream=udp"} {
			for _, stopped := range []bool{false, true} {
				if !long() && (way == "receive" || stopped && params != "") {
					continue
				}
				t.Run(fmt.Sprintf("%s%s stopped=%v", way, params, stopped), func(t *testing.T) { killed(t, way, params, stopped) })
			}
		}
	}
}

// long reports whether tests may take minutes.
func long() bool { return os.Getenv("RINGWAVE_LONG") == "1" }

func killed(t *testing.T, way, params string, stopped bool) {
	s, boards := bench(t, virtual.Config{}, serialA)
	h, mode := boards[0], virtual.ModeReceive
	if way == "transmit" {
		mode = virtual.ModeTransmit
	}
	must[[]soapy.Args](t)(remote.New(&patient{}).Find(t.Context(), parse(t, "soapy-remote:"+s.address), nil)) // it listens
	cmd, _ := client(t, way, "4e6", "soapy-remote:"+s.address+params)
	if h.Settings().Mode != mode {
		t.Fatalf("the board is in mode %d while the client streams", h.Settings().Mode)
	}
	if stopped {
		ok(t, cmd.Process.Signal(syscall.SIGSTOP))
		// A second of the board's, which is longer than any buffer.
		since := h.M0().M0Count
		eventually(t, "the board streams", func() bool { return h.M0().M0Count-since > 2*4_000_000 })
		if h.Settings().Mode != mode {
			t.Errorf("the board is in mode %d while its client stands still", h.Settings().Mode)
		}
	}
	ok(t, cmd.Process.Kill())
	began := time.Now()
	crashed := func() bool {
		select {
		case <-s.ended:
			return way == "receive"
		default:
			return false
		}
	}
	eventually(t, "the board is off", func() bool { return h.Settings().Mode == virtual.ModeOff || crashed() })
	t.Logf("off after %v", time.Since(began).Round(time.Millisecond))
	// The server has given it back, or it would not open it for another.
	var b soapy.Board
	eventually(t, "the board is free", func() bool {
		var err error
		b, err = remote.New(&net.Dialer{}).Make(t.Context(), parse(t, "soapy-remote:"+s.address), soapy.Args{"driver": "hackrf"})
		return err == nil || crashed()
	})
	if crashed() {
		t.Logf("the server has crashed: %v", s.cmd.ProcessState)
		return
	}
	rx := must[soapy.Stream](t)(b.SetupStream(t.Context(), receive, "CS8", nil))
	ok(t, rx.Activate(t.Context(), 0, 0))
	_, _, err := rx.Read(t.Context(), make([]byte, 2), radiotest.Patience)
	ok(t, err, b.Close())
}

// A board is off behind each stream, however often it streams, and the server survives: what
// its threads do meanwhile is not in the way.
func TestManyStreams(t *testing.T) {
	times := 5
	if long() {
		times = 100
	}
	s, boards := bench(t, virtual.Config{}, serialA)
	b := made(t, s, "", soapy.Args{"driver": "hackrf"})
	for _, at := range []soapy.Channel{receive, transmit} {
		ok(t, b.SetSampleRate(t.Context(), at, 20e6))
		buf := make([]byte, 65536)
		for n := range times {
			x := must[soapy.Stream](t)(b.SetupStream(t.Context(), at, "CS8", nil))
			ok(t, x.Activate(t.Context(), 0, 0))
			for range n % 8 {
				var err error
				if at == receive {
					_, _, err = x.Read(t.Context(), buf, radiotest.Patience)
				} else {
					_, err = x.Write(t.Context(), buf, soapy.BlockInfo{}, radiotest.Patience)
				}
				if err != nil && !errors.Is(err, soapy.ErrOverflow) {
					t.Fatal(err)
				}
			}
			ok(t, x.Deactivate(t.Context(), 0, 0))
			if mode := boards[0].Settings().Mode; mode != virtual.ModeOff {
				t.Fatalf("mode %d behind stream %d", mode, n)
			}
			ok(t, x.Close())
		}
	}
	ok(t, b.Close())
}

// TestThroughput streams at a HackRF's highest rate, and says what that took.
func TestThroughput(t *testing.T) {
	if !long() {
		t.Skip("this takes a minute (RINGWAVE_LONG=1 runs it)")
	}
	const rate, bytes, seconds = 20e6, 2, 10.0
	for _, way := range []string{"receive", "transmit"} {
		for _, params := range []string{"", "?stream=udp", "?stream=udp&mtu=4144"} {
			t.Run(way+params, func(t *testing.T) {
				s, boards := bench(t, virtual.Config{}, serialA)
				must[[]soapy.Args](t)(remote.New(&patient{}).Find(t.Context(), parse(t, "soapy-remote:"+s.address), nil)) // it listens
				cmd, out := client(t, way, "20e6", "soapy-remote:"+s.address+params)
				began, from, short := time.Now(), boards[0].M0().M0Count, boards[0].M0().Shortfalls
				eventually(t, "the board streams", func() bool { return float64(boards[0].M0().M0Count-from) > seconds*rate*bytes })
				took, short := time.Since(began), boards[0].M0().Shortfalls-short
				ok(t, cmd.Process.Kill())
				said, err := io.ReadAll(out)
				ok(t, err)
				_ = cmd.Wait() // killed
				s.kill()
				share := func(p *os.ProcessState) float64 {
					return 100 * (p.UserTime() + p.SystemTime()).Seconds() / took.Seconds()
				}
				t.Logf("%.2f s for %v s of samples; %d losses told, the board itself lost samples %d times; the client took %.0f %% of a core, the server %.0f %%",
					took.Seconds(), seconds, strings.Count(string(said), "flow\n"), short, share(cmd.ProcessState), share(s.cmd.ProcessState))
			})
		}
	}
}
