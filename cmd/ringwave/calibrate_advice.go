package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/calibration/moments"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/rounds"
)

// outlook is what the bench can carry, as far as it was computed.
type outlook struct {
	advice.Advice
	computed bool
}

// shownOutlooks is how many ways to run the protocol are printed and kept.
const shownOutlooks = 8

// advise computes what the bench can carry.
func (k *calibrator) advise(ctx context.Context, stderr io.Writer, r *calibrationResult) error {
	opt, err := adviceOptions(k.cfg, k.root)
	if err != nil {
		return err
	}
	began, said := time.Now(), time.Now()
	opt.Progress = func(done, total int) {
		if now := time.Now(); now.Sub(said) > 5*time.Second && done > 0 {
			left := time.Duration(float64(now.Sub(began)) / float64(done) * float64(total-done))
			fmt.Fprintf(stderr, "advice: %d of %d simulations, about %v left\n", done, total, left.Round(time.Second))
			said = now
		}
	}
	bench, err := k.measuredBench(r)
	if err != nil {
		return err
	}
	a, err := advice.Give(ctx, bench, opt)
	if err != nil {
		return err
	}
	r.outlook = outlook{a, true}
	if a.Own != nil {
		line := adviceLine(*a.Own)
		line.Own = true
		r.file.Advice = append(r.file.Advice, line)
	}
	for _, o := range a.Outlooks {
		r.file.Advice = append(r.file.Advice, adviceLine(o))
	}
	return nil
}

// adviceOptions gives what the advice of a configuration is asked for.
func adviceOptions(c config.Config, root keystream.Seed) (advice.Options, error) {
	own, err := ownWay(c)
	return advice.Options{
		Modem: modemConfig(c.Link), BlockSymbols: c.Link.BlockSymbols, MaxAlpha: c.Link.MaxAlpha,
		Attempts: c.Encryption.AttemptsPerRound, KeyShares: sharesPerKey(c), DeltaMax: c.Encryption.DeltaMax,
		Messages: c.Optimizer.PackedDirections, Minimum: c.Devices.Minimum,
		Own: own, Shown: shownOutlooks, Seed: root.Derive("advice"),
	}, err
}

// ownWay gives the way in which a configuration runs the protocol; nil if it does so
// over no waveform.
func ownWay(c config.Config) (*advice.Own, error) {
	if !c.OverWaveform() {
		return nil, nil
	}
	p, form, err := parameterSet(c.Encryption)
	if err != nil {
		return nil, err
	}
	return &advice.Own{
		Regime: regimeOf(c),
		Group:  groupSize(c), Base: c.Link.Base, Repeats: c.Link.FrameRepeats, SamplesPerSymbol: c.Link.SamplesPerSymbol,
		Params: p, Form: form,
	}, nil
}

func adviceLine(o advice.Outlook) calibration.AdviceLine {
	return calibration.AdviceLine{
		Regime: o.Regime.String(), Group: o.Group, Base: o.Base, SamplesPerSymbol: o.SamplesPerSymbol, Repeats: o.Repeats,
		ParameterSet: o.Set, Success: calibration.Interval(o.AtOnce, o.Low, o.High), AirtimeSeconds: o.AirtimeSeconds,
	}
}

