package calibration

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Bounds of what a file may say: far beyond any bench, they catch slips of the pen.
const (
	maxCount  = 1_000_000_000
	maxGainDB = 200
	leastMean = 1e-9
	mostGain  = 1e9
	// of a device's echoes: what a sounding's prefix leaves periodic, and ten times the first
	// path.
	maxEchoes    = 8
	maxEchoDelay = 64
	maxEcho      = 10
)

// check returns the first key whose value is out of its range.
func (f *File) check() error {
	err := first(
		f.checkDates(),
		f.Bench.check(),
		f.Sounding.check(),
		f.checkDevices(),
	)
	for i := 0; err == nil && i < len(f.Advice); i++ {
		err = f.Advice[i].check(fmt.Sprintf("advice %d: ", i+1))
	}
	return err
}

func (f *File) checkDates() error {
	if f.Version != Version {
		return fmt.Errorf("version is %d: this program reads %d; calibrate again", f.Version, Version)
	}
	if f.Created.Year() < 2000 {
		return fmt.Errorf("created is %s: it must be a date and time such as 2026-01-31T12:00:00Z", date(f.Created))
	}
	if f.ValidUntil.Before(f.Created) {
		return fmt.Errorf("valid_until is %s, before created, %s: it must not be earlier", date(f.ValidUntil), date(f.Created))
	}
	return nil
}

func (b Bench) check() error {
	return first(
		oneOf("bench.kind", string(b.Kind), string(Simulated), string(Radios), string(Recording)),
		checkGains("bench.receive_gains_db", b.ReceiveGainsDB),
		inRange("bench.frequency_hz", b.FrequencyHz, 0, 1e15),
		positive("bench.sample_rate_hz", b.SampleRateHz),
		notBeyond("bench.receiver_epoch", b.ReceiverEpoch),
	)
}

func (s Sounding) check() error {
	return first(
		oneOf("sounding.kind", s.Kind, ZadoffChu, MSequence),
		between("sounding.length", s.Length, 1, maxCount),
		between("sounding.root", s.Root, 0, max(0, s.Length-1)),
		between("sounding.samples_per_chip", s.SamplesPerChip, 1, maxCount),
		between("sounding.repetitions", s.Repetitions, 1, maxCount),
		between("sounding.blocks", s.Blocks, 1, maxCount),
		between("sounding.looks", s.Looks, 1, maxCount),
		between("sounding.sessions", s.Sessions, 1, maxCount),
		positive("sounding.block_seconds", s.BlockSeconds),
		inRange("sounding.round_seconds", s.RoundSeconds, 0, maxCount),
		positive("sounding.amplitude", s.Amplitude),
		inRange("sounding.amplitude", s.Amplitude, 0, 1),
	)
}

// checkDevices wants the devices 1 to N, each once.
func (f *File) checkDevices() error {
	if len(f.Devices) == 0 {
		return fmt.Errorf("there is no [[device]]: a calibration has at least one")
	}
	table := map[int]int{}
	for i, d := range f.Devices {
		if err := between(fmt.Sprintf("device %d: index", i+1), d.Index, 1, maxCount); err != nil {
			return err
		}
		if other, twice := table[d.Index]; twice {
			return fmt.Errorf("device %d: index is %d, which is also that of the [[device]] table %d: allowed is each of 1 to %d once", i+1, d.Index, other, len(f.Devices))
		}
		table[d.Index] = i + 1
	}
	for i := 1; i <= len(f.Devices); i++ {
		if table[i] == 0 {
			return fmt.Errorf("no device has the index %d, but there are %d [[device]] tables: allowed is each of 1 to %d once", i, len(f.Devices), len(f.Devices))
		}
	}
	for _, d := range f.Devices {
		if err := d.check(fmt.Sprintf("device %d: ", d.Index)); err != nil {
			return err
		}
	}
	return nil
}

