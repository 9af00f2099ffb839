package bringup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/boards"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

const (
	rate      radio.Hertz = 2e6
	frequency radio.Hertz = 433.92e6
)

// scene is two emulated transmitters and a receiver, and what is wrong with them.
type scene struct {
	boards [3]virtual.HackRFConfig
	places [3]virtual.Place
	gains  [2]complex64
	links  func(l []virtual.Link)
	cfg    func(c *Config)
	cut    bool // the trigger wire of the second transmitter
	gone   bool // the receiver
}

// serial is that of board i.
func serial(i int) string { return fmt.Sprintf("%032x", 0xb00+i) }

// uri has board i of a bench whose time waits for it.
func uri(i int) string {
	return fmt.Sprintf("hackrf:%s?hold=on&deadline_ms=0&limit_ms=0&transfer=16384", serial(i))
}

// impaired gives what a chain of that hardware does.
func impaired(imp channel.Impairments) virtual.Chain {
	return func(radio.Hertz, uint64) func([]complex64) {
		p, err := channel.NewPath(imp, keystream.FromInteger(1))
		if err != nil {
			panic(err)
		}
		p.Begin(channel.Moment{})
		return func(x []complex64) { p.Apply(x, x) }
	}
}

// noisy is a receiver's noise of deviation 0.003 in each branch, which repeats after a while.
type noisy []complex64

func newNoise() noisy {
	n := make(noisy, 10007)
	r := rand.New(keystream.FromInteger(2).Stream())
	for k := range n {
		n[k] = complex(float32(0.003*r.NormFloat64()), float32(0.003*r.NormFloat64()))
	}
	return n
}

func (n noisy) Add(dst []complex64, first int64) {
	for k := range dst {
		dst[k] += n[(first+int64(k))%int64(len(n))]
	}
}

// config plugs the boards in and returns the bench to be tried.
func (s *scene) config(t *testing.T) Config {
	t.Helper()
	cfg := virtual.Config{Triggers: []virtual.Wire{{From: 0, To: 1}, {From: 0, To: 2}}}
	if s.cut {
		cfg.Triggers = cfg.Triggers[1:]
		cfg.Clock = loopback.WallClock() // for it is waited for
	}
	var plugged []virtual.Board
	for i := range s.boards {
		s.boards[i].Serial = serial(i)
		h := radiotest.HackRF(t, s.boards[i])
		s.places[i].Radio = h
		cfg.Boards = append(cfg.Boards, s.places[i])
		if i < 2 || !s.gone {
			plugged = append(plugged, h)
		}
	}
	for i, g := range s.gains {
		cfg.Links = append(cfg.Links, virtual.Link{From: i, To: 2, Gain: g})
	}
	if s.links != nil {
		s.links(cfg.Links)
	}
	cfg.Ears = []virtual.Ear{{Board: 2, Noise: newNoise()}}
	radiotest.Bench(t, cfg)
	return s.tried(t, virtual.NewHost(plugged...))
}

