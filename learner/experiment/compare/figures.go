package compare

import (
	"math"
	"slices"

	"ringwave/learner/experiment/runfolder"
)

// Comparison is groups of runs and the figures that come of them.
type Comparison struct {
	Table []Line // a line a group
	// Accuracies are those to which rounds were counted, rising, as shares.
	Accuracies []float64
	// Skipped are the folders given that are no runs, in the order given.
	Skipped []Skipped

	groups []*group
}

// Line is a group's line of the table.
type Line struct {
	Label string `json:"label"`
	Results

	Paired []PairedLine `json:"paired"`
}

// PairedLine compares a group with another, run by run of the same seed: the other's
// test accuracy less the group's own, in points (hundredths of the share).
type PairedLine struct {
	With   string          `json:"with"`
	Seeds  int             `json:"seeds"`
	Median runfolder.Float `json:"median_points"`
	// Largest has the largest magnitude, at the seed LargestSeed.
	Largest     runfolder.Float `json:"largest_points"`
	LargestSeed uint64          `json:"largest_seed"`

	of, other int // the positions of the group and of the one named by With
}

// compareGroups computes all figures. Without accuracies it chooses them.
func compareGroups(groups []*group, accuracies []float64) Comparison {
	c := Comparison{groups: groups, Accuracies: slices.Compact(slices.Sorted(slices.Values(accuracies)))}
	var tallies []*Tally
	for _, g := range groups {
		tallies = append(tallies, g.tally())
	}
	if len(accuracies) == 0 {
		c.Accuracies = Telling(tallies)
	}
	for i, g := range groups {
		line := Line{Label: g.label, Results: tallies[i].Results(c.Accuracies), Paired: []PairedLine{}}
		for k, other := range groups[i+1:] {
			if p, ok := pair(g, other); ok {
				p.of, p.other = i, i+1+k
				line.Paired = append(line.Paired, p)
			}
		}
		c.Table = append(c.Table, line)
	}
	return c
}

func (g *group) tally() *Tally {
	t := NewTally(g.cfg)
	for _, r := range g.runs {
		t.Add(r.summary, r.rows)
	}
	return t
}

// pair compares the runs of equal seeds; there are none if the data differ.
func pair(a, b *group) (PairedLine, bool) {
	if a.data != b.data {
		return PairedLine{}, false
	}
	line := PairedLine{With: b.label}
	var points []float64
	for _, r := range a.runs {
		for _, s := range b.runs {
			d := 100 * float64(s.summary.TestAccuracy-r.summary.TestAccuracy)
			if s.summary.Seed != r.summary.Seed || math.IsNaN(d) {
				continue
			}
			points = append(points, d)
			if len(points) == 1 || math.Abs(d) > math.Abs(float64(line.Largest)) {
				line.Largest, line.LargestSeed = runfolder.Float(d), s.summary.Seed
			}
		}
	}
	_, line.Median, _ = floatQuartiles(points)
	line.Seeds = len(points)
	return line, len(points) > 0
}
