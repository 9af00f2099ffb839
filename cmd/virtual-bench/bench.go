package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// bench is the boards and where they are plugged in.
type bench struct {
	seats    []seat
	hackrfs  []*virtual.HackRF // by board, of which one behind the transmitters is the receiver; nil for a Pluto
	boards   []virtual.Radio   // those on USB
	names    []string          // of those, and serials, and roles
	serials  []string
	roles    []string
	plutos   []*pluto
	gains    []float64
	virtual  *virtual.Bench
	bus      *usbfs.Bus
	at       []usb.Address
	attached []io.Closer
}

// seat is an antenna of a board on the bench. A Pluto has one each way.
type seat struct {
	radio        virtual.Radio
	board        int
	sends, hears bool
}

// apis are the choices of --api.
func apis() map[string]uint16 {
	return map[string]uint16{"0102": virtual.API2018, "0106": virtual.API2022, "0112": virtual.API2026}
}

// check says what is wrong with the command line.
func (o *options) check() error {
	if o.transmitters < 1 || o.transmitters > 12 {
		return fmt.Errorf("--transmitters is %d; allowed is 1 to 12", o.transmitters)
	}
	if _, ok := apis()[o.api]; !ok {
		return fmt.Errorf("--api is %q; allowed is 0102, 0106 or 0112", o.api)
	}
	if len(o.gains) != 0 && len(o.gains) != o.transmitters {
		return fmt.Errorf("--gain has %d values; allowed is one for each of %d transmitters", len(o.gains), o.transmitters)
	}
	for _, g := range o.gains {
		if !(math.Abs(g) <= 16) {
			return fmt.Errorf("--gain has the value %v; allowed is -16 to 16", g)
		}
	}
	if !(o.noise >= 0 && o.noise <= 1) {
		return fmt.Errorf("--noise is %v; allowed is 0 to 1", o.noise)
	}
	if !(o.offsetPPM >= 0 && o.offsetPPM <= virtual.MaxOffsetPPM) {
		return fmt.Errorf("--offset-ppm is %v; allowed is 0 to %d", o.offsetPPM, virtual.MaxOffsetPPM)
	}
	if err := o.checkKinds(); err != nil {
		return err
	}
	if o.backlog < time.Millisecond || o.backlog > time.Minute {
		return fmt.Errorf("--backlog is %v; allowed is 1ms to 1m", o.backlog)
	}
	var err error
	if o.hardware, err = parseFaults(o.faults, o.transmitters); err != nil {
		return err
	}
	for i := range o.hardware {
		if o.hardware[i].beyond(o.offsetPPM) {
			return fmt.Errorf("--fault and --offset-ppm give %s an error of more than %d ppm together; allowed is up to that", titleOf(i, o.transmitters), virtual.MaxOffsetPPM)
		}
	}
	for _, who := range o.await {
		first, end, err := boardsNamed("--await", who, o.transmitters)
		if err != nil {
			return err
		}
		for i := first; i < end; i++ {
			o.awaited = append(o.awaited, i)
		}
	}
	if len(o.await) > 0 && !o.lockStep {
		return errors.New("--await is given without --lock-step; allowed is both together")
	}
	return nil
}

// build makes the boards and joins them: each hears all others.
func build(o options, seed keystream.Seed) (*bench, error) {
	if err := o.check(); err != nil {
		return nil, badInput{err}
	}
	b := &bench{gains: o.gains}
	if b.gains == nil {
		for range o.transmitters {
			b.gains = append(b.gains, 1/float64(o.transmitters))
		}
	}
	for i := range o.transmitters + 1 {
		if o.kind(i) != kindHackRF {
			b.hackrfs = append(b.hackrfs, nil)
			b.addPluto(&o, i)
			continue
		}
		serial := fmt.Sprintf("%016x%08x%08x", 0, 0x72696e67, i)
		faults := &o.hardware[i]
		h, err := virtual.NewHackRF(virtual.HackRFConfig{
			Serial: serial, API: apis()[o.api], Stays: radio.Amplitude(faults.stays),
			LoseEvery: radio.SampleCount(faults.loseEvery), LoseLength: radio.SampleCount(faults.lose),
		})
		if err != nil {
			return nil, err
		}
		b.hackrfs = append(b.hackrfs, h)
		b.plugged(h, nameOf(i, o.transmitters), serial, b.role("HackRF One", i))
		b.seats = append(b.seats, seat{h, i, true, true})
	}
	if o.rtl {
		const serial = "00000001"
		r, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Serial: serial})
		if err != nil {
			return nil, err
		}
		b.plugged(r, "rtl", serial, "RTL2832U, receiver")
		b.seats = append(b.seats, seat{r, o.transmitters + 1, false, true})
	}
	cfg, err := b.config(o, seed)
	if err != nil {
		return nil, err
	}
	b.virtual, err = virtual.NewBench(cfg)
	return b, err
}

