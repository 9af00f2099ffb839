package sweepreport_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweepreport"
)

// Curves of runs as they end take in so many rounds and so many seeds, and say so.
func TestLive(t *testing.T) {
	p := planOf(t, "seeds = \"1-12\"\n[grid]\n\"channel.std\" = [0.1, 0.3]\n", "optimizer.rounds=1000")
	live := sweepreport.NewLive(p)
	if len(live.Plots()) != 0 {
		t.Errorf("%d plots of nothing", len(live.Plots()))
	}
	var rows []runfolder.Row
	for k := 1; k <= 1000; k++ {
		row := runfolder.Row{Round: k, TrainLoss: 1 / float64(k), TestAccuracy: math.NaN()}
		if k%100 == 1 {
			row.TestAccuracy = 0.5
		}
		rows = append(rows, row)
	}
	for run := range p.Points {
		if want := run%12 < 10; live.Wants(run) != want {
			t.Errorf("run %d is wanted: %v", run, !want)
		}
		live.Add(run, rows)
	}
	plots := live.Plots()
	if len(plots) != 2 {
		t.Fatalf("%d plots", len(plots))
	}
	for _, plot := range plots {
		for _, says := range []string{"Of 20 runs", "Of 12 seeds", "the first 10", "4 rounds are drawn as one"} {
			if !strings.Contains(plot.Caption, says) {
				t.Errorf("%s: %q has not %q", plot.Name, plot.Caption, says)
			}
		}
		var svg bytes.Buffer
		if err := plot.WriteSVG(&svg); err != nil || svg.Len() > 200_000 || !strings.Contains(svg.String(), "std = 0.3") {
			t.Errorf("%s: %d bytes, %v", plot.Name, svg.Len(), err)
		}
	}
}