// tried returns what is tried of the boards of a host.
func (s *scene) tried(t *testing.T, host *virtual.Host) Config {
	t.Helper()
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 432e6, Max: 436e6}, rate, 0)
	if err != nil {
		t.Fatal(err)
	}
	sound, err := sounding.New(sounding.Config{Kind: sounding.ZadoffChu, Length: 315, Repetitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	gains := map[string]radio.Decibels{"amp": 0, "txvga": 0}
	c := Config{
		Array: array.Config{
			Transmitters: []string{uri(0), uri(1)}, Receiver: uri(2), Rate: rate, Frequency: frequency, TransmitGains: gains,
			ReceiveGains: map[string]radio.Decibels{"amp": 0, "lna": 8, "vga": 20}, Clock: array.ExternalClock, Trigger: array.WiredTrigger,
		},
		Soundings: sounder.Config{
			Sounding: sound, Guard: 64, Search: sounding.Search{Delay: 32, Offset: 0.001}, Amplitude: 0.99,
			Lead: 600e3, Reach: 100e3, Patience: 30 * time.Second,
		},
		Amplitude: 0.99, Level: 0.5, Means: []float64{1, 0.7}, OffsetSearch: 2000, Tolerance: 1, Permit: permit,
		Ask:   func(context.Context, string) error { return nil },
		Round: func(context.Context) (string, error) { return "", nil },
	}
	c.Devices = func(ctx context.Context) (*radio.Registry, func() error, error) {
		devices, err := boards.NewRegistry(ctx, boards.Config{USB: host, Permit: permit, Guard: radiotest.StandingGuard{Stood: &atomic.Bool{}}})
		return devices, func() error { return nil }, err
	}
	if s.cfg != nil {
		s.cfg(&c)
	}
	return c
}

// good is a bench with nothing wrong.
func good() *scene {
	s := &scene{gains: [2]complex64{0.5, 0.35}}
	for i := range s.places {
		s.places[i].Reference = true
	}
	return s
}

// made makes steps.
func made(t *testing.T, c Config, names ...string) []Result {
	t.Helper()
	steps, err := Chosen(names)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	list, err := Run(t.Context(), c, steps, Observer{Ended: func(r Result) {
		t.Logf("%s: %s after %v", r.Step, r.Verdict, time.Since(began).Round(time.Millisecond))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A bench with nothing wrong passes all steps, and nothing is left on.
func TestGoodBench(t *testing.T) {
	s := good()
	c := s.config(t)
	for _, r := range made(t, c) {
		if r.Verdict != OK {
			t.Errorf("%s: %s, %+v", r.Step, r.Verdict, r.Findings)
		}
	}
	for i, p := range s.places[:2] {
		if p.Radio.(*virtual.HackRF).Carrier() {
			t.Errorf("transmitter %d is on", i+1)
		}
	}
}

// Each fault is named by its step, which fails, in one sentence with what to do; the steps
// before it pass.
func TestFaultsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene)
		steps  string
		want   string
	}{
		"clock missing":          {func(s *scene) { s.places[1].Reference = false }, "boards clock", "transmitter 2, " + uri(1) + ", does not follow a reference clock"},
		"board missing":          {func(s *scene) { s.gone = true }, "boards", "the receiver: device"},
		"old firmware":           {func(s *scene) { s.boards[0].API = virtual.API2018; s.cfg = noLimit }, "boards", "firmware is too old"},
		"DC spike":               {func(s *scene) { s.places[2].Receive = impaired(channel.Impairments{DC: 0.2}) }, "silence", "DC spike of -13.9 dB"},
		"something else sends":   {func(s *scene) { s.boards[1].Stays = 0.6; s.cfg = hasSent }, "silence", "something sends at 433.92"},
		"carrier stays":          {func(s *scene) { s.boards[1].Stays = 0.1 }, "carrier", "transmitter 2, " + uri(1) + ", stays on"},
		"long, clipping":         {func(s *scene) { s.gains[0] = 2.5 }, "levels", "transmitter 1, " + uri(0) + ", clips"},
		"long, clipping at once": {func(s *scene) { s.gains[0], s.gains[1] = 0.7, 0.6 }, "levels", "all transmitters at once reach 1.29"},
		"long, weak":             {func(s *scene) { s.gains[1] = 0.01 }, "levels", "transmitter 2, " + uri(1) + ", is weak: it arrives at 0.0"},
		"long, dead":             {func(s *scene) { s.gains[1] = 0 }, "levels", "transmitter 2, " + uri(1) + ", is not heard at all"},
		"long, leak":             {func(s *scene) { s.places[0].Transmit = impaired(channel.Impairments{DC: 0.2}) }, "images", "transmitter 1, " + uri(0) + ", leaks its oscillator at -13.8 dB"},
		"long, image":            {func(s *scene) { s.places[1].Transmit = impaired(channel.Impairments{IQGainDB: 3}) }, "images", "transmitter 2, " + uri(1) + ", has an image of -15.3 dB"},
		"long, receiver's image": {func(s *scene) { s.places[2].Receive = impaired(channel.Impairments{IQGainDB: 2}) }, "images", "the receiver, " + uri(2) + ", has an image of -18.8 dB"},
		"long, overdriven": {func(s *scene) {
			s.places[0].Transmit = impaired(channel.Impairments{ConverterBits: 2})
		}, "images", "transmitter 1, " + uri(0) + ", has harmonics"},
		"long, receiver off": {func(s *scene) {
			s.places[2].Reference, s.places[2].OffsetPPM, s.places[2].SamplePPM = false, 60, 60
		}, "ppm", "the receiver, " + uri(2) + ", is 60 ppm off"},
		"long, transmitters part": {func(s *scene) { s.places[1].Reference, s.places[1].OffsetPPM = false, 0.1 }, "ppm", "transmitter 2, " + uri(1) + ", is 43.39 Hz (0.1 ppm) off the first"},
		"lost samples":            {func(s *scene) { s.boards[2].LoseEvery, s.boards[2].LoseLength = 1e6, 5000 }, "samples", "the receiver, " + uri(2) + ", lost samples"},
		"underruns":               {func(s *scene) { s.boards[1].LoseEvery, s.boards[1].LoseLength = 1e6, 5000 }, "samples", "transmitter 2, " + uri(1) + ", had nothing to send"},
		"delay":                   {func(s *scene) { s.links = func(l []virtual.Link) { l[1].Delay = 6 } }, "starts", "transmitter 2, " + uri(1) + ", is 6.00 samples behind the first"},
		"round not read": {func(s *scene) {
			s.cfg = func(c *Config) { c.Round = func(context.Context) (string, error) { return "no preamble", nil } }
		}, "round", "the round was not read in 3 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "long") && os.Getenv("RINGWAVE_LONG") == "" {
				t.Skip("TestHearings has it without boards (RINGWAVE_LONG=1)")
			}
			s := good()
			c.change(s)
			list := made(t, s.config(t), strings.Fields(c.steps)...)
			last := list[len(list)-1]
			at := slices.IndexFunc(last.Findings, func(f Finding) bool { return f.Verdict == Fail && strings.Contains(f.Text, c.want) })
			if at < 0 || last.Verdict != Fail {
				t.Fatalf("%s: %+v", last.Verdict, last.Findings)
			}
			if f := last.Findings[at]; f.ToDo == "" || strings.Contains(f.Text+f.ToDo, "\n") {
				t.Errorf("no sentence, or nothing to do: %+v", f)
			}
			for _, r := range list[:len(list)-1] {
				if r.Verdict != OK {
					t.Errorf("%s: %s, %+v", r.Step, r.Verdict, r.Findings)
				}
			}
		})
	}
}

