// Package gains compares the gains that a link's patterns show with what was known of
// them before.
//
// It takes in, of each device, the mean and deviation of its real gain with an interval
// of the mean, and of each round the gains that were read, with the most by which
// rounding to integers moves them. It returns how many are 0, whose sign is not that of
// the mean, and whose running mean has left its interval by more than chance, rounding
// and the choice of the rounds that were read explain. It knows nothing of keys, of
// waveforms, or of what is done about it.
package gains

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// SignRatio is the |mean|/deviation above which a sign tells: a Gaussian gain has the
// other sign once in 30,000 draws there, and more often below, where the running mean
// tells. Above, a mean would: but gains that fluctuate so little also drift by more than
// they fluctuate, which weighs messages slightly wrong and is no other link.
const SignRatio = 4

// Link is what is known of a device's real gain.
type Link struct {
	// Mean is what messages are divided by, Std the deviation.
	Mean, Std float64
	// Low and High are the interval of the mean of the gain as the receiver meets it.
	Low, High float64
	// Group numbers the devices that share a time slot.
	Group int
}

// tellsSign reports whether the sign of a single gain tells.
func (l Link) tellsSign() bool { return math.Abs(l.Mean) > SignRatio*l.Std }

// Config describes a Watch.
type Config struct {
	Links []Link
	// Turned says that the receiver turns each group so that the sum of its gains is
	// positive, whatever the sum's own sign.
	Turned bool
	// FalseAlarm bounds the probability that the running mean of any device is ever
	// said to have left its interval although it has not, however long the run; 0 for
	// 1e-3.
	FalseAlarm float64
}

// State is what a Watch has seen, for a run that goes on later.
type State struct {
	Draws   int           `json:"draws"` // of gains, those that were not read included
	Looks   int           `json:"looks"` // those that were
	Devices []DeviceState `json:"devices"`
}

// DeviceState is a device's part of a State.
type DeviceState struct {
	Sum        float64 `json:"sum"`         // of the gains read
	Slack      float64 `json:"slack"`       // of the most by which rounding moved them
	WrongSigns int     `json:"wrong_signs"` // draws with a sign that is not the mean's
	Left       int     `json:"left"`        // draws read when the running mean first left its interval; 0 if it never did
}

// Watch follows the gains of a run. It is for one goroutine.
type Watch struct {
	links    []Link
	evidence float64 // 2 ln(N/FalseAlarm)
	state    State
}

// New returns a Watch that has seen nothing.
func New(cfg Config) (*Watch, error) {
	if len(cfg.Links) == 0 {
		return nil, errors.New("gains of no device cannot be watched")
	}
	if cfg.FalseAlarm == 0 {
		cfg.FalseAlarm = 1e-3
	}
	if !(cfg.FalseAlarm > 0 && cfg.FalseAlarm < 1) {
		return nil, fmt.Errorf("a probability of false alarm of %v: it must be between 0 and 1", cfg.FalseAlarm)
	}
	w := &Watch{evidence: 2 * math.Log(float64(len(cfg.Links))/cfg.FalseAlarm)}
	for i, l := range cfg.Links {
		if !(l.Std >= 0) || math.IsInf(l.Std, 0) || !(l.Low <= l.High) || math.IsNaN(l.Mean) || l.Mean == 0 {
			return nil, fmt.Errorf("device %d: a gain of mean %v, from %v to %v, and deviation %v: the mean must not be 0, its interval in order and the deviation 0 or more", i+1, l.Mean, l.Low, l.High, l.Std)
		}
		w.links = append(w.links, l)
	}
	if cfg.Turned {
		w.turn()
	}
	w.state.Devices = make([]DeviceState, len(w.links))
	return w, nil
}

// turn widens the intervals by what turning does. With S = sum_j h_j of a group, of mean
// m and deviation s, the receiver meets h_i sign(S), whose mean for Gaussian gains is, by
// Stein's lemma, mu_i (2 Phi(z) - 1) + 2 (sigma_i^2/s) phi(z) at z = m/s. A group whose
// sum is negative in the mean is not widened: its messages come out with the wrong sign.
func (w *Watch) turn() {
	for i := range w.links {
		l := &w.links[i]
		sum, variance := 0.0, 0.0
		for _, other := range w.links {
			if other.Group == l.Group {
				sum += other.Mean
				variance += other.Std * other.Std
			}
		}
		if variance == 0 || sum < 0 {
			continue
		}
		z := sum / math.Sqrt(variance)
		negative, density := distuv.UnitNormal.CDF(-z), distuv.UnitNormal.Prob(z)
		shift := 2 * (l.Std*l.Std/math.Sqrt(variance)*density - l.Mean*negative)
		l.Low, l.High = min(l.Low, l.Low+shift), max(l.High, l.High+shift)
	}
}

// Verdict is what a look at a round's gains finds. Devices are counted from 0.
type Verdict struct {
	Zeros int
	// WrongSigns are the devices whose gain has a sign that is not that of their mean,
	// where a sign tells.
	WrongSigns []int
	// Left are those whose running mean lies outside its interval, where it does not.
	Left []int
}

