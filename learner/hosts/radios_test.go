package hosts_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/hosts"
	"ringwave/learner/hosts/identity"
	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// radioWorld is hosts with radios on an emulated bench in real time, whose boards start when they do
// and have new phases each time.
type radioWorld struct {
	*world
	usb    usb.Host
	boards []*virtual.HackRF
	ctx    context.Context
	end    func()
	hosts  sync.WaitGroup
}

func serialOf(i int) string { return fmt.Sprintf("%032x", 0x5a0+i) }

func newRadioWorld(t *testing.T, devices int, set ...string) *radioWorld {
	t.Helper()
	w := &radioWorld{world: &world{t: t, folder: filepath.Join(t.TempDir(), "bench"), state: t.TempDir()}}
	_, err := identity.Create(w.folder, identity.Options{Devices: devices})
	must(t, err)
	cfg := virtual.Config{Clock: loopback.WallClock()}
	cfg.Phase = func(board int, turn uint64) loopback.Radians {
		return loopback.Radians(2 * math.Pi * rand.New(rand.NewPCG(uint64(board), turn)).Float64())
	}
	var plugged []virtual.Board
	for i := range devices + 1 {
		h, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serialOf(i)})
		must(t, err)
		w.boards, plugged = append(w.boards, h), append(plugged, h)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: h, Reference: true})
		if i < devices {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: devices, Gain: complex(float32(0.4-0.1*float64(i)), 0)})
		}
	}
	bench, err := virtual.NewBench(cfg)
	must(t, err)
	t.Cleanup(func() { bench.Close() })
	w.usb = virtual.NewHost(plugged...)
	var names []string
	for i := range devices {
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("host:%d", i+1)))
	}
	set = append([]string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=200", "optimizer.rounds=4",
		fmt.Sprintf("devices.count=%d", devices), "channel.mean_per_device=[]", "channel.mean=1",
		"radio.transmitters=[" + strings.Join(names, ", ") + "]", "radio.receiver=hackrf:" + serialOf(devices),
		"calibration.blocks=20", "calibration.quick_blocks=4", "calibration.looks=2", "calibration.round_seconds=0.05",
		"radio.lead_seconds=0.2",
		"encryption.attempts_per_round=8"}, set...)
	w.config, err = experiment.Load("../../hw-configs/virtual-bench-hosts.toml", set...)
	must(t, err)
	w.ctx, w.end = context.WithCancel(t.Context())
	t.Cleanup(func() {
		w.end()
		w.hosts.Wait()
	})
	return w
}

// radios are those of one host.
func (w *radioWorld) radios(more map[string]radio.Opener) experiment.Radios {
	return experiment.Radios{Registry: func(session context.Context, permit radio.TransmitPermit) (*radio.Registry, error) {
		openers := map[string]radio.Opener{"hackrf": hackrf.NewOpener(session, w.usb, permit, virtual.NewGuard())}
		for scheme, o := range more {
			openers[scheme] = o
		}
		return radio.NewRegistry(openers)
	}}
}

// options are those of device i, from 1.
func (w *radioWorld) options(i int, url string) hosts.DeviceOptions {
	return hosts.DeviceOptions{
		Identity: filepath.Join(w.folder, fmt.Sprintf("device-%03d.identity", i)), URL: url,
		State: w.state, Version: "v", Say: w.say, Stay: true, Lab: experiment.Lab{Radios: w.radios(nil)},
		Radio: "hackrf:" + serialOf(i-1) + "?limit_ms=0", Set: []string{"radio.transmit=true", "radio.band_hz=[432e6, 436e6]", "radio.most_gain_db=0"},
	}
}

// device begins device i, from 1, until ctx ends; done is closed then.
func (w *radioWorld) device(ctx context.Context, i int, url string) (done chan struct{}) {
	done = make(chan struct{})
	w.hosts.Go(func() {
		defer close(done)
		err := hosts.RunDevice(ctx, w.options(i, url))
		if err != nil && ctx.Err() == nil {
			w.t.Errorf("device %d: %v", i, err)
		}
	})
	return done
}

// bench begins a server's end, with the port of an earlier one if there was one.
func (w *radioWorld) bench(listen string) (*hosts.Bench, experiment.Lab) {
	t := w.t
	t.Helper()
	b, err := hosts.NewBench(t.Context(), hosts.BenchOptions{Folder: w.folder, Listen: listen, Air: true, Version: "v", Say: w.say})
	must(t, err)
	t.Cleanup(func() { b.Close() })
	return b, experiment.Lab{Fleet: b, Radios: w.radios(map[string]radio.Opener{setup.HostScheme: b.Driver().Opener})}
}