// noLimit leaves the URIs as a user has them who knows nothing of limits.
func noLimit(c *Config) {
	c.Array.Transmitters = []string{"hackrf:" + serial(0), "hackrf:" + serial(1)}
}

// hasSent has a board that stays on send before anything is tried.
func hasSent(c *Config) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &bench{cfg: *c}
	s, err := b.begin(ctx)
	if err != nil {
		panic(err)
	}
	e, err := s.listen(ctx, c.Array.Receiver, 0)
	if err != nil {
		panic(err)
	}
	if _, err := s.hearOne(ctx, e, 1); err != nil {
		panic(err)
	}
	_ = s.close(nil)
}

// A session ends whose transmitter has written as much as is taken without anybody who reads
// what is received, so that virtual time stands still.
func TestCloseWithoutAReader(t *testing.T) {
	b := &bench{cfg: good().config(t)}
	s, err := b.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.listen(t.Context(), b.cfg.Array.Receiver, 0); err != nil {
		t.Fatal(err)
	}
	tx, err := s.voice(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for stands := false; !stands; { // too early on a busy machine at worst, which hides the fault
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := tx.Write(ctx, b.tone(), radio.TxMeta{})
		cancel()
		if stands = errors.Is(err, context.DeadlineExceeded); !stands && err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(nil); err != nil {
		t.Error(err)
	}
}

// clocked is a device that tells of its clock, or does not.
type clocked struct {
	radio.Device
	sources []string
	locked  bool
	err     error
}

func (c clocked) ClockSources() []string                       { return c.sources }
func (c clocked) ClockSource() string                          { return "" }
func (c clocked) SetClockSource(context.Context, string) error { return nil }
func (c clocked) ClockLocked(context.Context) (bool, error)    { return c.locked, c.err }

// A board follows the reference only if it says so.
func TestClocks(t *testing.T) {
	for _, c := range []struct {
		device radio.Device
		want   string
	}{
		{clocked{sources: []string{"internal", external}, locked: true}, ""},
		{clocked{sources: []string{"internal", external}}, "the board has no reference clock at its input"},
		{clocked{sources: []string{"internal", external}, err: errors.New("stalled")}, "the board does not tell whether it follows the reference clock: stalled"},
		{clocked{sources: []string{"internal"}, locked: true}, "the board cannot tell whether it follows a reference clock"},
		{nil, "the board cannot tell whether it follows a reference clock"},
	} {
		r := Result{Verdict: OK}
		(&bench{}).judgeClock(t.Context(), &r, "the board", c.device)
		if got := fmt.Sprint(r.Findings); (r.Verdict == Fail) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, %s", c.device, r.Verdict, got)
		}
	}
}

// A trigger wire that is missing is named.
func TestMissingTriggerWire(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") == "" {
		t.Skip("an edge is waited for in real time (RINGWAVE_LONG=1)")
	}
	s := good()
	s.cut = true
	r := made(t, s.config(t), "starts")[0]
	if r.Verdict != Fail || !strings.Contains(r.Findings[0].Text, "transmitter 2, "+uri(1)+", was never triggered") || !strings.Contains(r.Findings[0].ToDo, "trigger output") {
		t.Errorf("%+v", r)
	}
}

