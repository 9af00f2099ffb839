package scenes_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/learner/experiment/curves"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
	"ringwave/learner/watch/scenes"
	"ringwave/phy/modem"
)

// fewCurves is a matter of a second.
func fewCurves() curves.Options {
	return curves.Options{
		Settings: curves.Settings{
			Devices: []int{2, 3}, Sigma: []float64{0.3}, SNRdB: []float64{20, 30}, Blocks: 4, Attempts: 2, Seed: 1,
			Base: 3, BlockSymbols: 1000, Pulse: "flat-top", SamplesPerSymbol: 4, DelaySpreadSamples: 1, PhaseSpreadRad: 0.2,
		},
		Modem:    modem.Config{SamplesPerSymbol: 4, Preamble: modem.Preamble{Length: 255}, Pulse: modem.FlatTop{Edge: 1, Tolerance: 1}},
		Config:   []byte("[experiment]\n"),
		Manifest: runfolder.NewManifest(time.Unix(0, 0)),
	}
}

// columnsOf returns the lines of a CSV file's columns, as a table has them.
func columnsOf(t *testing.T, path string, names []watch.Column) (rows [][]string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(experimenttest.ReadFile(t, path))), "\n")
	head := strings.Split(lines[0], ",")
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		var row []string
		for _, name := range names {
			row = append(row, fields[slices.Index(head, name.Label)])
		}
		rows = append(rows, row)
	}
	return rows
}

// A scene of curves has the points of curves.csv, how far they are, and the plots.
func TestCurves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "curves")
	measured, err := curves.Open(dir, fewCurves())
	if err != nil {
		t.Fatal(err)
	}
	defer measured.Close()
	b := newBoard()
	c := scenes.NewCurves(scenes.WorkOptions{Board: b}, measured.Result().Settings, nil, "text = 1")
	if err := measured.Measure(t.Context(), curves.Watch{Point: c.Point}); err != nil {
		t.Fatal(err)
	}
	c.Progress("point", 4, 4, 1)
	p := open(t, b)
	p.look(0)
	p.until("points", func() bool { return len(p.table("points").Rows) == 4 && len(p.plots()) > 0 })
	table := p.table("points")
	want := columnsOf(t, filepath.Join(dir, curves.CSVName), table.Columns)
	slices.Reverse(want)
	for i := range want {
		if !slices.Equal(want[i], table.Rows[i]) {
			t.Errorf("line %d is %v, and in the file %v", i, table.Rows[i], want[i])
		}
	}
	if s := p.status(); s.State != watch.StateRunning || s.Done != 4 || s.Of != 4 || s.Share != 1 || s.Unit != "point" {
		t.Errorf("%+v", s)
	}
	for _, plot := range p.plots() {
		p.svg(plot.Name)
	}
	_ = c.End(errors.New("the disk is full"))
	p.until("the end", func() bool {
		return p.status().State == watch.StateFailed && p.has(watch.EventWarning, "the disk is full")
	})
	if n := len(p.events); n != 5 {
		t.Errorf("%d events: %+v", n, p.events)
	}
}