// plugged notes a board on USB.
func (b *bench) plugged(r virtual.Radio, name, serial, role string) {
	b.boards, b.names = append(b.boards, r), append(b.names, name)
	b.serials, b.roles = append(b.serials, serial), append(b.roles, role)
}

// nameOf returns what users call board i, of which the one behind the transmitters is the
// receiver; and titleOf, what errors do.
func nameOf(i, transmitters int) string {
	if i == transmitters {
		return "rx"
	}
	return strconv.Itoa(i + 1)
}

func titleOf(i, transmitters int) string {
	if i == transmitters {
		return "the receiver"
	}
	return fmt.Sprintf("transmitter %d", i+1)
}

// config describes the bench.
func (b *bench) config(o options, seed keystream.Seed) (virtual.Config, error) {
	cfg := virtual.Config{Await: b.awaited(o.awaited), Backlog: o.backlog}
	if !o.lockStep {
		cfg.Clock = loopback.WallClock()
	}
	// All ways have one where any has: they delay alike.
	echoes := slices.ContainsFunc(o.hardware, func(h hardware) bool { return h.delay > 0 || len(h.echoes) > 0 })
	drawn, oscillators := rand.New(seed.Derive("oscillators").Stream()), map[int]float64{}
	for i, to := range b.seats {
		if _, known := oscillators[to.board]; !known {
			oscillators[to.board] = o.offsetPPM * (2*drawn.Float64() - 1)
		}
		cfg.Boards = append(cfg.Boards, o.place(to.board, to.radio, oscillators[to.board], seed))
		if !to.hears {
			continue
		}
		for j, from := range b.seats {
			if !from.sends || from.board == to.board {
				continue
			}
			gain := 1.0 // the receiver, if it sends
			if from.board < len(b.gains) {
				gain = b.gains[from.board]
			}
			l := virtual.Link{From: j, To: i, Gain: complex(float32(gain), 0)}
			if echoes {
				path, err := o.hardware[from.board].path(seed.Derive("air", uint64(from.board), uint64(to.board)))
				if err != nil {
					return cfg, err
				}
				l.Path = way{path}
			}
			cfg.Links = append(cfg.Links, l)
			if i >= len(o.hardware) || o.hardware[i].noTrigger == 0 {
				cfg.Triggers = append(cfg.Triggers, virtual.Wire{From: j, To: i})
			}
		}
		if o.noise > 0 {
			front, err := channel.NewFront(channel.Impairments{}, o.noise, 1, seed.Derive("noise", uint64(to.board)))
			if err != nil {
				return cfg, err
			}
			cfg.Ears = append(cfg.Ears, virtual.Ear{Board: i, Noise: noise{front}})
		}
	}
	if o.phases {
		cfg.Phase = func(board int, turn uint64) loopback.Radians {
			return loopback.Radians(drawnPhase(seed.Derive("phase", uint64(board), turn)))
		}
	}
	return cfg, nil
}

// awaited returns where boards are on the bench that time waits for: where transmitters
// send, and where the receiver hears.
func (b *bench) awaited(boards []int) (seats []int) {
	for i, s := range b.seats {
		sends := s.board < len(b.gains)
		if slices.Contains(boards, s.board) && (sends && s.sends || !sends && s.hears) {
			seats = append(seats, i)
		}
	}
	return seats
}