// What the user does not permit is not sent, and the steps that need it are not made.
func TestRefused(t *testing.T) {
	s := good()
	var asked []string
	s.cfg = func(c *Config) {
		c.Ask = func(_ context.Context, what string) error {
			asked = append(asked, what)
			return ErrRefused
		}
	}
	list := made(t, s.config(t), "boards", "clock", "silence", "carrier", "levels", "samples")
	for _, r := range list {
		if want := map[bool]Verdict{true: Skipped, false: OK}[slices.Contains([]string{"carrier", "levels", "samples"}, r.Step)]; r.Verdict != want {
			t.Errorf("%s: %s, %+v", r.Step, r.Verdict, r.Findings)
		}
	}
	if len(asked) != 1 || !strings.Contains(asked[0], "434.1075 MHz") || !strings.Contains(asked[0], "2 MHz around 433.92 MHz; amp 0 dB, txvga 0 dB") {
		t.Errorf("asked: %q", asked)
	}
	for i, p := range s.places[:2] {
		for _, q := range p.Radio.(*virtual.HackRF).Transcript() {
			if q.Setup.Request == 1 && q.Setup.Value == uint16(virtual.ModeTransmit) {
				t.Errorf("transmitter %d was switched on", i+1)
			}
		}
	}
}

// Each step that sends asks before a board is switched on.
func TestEveryStepThatSendsAsks(t *testing.T) {
	for _, step := range Steps() {
		s, asked := good(), 0
		s.cfg = func(c *Config) {
			c.Ask = func(context.Context, string) error {
				asked++
				return ErrRefused
			}
		}
		r := made(t, s.config(t), step.Name)[0]
		if (asked > 0) != step.Sends || step.Sends != (r.Verdict == Skipped) {
			t.Errorf("%s asked %d times: %s", step.Name, asked, r.Verdict)
		}
	}
}

