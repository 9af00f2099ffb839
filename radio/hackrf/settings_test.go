package hackrf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// What is set is on the board, on its grid.
func TestSettings(t *testing.T) {
	r := newRig(t, rigConfig{boards: 1})
	d := r.open(0, "freq_hz=433920000&rate_hz=20e6&lna=17&vga=21&txvga=5")
	ctx := limited(t)
	want := virtual.Settings{Frequency: 433.92e6, Rate: 20e6, Filter: 15e6, Gains: virtual.Gains{LNA: 16, VGA: 20, TXVGA: 5}}
	check := func() {
		t.Helper()
		if got := r.boards[0].Settings(); got != want {
			t.Errorf("the board has\n%+v, want\n%+v", got, want)
		}
	}
	check()
	f, err := d.SetFrequency(ctx, radio.Transmit, 2412e6+0.7)
	ok(t, err)
	rate, err := d.SetSampleRate(ctx, radio.Receive, 10e6/3)
	ok(t, err)
	want.Frequency, want.Rate, want.Filter = 2412e6, 10e6/3.0, 2.5e6
	if f != want.Frequency || rate != want.Rate || d.SampleRate(radio.Transmit) != rate || d.Frequency(radio.Receive) != f || d.Filter() != 2.5e6 {
		t.Errorf("%v, %v", f, rate)
	}
	check()
	b, err := d.SetFilter(ctx, 9.99e6)
	ok(t, err)
	want.Filter = 9e6
	if b != 9e6 {
		t.Errorf("filter %v", b)
	}
	check()
	for _, g := range []struct {
		dir       radio.Direction
		stage     string
		set, take radio.Decibels
	}{
		{radio.Receive, "lna", 39.9, 32}, {radio.Receive, "vga", 62, 62}, {radio.Transmit, "txvga", 46.5, 46},
		{radio.Receive, "amp", 10, 0}, {radio.Transmit, "amp", 11, 11},
	} {
		got, err := d.SetGain(ctx, g.dir, g.stage, g.set)
		ok(t, err)
		if now, err := d.Gain(g.dir, g.stage); err != nil || got != g.take || now != got {
			t.Errorf("%v %s: set %v, took %v, has %v", g.dir, g.stage, g.set, got, now)
		}
	}
	// The amplifier is switched when a stream starts.
	want.Gains = virtual.Gains{LNA: 32, VGA: 62, TXVGA: 46}
	check()
	ok(t, d.SetClockOut(ctx, true))
	want.ClockOut = true
	check()
	ok(t, d.SetExplicit(ctx, hackrf.Explicit{IF: 2.5e9, LO: 1e9, Path: hackrf.LowPass}))
	if f := d.Frequency(radio.Receive); f != 1.5e9 {
		t.Errorf("explicit: %v", f)
	}
	if s := r.boards[0].Settings(); !s.Explicit || s.Frequency != 1.5e9 {
		t.Errorf("explicit: %+v", s)
	}
	if text := radio.Describe(d).String(); !strings.Contains(text, "never tried on a real one") || !strings.Contains(text, "HackRF One") || !strings.Contains(text, "firmware") {
		t.Error(text)
	}
}