// measuredBench is the bench as the soundings found it. Gains are in units of the mean
// of their magnitudes, as run has them.
func (k *calibrator) measuredBench(r *calibrationResult) (advice.Bench, error) {
	c := k.cfg
	unit, noise, earliest := 0.0, 0.0, math.Inf(1)
	heard, given, err := k.advisedConverter(r)
	if err != nil {
		return advice.Bench{}, err
	}
	devices := r.file.Devices
	for i, d := range devices {
		earliest = min(earliest, d.DelaySamples.Value)
		unit += d.Mu.Value / float64(len(devices))
		noise += withoutRounding(r.moments.Devices[i].Noise, d.Omega.Value, rounder{c.Transmitter(i).ConverterBits, 1}, heard) / float64(len(devices))
	}
	if !c.OverRadios() {
		unit = 1
	}
	b := advice.Bench{
		SampleRateHz: c.Link.SampleRateHz,
		OnLattice:    !c.OverRadios() && c.Channel.Gains == "lattice", LatticeBits: c.Channel.GainLatticeBits,
		Bench: rounds.Bench{
			Noise: modem.Power(noise / (unit * unit)), ReceiverBits: heard.bits, ReceiverFullScale: given / unit,
			Phases: rounds.PhasesTrimmed, Compensated: true, FreshOnRetry: c.Channel.FreshBlockOnRetry,
		},
	}
	for i, d := range devices {
		m := r.moments.Devices[i]
		b.Devices = append(b.Devices, rounds.Device{
			Gain: fadingIn(d, unit), MeanStd: halfWidth(d.Mu) / unit, StdStd: halfWidth(d.Sigma) / unit,
			Phase: modem.Radians(d.PhaseRad.Value), PhaseStd: modem.Radians(halfWidth(d.PhaseRad)),
			Delay: modem.Samples(d.DelaySamples.Value - earliest), DelayStd: modem.Samples(halfWidth(d.DelaySamples)),
			ConverterBits: c.Transmitter(i).ConverterBits,
		})
		// Gains that are known to change within a round. Otherwise blocks may be far apart,
		// and say nothing of it.
		if high := m.Coherence.High; m.Coherence.LongEnough == moments.No && (b.CoherenceSeconds == 0 || high < b.CoherenceSeconds) {
			b.CoherenceSeconds = high
		}
	}
	return b, nil
}

// advisedConverter gives the receiver's converter as the configuration has it, and the
// amplitude at which it is told to clip, 0 for what suits the gains. A board's own is not
// asked for its bits: what it adds is in the noise.
func (k *calibrator) advisedConverter(r *calibrationResult) (heard rounder, given float64, err error) {
	bits, given := configuredConverter(k.cfg)
	switch {
	case bits == 0:
		return rounder{}, 0, nil
	case k.cfg.OverRadios():
		if given == 0 {
			given = 1
		}
		return rounder{bits, given}, given, nil
	}
	heard, err = k.receiverConverter(r.bench)
	return heard, given, err
}

// withoutRounding takes off the noise of soundings what their converters' rounding adds
// to it, which is simulated by itself.
func withoutRounding(noise, omega float64, sent, heard rounder) float64 {
	return max(noise-omega*sent.rounding()-heard.rounding(), noise/100)
}

// halfWidth gives the standard error that an interval tells of.
func halfWidth(v calibration.Value) float64 {
	if w := v.High - v.Low; w > 0 && !math.IsInf(w, 0) {
		return w / (2 * quantile95)
	}
	return 0
}

// fadingIn gives the law of a device's gain in units of unit.
func fadingIn(d calibration.Device, unit float64) channel.Fading {
	mu, sigma := d.Mu.Value/unit, d.Sigma.Value/unit
	if d.Model == calibration.Rician && d.KFactor.Value > 0 && !math.IsInf(d.KFactor.Value, 0) {
		return channel.NewRicianMean(d.KFactor.Value, mu)
	}
	return channel.Gaussian{Mu: mu, Sigma: max(0, sigma)}
}