// A program that is killed while it sends is heard to go off, and one whose transmitters stay
// on is heard, too.
func TestKilledProgram(t *testing.T) {
	cases := []radio.Amplitude{0}
	if os.Getenv("RINGWAVE_LONG") != "" {
		cases = append(cases, 0.1) // which is listened to for long
	}
	for _, stays := range cases {
		s := good()
		c := s.config(t)
		c.Child = func(ctx context.Context) (func() error, error) {
			own, cancel := context.WithCancel(ctx)
			ready, ended := make(chan bool), make(chan error, 1)
			go func() { ended <- Beacon(own, c, func() { close(ready) }) }()
			select {
			case <-ready:
			case err := <-ended:
				cancel()
				return nil, err
			}
			return func() error {
				cancel()
				return <-ended
			}, nil
		}
		if stays > 0 {
			// Nobody switches off what the program has left: a second beacon goes on.
			inner := c.Child
			c.Child = func(ctx context.Context) (func() error, error) {
				kill, err := inner(ctx)
				return func() error { t.Cleanup(func() { _ = kill() }); return nil }, err
			}
		}
		r := made(t, c, "carrier")[0]
		if want := map[bool]Verdict{true: Fail, false: OK}[stays > 0]; r.Verdict != want {
			t.Errorf("stays at %v: %s, %+v", stays, r.Verdict, r.Findings)
		}
	}
}