// place describes board i, which of the RTL2832U has no faults. Its oscillator has an error.
func (o *options) place(i int, r virtual.Radio, offsetPPM float64, seed keystream.Seed) virtual.Place {
	p := virtual.Place{Radio: r, Reference: o.offsetPPM == 0, OffsetPPM: offsetPPM}
	if i >= len(o.hardware) {
		return p
	}
	h, own := &o.hardware[i], seed.Derive("hardware", uint64(i))
	p.Reference = p.Reference && !h.ownReference()
	p.OffsetPPM += h.ppm + h.carrierPPM
	p.SamplePPM = h.ppm + h.clockPPM
	bent := i < o.transmitters && slices.ContainsFunc(o.hardware[:o.transmitters], func(h hardware) bool { return h.bends() })
	p.Transmit, p.Receive = h.sends(own, bent), h.hears(own)
	return p
}

// drawnPhase returns a phase of a seed, from 0 to below 2 pi.
func drawnPhase(seed keystream.Seed) float64 {
	return 2 * math.Pi * rand.New(seed.Stream()).Float64()
}

// noise is a receiver's end as a bench adds it.
type noise struct{ front *channel.Front }

func (n noise) Add(dst []complex64, _ int64) { n.front.Apply(dst) }

// plug plugs the boards on USB in and gives the environment to see them by.
func (b *bench) plug(ctx context.Context, kernel bool) (env []string, err error) {
	if len(b.boards) == 0 {
		return nil, nil
	}
	if kernel {
		return nil, b.attach(ctx)
	}
	b.bus, err = usbfs.NewBus()
	if errors.Is(err, usbfs.ErrNoPreload) {
		return nil, badInput{err}
	}
	if err != nil {
		return nil, err
	}
	for _, r := range b.boards {
		at, err := b.bus.Plug(r)
		if err != nil {
			return nil, err
		}
		b.at = append(b.at, at)
	}
	return b.bus.Env()
}

// close unplugs everything.
func (b *bench) close() error {
	var errs []error
	for _, p := range b.plutos {
		errs = append(errs, p.close())
	}
	for _, a := range b.attached {
		errs = append(errs, a.Close())
	}
	if b.bus != nil {
		errs = append(errs, b.bus.Close())
	}
	return errors.Join(append(errs, b.virtual.Close())...)
}

// role says what board i, called name, is there for.
func (b *bench) role(name string, i int) string {
	if i < len(b.gains) {
		return fmt.Sprintf("%s, transmitter %d, heard at gain %.4g", name, i+1, b.gains[i])
	}
	return name + ", receiver"
}

// describe says what there is.
func (b *bench) describe(w io.Writer) {
	fmt.Fprintln(w, "Emulated boards, not compared with real ones:")
	for i, serial := range b.serials {
		where := ""
		if i < len(b.at) {
			where = b.at[i].String() + "  "
		}
		fmt.Fprintf(w, "  %s%s  %s\n", where, serial, b.roles[i])
	}
	b.describePlutos(w)
}

func (b *bench) invitation(kernel bool) string {
	if len(b.boards) == 0 {
		return "Programs on this machine reach them by these URIs. Ctrl-C ends them."
	}
	if kernel {
		return "They are plugged into this machine's kernel. Ctrl-C unplugs them."
	}
	return "A program that is started with this environment sees them. Ctrl-C unplugs them."
}

// report says what was lost.
func (b *bench) report(w io.Writer) {
	for i, h := range b.hackrfs {
		if h == nil {
			continue
		}
		m := h.M0()
		if m.Shortfalls > 0 || m.Error != 0 {
			fmt.Fprintf(w, "%s: %d shortfalls in its last stream, the longest of %d bytes; error %d\n", titleOf(i, len(b.gains)), m.Shortfalls, m.LongestShortfall, m.Error)
		}
	}
	if s := b.virtual.Slipped(); s > 0 {
		fmt.Fprintf(w, "the machine was too slow for real time: %v were left out\n", s)
	}
}
