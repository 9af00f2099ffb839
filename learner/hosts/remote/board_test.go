package remote_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/hackrf"
	"ringwave/radio/virtual"
)

// rig is emulated boards, the last of which hears all others; each of these has a host of
// its own, and is host:INDEX.
type rig struct {
	boards  []*virtual.HackRF
	hosts   []*remote.Host
	devices *radio.Registry
	cfg     array.Config
	end     context.CancelFunc // of the session
}

// params are those of all boards, which wait for each other; as long as they like with
// patient.
const (
	params  = "?transfer=16384&lna=0&vga=0&hold=on"
	patient = "&deadline_ms=0"
)

// earliest is the operation that asks a board's host where the board is.
const earliest = "earliest"

func tellEarliest(_ context.Context, tx radio.Transmitter, _ string, _ []byte) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(nil, uint64(tx.(radio.Pacer).Earliest())), nil
}

// newRig makes boards with trigger wires from the first to all others, and 10 MHz.
func newRig(t testing.TB, boards int, more string, change func(*virtual.Config)) *rig {
	t.Helper()
	r := &rig{cfg: array.Config{Rate: rate, Frequency: 433.92e6}}
	var cfg virtual.Config
	var plugged []virtual.Board
	for i := range boards {
		b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(i), Reference: &virtual.Gains{}})
		ok(t, err)
		r.boards, plugged = append(r.boards, b), append(plugged, b)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: true})
		if i > 0 {
			cfg.Triggers = append(cfg.Triggers, virtual.Wire{From: 0, To: i})
		}
		if i < boards-1 {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: boards - 1, Gain: 1})
		}
	}
	if change != nil {
		change(&cfg)
	}
	bench, err := virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, bench.Close()) })
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, rate, 20)
	ok(t, err)
	session, end := context.WithCancel(context.Background())
	r.end = end
	opener := hackrf.NewOpener(session, virtual.NewHost(plugged...), permit, virtual.NewGuard())
	local, err := radio.NewRegistry(map[string]radio.Opener{"hackrf": opener})
	ok(t, err)
	for i := range boards - 1 {
		h := remote.NewHost(remote.HostConfig{
			Open: func(ctx context.Context) (radio.Device, error) {
				return local.Open(ctx, "hackrf:"+serial(i)+params+more)
			},
			Do: tellEarliest,
		})
		r.hosts = append(r.hosts, h)
		r.cfg.Transmitters = append(r.cfg.Transmitters, radio.URI{Scheme: "host", Name: string(rune('0' + i))}.String())
	}
	t.Cleanup(func() {
		end()
		for _, h := range r.hosts {
			_ = h.Close() // what was still to be sent is no matter
		}
	})
	r.cfg.Receiver = "hackrf:" + serial(boards-1) + params + more
	r.devices, err = radio.NewRegistry(map[string]radio.Opener{"hackrf": opener, "host": r.opener()})
	ok(t, err)
	return r
}

func (r *rig) opener() *remote.Opener {
	return remote.NewOpener(func(index int) (remote.Caller, error) {
		if index >= len(r.hosts) {
			return nil, errors.New("there is no such host")
		}
		return &direct{host: r.hosts[index]}, nil
	})
}

func (r *rig) open(t testing.TB, uri string) radio.Device {
	t.Helper()
	d, err := r.devices.Open(limited(t), uri)
	ok(t, err)
	t.Cleanup(func() { r.end(); _ = d.Close() })
	return d
}

func (r *rig) off(t testing.TB) {
	t.Helper()
	for i, b := range r.boards {
		if m := b.Settings().Mode; m != virtual.ModeOff {
			t.Errorf("board %d is still on: %v", i, m)
		}
	}
}