// A bring-up that is stopped tells of what was made, and leaves no carrier on.
func TestStopped(t *testing.T) {
	s := good()
	ctx, cancel := context.WithCancel(t.Context())
	s.cfg = func(c *Config) {
		c.Ask = func(context.Context, string) error {
			go cancel() // at some time while it sends
			return nil
		}
	}
	steps, err := Chosen([]string{"boards", "carrier", "levels"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Run(ctx, s.config(t), steps, Observer{})
	if !errors.Is(err, context.Canceled) || len(list) != 2 || list[0].Verdict != OK || list[1].Verdict != Skipped {
		t.Errorf("%v, %+v", err, list)
	}
	for i, p := range s.places[:2] {
		if p.Radio.(*virtual.HackRF).Carrier() {
			t.Errorf("transmitter %d is on", i+1)
		}
	}
}

// sent is what a transmitter sends and how it comes to the receiver.
type sent struct {
	gain, offset       float64 // offset of the carrier in hertz
	leak, image, third float64 // of the tone's amplitude
	receiverImage      float64
}

// heardOf makes what a receiver of 8 bits hears of it.
func heardOf(b *bench, s sent) *hearing {
	e := &ear{rate: rate, tuned: frequency - b.beside()}
	x, noise := make([]complex64, window), newNoise()
	turn := func(f radio.Hertz, k int) complex128 {
		return cmplx.Rect(1, 2*math.Pi*math.Mod(float64(f/rate)*float64(k), 1))
	}
	h := &hearing{samples: x, due: b.beside() + b.toneAbove()}
	for k := range x {
		t := turn(b.toneAbove(), k)
		y := t + complex(s.leak, 0) + complex(s.image, 0)*cmplx.Conj(t) + complex(s.third, 0)*turn(-3*b.toneAbove(), k)
		y *= complex(s.gain*float64(b.cfg.Amplitude), 0) * turn(b.beside()+radio.Hertz(s.offset), k)
		y += complex(s.receiverImage, 0) * cmplx.Conj(y)
		x[k] = complex64(y)
		noise.Add(x[k:k+1], int64(k))
		re, im := math.Round(float64(real(x[k]))*127), math.Round(float64(imag(x[k]))*127)
		if max(math.Abs(re), math.Abs(im)) >= 127 {
			h.clipped++
		}
		x[k] = complex(float32(max(-1, min(1, re/127))), float32(max(-1, min(1, im/127))))
	}
	quiet := make([]complex64, window)
	noise.Add(quiet, 0)
	h.before = newSpectrum("before", quiet, rate, e.tuned)
	at := 0
	at, h.heard = b.sounds(e, newSpectrum("tone", x, rate, e.tuned), h.before, false)
	h.measure(e, "tone", at)
	h.after = h.before
	return h
}

// What is heard of two transmitters is judged: nothing is found that is not there, and what
// is there is found to the decibel.
func TestHearings(t *testing.T) {
	fine := [2]sent{{gain: 0.5}, {gain: 0.35}}
	for name, c := range map[string]struct {
		change func(s *[2]sent)
		step   string
		want   Verdict
		text   string
	}{
		"all is well, levels":         {func(*[2]sent) {}, "levels", OK, ""},
		"all is well, images":         {func(*[2]sent) {}, "images", OK, ""},
		"all is well, ppm":            {func(*[2]sent) {}, "ppm", OK, ""},
		"weak":                        {func(s *[2]sent) { s[1].gain = 0.02 }, "levels", Fail, "is weak: it arrives at 0.03"},
		"not quite weak":              {func(s *[2]sent) { s[1].gain = 0.06 }, "levels", Warn, "arrives at 0.12 of radio.level, and the configuration expects 0.7"},
		"dead":                        {func(s *[2]sent) { s[0].gain = 0 }, "levels", Fail, "transmitter 1, " + uri(0) + ", is not heard at all"},
		"clips":                       {func(s *[2]sent) { s[1].gain = 1.4 }, "levels", Fail, "transmitter 2, " + uri(1) + ", clips"},
		"clips together":              {func(s *[2]sent) { s[0].gain, s[1].gain = 0.7, 0.6 }, "levels", Fail, "all transmitters at once reach 1.2"},
		"hardly anything":             {func(s *[2]sent) { s[0].gain, s[1].gain = 0.055, 0 }, "levels", Fail, "not heard"},
		"leak":                        {func(s *[2]sent) { s[0].leak = 0.15 }, "images", Fail, "leaks its oscillator at -16.5 dB"},
		"little leak":                 {func(s *[2]sent) { s[0].leak = 0.05 }, "images", Warn, "leaks its oscillator at -26"},
		"leak that does no harm":      {func(s *[2]sent) { s[0].leak = 0.02 }, "images", OK, ""},
		"image":                       {func(s *[2]sent) { s[1].image = 0.15 }, "images", Fail, "transmitter 2, " + uri(1) + ", has an image of -16.5 dB"},
		"little image":                {func(s *[2]sent) { s[1].image = 0.05 }, "images", Warn, "has an image of -26"},
		"third harmonic":              {func(s *[2]sent) { s[1].third = 0.2 }, "images", Fail, "transmitter 2, " + uri(1) + ", has harmonics of -1"},
		"receiver's image":            {func(s *[2]sent) { s[0].receiverImage, s[1].receiverImage = 0.15, 0.15 }, "images", Fail, "the receiver, " + uri(2) + ", has an image of -1"},
		"receiver off":                {func(s *[2]sent) { s[0].offset, s[1].offset = -8682, -8682 }, "ppm", Fail, "the receiver, " + uri(2) + ", is 20 ppm off"},
		"receiver a little off":       {func(s *[2]sent) { s[0].offset, s[1].offset = 1990, 1990 }, "ppm", OK, ""},
		"transmitters apart":          {func(s *[2]sent) { s[1].offset = 5 }, "ppm", Fail, "transmitter 2, " + uri(1) + ", is 5.00"},
		"transmitters a little apart": {func(s *[2]sent) { s[1].offset = 1 }, "ppm", OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			b := &bench{cfg: s.tried(t, nil), heard: map[string][]*hearing{}}
			all := fine
			c.change(&all)
			for _, x := range all {
				b.heard[uri(2)] = append(b.heard[uri(2)], heardOf(b, x))
			}
			steps, err := Chosen([]string{c.step})
			if err != nil {
				t.Fatal(err)
			}
			r, err := b.step(t.Context(), steps[0], nil)
			if err != nil || r.Verdict != c.want || !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == c.want && strings.Contains(f.Text, c.text) }) {
				t.Errorf("%v, %s: %+v", err, r.Verdict, r.Findings)
			}
		})
	}
}

