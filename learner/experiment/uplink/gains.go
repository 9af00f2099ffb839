package uplink

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"

	"ringwave/crypto/round"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/gains"
	"ringwave/phy/slot"
)

// delayTolerance is the relative error that a fractional delay may add to a gain.
const delayTolerance = 0.02

// GainWatch judges the gains that a waveform link's patterns show, and keeps what they
// have shown.
type GainWatch struct {
	*gains.Watch
	link  *Receiving
	least int  // how many gains must not be 0; 0 where zeros are the channel's own
	fresh bool // every attempt meets new gains
	// refuse has attempts be void whose gains disagree with what is known of them.
	refuse bool
	basis  string // where the links' statistics are from

	h, slack []float64
	looked   bool // in this round
	last     gains.Verdict
	unsolved bool // the last patterns were of no integer gains
	told     gains.State

	// Disagrees hears of each device, from 0, that disagrees, once for its sign and once
	// for its mean.
	Disagrees func(k, device int, what string)
}

// newGainWatch watches the gains of a link over whatever bench.
func newGainWatch(c config.Config, l *Receiving) (*GainWatch, error) {
	links := l.knownGains(c)
	w, err := gains.New(gains.Config{Links: links, Turned: l.Link.TurnsGroups()})
	if err != nil {
		return nil, fmt.Errorf("the links as they are known: %w", err)
	}
	g := &GainWatch{
		Watch: w, link: l, fresh: c.Channel.FreshBlockOnRetry || c.OverRadios(), refuse: c.Devices.Disagreement == "refuse",
		basis: "[channel]", h: make([]float64, len(links)), slack: make([]float64, len(links)), told: w.State(),
		Disagrees: func(int, int, string) {},
	}
	if l.Regime == bench.Blind {
		g.least = setup.LeastHeard(c)
	}
	switch {
	case c.Calibration.File != "":
		g.basis = "the calibration"
	case len(c.Calibration.AssumedMean) > 0:
		g.basis = "calibration.assumed_mean"
	}
	return g, nil
}

// knownGains returns what the statistics in use say of each device's real gain, in units of
// what counts as gain 1.
func (l *Receiving) knownGains(c config.Config) []gains.Link {
	ch := l.channel
	if l.known != nil {
		ch = l.known.Channel
	}
	mu, omega := setup.LinkMoments(c, ch)
	links := make([]gains.Link, len(mu))
	for i := range links {
		k := gains.Link{Mean: mu[i], Std: math.Sqrt(max(0, omega[i]-mu[i]*mu[i])), Low: mu[i], High: mu[i], Group: i / l.Group}
		if l.known != nil && l.known.File != nil {
			k = l.measuredGain(i, k)
		} else if l.Regime == bench.Blind && !c.OverRadios() {
			// The bench in memory has static phases that nobody turns back.
			k.Low, k.High = ordered(mu[i], mu[i]*max(0, l.staticCosine(i, mu)))
		}
		k.Low -= delayTolerance * math.Abs(mu[i])
		k.High += delayTolerance * math.Abs(mu[i])
		links[i] = k
	}
	return links
}

// measuredGain takes the interval of device i's mean, and the upper end of that of its
// deviation, from the calibration.
func (l *Receiving) measuredGain(i int, k gains.Link) gains.Link {
	d := l.known.File.Devices[i]
	scale := k.Mean / d.Mu.Value
	if low, high := d.Mu.Low*scale, d.Mu.High*scale; !math.IsNaN(low) && !math.IsNaN(high) {
		k.Low, k.High = ordered(low, high)
	}
	if high := d.Sigma.High * math.Abs(scale); high > k.Std {
		k.Std = high
	}
	return k
}

func ordered(a, b float64) (low, high float64) { return min(a, b), max(a, b) }

// staticCosine returns the cosine of device i's static phase against its group's sum.
func (l *Receiving) staticCosine(i int, mu []float64) float64 {
	var sum complex128
	first := i / l.Group * l.Group
	for j := first; j < min(first+l.Group, len(mu)); j++ {
		sum += cmplx.Rect(mu[j], l.phases[j])
	}
	return math.Cos(l.phases[i] - cmplx.Phase(sum))
}

