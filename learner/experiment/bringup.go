package experiment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ringwave/calibration/bringup"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// BringUp tries the radios of a configuration for the first time.
type BringUp struct {
	Config config.Config
	// Steps are those that are made, in their order.
	Steps  []bringup.Step
	lab    Lab
	bench  bringup.Config
	folder *runfolder.Folder
	rounds int // that were tried
}

// BringUpOptions are what the user wants of it.
type BringUpOptions struct {
	Steps []string // their names, none for all
	// Second is the URI of another receiver that hears whether carriers go off; "" for the
	// bench's own.
	Second string
	// Ask asks the user whether what the sentence says may be sent: bringup.ErrRefused says no.
	Ask func(ctx context.Context, sentence string) error
	// Child starts another program that sends as Beacon does by the configuration of the
	// text, and returns when it does; kill ends it without a word. nil leaves that out.
	Child func(ctx context.Context, text []byte) (kill func() error, err error)
}

// BringUpResult is what came of it.
type BringUpResult struct {
	Dir     string           `json:"folder"`
	Passed  bool             `json:"passed"` // all steps were made, and none has failed
	Results []bringup.Result `json:"steps"`
	Files   []string         `json:"files"` // in the folder
}

// NewBringUp checks what needs no radio.
func (l Lab) NewBringUp(c config.Config, o BringUpOptions) (*BringUp, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	c = c.With(l.names())
	if err := c.Check(); err != nil {
		return nil, intake.UserError(err)
	}
	if !c.OverRadios() {
		return nil, intake.UserError(errors.New("radio.transmitters is empty: bringup tries radios, and this configuration has none; hw-configs/bench-hackrf.toml is one to start from"))
	}
	steps, err := bringup.Chosen(o.Steps)
	if err != nil {
		return nil, intake.UserError(fmt.Errorf("--steps: %w", err))
	}
	if o.Second != "" && slices.Contains(append(slices.Clone(c.Radio.Transmitters), c.Radio.Receiver), o.Second) {
		return nil, intake.UserError(fmt.Errorf("--second %s: allowed is a board that takes no part in the bench", intake.Sentence(o.Second)))
	}
	u := &BringUp{Config: c, Steps: steps, lab: l}
	u.lab.NoPlots = true
	if u.bench, err = benchToTry(l, c); err != nil {
		return nil, err
	}
	u.bench.Second, u.bench.Ask, u.bench.Round = o.Second, o.Ask, u.round
	if o.Child == nil {
		return u, nil
	}
	text, err := c.Encode()
	u.bench.Child = func(ctx context.Context) (func() error, error) { return o.Child(ctx, text) }
	return u, err
}

// leastTolerance is by how many samples devices may be apart whatever the pulse is.
const leastTolerance = 0.5

// benchToTry returns the bench of a configuration, and what is expected of it.
func benchToTry(l Lab, c config.Config) (b bringup.Config, err error) {
	rate := radio.Hertz(c.Link.SampleRateHz)
	b = bringup.Config{
		Amplitude: setup.TransmitAmplitude(c), Level: radio.Amplitude(setup.RadioLevel(c)),
		OffsetSearch: radio.Hertz(c.Calibration.OffsetSearchHz),
		Devices: func(ctx context.Context) (*radio.Registry, func() error, error) {
			return l.Radios.Devices(ctx, c)
		},
	}
	b.Tolerance = modem.Samples(max(leastTolerance, c.Link.ToleranceSamples))
	if c.Calibration.File != "" { // by which runs take delays off
		b.Tolerance = modem.Samples(c.Calibration.DelaySearchSamples)
	}
	if c.Calibration.File == "" && len(c.Channel.MeanPerDevice) == c.Devices.Count {
		b.Means = c.Channel.MeanPerDevice
	}
	if b.Array, err = setup.ArrayConfig(c); err != nil {
		return b, intake.UserError(err)
	}
	if b.Soundings, err = setup.SoundingConfig(c); err != nil {
		return b, err
	}
	b.Soundings.Lead = radio.SampleCount(c.Radio.LeadSeconds * float64(rate))
	b.Soundings.Reach = radio.SampleCount(c.Radio.SearchSeconds * float64(rate))
	b.Soundings.Patience = setup.SoundingPatience(&b.Soundings, c, setup.RadioPatience)
	if b.Permit, err = setup.PermitOf(c); err != nil {
		return b, intake.UserError(err)
	}
	return b, nil
}

// Beacon sends a tone with all transmitters of a configuration until ctx ends. ready hears
// once they send.
func (l Lab) Beacon(ctx context.Context, c config.Config, ready func()) error {
	b, err := benchToTry(l, c)
	if err != nil {
		return err
	}
	return bringup.Beacon(ctx, b, ready)
}

// Permit returns what the configuration lets radios send.
func (u *BringUp) Permit() radio.TransmitPermit { return u.bench.Permit }

// Run makes the steps and writes the folder: dir, or "" for one under bringups/ with the
// time and the experiment's name. It ends with ErrInterrupted where ctx did; what was
// measured by then is written.
func (u *BringUp) Run(ctx context.Context, dir string, o bringup.Observer) (out BringUpResult, err error) {
	if dir == "" {
		remove := runfolder.IfMade("bringups")
		if dir, err = runfolder.MakeDir("bringups", u.Config.Experiment.Name, time.Now()); err != nil {
			remove()
			return out, intake.PathError(err)
		}
	}
	if u.folder, err = runfolder.Create(dir); err != nil {
		return out, intake.PathError(err)
	}
	defer func() {
		if closeErr := u.folder.Close(); err == nil {
			err = closeErr
		}
	}()
	began := time.Now()
	results, stopped := bringup.Run(ctx, u.bench, u.Steps, o)
	out = BringUpResult{Dir: u.folder.Path(), Passed: stopped == nil, Results: results, Files: []string{}}
	for _, r := range results {
		out.Passed = out.Passed && r.Verdict != bringup.Fail && r.Verdict != bringup.Skipped
	}
	if err := u.write(&out, began); err != nil {
		return out, err
	}
	if stopped != nil {
		return out, ErrInterrupted
	}
	return out, nil
}

// round makes a run of one round, and returns why it was not read, "" if it was.
func (u *BringUp) round(ctx context.Context) (lost string, err error) {
	c := u.Config
	c.Optimizer.Rounds = 1
	e, err := u.lab.New(c)
	if err != nil {
		return "", err
	}
	u.rounds++
	dir := filepath.Join(u.folder.Path(), fmt.Sprintf("round-%d", u.rounds))
	result, err := e.Run(ctx, dir, Observer{Lost: func(_ int, why string) { lost = why }})
	var spoilt *Unusable
	switch {
	case errors.As(err, &spoilt) && lost != "":
		return lost, nil
	case errors.As(err, &spoilt):
		return spoilt.Reason, nil
	case err != nil:
		return "", err
	case result.Summary.RoundsSkipped > 0 && lost == "":
		lost = "it was skipped"
	}
	return lost, nil
}