// A program that is to send takes the text that it is given, says when it sends, and ends
// with its input; what is no such text is refused.
func TestServe(t *testing.T) {
	in, parent := io.Pipe()
	go func() { fmt.Fprint(parent, "5\nhello") }()
	var said strings.Builder
	err := Serve(t.Context(), in, &said, func(ctx context.Context, text []byte, ready func()) error {
		ready()
		if err := parent.Close(); err != nil {
			return err
		}
		<-ctx.Done() // as the input has ended
		if string(text) != "hello" {
			t.Errorf("%q", text)
		}
		return nil
	})
	if err != nil || said.String() != "sending\n" {
		t.Errorf("%v, %q", err, said.String())
	}
	for text, want := range map[string]string{
		"": "does not begin with a length", "x\n": "does not begin with a length", "-1\n": "does not begin", "1048577\n": "allowed is 0 to 1048576",
		"7\nhello": "reading a configuration of 7 bytes",
	} {
		err := Serve(t.Context(), strings.NewReader(text), io.Discard, func(context.Context, []byte, func()) error {
			t.Errorf("%q is sent", text)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzServe hands a program any text.
func FuzzServe(f *testing.F) {
	f.Add("5\nhello")
	f.Add("9999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = Serve(t.Context(), strings.NewReader(text), io.Discard, func(_ context.Context, got []byte, _ func()) error {
			if len(got) > len(text) {
				t.Errorf("%d bytes of %d", len(got), len(text))
			}
			return nil
		})
	})
}

// Steps are chosen by their names.
func TestChosen(t *testing.T) {
	if _, err := Chosen([]string{"boards", "lvels"}); err == nil || !strings.Contains(err.Error(), `"lvels" is no step; allowed is boards, clock`) {
		t.Errorf("%v", err)
	}
	list, err := Chosen([]string{"levels", "boards"})
	if err != nil || len(list) != 2 || list[0].Name != "boards" {
		t.Errorf("%v, %v", list, err)
	}
}

// Steps need what comes before them.
func TestNeedsAreThere(t *testing.T) {
	var before []string
	for _, s := range Steps() {
		for _, need := range s.Needs {
			if !slices.Contains(before, need) {
				t.Errorf("%s needs %s, which does not come before it", s.Name, need)
			}
		}
		before = append(before, s.Name)
	}
}

// A line's frequency is found to far less than a bin, its power to the window's ripple, and
// noise to a tenth.
func TestSpectrum(t *testing.T) {
	noise, err := channel.NewFront(channel.Impairments{}, 0.01, 1, keystream.FromInteger(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []radio.Hertz{0, 123.4, -777777.7, 437500.25, 999000} {
		x := make([]complex64, stretch)
		for k := range x {
			x[k] = complex64(cmplx.Rect(0.25, 2*math.Pi*math.Mod(float64(f/rate)*float64(k), 1)))
		}
		noise.Apply(x)
		s := newSpectrum("test", x, rate, frequency)
		near := s.Frequency(s.peak(f, lobe))
		for _, lost := range []int{0, 3001} {
			got, size := refine(slices.Delete(slices.Clone(x), 50000, 50000+lost), rate, near)
			if math.Abs(float64(got-f)) > 0.05 || math.Abs(float64(size)/0.25-1) > 0.01 {
				t.Errorf("%v Hz is found at %v, of %v, with %d samples lost", float64(f), float64(got), size, lost)
			}
		}
		if p := s.line("line", f).Decibels(); math.Abs(float64(p)+12.04) > 0.9 {
			t.Errorf("the line at %v has %v", f, p)
		}
		if got := math.Sqrt(s.floor() * bins / noiseBandwidth); math.Abs(got/(0.01*math.Sqrt2)-1) > 0.1 {
			t.Errorf("noise of %v in place of %v", got, 0.01*math.Sqrt2)
		}
	}
}