// Admit judges an attempt's gains, and returns why it is void; "" if it is not:
// round.Config.Admit.
func (w *GainWatch) Admit(_ slot.Slot, _ *phy.Reception) (reason string) {
	w.last = gains.Verdict{}
	if w.unsolved = !w.link.Link.RealGains(w.h, w.slack); w.unsolved {
		if w.least > 0 || w.refuse {
			return "the patterns are of no integer gains"
		}
		return ""
	}
	w.last = w.Look(w.h, w.slack, !w.looked)
	w.looked = true
	n := len(w.h)
	if heard := n - w.last.Zeros; heard < w.least {
		return fmt.Sprintf("%d of %d devices have a gain H_i other than 0, and %d must (devices.minimum)", heard, n, w.least)
	}
	if !w.refuse || len(w.last.WrongSigns)+len(w.last.Left) == 0 {
		return ""
	}
	return w.sentences(w.last)
}

// verdict returns the figures of the last attempt for metrics.csv; NaN where the
// patterns told nothing.
func (w *GainWatch) verdict() (wrongSigns, left float64) {
	if w.unsolved {
		return math.NaN(), math.NaN()
	}
	return float64(len(w.last.WrongSigns)), float64(len(w.last.Left))
}

// EndRound counts the gains that were not read in round k, and tells Disagrees of devices
// that disagree for the first time.
func (w *GainWatch) EndRound(k int, failures []round.Failure) {
	unread := 0
	if w.fresh {
		for _, f := range failures {
			if f.Transmission == slot.TxKey && f.Check != round.GainsCheck {
				unread++
			}
		}
	} else if !w.looked {
		unread = 1
	}
	w.Unread(unread)
	w.looked = false
	now := w.State()
	for i, d := range now.Devices {
		if d.WrongSigns > 0 && w.told.Devices[i].WrongSigns == 0 {
			w.Disagrees(k, i, w.signSentence(i))
		}
		if d.Left > 0 && w.told.Devices[i].Left == 0 {
			w.Disagrees(k, i, w.meanSentence(i))
		}
	}
	w.told = now
}

// Resume goes on from what an earlier sitting has seen; nil is nothing. It refuses a state
// that cannot be of this run's devices.
func (w *GainWatch) Resume(s *gains.State) error {
	if s == nil {
		return nil
	}
	if err := w.Restore(*s); err != nil {
		return err
	}
	w.told = w.State()
	return nil
}

// sentences says what disagrees of a verdict.
func (w *GainWatch) sentences(v gains.Verdict) string {
	var all []string
	for _, i := range v.WrongSigns {
		all = append(all, w.signSentence(i))
	}
	for _, i := range v.Left {
		all = append(all, w.meanSentence(i))
	}
	return strings.Join(all, "; ")
}

func (w *GainWatch) signSentence(i int) string {
	return fmt.Sprintf("device %d: the sign of its gain is not that of mu_i, which by %s is more than %v sigma_i away from 0", i+1, w.basis, gains.SignRatio)
}

func (w *GainWatch) meanSentence(i int) string {
	s := w.Standing(i)
	return fmt.Sprintf("device %d: the running mean of H_i/alpha is %.3g, and by %s it is from %.3g to %.3g, %.2g more for chance, rounding and what was not read", i+1, s.Mean, w.basis, s.Low, s.High, s.Allowed)
}

// Devices returns those that disagreed, counted from 1, and a sentence on each.
func (w *GainWatch) Devices() (list []int, notes []string) {
	s := w.State()
	for i, d := range s.Devices {
		if d.WrongSigns > 0 {
			notes = append(notes, fmt.Sprintf("%s, in %d of %d rounds that were read", w.signSentence(i), d.WrongSigns, s.Looks))
		}
		if d.Left > 0 {
			notes = append(notes, fmt.Sprintf("%s; it left after %d of %d rounds that were read", w.meanSentence(i), d.Left, s.Looks))
		}
		if d.WrongSigns+d.Left > 0 {
			list = append(list, i+1)
		}
	}
	return list, notes
}