// check names keys after prefix.
func (d Device) check(prefix string) error {
	return first(
		checkGains(prefix+"transmit_gains_db", d.TransmitGainsDB),
		notBeyond(prefix+"epoch", d.Epoch),
		between(prefix+"soundings", d.Soundings, 1, maxCount),
		between(prefix+"missed", d.Missed, 0, maxCount),
		between(prefix+"clipped", int(d.Clipped), 0, math.MaxInt),
		d.checkMoments(prefix),
		d.KFactor.check(prefix+"k_factor", 0, math.Inf(1)),
		d.SNRdB.check(prefix+"snr_db", math.Inf(-1), math.Inf(1)),
		notNaN(prefix+"phase_rad", d.PhaseRad.Value),
		d.PhaseRad.check(prefix+"phase_rad", -2*math.Pi, 2*math.Pi),
		d.DelaySamples.check(prefix+"delay_samples", -mostGain, mostGain),
		d.OffsetHz.check(prefix+"offset_hz", -1e15, 1e15),
		d.OffsetFromCommonHz.checkGiven(prefix+"offset_from_common_hz", -1e15, 1e15),
		d.ClockPPM.checkGiven(prefix+"clock_ppm", -1e6, 1e6),
		d.LeakageI.checkGiven(prefix+"leakage_i", -mostGain, mostGain),
		d.LeakageQ.checkGiven(prefix+"leakage_q", -mostGain, mostGain),
		d.checkEchoes(prefix),
		d.checkHardware(prefix),
		oneOf(prefix+"model", string(d.Model), string(Gaussian), string(Rician)),
		d.checkTimes(prefix),
	)
}

// checkMoments checks what messages are scaled by.
func (d Device) checkMoments(prefix string) error {
	mu := d.Mu.Value
	if !(math.Abs(mu) >= leastMean && math.Abs(mu) <= mostGain) {
		return fmt.Errorf("%smu is %v: it must be a number other than zero, of magnitude %v to %v, for messages are divided by it", prefix, mu, leastMean, mostGain)
	}
	err := first(
		d.Mu.check(prefix+"mu", -mostGain, mostGain),
		notNaN(prefix+"omega", d.Omega.Value), d.Omega.check(prefix+"omega", 0, mostGain*mostGain),
		notNaN(prefix+"sigma", d.Sigma.Value), d.Sigma.check(prefix+"sigma", 0, mostGain),
	)
	if err != nil {
		return err
	}
	// An unbiased estimate of Omega may fall short of that of mu^2, but not by more than
	// it is uncertain.
	highest := d.Omega.Value
	if d.Omega.High > highest {
		highest = d.Omega.High
	}
	if highest < mu*mu*(1-1e-7) {
		return fmt.Errorf("%somega is %v, up to %v, with mu = %v: it must be at least mu^2, %v", prefix, d.Omega.Value, highest, mu, rounded(mu*mu))
	}
	return nil
}

func (d Device) checkHardware(prefix string) error {
	return first(
		unlessNaN(prefix+"dc_i", d.DCI, -mostGain, mostGain),
		unlessNaN(prefix+"dc_q", d.DCQ, -mostGain, mostGain),
		unlessNaN(prefix+"image_db", d.ImageDB, math.Inf(-1), maxGainDB),
		unlessNaN(prefix+"iq_gain_db", d.IQGainDB, -maxGainDB, maxGainDB),
		unlessNaN(prefix+"iq_phase_rad", d.IQPhaseRad, -math.Pi, math.Pi),
	)
}

