package paper

import (
	"strings"
	"testing"

	"ringwave/learner/experiment/report"
)

// Beside the verdict stands by how much the bound is above what was measured.
func TestBoundSaysHowFarOffItIs(t *testing.T) {
	settings := []theorySetting{
		{"one", []theoryPoint{{Rounds: 100, Minimum: 1, HeldOut: 2, Bound: 480, Below: true}, {Rounds: 1000, Minimum: 0.5, HeldOut: 1, Bound: 300, Below: true}}},
		{"two", []theoryPoint{{Rounds: 100, Minimum: 0.001, HeldOut: 0.01, Bound: 365, Below: true}}},
	}
	table := boundTable(settings[0])
	for k, want := range []string{"240", "300"} {
		row := table.Rows[k]
		if got := row.Cells[len(row.Cells)-1]; got != want || row.Verdict != report.Same || row.Against != report.Statement {
			t.Errorf("%v, %v", row, want)
		}
	}
	if f := boundFinding(settings); f.Verdict != report.Same || !strings.Contains(f.Here, "at 3 of 3 points, where the bound is 240 to 36500 times") {
		t.Errorf("%+v", f)
	}
	settings[1].Points[0].Below = false
	if f := boundFinding(settings); f.Verdict != report.Differs {
		t.Errorf("%+v", f)
	}
}
