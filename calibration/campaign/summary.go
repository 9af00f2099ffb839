package campaign

import (
	"time"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/radio/nullable"
)

// Summary is a result for machines, as JSON. What is not known is null.
type Summary struct {
	Created    time.Time       `json:"created"`
	Bench      string          `json:"bench"`
	Devices    []DeviceSummary `json:"devices"`
	Violations []string        `json:"violations"`
	Advice     *AdviceSummary  `json:"advice,omitempty"`
	// Files are the names of what was written beside the calibration file.
	Files []string `json:"files"`
}

// DeviceSummary is a device's link.
type DeviceSummary struct {
	Index      int            `json:"device"`
	Serial     string         `json:"serial,omitempty"`
	Mu         ValueSummary   `json:"mu"`
	Omega      ValueSummary   `json:"omega"`
	Sigma      ValueSummary   `json:"sigma"`
	KFactor    ValueSummary   `json:"k_factor"`
	SNRdB      ValueSummary   `json:"snr_db"`
	Phase      ValueSummary   `json:"phase_rad"`
	Delay      ValueSummary   `json:"delay_samples"`
	Offset     ValueSummary   `json:"offset_hz"`
	Model      string         `json:"model"`
	PhaseLasts *bool          `json:"phase_lasts"`
	Coherence  nullable.Float `json:"coherence_seconds"`
	PhaseNoise *NoiseSummary  `json:"phase_noise"`
	GainNoise  *NoiseSummary  `json:"gain_noise"`
	Soundings  int            `json:"soundings"`
	Missed     int            `json:"missed"`
	Clipped    int64          `json:"clipped"`
	Violations []string       `json:"violations"`
}

// ValueSummary is a value with its interval.
type ValueSummary struct {
	Value nullable.Float `json:"value"`
	Low   nullable.Float `json:"low"`
	High  nullable.Float `json:"high"`
}

// NoiseSummary is a spectrum.
type NoiseSummary struct {
	Hertz    []nullable.Float `json:"offset_hz"`
	Decibels []nullable.Float `json:"db"`
	Low      nullable.Float   `json:"low_db"`
	High     nullable.Float   `json:"high_db"`
	Floor    nullable.Float   `json:"floor_db"`
	RMS      nullable.Float   `json:"rms"`
}

// AdviceSummary is what the bench can carry.
type AdviceSummary struct {
	Own         *OutlookSummary  `json:"own,omitempty"`
	OwnRefusal  string           `json:"own_refusal,omitempty"`
	Reached     bool             `json:"reached"`
	Outlooks    []OutlookSummary `json:"outlooks"`
	Refusals    []string         `json:"refusals"`
	Suggestions []string         `json:"suggestions"`
	Idle        []string         `json:"nothing_to_gain_from"`
}

// OutlookSummary is one way to run the protocol.
type OutlookSummary struct {
	Regime       string         `json:"regime"`
	Group        int            `json:"group"`
	Base         int            `json:"base"`
	Samples      int            `json:"samples_per_symbol"`
	Repeats      int            `json:"repeats"`
	Set          string         `json:"parameter_set"`
	AtOnce       float64        `json:"probability_one_attempt"`
	Low          float64        `json:"low"`
	High         float64        `json:"high"`
	Within       float64        `json:"probability_all_attempts"`
	Rounds       int            `json:"simulated_rounds"`
	Misfit       nullable.Float `json:"misfit"`
	Airtime      nullable.Float `json:"airtime_seconds_per_attempt"`
	RoundSeconds nullable.Float `json:"airtime_seconds_per_round_read"`
}

// Summary returns the result for machines. files are the names of what was written.
func (r *Result) Summary(files []string) Summary {
	out := Summary{
		Created: r.File.Created, Bench: string(r.File.Bench.Kind), Violations: orEmpty(r.Links.Violations()),
		Advice: summaryOfAdvice(r.Advice), Files: files,
	}
	for _, d := range r.File.Devices {
		m := r.Links.Devices[d.Index-1]
		out.Devices = append(out.Devices, DeviceSummary{
			Index: d.Index, Serial: d.Serial, Mu: summaryOf(d.Mu), Omega: summaryOf(d.Omega), Sigma: summaryOf(d.Sigma),
			KFactor: summaryOf(d.KFactor), SNRdB: summaryOf(d.SNRdB), Phase: summaryOf(d.PhaseRad), Delay: summaryOf(d.DelaySamples),
			Offset: summaryOf(d.OffsetHz), Model: string(d.Model), PhaseLasts: d.PhaseLasts, Coherence: nullable.Float(d.CoherenceSeconds),
			PhaseNoise: PhaseNoise(m).summary(), GainNoise: GainNoise(m).summary(),
			Soundings: d.Soundings, Missed: d.Missed, Clipped: d.Clipped, Violations: orEmpty(d.Violations),
		})
	}
	return out
}

func summaryOf(v calibration.Value) ValueSummary {
	return ValueSummary{nullable.Float(v.Value), nullable.Float(v.Low), nullable.Float(v.High)}
}

// summary returns nil of an empty spectrum.
func (n Noise) summary() *NoiseSummary {
	if len(n.Hertz) == 0 {
		return nil
	}
	return &NoiseSummary{
		Hertz: floats(n.Hertz), Decibels: floats(n.Decibels),
		Low: nullable.Float(n.Low), High: nullable.Float(n.High), Floor: nullable.Float(n.Floor), RMS: nullable.Float(n.RMS),
	}
}

func floats(values []float64) []nullable.Float {
	out := make([]nullable.Float, len(values))
	for i, v := range values {
		out[i] = nullable.Float(v)
	}
	return out
}

func summaryOfAdvice(a *advice.Advice) *AdviceSummary {
	if a == nil {
		return nil
	}
	out := &AdviceSummary{
		OwnRefusal: a.OwnRefusal, Reached: a.Reached, Outlooks: []OutlookSummary{},
		Refusals: orEmpty(a.Refusals), Suggestions: []string{}, Idle: orEmpty(a.Idle),
	}
	if a.Own != nil {
		own := summaryOfOutlook(*a.Own)
		out.Own = &own
	}
	for _, l := range a.Outlooks {
		out.Outlooks = append(out.Outlooks, summaryOfOutlook(l))
	}
	for _, s := range a.Suggestions {
		out.Suggestions = append(out.Suggestions, s.Sentence)
	}
	return out
}

func summaryOfOutlook(l advice.Outlook) OutlookSummary {
	return OutlookSummary{
		Regime: l.Regime.String(), Group: l.Group, Base: l.Base, Samples: l.SamplesPerSymbol, Repeats: l.Repeats, Set: l.Set,
		AtOnce: l.AtOnce, Low: l.Low, High: l.High, Within: l.Within, Rounds: l.Rounds,
		Misfit: nullable.Float(l.Misfit), Airtime: nullable.Float(l.AirtimeSeconds), RoundSeconds: nullable.Float(l.RoundSeconds),
	}
}

// orEmpty returns a list that JSON does not write as null.
func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
