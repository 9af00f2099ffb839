package scenes

import (
	"math"
	"testing"

	"ringwave/learner/experiment/runfolder"
)

// A million rounds are kept in bounded memory, and what stands out is not lost.
func TestHistory(t *testing.T) {
	var h history
	const rounds, odd = 1_000_000, 123_457
	for k := 1; k <= rounds; k++ {
		row := runfolder.Row{Round: k, Attempts: 1, TestAccuracy: math.NaN(), Link: &runfolder.LinkRow{Quality: 0.9, Misfit: math.NaN()}}
		if k == odd {
			row.Attempts, row.Link.Quality, row.Link.Misfit, row.TestAccuracy = 7, -0.5, 3, 0.25
		}
		h.add(row, []float64{1})
	}
	if n := len(h.rows); n > mostRows || n < mostRows/4 || len(h.gains) != n || len(h.last) != lastRows || h.last[lastRows-1].Round != rounds {
		t.Fatalf("%d rows, %d of gains, the last %d", n, len(h.gains), len(h.last))
	}
	found := 0
	for k, row := range h.rows {
		if k > 0 && row.Round <= h.rows[k-1].Round {
			t.Fatalf("round %d follows %d", row.Round, h.rows[k-1].Round)
		}
		if row.Attempts == 7 && row.Link.Quality == -0.5 && row.Link.Misfit == 3 && row.TestAccuracy == 0.25 {
			found++
		}
	}
	if found != 1 {
		t.Errorf("what stood out is found %d times", found)
	}
}