// Boards of other hosts that are started by the trigger share an index with the receiver of
// this one: what each sends at a given index arrives where the other's does.
func TestArray(t *testing.T) {
	r := newRig(t, 4, patient, nil)
	a, err := array.Open(limited(t), r.devices, r.cfg)
	ok(t, err)
	for again := range 2 {
		ok(t, a.Start(limited(t)))
		at := radio.SampleIndex(0)
		for i, tx := range a.Transmitters() {
			at = max(at, tx.(radio.Pacer).Earliest()+radio.SampleIndex(rate)/5)
			if _, ok := tx.(radio.LossChecker); !ok || tx.State() != radio.Running {
				t.Errorf("transmitter %d is %v", i, tx.State())
			}
		}
		for i, tx := range a.Transmitters() {
			_, err := tx.Write(limited(t), []complex64{complex(0.5, 0)}, radio.TxMeta{Timed: true, Start: at + radio.SampleIndex(i), BurstEnd: true})
			ok(t, err)
		}
		heard := map[radio.SampleIndex]complex64{}
		dst := make([]complex64, 1<<14)
		for done := false; !done; {
			n, meta, err := a.Receiver().Read(limited(t), dst)
			ok(t, err)
			for k, x := range dst[:n] {
				if x != 0 {
					heard[meta.Index(k)-at] = x
				}
			}
			done = meta.Index(n-1) > at+1000
		}
		if len(heard) != 3 || heard[0] == 0 || heard[1] == 0 || heard[2] == 0 {
			t.Errorf("start %d: heard at %v of %d; expected is 0, 1 and 2", again, heard, at)
		}
	}
	if a.Flush() != 0 {
		t.Errorf("a flush of %d", a.Flush())
	}
	ok(t, a.Coherent(limited(t)))
	r.end()
	ok(t, a.Close())
	r.off(t)
}

// A missing wire is told as it is of boards of this host.
func TestArrayNotTriggered(t *testing.T) {
	r := newRig(t, 3, "&deadline_ms=500", func(c *virtual.Config) { c.Triggers = c.Triggers[1:] })
	a, err := array.Open(limited(t), r.devices, r.cfg)
	ok(t, err)
	if err := a.Start(limited(t)); !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), "transmitter 2, host:1, was never triggered") {
		t.Error(err)
	}
	r.end()
	ok(t, a.Close())
	r.off(t)
}

// A board that waits for its trigger is full when Start returns, and its index stands still.
func TestArmedIsFull(t *testing.T) {
	r := newRig(t, 3, patient, nil)
	d := r.open(t, "host:1")
	ctx := limited(t)
	_, err := d.(radio.RateControl).SetSampleRate(ctx, radio.Transmit, rate)
	ok(t, err)
	_, err = d.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, 433.92e6)
	ok(t, err)
	trigger := d.(radio.TriggerControl)
	ok(t, trigger.SetTrigger(ctx, trigger.TriggerSources()[0]))
	tx := running(t, d)
	if tx.State() != radio.Armed {
		t.Fatalf("the stream is %v", tx.State())
	}
	told := tx.(radio.Pacer).Earliest()
	b, err := tx.(interface {
		Do(context.Context, string, []byte) ([]byte, error)
	}).Do(ctx, earliest, nil)
	ok(t, err)
	if far := radio.SampleIndex(binary.LittleEndian.Uint64(b)); told == 0 || told != far || tx.(radio.Pacer).Earliest() != told {
		t.Errorf("full at %d; the board is at %d, and then %d", told, far, tx.(radio.Pacer).Earliest())
	}
}

