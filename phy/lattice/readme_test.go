package lattice

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table of constants of phy/README.md has this package's, and section 3 its table of
// successes.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("\n| candidates of a search | %d |\n", defaultCandidates),
		fmt.Sprintf("\n| bins of a block | %d |\n", defaultBins),
		fmt.Sprintf("\n| least margin of teeth | %v |\n", minMargin),
		fmt.Sprintf("is at most %v,\n", 0.5-minMargin),
		fmt.Sprintf("up to %v/8 of a turn a bin", 8*maxTurn),
		fmt.Sprintf("t = 1/%d, 2/%[1]d, ...", 2*padding*defaultBins),
	}
	head := "| N |"
	for _, s := range settings() {
		head += fmt.Sprintf(" sigma %v, %v dB |", s.sigma, s.snrdB)
	}
	for _, w := range append(want, head) {
		if !strings.Contains(string(text), w) {
			t.Errorf("README.md does not say %q", w)
		}
	}
	_, rows, _ := strings.Cut(string(text), head)
	for n := 2; n <= 4; n++ {
		_, row, _ := strings.Cut(rows, fmt.Sprintf("\n| %d |", n))
		for i, want := range table()[n] {
			var least, own float64
			cells := strings.Split(row, "|")
			if _, err := fmt.Sscanf(cells[i], "%f, %f", &least, &own); err != nil || least != want || own < least-0.01 {
				t.Errorf("N = %d: cell %q, the bound is %v: %v", n, cells[i], want, err)
			}
		}
	}
}
