//go:build linux

package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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
// the board of a URI ("transmit URI"), or receives, and says so.
const clientVar = "RINGWAVE_TEST_SOAPY_CLIENT"

func TestMain(m *testing.M) {
	if what := os.Getenv(clientVar); what != "" {
		fmt.Println(beClient(what))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func beClient(what string) error {
	way, uri, _ := strings.Cut(what, " ")
	at, ctx := receive, context.Background()
	if way == "transmit" {
		at = transmit
	}
	u, err := radio.ParseURI(uri)
	if err != nil {
		return err
	}
	b, err := remote.New(&net.Dialer{}).Make(ctx, u, soapy.Args{"driver": "hackrf"})
	if err != nil {
		return err
	}
	if err := b.SetSampleRate(ctx, at, 4e6); err != nil {
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
		if _, _, err := s.Read(ctx, buf, time.Second); err != nil && !errors.Is(err, soapy.ErrOverflow) {
			return err
		}
		if i == 40 {
			fmt.Println("streaming")
		}
	}
}

// client runs one until it streams.
func client(t *testing.T, way, uri string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), clientVar+"="+way+" "+uri)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "streaming\n" {
		t.Fatalf("the client says %q: %v", line, err)
	}
	return cmd
}

// A client that is killed leaves no carrier on, and its board to others, also when it stood
// still before; while it stands still the board goes on. The server itself may not survive the
// end of a receiver: the module for HackRFs frees what samples are still put into.
func TestKilled(t *testing.T) {
	for _, way := range []string{"transmit", "receive"} {
		for _, params := range []string{"", "?stream=udp"} {
			for _, stopped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s%s stopped=%v", way, params, stopped), func(t *testing.T) { killed(t, way, params, stopped) })
			}
		}
	}
}

func killed(t *testing.T, way, params string, stopped bool) {
	s, boards := bench(t, virtual.Config{}, serialA)
	h, mode := boards[0], virtual.ModeReceive
	if way == "transmit" {
		mode = virtual.ModeTransmit
	}
	must[[]soapy.Args](t)(remote.New(&patient{}).Find(t.Context(), parse(t, "soapy-remote:"+s.address), nil)) // it listens
	cmd := client(t, way, "soapy-remote:"+s.address+params)
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
	times := 10
	if os.Getenv("RINGWAVE_LONG") == "1" {
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