// calibrate calibrates the bench over its devices, and has the config go by that.
func (w *radioWorld) calibrate(b *hosts.Bench, lab experiment.Lab) {
	t := w.t
	t.Helper()
	k, err := lab.NewCalibration(w.config, "")
	must(t, err)
	must(t, b.Calibrate(t.Context(), k.Config))
	dir := filepath.Join(t.TempDir(), "cal")
	r, err := k.Run(t.Context(), dir, experiment.CalibrationObserver{NoAdvice: true})
	must(t, err)
	must(t, b.Close())
	if r.Blocks != 20 {
		t.Errorf("%d blocks", r.Blocks)
	}
	w.config.Calibration.File = filepath.Join(dir, "calibration.toml")
}

// Devices that send over radios of their own, which start when they start, are calibrated by
// soundings, and carry encrypted rounds: also behind one that was begun anew, for which all
// streams begin again, with other starts and phases.
func TestRadiosOnOtherHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("a bench in real time")
	}
	const devices = 2
	w := newRadioWorld(t, devices)
	b, lab := w.bench("localhost:0")
	url := b.URL()
	leaving, leave := context.WithCancel(w.ctx)
	left := w.device(leaving, 1, url)
	w.device(w.ctx, 2, url)
	w.calibrate(b, lab)
	b, lab = w.bench(strings.TrimPrefix(url, "tls://"))
	e, err := lab.New(w.config)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	result, err := e.Run(t.Context(), dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 2 {
			leave()
			<-left
			w.device(w.ctx, 1, url)
		}
	}})
	must(t, err)
	must(t, b.Close())
	for k, row := range readRows(t, dir, w.config.Optimizer.Rounds) {
		t.Logf("round %d: %d attempts, skipped %v", k+1, row.Attempts, row.Skipped)
	}
	if s := result.Summary; s.RoundsSkipped > 1 {
		t.Errorf("%d of %d rounds were skipped: %q", s.RoundsSkipped, s.Rounds, w.said)
	}
	w.end()
	w.hosts.Wait()
	for i, h := range w.boards {
		if m := h.Settings().Mode; m != virtual.ModeOff {
			t.Errorf("board %d is still on: %v", i, m)
		}
	}
}

// What a host's user has not allowed is not sent, and the sentence says what to allow, where it
// can be mended.
func TestRadiosNotAllowed(t *testing.T) {
	for want, change := range map[string]func(o *hosts.DeviceOptions){
		"name this host's with --radio":                            func(o *hosts.DeviceOptions) { o.Radio = "" },
		"of which there is no radio.transmit":                      func(o *hosts.DeviceOptions) { o.Set = nil },
		"of which there is no radio.most_gain_db":                  func(o *hosts.DeviceOptions) { o.Set = o.Set[:2] },
		"--set radio.transmit = false: must be true":               func(o *hosts.DeviceOptions) { o.Set[0] = "radio.transmit=false" },
		"--set radio.frequency_hz=1e9: allowed are keys of [task]": func(o *hosts.DeviceOptions) { o.Set = append(o.Set, "radio.frequency_hz=1e9") },
	} {
		w := newRadioWorld(t, 1, "encryption.randomness=seed", "radio.secrets_from_seed=true")
		b, _ := w.bench("localhost:0")
		o := w.options(1, b.URL())
		change(&o)
		ctx, cancel := context.WithCancel(w.ctx)
		told := make(chan error, 1)
		go func() {
			told <- hosts.RunDevice(ctx, o)
			cancel()
		}()
		if err := b.Calibrate(ctx, w.config); err == nil {
			t.Errorf("%s: the bench was calibrated", want)
		}
		if err := <-told; err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; it should say %q", err, want)
		}
		must(t, b.Close())
		if m := w.boards[0].Settings().Mode; m != virtual.ModeOff {
			t.Errorf("%s: the board is on", want)
		}
	}
}

// A gain beyond what the host's user has allowed, or power at the antenna's port that the
// server's user alone has, ends the calibration with that host's sentence.
func TestRadiosBeyondThePermit(t *testing.T) {
	for want, change := range map[string]func(o *hosts.DeviceOptions){
		"the transmit gains add up to 0 dB; allowed is at most -30 dB": func(o *hosts.DeviceOptions) { o.Set[2] = "radio.most_gain_db=-30" },
		"until the user has confirmed it by radio.bias_tee = true":     func(o *hosts.DeviceOptions) { o.Radio += "&bias=on" },
	} {
		w := newRadioWorld(t, 1, "radio.bias_tee=true")
		b, lab := w.bench("localhost:0")
		o := w.options(1, b.URL())
		change(&o)
		w.hosts.Go(func() {
			if err := hosts.RunDevice(w.ctx, o); err != nil && w.ctx.Err() == nil {
				t.Errorf("%s: %v", want, err)
			}
		})
		k, err := lab.NewCalibration(w.config, "")
		must(t, err)
		must(t, b.Calibrate(t.Context(), k.Config))
		_, err = k.Run(t.Context(), filepath.Join(t.TempDir(), "cal"), experiment.CalibrationObserver{NoAdvice: true})
		if err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "transmitter 1") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		must(t, b.Close())
	}
}
