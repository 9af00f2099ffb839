//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// plutoBench is an emulated Pluto that transmits and another that hears it; blocks counts
// what is handed to the former.
func plutoBench(t *testing.T) (servers [2]*iiod.Server, addresses [2]string, blocks *atomic.Int64) {
	t.Helper()
	blocks = &atomic.Int64{}
	cfg := virtual.Config{Clock: loopback.WallClock(), Backlog: 20 * time.Millisecond, Links: []virtual.Link{{From: 0, To: 3, Gain: 0.5}}}
	var boards []iiod.Config
	for range servers {
		tx, rx := iiod.NewPlace(radio.Transmit), iiod.NewPlace(radio.Receive)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: tx}, virtual.Place{Radio: rx})
		boards = append(boards, iiod.Config{Transmit: tx, Receive: rx, RealTime: true, Log: func(_ int, line string) {
			if strings.HasPrefix(line, "WRITEBUF") {
				blocks.Add(1)
			}
		}})
	}
	bench, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, c := range boards {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = ln.Addr().String()
		if servers[i], err = iiod.Serve(ln, c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := servers[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return servers, addresses, blocks
}

// A run over Plutos that is killed, or stands still, leaves no carrier: the program's
// own guard reaches boards on the network, in a build without USB as well.
func TestPlutoCarriers(t *testing.T) {
	for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM} {
		t.Run(by.String(), func(t *testing.T) {
			servers, addresses, blocks := plutoBench(t)
			args := []string{"run", "../../hw-configs/bench-pluto.toml", "--out", filepath.Join(t.TempDir(), "run")}
			for _, set := range []string{
				"task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=100", "optimizer.rounds=100000", "radio.transmit=true",
				fmt.Sprintf("radio.transmitters=[%q]", "pluto:"+addresses[0]+"?limit_ms=1000"), "radio.receiver=pluto:" + addresses[1],
			} {
				args = append(args, "--set", set)
			}
			output, err := os.Create(filepath.Join(t.TempDir(), "output"))
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"))
			cmd.Stdout, cmd.Stderr = output, output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }()
			const bound = 30 * time.Second
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			wait := func(what string, met func() bool) {
				t.Helper()
				for end := time.Now().Add(bound); !met(); <-tick.C {
					if time.Now().After(end) {
						t.Fatalf("waited %v for %s\n%s", bound, what, experimenttest.ReadFile(t, filepath.Dir(output.Name()), "output"))
					}
				}
			}
			wait("the carrier", func() bool { return servers[0].Carrier() && blocks.Load() > 20 })
			if err := cmd.Process.Signal(by); err != nil {
				t.Fatal(err)
			}
			wait("the carrier to go off", func() bool { return !servers[0].Carrier() })
			if gain, err := servers[0].Attribute("ad9361-phy", "voltage0", "hardwaregain"); gain != "-89.750000 dB" {
				t.Errorf("the attenuator is at %s, %v", gain, err)
			}
			want := "ringwave guard: the program has ended without switching them off: switched off pluto:" + addresses[0]
			switch by {
			case syscall.SIGSTOP:
				want = "ringwave guard: the program gave no sign of life for 1s: switched off pluto:" + addresses[0]
			case syscall.SIGTERM:
				want = "ringwave run --resume"
			}
			wait(want, func() bool {
				return strings.Contains(string(experimenttest.ReadFile(t, filepath.Dir(output.Name()), "output")), want)
			})
		})
	}
}