// What is written through a proxy is on air at its index, to the bit.
func TestBoardSamples(t *testing.T) {
	r := newRig(t, 2, patient+"&feed=strict", func(c *virtual.Config) { c.Await = []int{0, 1} })
	d, rxd := r.open(t, "host:0"), r.open(t, r.cfg.Receiver)
	for _, dev := range []radio.Device{d, rxd} {
		dir := radio.Receive
		if dev == d {
			dir = radio.Transmit
		}
		_, err := dev.(radio.RateControl).SetSampleRate(limited(t), dir, rate)
		ok(t, err)
		_, err = dev.(radio.FrequencyControl).SetFrequency(limited(t), dir, 433.92e6)
		ok(t, err)
	}
	tx := running(t, d)
	_, paces := tx.(radio.Pacer)
	_, idles := tx.(radio.Idler)
	_, checks := tx.(radio.LossChecker)
	counter, counts := tx.(radio.ClipCounter)
	if paces || !idles || !checks || !counts {
		t.Errorf("paces %v, idles %v, checks %v, counts %v", paces, idles, checks, counts)
	}
	rx, err := rxd.(radio.ReceiveOpener).OpenReceiver(limited(t))
	ok(t, err, rx.Start(limited(t)))
	x := make([]complex64, 20000)
	for k, v := range noise(1, len(x)) {
		x[k] = complex(float32(int(real(v)*20))/127, float32(int(imag(v)*20))/127)
	}
	x[5] = 2 // beyond full scale
	_, err = tx.Write(limited(t), x, radio.TxMeta{Timed: true, Start: 1000, BurstEnd: true})
	ok(t, err, tx.(radio.Idler).Idle(limited(t), 300000))
	want := make([]complex64, 60000)
	copy(want[1000:], x)
	want[1005] = 1
	same(t, read(t, rx, len(want)), want)
	ok(t, tx.(radio.LossChecker).CheckLoss(limited(t)))
	if counter.Clipped() != 1 {
		t.Errorf("%d samples were clipped; expected is 1", counter.Clipped())
	}
	if all := events(tx); len(all) != 1 || all[0].Kind != radio.BurstSent || all[0].Index != 21000 {
		t.Errorf("%+v", all)
	}
}

// What the far host's permit refuses comes back as its sentence, and nothing is sent.
func TestPermit(t *testing.T) {
	r := newRig(t, 2, patient, nil)
	d := r.open(t, "host:0")
	ctx := limited(t)
	g := d.(radio.GainControl)
	if _, err := g.SetGain(ctx, radio.Transmit, "txvga", 21); !errors.Is(err, radio.ErrNotPermitted) || !strings.HasSuffix(err.Error(), "the transmit gains add up to 21 dB; allowed is at most 20 dB") {
		t.Error(err)
	}
	got, err := g.SetGain(ctx, radio.Transmit, "txvga", 7)
	ok(t, err)
	if now, err := g.Gain(radio.Transmit, "txvga"); got != 7 || now != 7 || err != nil || len(g.GainStages(radio.Transmit)) != 2 {
		t.Errorf("took %v, has %v: %v", got, now, err)
	}
	if _, err := g.Gain(radio.Transmit, "lna"); err == nil {
		t.Error("a gain that it does not have")
	}
	f := d.(radio.FrequencyControl)
	_, err = f.SetFrequency(ctx, radio.Transmit, 100e6)
	if err == nil {
		_, err = d.(radio.TransmitOpener).OpenTransmitter(ctx)
	}
	if !errors.Is(err, radio.ErrNotPermitted) || !strings.Contains(err.Error(), "the carrier is 100 MHz; allowed is 431 MHz to 439 MHz") {
		t.Error(err)
	}
	r.off(t)
	_, err = f.SetFrequency(ctx, radio.Transmit, 433e6)
	ok(t, err)
	tx := running(t, d)
	if _, err := g.SetGain(ctx, radio.Transmit, "txvga", 30); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}
	ok(t, d.Close())
	if tx.State() != radio.Closed {
		t.Errorf("the stream is %v", tx.State())
	}
	r.off(t)
}

// Only the index of a host that there is opens a radio.
func TestOpener(t *testing.T) {
	r := newRig(t, 2, patient, nil)
	for uri, want := range map[string]string{
		"host:":      "allowed is the index of a host, as in host:3",
		"host:-1":    "allowed is the index of a host",
		"host:x":     "allowed is the index of a host",
		"host:7":     "there is no such host",
		"host:0?a=1": `has the parameter "a"; allowed is none`,
	} {
		if _, err := r.devices.Open(limited(t), uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	d := r.open(t, "host:0")
	if d.Info().Serial != serial(0) || r.hosts[0].Info().Serial != serial(0) || len(d.Info().Notes) == 0 {
		t.Errorf("%+v", d.Info())
	}
	if n := d.(interface{ BufferSamples() radio.SampleCount }).BufferSamples(); n <= 0 {
		t.Errorf("its buffers hold %d samples", n)
	}
	clock := d.(radio.ClockControl)
	ok(t, clock.SetClockSource(limited(t), "external"))
	if locked, err := clock.ClockLocked(limited(t)); !locked || err != nil || clock.ClockSource() != "external" {
		t.Error(locked, err, clock.ClockSource())
	}
}
