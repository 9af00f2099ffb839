package main

import (
	"cmp"
	"fmt"
	"math"
	"math/cmplx"
	"strings"

	"ringwave/crypto/round"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/gains"
)

// passageTolerance is what a fractional delay may add to a gain, relatively.
const passageTolerance = 0.02

// leastHeard returns how many devices must have a gain H_i other than 0, where the
// receiver looks for the lattice.
func leastHeard(c config.Config) int { return cmp.Or(c.Devices.Minimum, c.Devices.Count) }

// gainWatch judges the gains that a waveform link's patterns show, and keeps what they
// have shown.
type gainWatch struct {
	*gains.Watch
	link  *waveLink
	least int  // how many gains must not be 0; 0 where zeros are the channel's own
	fresh bool // every attempt meets new gains
	// refuse has attempts be void whose gains disagree with what is known of them.
	refuse bool
	basis  string // what is known is from here

	h, slack []float64
	looked   bool // in this round
	last     gains.Verdict
	unsolved bool // the last patterns were of no integer gains
	told     gains.State

	// disagrees hears of each device that disagrees, once for its sign and once for its
	// mean.
	disagrees func(k, device int, what string)
}

// newGainWatch watches the gains of a link over whatever bench.
func newGainWatch(c config.Config, l *waveLink) (*gainWatch, error) {
	links := l.knownGains(c)
	w, err := gains.New(gains.Config{Links: links, Turned: l.TurnsGroups()})
	if err != nil {
		return nil, fmt.Errorf("the links as they are known: %w", err)
	}
	g := &gainWatch{
		Watch: w, link: l, fresh: c.Channel.FreshBlockOnRetry || c.OverRadios(), refuse: c.Devices.Disagreement == "refuse",
		basis: "[channel]", h: make([]float64, len(links)), slack: make([]float64, len(links)), told: w.State(),
		disagrees: func(int, int, string) {},
	}
	if l.regime == bench.Blind {
		g.least = leastHeard(c)
	}
	switch {
	case c.Calibration.File != "":
		g.basis = "the calibration"
	case len(c.Calibration.AssumedMean) > 0:
		g.basis = "calibration.assumed_mean"
	}
	return g, nil
}

// knownGains returns what the run goes by of each device's real gain.
func (l *waveLink) knownGains(c config.Config) []gains.Link {
	ch := l.channel
	if l.known != nil {
		ch = l.known.channel
	}
	mu, omega := linkMoments(c, ch)
	links := make([]gains.Link, len(mu))
	for i := range links {
		k := gains.Link{Mean: mu[i], Std: math.Sqrt(max(0, omega[i]-mu[i]*mu[i])), Low: mu[i], High: mu[i], Group: i / l.group}
		if l.known != nil && l.known.file != nil {
			k = l.measuredGain(i, k)
		} else if l.regime == bench.Blind && !c.OverRadios() {
			// The bench in memory has static phases that nobody turns back.
			k.Low, k.High = ordered(mu[i], mu[i]*max(0, l.staticCosine(i, mu)))
		}
		k.Low -= passageTolerance * math.Abs(mu[i])
		k.High += passageTolerance * math.Abs(mu[i])
		links[i] = k
	}
	return links
}

