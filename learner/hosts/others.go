package hosts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/hosts/air"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// AirOptions are what RunAir takes in beside the run's configuration.
type AirOptions struct {
	// Identity is the air's, URL that of the bus where it is not the identity's.
	Identity, URL string
	// Out is a new file for the gains of each round; "" for none.
	Out string
	Say func(text string)
}

// RunAir simulates the channel of a run until ctx ends.
func RunAir(ctx context.Context, lab experiment.Lab, c experiment.Config, o AirOptions) (err error) {
	common, err := lab.Common(c, "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	id, conn, err := dialAs(ctx, identity.Air, o.Identity, o.URL, o.Say, cancel)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	log, err := openGains(o.Out, common)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	a, err := newAir(common, id, conn, log, o.Say)
	if err != nil {
		return err
	}
	defer a.Close()
	o.Say(fmt.Sprintf("the air of %s, %d devices", c.Experiment.Name, c.Devices.Count))
	<-ctx.Done()
	return context.Cause(ctx)
}

// dialAs connects a host to the bus, which must have a role. Ended hears why the bus no longer
// admits it.
func dialAs(ctx context.Context, role identity.Role, path, url string, say func(string), ended func(error)) (identity.Identity, bus.Conn, error) {
	id, err := identity.Load(path)
	if err != nil {
		return id, nil, err
	}
	if id.Role != role {
		return id, nil, intake.UserError(fmt.Errorf("%s: the identity is that of %s; allowed is that of the %s", path, id, role))
	}
	conn, err := bus.Dial(ctx, id, url, bus.Options{
		Patience: dialPatience,
		Waiting:  func(err error) { say(err.Error()) }, Lost: func(err error) { say(err.Error()) },
		Connected: func() { say("connected to the bus again") }, Trouble: func(err error) { say(err.Error()) },
		Ended: ended,
	})
	return id, conn, err
}

// newAir simulates the channel of a run.
func newAir(c *experiment.Common, id identity.Identity, conn bus.Conn, log *gainLog, say func(string)) (interface{ Close() }, error) {
	m := c.Context.Modulus()
	cfg := air.Config{Identity: id, Bus: conn, Modulus: m, Devices: c.Config.Devices.Count, Say: say, Note: log.note}
	if !c.Config.OverWaveform() {
		cfg.Ring = phy.NewRingAir(m, c.Channel, c.Design.Link.NoiseStd, c.RingNoise())
		return air.New(cfg)
	}
	sim, err := setup.NewSimulated(c.Config, c.Seed, c.Seed, c.Channel)
	if err != nil {
		return nil, intake.UserError(fmt.Errorf("the simulated bench: %w", err))
	}
	tx, rx, err := sim.Streams()
	if err != nil {
		return nil, err
	}
	log.drawn = sim.H
	bench, err := phy.NewWaveformAir(phy.WaveformAirConfig{
		Modem: setup.ModemConfig(c.Config.Link), Base: c.Config.Link.Base, Transmitters: tx, Receiver: rx, CarrierTime: sim.CarrierTime,
		OnTransmission: func(_ context.Context, s slot.Slot, at radio.SampleIndex) error { return sim.Meet(s, at) },
	})
	if err != nil {
		return nil, err
	}
	return air.NewWaveform(cfg, bench)
}

// gainsHeader begins the log: H_i of each device at c0, and the lattice scale.
const gainsHeader = "round,attempt,alpha,gains"

// gainLog writes down the gains of each attempt, which only the simulation knows.
type gainLog struct {
	lines  *runfolder.Lines // nil for none
	common *experiment.Common
	h      []float64
	drawn  []float64 // the gains that were drawn last, of a bench that says so; nil elsewhere
}

// openGains makes the log, or goes on with it; "" is for none.
func openGains(path string, c *experiment.Common) (*gainLog, error) {
	l := &gainLog{common: c, h: make([]float64, c.Config.Devices.Count)}
	if path == "" {
		return l, nil
	}
	var err error
	if l.lines, err = runfolder.OpenLines(path, gainsHeader, 0o644); err != nil {
		return nil, intake.PathError(fmt.Errorf("the log of gains: %w", err))
	}
	return l, nil
}

// note writes down the gains of an attempt at its c0.
func (l *gainLog) note(s slot.Slot) error {
	if l.lines == nil || s.Transmission != slot.TxC0 {
		return nil
	}
	alpha := l.common.Channel.Alpha()
	if l.common.Channel.Scaled(l.h, s.Round, s.Attempt, int(s.Transmission)); l.drawn != nil {
		copy(l.h, l.drawn)
		alpha = 1
	}
	return l.lines.Add(fmt.Sprintf("%d,%d,%v,%s", s.Round, s.Attempt, alpha, spaced(l.h)))
}

// spaced returns numbers with spaces between, to the bit.
func spaced(values []float64) string {
	texts := make([]string, len(values))
	for i, x := range values {
		texts[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strings.Join(texts, " ")
}

func (l *gainLog) close() error {
	if l.lines == nil {
		return nil
	}
	return l.lines.Close()
}

// ObserverOptions are what Ask takes in.
type ObserverOptions struct{ Identity, URL string }

// Ask asks the server of a bench who is there.
func Ask(ctx context.Context, o ObserverOptions) (a wire.Attendance, err error) {
	_, conn, err := dialAs(ctx, identity.Observer, o.Identity, o.URL, func(string) {}, func(error) {})
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	bounded, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	m, err := conn.Ask(bounded, wire.Asking, nil)
	if err != nil {
		return a, intake.UserError(fmt.Errorf("no server of the bench answers: %w", err))
	}
	return a, wire.ParseJSON(m.Payload, &a)
}

// askPatience is how long an observer waits for an answer.
const askPatience = 5 * time.Second