// What is no setting of a board is refused by name, with what is.
func TestSettingsRefused(t *testing.T) {
	r := newRig(t, rigConfig{boards: 1})
	d := r.open(0, "")
	ctx := limited(t)
	before := r.boards[0].Settings()
	for name, err := range map[string]error{
		"the frequency of hackrf:":   second(d.SetFrequency(ctx, radio.Receive, 0.9e6)),
		"the sample rate of":         second(d.SetSampleRate(ctx, radio.Receive, 21e6)),
		"the filter of":              second(d.SetFilter(ctx, 1e6)),
		"gain lna of":                second(d.SetGain(ctx, radio.Receive, "lna", 41)),
		"gain txvga of":              second(d.SetGain(ctx, radio.Transmit, "txvga", -1)),
		`has no transmit gain "lna"`: second(d.SetGain(ctx, radio.Transmit, "lna", 8)),
		"the clock source of":        d.SetClockSource(ctx, "gps"),
		"the trigger source of":      d.SetTrigger(ctx, "pps"),
		"the intermediate frequency": d.SetExplicit(ctx, hackrf.Explicit{IF: 1e9}),
		"the local oscillator":       d.SetExplicit(ctx, hackrf.Explicit{IF: 2.5e9, LO: 1e6, Path: hackrf.HighPass}),
		"the path of":                d.SetExplicit(ctx, hackrf.Explicit{IF: 2.5e9, Path: 3}),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := r.boards[0].Settings(); after != before {
		t.Errorf("the board has\n%+v, had\n%+v", after, before)
	}
}

func second[T any](_ T, err error) error { return err }

// Bias and amplifier follow streams.
func TestBiasAndAmp(t *testing.T) {
	r := newRig(t, rigConfig{boards: 1})
	d := r.open(0, lockstep+"&bias=on&rx_amp=11")
	ctx := limited(t)
	now := func() virtual.Settings { return r.boards[0].Settings() }
	if s := now(); s.BiasTee || s.Gains.Amp {
		t.Errorf("before a stream: %+v", s)
	}
	rx := receiver(t, d)
	start(t, rx)
	if s := now(); !s.BiasTee || !s.Gains.Amp {
		t.Errorf("receiving: %+v", s)
	}
	ok(t, rx.Close())
	if s := now(); s.BiasTee {
		t.Errorf("after it: %+v", s)
	}
	tx := transmitter(t, d)
	start(t, tx)
	if s := now(); !s.BiasTee || s.Gains.Amp || s.Gains.TXVGA != 0 {
		t.Errorf("transmitting: %+v", s)
	}
	_, err := d.SetGain(ctx, radio.Transmit, "amp", 11)
	ok(t, err, d.SetBias(ctx, false))
	if s := now(); s.BiasTee || !s.Gains.Amp {
		t.Errorf("transmitting: %+v", s)
	}
}

// Nothing goes out that was not permitted, whichever way it is asked for.
func TestPermit(t *testing.T) {
	narrow, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 2.40e9, Max: 2.41e9}, 2e6, 20)
	ok(t, err)
	ctx := limited(t)
	none := newRig(t, rigConfig{boards: 1, permit: &radio.TransmitPermit{}})
	d := none.open(0, lockstep)
	if _, err := d.OpenTransmitter(ctx); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}
	if _, err := d.SetGain(ctx, radio.Transmit, "txvga", 1); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}
	if _, err := none.tryOpen(0, "at=001/001&txvga=1"); err == nil {
		t.Error("opened with a gain that is not permitted")
	}
	ok(t, d.Close())
	if _, err := none.tryOpen(0, "txvga=1"); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}

	// Power at the antenna is permitted by itself, to transmitters, too.
	for name, p := range map[string]radio.TransmitPermit{"nothing": {}, "a band": narrow} {
		rig := newRig(t, rigConfig{boards: 1, permit: &p})
		if _, err := rig.tryOpen(0, "bias=on"); !errors.Is(err, radio.ErrNotPermitted) || !strings.Contains(err.Error(), "radio.bias_tee") {
			t.Errorf("%s: %v", name, err)
		}
		d := rig.open(0, "")
		if err := d.SetBias(ctx, true); !errors.Is(err, radio.ErrNotPermitted) {
			t.Errorf("%s: %v", name, err)
		}
		rx := receiver(t, d)
		start(t, rx)
		if rig.boards[0].Settings().BiasTee {
			t.Errorf("%s: the power is on", name)
		}
		ok(t, rx.Close(), d.SetBias(ctx, false))
	}

	r := newRig(t, rigConfig{boards: 1, permit: &narrow})
	d = r.open(0, lockstep+"&freq_hz=2400500000")
	// The signal would reach below the band.
	if _, err := d.OpenTransmitter(ctx); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}
	_, err = d.SetFrequency(ctx, radio.Transmit, 2.405e9)
	ok(t, err)
	tx := transmitter(t, d)
	_, err = d.SetGain(ctx, radio.Transmit, "amp", 11)
	ok(t, err)
	for what, err := range map[string]error{
		"gains":    second(d.SetGain(ctx, radio.Transmit, "txvga", 10)),
		"retune":   second(d.SetFrequency(ctx, radio.Receive, 2.42e9)),
		"explicit": d.SetExplicit(ctx, hackrf.Explicit{IF: 2.405e9}),
	} {
		if !errors.Is(err, radio.ErrNotPermitted) {
			t.Errorf("%s: %v", what, err)
		}
	}
	start(t, tx)
	if s := r.boards[0].Settings(); s.Frequency != 2.405e9 || s.Gains.TXVGA != 0 || s.UnderrunLimit != 2*2_000_000 {
		t.Errorf("%+v", s)
	}
	r.cut()
	ok(t, tx.Close())
	ok(t, d.SetExplicit(ctx, hackrf.Explicit{IF: 2.405e9}))
	if _, err := d.OpenTransmitter(ctx); !errors.Is(err, radio.ErrNotPermitted) {
		t.Error(err)
	}
}