// checkEchoes wants as many of each value as there are echoes.
func (d Device) checkEchoes(prefix string) error {
	n := len(d.EchoDelaysSamples)
	if n > maxEchoes {
		return fmt.Errorf("%secho_delays_samples has %d values: allowed are at most %d", prefix, n, maxEchoes)
	}
	for _, l := range []struct {
		key       string
		values    []float64
		low, high float64
	}{
		{"echo_delays_samples", d.EchoDelaysSamples, -maxEchoDelay, maxEchoDelay}, {"echo_i", d.EchoI, -maxEcho, maxEcho},
		{"echo_q", d.EchoQ, -maxEcho, maxEcho}, {"echo_errors", d.EchoErrors, 0, mostGain},
	} {
		if len(l.values) != n {
			return fmt.Errorf("%s%s has %d values: it must have as many as echo_delays_samples, %d", prefix, l.key, len(l.values), n)
		}
		for i, v := range l.values {
			if err := inRange(fmt.Sprintf("%s%s has at place %d what", prefix, l.key, i+1), v, l.low, l.high); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d Device) checkTimes(prefix string) error {
	for i, phase := range d.PhasePerSessionRad {
		if err := unlessNaN(fmt.Sprintf("%sphase_per_session_rad has at place %d what", prefix, i+1), phase, -2*math.Pi, 2*math.Pi); err != nil {
			return err
		}
	}
	return first(
		unlessNaN(prefix+"coherence_seconds", d.CoherenceSeconds, 0, math.Inf(1)),
		d.PhaseDriftRadPerSecond.check(prefix+"phase_drift_rad_per_second", -1e15, 1e15),
		d.GainDriftDBPerSecond.check(prefix+"gain_drift_db_per_second", -1e15, 1e15),
	)
}

func (l AdviceLine) check(prefix string) error {
	return first(
		oneOf(prefix+"regime", l.Regime, "emulated", "mean-aligned", "blind"),
		between(prefix+"group", l.Group, 1, maxCount),
		between(prefix+"base", l.Base, 2, maxCount),
		between(prefix+"samples_per_symbol", l.SamplesPerSymbol, 1, maxCount),
		between(prefix+"repeats", l.Repeats, 0, maxCount),
		l.Success.check(prefix+"success_probability", 0, 1),
		unlessNaN(prefix+"airtime_seconds", l.AirtimeSeconds, 0, math.Inf(1)),
	)
}

// check wants an estimate from low to high, or none, within its interval, if there is
// one. The interval's own ends are free.
func (v Value) check(key string, low, high float64) error {
	if err := unlessNaN(key+".value", v.Value, low, high); err != nil {
		return err
	}
	if math.IsNaN(v.Value) && !(math.IsNaN(v.Low) && math.IsNaN(v.High)) {
		return fmt.Errorf("%s is nan from %v to %v: the ends of the interval of what is not known must be nan, too", key, v.Low, v.High)
	}
	if v.Low > v.Value || v.Value > v.High || v.Low > v.High {
		return fmt.Errorf("%s is %v from %v to %v: low, value and high must be in this order", key, v.Value, v.Low, v.High)
	}
	return nil
}

// checkGiven is check of an estimate that files need not have.
func (v *Value) checkGiven(key string, low, high float64) error {
	if v == nil {
		return nil
	}
	return v.check(key, low, high)
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %s: allowed are %s", key, shownText(value), strings.Join(allowed, ", "))
}

func between(key string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %d: allowed are %d to %d", key, value, low, high)
}

func inRange(key string, value, low, high float64) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %v: allowed are %v to %v", key, value, low, high)
}

func unlessNaN(key string, value, low, high float64) error {
	if math.IsNaN(value) {
		return nil
	}
	return inRange(key, value, low, high)
}

func notNaN(key string, value float64) error {
	if !math.IsNaN(value) {
		return nil
	}
	return fmt.Errorf("%s is nan: it must be a number", key)
}

func positive(key string, value float64) error {
	if value > 0 && !math.IsInf(value, 0) {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be a positive number", key, value)
}

// notBeyond keeps numbers within what TOML holds.
func notBeyond(key string, value uint64) error {
	if value <= math.MaxInt64 {
		return nil
	}
	return fmt.Errorf("%s is %d: allowed are 0 to %d", key, value, int64(math.MaxInt64))
}

func checkGains(key string, gains map[string]float64) error {
	for _, stage := range slices.Sorted(maps.Keys(gains)) {
		if err := inRange(key+"."+shown(stage), gains[stage], -maxGainDB, maxGainDB); err != nil {
			return err
		}
	}
	return nil
}
