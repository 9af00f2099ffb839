package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/calibration/moments"
	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/runfolder"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
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
	began, said := time.Now(), time.Now()
	a, err := advice.Give(ctx, measuredBench(k.cfg, r), advice.Options{
		Modem: modemConfig(k.cfg.Link), BlockSymbols: k.cfg.Link.BlockSymbols, MaxAlpha: k.cfg.Link.MaxAlpha,
		Attempts: k.cfg.Encryption.AttemptsPerRound, KeyAttempts: attemptsPerKey(k.cfg), DeltaMax: k.cfg.Encryption.DeltaMax,
		Seed: k.root.Derive("advice"),
		Progress: func(done, total int) {
			if now := time.Now(); now.Sub(said) > 5*time.Second && done > 0 {
				left := time.Duration(float64(now.Sub(began)) / float64(done) * float64(total-done))
				fmt.Fprintf(stderr, "advice: %d of %d simulations, about %v left\n", done, total, left.Round(time.Second))
				said = now
			}
		},
	})
	if err != nil {
		return err
	}
	r.outlook = outlook{a, true}
	for _, o := range a.Outlooks[:min(shownOutlooks, len(a.Outlooks))] {
		r.file.Advice = append(r.file.Advice, calibration.AdviceLine{
			Regime: o.Regime.String(), Group: o.Group, Base: o.Base, SamplesPerSymbol: o.SamplesPerSymbol, Repeats: o.Repeats,
			ParameterSet: o.Set, Success: calibration.Interval(o.AtOnce, o.Low, o.High), AirtimeSeconds: o.AirtimeSeconds,
		})
	}
	return nil
}

// measuredBench is the bench as the soundings found it. Gains are in units of the mean
// of their magnitudes, as run has them.
func measuredBench(c config.Config, r *calibrationResult) advice.Bench {
	unit, noise, earliest := 0.0, 0.0, math.Inf(1)
	devices := r.file.Devices
	for i, d := range devices {
		earliest = min(earliest, d.DelaySamples.Value)
		unit += d.Mu.Value / float64(len(devices))
		noise += r.moments.Devices[i].Noise / float64(len(devices))
	}
	if !c.OverRadios() {
		unit = 1
	}
	b := advice.Bench{
		Noise: modem.Power(noise / (unit * unit)), SampleRateHz: c.Link.SampleRateHz,
		ReceiverBits: c.Link.ReceiverConverterBits, ReceiverFullScale: c.Link.ReceiverFullScale,
		OnLattice: !c.OverRadios() && c.Channel.Gains == "lattice", LatticeBits: c.Channel.GainLatticeBits,
		Phases: advice.PhasesTrimmed, FreshOnRetry: c.Channel.FreshBlockOnRetry,
	}
	for i, d := range devices {
		m := r.moments.Devices[i]
		b.Devices = append(b.Devices, advice.Device{
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
	return b
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
	fmt.Fprintln(w, "\nWhat the bench can carry, best first (simulated rounds):")
	fmt.Fprintf(w, "  %-13s %-4s %-4s %-7s %-7s %-15s %-26s %-16s %-9s %-12s %s\n",
		"regime", "G", "B", "samples", "repeats", "set", "read at once", "within attempts", "misfit", "airtime, s", "s a round read")
	for _, l := range o.Outlooks[:min(shownOutlooks, len(o.Outlooks))] {
		fmt.Fprintf(w, "  %-13s %-4d %-4d %-7d %-7d %-15s %-26s %-16.4f %-9.3g %-12.3g %.3g\n", l.Regime, l.Group, l.Base, l.SamplesPerSymbol, l.Repeats, l.Set,
			fmt.Sprintf("%.4f [%.4f, %.4f]", l.AtOnce, l.Low, l.High), l.Within, l.Misfit, l.AirtimeSeconds, l.RoundSeconds)
	}
	if !o.Reached {
		fmt.Fprintln(w, "  None of them reaches the wanted probability of 0.99 within the attempts.")
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
}

// json gives the outlook for machines.
func (o *outlook) json() json.RawMessage {
	if !o.computed {
		return nil
	}
	type line struct {
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
	out := struct {
		Reached     bool     `json:"reached"`
		Outlooks    []line   `json:"outlooks"`
		Refusals    []string `json:"refusals"`
		Suggestions []string `json:"suggestions"`
	}{Reached: o.Reached, Outlooks: []line{}, Refusals: orEmpty(o.Refusals), Suggestions: []string{}}
	for _, l := range o.Outlooks {
		out.Outlooks = append(out.Outlooks, line{
			l.Regime.String(), l.Group, l.Base, l.SamplesPerSymbol, l.Repeats, l.Set, l.AtOnce, l.Low, l.High, l.Within, l.Rounds,
			runfolder.Float(l.Misfit), runfolder.Float(l.AirtimeSeconds), runfolder.Float(l.RoundSeconds),
		})
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