// Old firmware: what it lacks is refused with the version that is needed, and never
// asked for.
func TestOldFirmware(t *testing.T) {
	r := newRig(t, rigConfig{boards: 1, api: virtual.API2018})
	d := r.open(0, "txvga=0")
	ctx := limited(t)
	for what, err := range map[string]error{
		"clock out": d.SetClockOut(ctx, true), "clock in": second(d.ClockLocked(ctx)),
		"clock": d.SetClockSource(ctx, "external"), "transmit": second(d.OpenTransmitter(ctx)),
	} {
		if !errors.Is(err, hackrf.ErrOldFirmware) || !strings.Contains(err.Error(), "010") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ok(t, d.SetTrigger(ctx, "trigger-in"))
	rx := receiver(t, d)
	start(t, rx)
	ok(t, rx.Close())
	for _, q := range r.boards[0].Transcript() {
		if q.Err != nil {
			t.Errorf("the board refused %v", q)
		}
	}
	if notes := strings.Join(d.Info().Notes, "\n"); !strings.Contains(notes, "does not tell of lost samples") {
		t.Error(notes)
	}
}

// A HackRF Pro's trigger is at pins that the driver does not switch, and is refused.
func TestProHasNoTrigger(t *testing.T) {
	r := newRig(t, rigConfig{boards: 1})
	r.opener = hackrf.NewOpener(t.Context(), pro{r.host}, anything(t), r.guard)
	if _, err := r.tryOpen(0, "trigger=trigger-in"); err == nil || !strings.Contains(err.Error(), "HackRF Pro has its trigger at P1 and P2") {
		t.Error(err)
	}
	d := r.open(0, "")
	if err := d.SetTrigger(limited(t), "trigger-in"); err == nil || !strings.Contains(err.Error(), "P1_CTRL") {
		t.Error(err)
	}
	if all := d.TriggerSources(); len(all) > 0 || d.Info().Model != "HackRF Pro" {
		t.Errorf("%s has %v", d.Info().Model, all)
	}
	ok(t, d.SetTrigger(limited(t), ""))
}

// pro is a host whose boards say that each is a HackRF Pro.
type pro struct{ usb.Host }

func (p pro) Open(ctx context.Context, at usb.Address) (usb.Transport, error) {
	t, err := p.Host.Open(ctx, at)
	return proBoard{t}, err
}

type proBoard struct{ usb.Transport }

func (b proBoard) Control(s usb.Setup, data []byte, timeout time.Duration) (int, error) {
	const boardID = 14
	n, err := b.Transport.Control(s, data, timeout)
	if s.Request == boardID && n == 1 {
		data[0] = 5
	}
	return n, err
}

// Boards are found by the end of their serial number, or by where they are.
func TestFind(t *testing.T) {
	a, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(1)})
	ok(t, err)
	b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(1)})
	ok(t, err)
	c, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(2)})
	ok(t, err)
	bench, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: a}, {Radio: b}, {Radio: c}}})
	ok(t, err)
	t.Cleanup(func() { ok(t, bench.Close()) })
	host := virtual.NewHost(a, b, c)
	opener := hackrf.NewOpener(context.Background(), host, radio.TransmitPermit{}, nil)
	registry, err := radio.NewRegistry(map[string]radio.Opener{"hackrf": opener})
	ok(t, err)
	ctx := limited(t)
	for _, c := range []struct{ uri, wrong string }{
		{"hackrf:", "3 boards"}, {"hackrf:a1", "2 boards are known by this"}, {"hackrf:ffff", "no HackRF is known by this; there are serial"},
		{"hackrf:a1?at=001/009", "no HackRF is known"},
		{"hackrf:a2?freq_hz=7e9", "freq_hz=7e9; allowed is a number from 1000000 to 6000000000"},
		{"hackrf:a2?lna=x", "lna=x; allowed is"}, {"hackrf:a2?transfer=1000", "a multiple of 512"},
		{"hackrf:a2?feed=fast", "feed=fast; allowed is fill, strict"}, {"hackrf:a2?nonsense=1", `"nonsense"; allowed is`},
		{"hackrf:a2?clock=external", "no reference clock"},
	} {
		if _, err := registry.Open(ctx, c.uri); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.uri, err, c.wrong)
		}
	}
	for uri, want := range map[string]string{"hackrf:A2": serial(2), "hackrf:?at=001/002": serial(1), "hackrf:" + serial(2): serial(2)} {
		d, err := registry.Open(ctx, uri)
		ok(t, err)
		if d.Info().Serial != want {
			t.Errorf("%s gave %s", uri, d.Info().Serial)
		}
		if _, err := registry.Open(ctx, uri); !errors.Is(err, usb.ErrInUse) {
			t.Errorf("%s, open already: %v", uri, err)
		}
		ok(t, d.Close())
	}
	empty := hackrf.NewOpener(ctx, virtual.NewHost(), radio.TransmitPermit{}, nil)
	if _, err := empty.Open(ctx, radio.URI{Scheme: "hackrf"}); err == nil || !strings.Contains(err.Error(), "no HackRF is plugged in") {
		t.Error(err)
	}
	none := hackrf.NewOpener(ctx, usb.System(), radio.TransmitPermit{}, nil)
	if _, err := none.Open(ctx, radio.URI{Scheme: "hackrf", Name: "no such board"}); err == nil {
		t.Error("opened a board that nobody has")
	}
}

