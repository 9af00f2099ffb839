package scenes

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
	"ringwave/radio/intake"
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

// A run's folder is shown as its files have it, also when it is half-written or damaged, and
// names in it are data.
func TestRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "<script>")
	c, err := config.Parse("test", []byte("[experiment]\nname = \"<b>\"\n[task]\ndataset = \"strokes\"\nstrokes_train = 100\nstrokes_test = 50\n[optimizer]\nrounds = 5\n[encryption]\nparameter_set = \"demo-1024\"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	b := watch.NewBoard("test", fstest.MapFS{})
	if err := Folder(b, dir); err != nil {
		t.Fatal(err)
	}
	if err := Folder(b, filepath.Dir(dir)); err != nil || b.Scenes() != 2 {
		t.Errorf("%v, %d scenes", err, b.Scenes())
	}
	// A link out of the folder is no plot.
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "passwd.svg")); err == nil {
		plots, err := folderPlots(dir, watch.ViewLearning)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plots {
			if p.Name == "passwd" {
				t.Error("a link is followed out of the folder")
			}
		}
	}
	metrics := filepath.Join(dir, runfolder.MetricsName)
	whole, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(metrics, append(whole, "7,a,b\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Folder(watch.NewBoard("test", fstest.MapFS{}), dir); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "metrics.csv line 7") {
		t.Errorf("%v", err)
	}
}