func (o *outlook) print(w io.Writer) {
	if !o.computed {
		return
	}
	fmt.Fprintln(w, "\nWhat the bench can carry, best first (simulated rounds; * is this config):")
	fmt.Fprintf(w, "    %-13s %-4s %-4s %-7s %-7s %-15s %-26s %-16s %-9s %-12s %s\n",
		"regime", "G", "B", "samples", "repeats", "set", "read at once", "within attempts", "misfit", "airtime, s", "s a round read")
	if o.Own != nil {
		printOutlook(w, "*", *o.Own)
	}
	for _, l := range o.Outlooks {
		printOutlook(w, " ", l)
	}
	if o.OwnRefusal != "" {
		fmt.Fprintf(w, "  * this config: %s\n", o.OwnRefusal)
	}
	if !o.Reached {
		fmt.Fprintln(w, "  None of them is sure to reach the wanted probability of 0.99 within the attempts.")
	}
	for _, s := range o.Refusals {
		fmt.Fprintf(w, "  - %s\n", s)
	}
	if len(o.Suggestions) > 0 {
		fmt.Fprintln(w, "To do better:")
	}
	for _, s := range o.Suggestions {
		fmt.Fprintf(w, "  + %s\n", s.Sentence)
	}
	if len(o.Idle) > 0 {
		fmt.Fprintf(w, "  Nothing to gain from: %s.\n", strings.Join(o.Idle, "; "))
	}
}

func printOutlook(w io.Writer, mark string, l advice.Outlook) {
	fmt.Fprintf(w, "  %s %-13s %-4d %-4d %-7d %-7d %-15s %-26s %-16.4f %-9.3g %-12.3g %.3g\n", mark, l.Regime, l.Group, l.Base, l.SamplesPerSymbol, l.Repeats, l.Set,
		fmt.Sprintf("%.4f [%.4f, %.4f]", l.AtOnce, l.Low, l.High), l.Within, l.Misfit, l.AirtimeSeconds, l.RoundSeconds)
}

// jsonOutlook is an outlook for machines.
type jsonOutlook struct {
	Regime       string          `json:"regime"`
	Group        int             `json:"group"`
	Base         int             `json:"base"`
	Samples      int             `json:"samples_per_symbol"`
	Repeats      int             `json:"repeats"`
	Set          string          `json:"parameter_set"`
	AtOnce       float64         `json:"probability_one_attempt"`
	Low          float64         `json:"low"`
	High         float64         `json:"high"`
	Within       float64         `json:"probability_all_attempts"`
	Rounds       int             `json:"simulated_rounds"`
	Misfit       runfolder.Float `json:"misfit"`
	Airtime      runfolder.Float `json:"airtime_seconds_per_attempt"`
	RoundSeconds runfolder.Float `json:"airtime_seconds_per_round_read"`
}

func asJSONOutlook(l advice.Outlook) jsonOutlook {
	return jsonOutlook{
		l.Regime.String(), l.Group, l.Base, l.SamplesPerSymbol, l.Repeats, l.Set, l.AtOnce, l.Low, l.High, l.Within, l.Rounds,
		runfolder.Float(l.Misfit), runfolder.Float(l.AirtimeSeconds), runfolder.Float(l.RoundSeconds),
	}
}

// json gives the outlook for machines.
func (o *outlook) json() json.RawMessage {
	if !o.computed {
		return nil
	}
	out := struct {
		Own         *jsonOutlook  `json:"own,omitempty"`
		OwnRefusal  string        `json:"own_refusal,omitempty"`
		Reached     bool          `json:"reached"`
		Outlooks    []jsonOutlook `json:"outlooks"`
		Refusals    []string      `json:"refusals"`
		Suggestions []string      `json:"suggestions"`
		Idle        []string      `json:"nothing_to_gain_from"`
	}{OwnRefusal: o.OwnRefusal, Reached: o.Reached, Outlooks: []jsonOutlook{}, Refusals: orEmpty(o.Refusals), Suggestions: []string{}, Idle: orEmpty(o.Idle)}
	if o.Own != nil {
		own := asJSONOutlook(*o.Own)
		out.Own = &own
	}
	for _, l := range o.Outlooks {
		out.Outlooks = append(out.Outlooks, asJSONOutlook(l))
	}
	for _, s := range o.Suggestions {
		out.Suggestions = append(out.Suggestions, s.Sentence)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // these are numbers and texts
	}
	return data
}