// renamed is a host whose boards have other serial numbers.
type renamed struct {
	usb.Host
	serials []string
}

func (h renamed) List(ctx context.Context, want func(usb.Identity) bool) ([]usb.Listed, error) {
	boards, err := h.Host.List(ctx, want)
	for i := range boards {
		boards[i].Serial = h.serials[i]
	}
	return boards, err
}

// Hexadecimal digits are found in either case, other serial numbers as they are written.
func TestFindByCase(t *testing.T) {
	serials := []string{"RunningFromRAM", serial(1), "00000000000000000000000000000ABC"}
	r := newRig(t, rigConfig{boards: len(serials)})
	opener := hackrf.NewOpener(context.Background(), renamed{r.host, serials}, radio.TransmitPermit{}, nil)
	registry, err := radio.NewRegistry(map[string]radio.Opener{"hackrf": opener})
	ok(t, err)
	ctx := limited(t)
	for uri, want := range map[string]int{
		"hackrf:RunningFromRAM": 0, "hackrf:FromRAM": 0, "hackrf:runningfromram": -1,
		"hackrf:A1": 1, "hackrf:a1": 1, "hackrf:abc": 2, "hackrf:ABC": 2, "hackrf:aBc": 2, "hackrf:m": -1,
	} {
		d, err := registry.Open(ctx, uri)
		if err != nil {
			if want >= 0 || !strings.Contains(err.Error(), "no HackRF is known by this") {
				t.Errorf("%s: %v", uri, err)
			}
			continue
		}
		if got := d.Info().Serial; want < 0 || got != serials[want] {
			t.Errorf("%s opened %s", uri, got)
		}
		ok(t, d.Close())
	}
}
