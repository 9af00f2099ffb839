package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ringwave/learner/experiment/setup"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
)

// endRadios takes carriers off at once, whatever was written and not yet sent, and
// before anything else is closed, which takes time.
func (s *Experiment) endRadios(why error) {
	if s.carriersOff != nil {
		s.carriersOff(why)
	}
}

// stoodStill says what to raise where radios wait for each other.
func (s *Experiment) stoodStill(err error) error {
	return intake.UserError(fmt.Errorf("%w: raise radio.search_seconds, which is %v, and where no room was found the window of the URIs in radio.transmitters", err, s.Config.Radio.SearchSeconds))
}

// connect opens the radios of an experiment that goes over some, once. They live until
// ctx ends, training fails or the experiment is closed.
func (s *Experiment) connect(ctx context.Context) error {
	if s.fleet != nil {
		return s.connectFleet(ctx)
	}
	if !s.Config.OverRadios() || s.protocol == nil || s.protocol.waveform == nil || s.protocol.waveform.Radios != nil {
		return nil
	}
	link := s.protocol.waveform
	ctx, s.carriersOff = context.WithCancelCause(ctx)
	a, guarded, err := s.lab.Radios.Open(ctx, s.Config)
	s.guarded = guarded
	if err != nil {
		return err // a caller closes the experiment
	}
	if err := link.Connect(ctx, s.Config, a, cmp.Or(s.patience, setup.RadioPatience)); err != nil {
		return setup.LostGuard(guarded, intake.UserError(errors.Join(err, a.Close())))
	}
	s.logRadios(a)
	return nil
}

// connectFleet opens the receiver, and the radios of devices on other hosts, once these are
// there. They live as those of connect.
func (s *Experiment) connectFleet(ctx context.Context) error {
	link := s.fleet.waveform
	if link == nil || link.Elsewhere == nil || link.Radios != nil {
		return nil
	}
	ctx, s.carriersOff = context.WithCancelCause(ctx)
	open := func() (a *array.Array, err error) {
		a, s.guarded, err = s.lab.Radios.Open(ctx, s.Config)
		return a, err
	}
	if err := link.Connect(ctx, s.Config, open, cmp.Or(s.patience, setup.RadioPatience)); err != nil {
		return setup.LostGuard(s.guarded, intake.UserError(err)) // a caller closes the experiment
	}
	s.logRadios(link.Radios)
	return nil
}

// logRadios writes down which radios there are.
func (s *Experiment) logRadios(a *array.Array) {
	if s.log == nil {
		return
	}
	for i, info := range a.Infos() {
		s.log.Info("radio", "index", i, "uri", info.URI, "model", info.Model, "serial", info.Serial, "firmware", info.Firmware)
	}
	if apart, ok := a.Apart(); ok {
		s.log.Info("transmitters have started at one time of their clocks", "apart_samples", apart)
	}
	if permit, err := setup.PermitOf(s.Config); err == nil {
		s.log.Info("radios may send", "permit", permit.String())
	}
}

// radioNotes are the sentences that radios ask for, each once.
func (s *Experiment) radioNotes() []string {
	if !s.Config.OverRadios() {
		return nil
	}
	permit, err := setup.PermitOf(s.Config)
	if err != nil {
		return nil // connect says so
	}
	notes := []string{fmt.Sprintf("over radios: %d transmitters at %v; allowed are %v", s.Config.Devices.Count, radio.Hertz(s.Config.Radio.FrequencyHz), permit)}
	link := s.waveform()
	if link == nil || link.Radios == nil {
		return append(notes, "the radios were not opened: this was computed with the simulated channel of [channel]")
	}
	if apart, ok := link.Radios.Apart(); ok {
		notes = append(notes, fmt.Sprintf("the transmitters started %d samples apart, by soundings at the last start", apart))
	}
	for _, info := range link.Radios.Infos() {
		for _, n := range info.Notes {
			if n = info.Driver + ": " + n; !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}
