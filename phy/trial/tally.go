package trial

import (
	"math"
	"slices"
)

// Tally counts outcomes.
type Tally struct {
	// Trials is their number, ReadAt[i] how many of them were read at attempt i+1,
	// Wrong how many had something accepted that is not the truth, Misread how many
	// had a pattern misread beside an accepted block.
	Trials  int
	ReadAt  []int
	Wrong   int
	Misread int
	// FirstWrong says what the first of these accepted, and FirstFailure why the first
	// round was not read that was not read at once.
	FirstWrong, FirstFailure string

	misfits []float64
	zeros   int
}

// Add counts one more.
func (t *Tally) Add(o Outcome) {
	t.Trials++
	if o.Wrong != "" {
		t.Wrong++
		if t.FirstWrong == "" {
			t.FirstWrong = o.Wrong
		}
	}
	if o.Misread {
		t.Misread++
	}
	if t.FirstFailure == "" && o.Attempt != 1 && len(o.Tries) > 0 {
		t.FirstFailure = o.Tries[0].Failure
	}
	if o.Attempt == 0 {
		return
	}
	for len(t.ReadAt) < o.Attempt {
		t.ReadAt = append(t.ReadAt, 0)
	}
	t.ReadAt[o.Attempt-1]++
	t.misfits = append(t.misfits, o.Misfit)
	t.zeros += o.ZeroGains
}

// Within returns how many trials were read within so many attempts.
func (t *Tally) Within(attempts int) int {
	sum := 0
	for _, n := range t.ReadAt[:min(attempts, len(t.ReadAt))] {
		sum += n
	}
	return sum
}

// Misfit returns the median of the misfits of the trials read; NaN if there are none.
func (t *Tally) Misfit() float64 {
	n := len(t.misfits)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(t.misfits))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ZeroGains returns the mean number of devices with H_i = 0 among the trials read;
// NaN if there are none.
func (t *Tally) ZeroGains() float64 { return float64(t.zeros) / float64(len(t.misfits)) }

// Wilson returns the score interval of Wilson, at 95 %, of a share of which k of n
// were counted: from 0 to 1, and of some width even where k is 0 or n.
func Wilson(k, n int) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // the normal distribution's 0.975-quantile
	total, share := float64(n), float64(k)/float64(n)
	centre := share + z*z/(2*total)
	reach := z * math.Sqrt(share*(1-share)/total+z*z/(4*total*total))
	scale := 1 + z*z/total
	return math.Max(0, (centre-reach)/scale), math.Min(1, (centre+reach)/scale)
}
