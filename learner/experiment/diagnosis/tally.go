package diagnosis

import (
	"math"
	"math/cmplx"
	"slices"

	"ringwave/crypto/round"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// kept is how many lost frames a tally looks back over.
const kept = 64

// Tally takes in the frames of a run. It is for one goroutine.
type Tally struct {
	link  Link
	count Report // its counts
	lost  []Sight
	next  int // of lost, to be written over
}

// NewTally returns a tally of a link.
func NewTally(l Link) *Tally { return &Tally{link: l} }

// Add takes a frame in.
func (t *Tally) Add(o phy.Observation) { t.add(t.link.Of(o)) }

func (t *Tally) add(s Sight) {
	t.count.Frames++
	if s.Read {
		return
	}
	t.count.Lost++
	if !s.Found {
		t.count.NotFound++
	} else if s.Transmission == slot.TxKey {
		t.count.Unscaled++
	}
	if len(t.lost) < kept {
		t.lost = append(t.lost, s)
		return
	}
	t.lost[t.next] = s
	t.next = (t.next + 1) % kept
}

// Void takes in by which check an attempt was declared void.
func (t *Tally) Void(c round.Check) {
	t.count.Attempts++
	switch c {
	case round.EqualGains:
		t.count.Changed++
	case round.GainsCheck:
		t.count.Odd++
	case round.Witness:
		t.count.Noisy++
	case round.NoSignal:
		t.count.Silent++
	}
}

// Report returns what the last lost frames had in common.
func (t *Tally) Report() Report {
	r := t.count
	r.Link = t.link
	var found []Sight
	for _, s := range t.lost {
		r.Devices = max(r.Devices, s.Devices)
		if s.Found {
			found = append(found, s)
		}
	}
	unseen := slices.DeleteFunc(slices.Clone(t.lost), func(s Sight) bool { return s.Found })
	r.Excess = median(unseen, func(s Sight) float64 { return s.Excess })
	r.Standing = median(unseen, func(s Sight) float64 { return s.Standing })
	r.Line = median(unseen, func(s Sight) float64 { return float64(s.Line) })
	r.take(found)
	return r
}

// take takes the middle figures of frames that were found.
func (r *Report) take(found []Sight) {
	of := func(f func(Sight) float64) float64 { return median(found, f) }
	r.Drift = of(func(s Sight) float64 { return math.Abs(float64(s.Report.Drift)) })
	r.Turn = of(func(s Sight) float64 { return math.Abs(s.Turn) })
	r.Wander = of(func(s Sight) float64 { return s.Wander })
	r.LeastReal = of(func(s Sight) float64 { return s.LeastReal })
	r.MostReal = of(func(s Sight) float64 { return s.MostReal })
	r.Realness = of(func(s Sight) float64 { return s.Report.Realness })
	r.Untracked = of(func(s Sight) float64 { return truth(!s.Report.Tracked) }) > 0
	r.Receiver = of(func(s Sight) float64 { return cmplx.Abs(s.Report.Receiver) / float64(s.Sync.Amplitude) })
	r.Carrier = of(func(s Sight) float64 { return cmplx.Abs(s.Report.Carrier) / float64(s.Sync.Amplitude) })
	r.Image = of(func(s Sight) float64 { return cmplx.Abs(s.Report.Image) })
	r.Block = of(func(s Sight) float64 { return float64(s.Report.Block) })
	r.Echo = of(func(s Sight) float64 { return s.Report.Echo })
	r.Clock = of(func(s Sight) float64 { return s.Report.Clock })
	r.Slip = of(func(s Sight) float64 { return s.Slip })
	r.Timed = of(func(s Sight) float64 { return s.Timed })
	r.Fade = of(func(s Sight) float64 { return s.Fade })
	r.Struck = of(func(s Sight) float64 { return s.Struck })
	r.Quiet = of(func(s Sight) float64 { return s.Quiet })
	r.Tone = of(func(s Sight) float64 { return float64(s.Tone) })
	r.Erased = of(func(s Sight) float64 { return float64(s.Report.Erased) / float64(s.Symbols) })
	r.Missing = of(func(s Sight) float64 { return float64(s.Report.Missing) / float64(s.Symbols) })
	r.Clipped = of(func(s Sight) float64 { return float64(s.Report.Clipped) })
	r.Seconds = of(func(s Sight) float64 {
		return float64(s.Symbols) * float64(r.Link.SamplesPerSymbol) / r.Link.SampleRate
	})
	r.SNR = of(func(s Sight) float64 {
		a := float64(s.Sync.Amplitude)
		return decibels(a * a / (float64(s.Sync.Noise) / 2))
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// median returns the middle one of a figure; NaN where no sight has any.
func median(all []Sight, f func(Sight) float64) float64 {
	var list []float64
	for _, s := range all {
		if v := f(s); !math.IsNaN(v) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[len(list)/2]
}
