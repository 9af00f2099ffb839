package main

import (
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/paper"
)

// A search that was cut short chooses nothing and shows no accuracy; it is made only
// where it is asked for.
func TestReproduceSearch(t *testing.T) {
	dir, data := t.TempDir(), experimenttest.FewImages(t)
	page := reproduced(t, dir, "cifar-search", "--data", data)
	wantIn(t, page, "held out", "16 packed directions", "– cut short", "rounds run")
	for _, tried := range paper.CifarTried() {
		for _, s := range tried {
			s.Rounds = 3
			wantIn(t, string(experimenttest.ReadFile(t, dir, "report.md")), escaped(s.Steps()))
		}
	}
	if strings.Contains(page, ">chosen</td>") || strings.Contains(page, " %</td>") {
		t.Error("a search that was cut short has a result")
	}
	all, err := paper.Chosen(nil)
	if err != nil || slices.ContainsFunc(all, func(c paper.Chapter) bool { return c.Name == "cifar-search" }) {
		t.Errorf("a report of all has the search: %v", err)
	}
	if one, err := paper.Chosen([]string{"cifar-search"}); err != nil || len(one) != 1 {
		t.Errorf("%v, %v", one, err)
	}
}

// escaped is text as Markdown has it.
func escaped(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`).Replace(text)
}