// measuredGain takes the interval of device i's mean, and the upper end of that of its
// deviation, from the calibration.
func (l *waveLink) measuredGain(i int, k gains.Link) gains.Link {
	d := l.known.file.Devices[i]
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
func (l *waveLink) staticCosine(i int, mu []float64) float64 {
	var sum complex128
	first := i / l.group * l.group
	for j := first; j < min(first+l.group, len(mu)); j++ {
		sum += cmplx.Rect(mu[j], l.phases[j])
	}
	return math.Cos(l.phases[i] - cmplx.Phase(sum))
}

// admit judges an attempt's gains: round.Config.Admit.
func (w *gainWatch) admit(_ phy.Slot, _ *phy.Reception) (reason string) {
	w.last = gains.Verdict{}
	if w.unsolved = !w.link.RealGains(w.h, w.slack); w.unsolved {
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
func (w *gainWatch) verdict() (wrongSigns, left float64) {
	if w.unsolved {
		return math.NaN(), math.NaN()
	}
	return float64(len(w.last.WrongSigns)), float64(len(w.last.Left))
}

// endRound counts the gains that were not read in round k, and tells of devices that
// disagree for the first time.
func (w *gainWatch) endRound(k int, failures []round.Failure) {
	unread := 0
	if w.fresh {
		for _, f := range failures {
			if f.Transmission == phy.TxKey && f.Check != round.GainsCheck {
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
			w.disagrees(k, i, w.signSentence(i))
		}
		if d.Left > 0 && w.told.Devices[i].Left == 0 {
			w.disagrees(k, i, w.meanSentence(i))
		}
	}
	w.told = now
}

// resume goes on from what an earlier sitting has seen.
func (w *gainWatch) resume(s *gains.State) error {
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
func (w *gainWatch) sentences(v gains.Verdict) string {
	var all []string
	for _, i := range v.WrongSigns {
		all = append(all, w.signSentence(i))
	}
	for _, i := range v.Left {
		all = append(all, w.meanSentence(i))
	}
	return strings.Join(all, "; ")
}

func (w *gainWatch) signSentence(i int) string {
	return fmt.Sprintf("device %d: the sign of its gain is not that of mu_i, which by %s is more than %v sigma_i away from 0", i+1, w.basis, gains.SignRatio)
}

func (w *gainWatch) meanSentence(i int) string {
	s := w.Standing(i)
	return fmt.Sprintf("device %d: the running mean of H_i/alpha is %.3g, and by %s it is from %.3g to %.3g, %.2g more for chance, rounding and what was not read", i+1, s.Mean, w.basis, s.Low, s.High, s.Allowed)
}

// devices returns those that disagreed, counted from 1, and a sentence on each.
func (w *gainWatch) devices() (list []int, notes []string) {
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

// gains returns the watch of the link's gains; nil for a link without patterns that are
// solved, and before there is a link.
func (p *protocol) gains() *gainWatch {
	if l, ok := p.link.(*waveLink); ok {
		return l.gains
	}
	return nil
}

// countGains adds up what rounds had of gains of 0 and of wrong signs; NaN where
// nothing tells.
func (p *protocol) countGains(rows []runfolder.Row) (zeros, wrong float64) {
	if _, ring := p.link.(*ringLink); ring {
		return p.countRingZeros(rows), math.NaN()
	}
	for _, r := range rows {
		if r.Link == nil || math.IsNaN(r.Link.ZeroGains) {
			continue
		}
		zeros += r.Link.ZeroGains
		if !math.IsNaN(r.Link.WrongSigns) {
			wrong += r.Link.WrongSigns
		}
	}
	return zeros, wrong
}

// countRingZeros counts gains of 0 as the ring link met them, whose rows have none: a
// round's gains are drawn by the numbers of the round and of the attempt.
func (p *protocol) countRingZeros(rows []runfolder.Row) float64 {
	h, zeros := make([]float64, len(p.scaled)), 0.0
	for _, r := range rows {
		if r.Skipped || r.Attempts < 1 {
			continue
		}
		p.link.truth(h, uint32(r.Round), uint32(r.Attempts-1))
		for _, x := range h {
			if x == 0 {
				zeros++
			}
		}
	}
	return zeros
}

// watchGains has the log hear of devices whose gains disagree with what is known of
// them, and goes on from a checkpoint.
func (s *session) watchGains(from *runfolder.Checkpoint) error {
	if s.protocol == nil || s.protocol.gains() == nil {
		return nil
	}
	w := s.protocol.gains()
	w.disagrees = func(k, device int, what string) {
		s.log.Warn("a gain disagrees", "round", k, "device", device+1, "what", what)
	}
	if from == nil {
		return nil
	}
	return w.resume(from.Gains)
}

// gainState returns what the patterns have shown so far; nil for links without any.
func (s *session) gainState() *gains.State {
	if s.protocol == nil || s.protocol.gains() == nil {
		return nil
	}
	state := s.protocol.gains().State()
	return &state
}

// summariseGains adds to a summary what the gains of the rounds were.
func (s *session) summariseGains(out *runfolder.Summary, rows []runfolder.Row) {
	out.ZeroGains, out.WrongSigns = runfolder.Float(math.NaN()), runfolder.Float(math.NaN())
	if s.protocol == nil {
		return
	}
	zeros, wrong := s.protocol.countGains(rows)
	out.ZeroGains, out.WrongSigns = runfolder.Float(zeros), runfolder.Float(wrong)
	w := s.protocol.gains()
	if w == nil {
		return
	}
	if zeros > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%.0f gains H_i of 0 in the rounds that were read: M of these has nothing of these devices", zeros))
	}
	devices, notes := w.devices()
	out.DisagreeingDevices = devices
	out.Notes = append(out.Notes, notes...)
}