// Look judges the gains that were read of an attempt: h[i] is H_i/alpha, and slack[i]
// the most by which rounding to the integer H_i moved it. fresh says that they are a new
// draw, and not one that an earlier attempt has shown before: only those count in the
// running means.
func (w *Watch) Look(h, slack []float64, fresh bool) Verdict {
	if fresh {
		w.state.Draws++
		w.state.Looks++
	}
	var v Verdict
	for i, l := range w.links {
		d := &w.state.Devices[i]
		if fresh {
			d.Sum += h[i]
			d.Slack += slack[i]
		}
		if h[i] == 0 {
			v.Zeros++
		}
		if l.tellsSign() {
			// A gain of 0 has no sign.
			if h[i]*l.Mean < 0 {
				v.WrongSigns = append(v.WrongSigns, i)
				if fresh {
					d.WrongSigns++
				}
			}
			continue
		}
		if s := w.Standing(i); s.Beyond > s.Allowed {
			v.Left = append(v.Left, i)
			if d.Left == 0 {
				d.Left = w.state.Looks
			}
		}
	}
	return v
}

// Unread counts draws of gains that were not read.
func (w *Watch) Unread(draws int) { w.state.Draws += draws }

// Standing is a running mean beside its interval.
type Standing struct {
	Mean      float64 // NaN before the first look
	Low, High float64
	// Beyond is how far the mean lies outside, Allowed how far it may.
	Beyond, Allowed float64
}

// prior, r below, weighs early looks against late ones: with 1 the boundary is 5.8 sigma
// at the first look at three devices, and after 400 about 5 % above what the r that is
// best there gives.
const prior = 1

// Standing returns where device i's running mean stands.
//
// Three things may take the mean of k gains out of its interval although nothing is
// wrong:
//
//   - chance. One looks after every round, so that a bound for one look, such as 4.5
//     sigma/sqrt(k), will not do: the law of the iterated logarithm has it crossed
//     sooner or later. Robbins' mixture does (1970): for any r > 0 a sum of
//     independent Gaussian terms of deviation sigma satisfies
//     |S_k| < sigma sqrt((k+r) (ln((k+r)/r) + 2 ln(1/p)))
//     for all k at once but with probability p. Here p is the false alarm's
//     probability over the number of devices. Envelopes are slightly skew: a Rayleigh
//     one, the skewest, crosses it upwards up to twice as often, and downwards less;
//   - rounding, by no more than the mean of the slack;
//   - the receiver reads some gains more easily than others, and those that it does
//     not read are not seen. By Cauchy and Schwarz the mean over an event of
//     probability p differs from the mean by at most sigma sqrt((1-p)/p), whatever the
//     event; p is the share of draws that were read.
//
// Successive draws are taken as independent. Gains that last for many rounds make the
// mean of these rounds the mean of one draw.
func (w *Watch) Standing(i int) Standing {
	l, d, k := w.links[i], w.state.Devices[i], float64(w.state.Looks)
	s := Standing{Mean: math.NaN(), Low: l.Low, High: l.High}
	if k == 0 {
		return s
	}
	s.Mean = d.Sum / k
	s.Beyond = max(0, l.Low-s.Mean, s.Mean-l.High)
	chance := l.Std * math.Sqrt((k+prior)*(math.Log((k+prior)/prior)+w.evidence)) / k
	choice := l.Std * math.Sqrt(float64(w.state.Draws)/k-1)
	s.Allowed = chance + choice + d.Slack/k
	return s
}

// State returns what was seen so far.
func (w *Watch) State() State {
	s := w.state
	s.Devices = append([]DeviceState(nil), s.Devices...)
	return s
}

// Restore goes on from a State.
func (w *Watch) Restore(s State) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if len(s.Devices) != len(w.links) {
		return fmt.Errorf("the gains of %d devices were watched, and there are %d", len(s.Devices), len(w.links))
	}
	w.state = s
	w.state.Devices = append([]DeviceState(nil), s.Devices...)
	return nil
}

// Validate returns an error for a State that no Watch has.
func (s State) Validate() error {
	if s.Looks < 0 || s.Draws < s.Looks {
		return fmt.Errorf("gains were read in %d of %d draws: there must be from 0 to all", s.Looks, s.Draws)
	}
	for i, d := range s.Devices {
		if math.IsNaN(d.Sum) || math.IsInf(d.Sum, 0) || !(d.Slack >= 0) || math.IsInf(d.Slack, 0) {
			return fmt.Errorf("device %d: the gains read add up to %v, within %v: both must be finite, and the second 0 or more", i+1, d.Sum, d.Slack)
		}
		if d.WrongSigns < 0 || d.WrongSigns > s.Looks || d.Left < 0 || d.Left > s.Looks {
			return fmt.Errorf("device %d: wrong signs in %d and a mean that left after %d of %d draws: both must be from 0 to all", i+1, d.WrongSigns, d.Left, s.Looks)
		}
	}
	return nil
}
