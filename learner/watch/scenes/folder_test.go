package scenes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
	"ringwave/learner/watch/scenes"
	"ringwave/radio/intake"
)

// ranIn makes the folder of a small run.
func ranIn(t *testing.T, dir string) {
	t.Helper()
	c, err := experiment.Lab{}.Load("../../../hw-configs/loopback.toml", "task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=50", "optimizer.rounds=60", "optimizer.batch_size=16",
		`experiment.name=<script>alert(1)</script>`)
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
}

// lastLines returns the last lines of a run's metrics.csv, the newest first.
func lastLines(t *testing.T, dir string) (lines []string) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(string(experimenttest.ReadFile(t, dir, runfolder.MetricsName))), "\n")[1:]
	slices.Reverse(all)
	return all[:min(50, len(all))]
}

func lines(rows [][]string) (out []string) {
	for _, row := range rows {
		out = append(out, strings.Join(row, ","))
	}
	return out
}

// A run's folder is shown as its files are, whatever names are in it, and no file but its
// figures is served.
func TestRunFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "a run")
	ranIn(t, dir)
	secret := filepath.Join(parent, "secret.svg")
	for path, text := range map[string]string{secret: "<svg>secret", filepath.Join(dir, "a b.svg"): "<svg>", filepath.Join(dir, "large.svg"): "<svg>" + strings.Repeat(" ", 9<<20)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.svg")); err != nil {
		t.Skip(err) // not a system of links
	}
	b := newBoard()
	if err := scenes.Folder(b, dir); err != nil {
		t.Fatal(err)
	}
	p := open(t, b)
	if title := p.hello.Scenes[0].Title; !strings.HasPrefix(title, "a run – ") {
		t.Errorf("%q", title)
	}
	p.look(0)
	p.until("rounds", func() bool {
		return len(p.table("rounds").Rows) > 0 && len(p.plots()) > 0 && len(p.parts["config"]) > 0 && len(p.events) > 0
	})
	if got := lines(p.table("rounds").Rows); !slices.Equal(got, lastLines(t, dir)) {
		t.Errorf("%v", got)
	}
	if s := p.status(); s.State != watch.StateEnded || s.Done != 60 || s.Of != 60 {
		t.Errorf("%+v", s)
	}
	var config string
	if p.part(watch.PartConfig, &config); config != string(experimenttest.ReadFile(t, dir, runfolder.ConfigName)) || !strings.Contains(config, "<script>") {
		t.Error("the configuration is another")
	}
	for _, plot := range p.plots() {
		if plot.Name == "link" || plot.Name == "a b" {
			t.Errorf("%+v", plot)
		}
		if plot.Name != "large" && p.svg(plot.Name) != string(experimenttest.ReadFile(t, dir, plot.Name+".svg")) {
			t.Errorf("the plot %s is another", plot.Name)
		}
	}
	at := "/scenes/" + p.scene + "/plots/"
	for _, name := range []string{"link.svg", "../secret.svg", "..%2fsecret.svg", "config.toml", "a%20b.svg"} {
		if code, text := p.get(at + name); code != http.StatusNotFound || strings.Contains(text, "secret</") {
			t.Errorf("%s: %d %.200s", name, code, text)
		}
	}
	if code, text := p.get(at + "large.svg"); code == http.StatusOK || len(text) > 1000 {
		t.Errorf("a large figure: %d, %d bytes", code, len(text))
	}
	// What becomes something else after it was found is not served, either.
	if err := os.Rename(filepath.Join(dir, "link.svg"), filepath.Join(dir, "large.svg")); err != nil {
		t.Fatal(err)
	}
	if code, text := p.get(at + "large.svg"); code == http.StatusOK || strings.Contains(text, "<svg>secret") {
		t.Errorf("a link: %d %.200s", code, text)
	}
}

// A run's folder is followed while it is written: a line that is not whole waits, and rounds
// that were taken back are read anew.
func TestRunFolderGrows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ranIn(t, dir)
	if err := os.Remove(filepath.Join(dir, runfolder.SummaryName)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, runfolder.MetricsName)
	all := strings.SplitAfter(string(experimenttest.ReadFile(t, path)), "\n")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Join(all[:31], "") + all[31][:5]) // 30 rounds, and a piece
	b := newBoard()
	if err := scenes.Folder(b, dir); err != nil {
		t.Fatal(err)
	}
	p := open(t, b)
	p.look(0)
	newest := func(k int) func() bool {
		return func() bool {
			rows := p.table("rounds").Rows
			return len(rows) > 0 && rows[0][0] == fmt.Sprint(k) && p.status().Done == k
		}
	}
	p.until("30 rounds", newest(30))
	if s := p.status(); s.State != watch.StateStopped || s.Of != 60 {
		t.Errorf("%+v", s)
	}
	f, err := runfolder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(strings.Join(all[:46], ""))
	p.until("15 more", newest(45))
	p.until("who writes", func() bool { return p.status().State == watch.StateRunning })
	if got, want := lines(p.table("rounds").Rows), lastLines(t, dir); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	write(strings.Join(all[:21], ""))
	p.until("some taken back", newest(20))
	if n := len(p.table("rounds").Rows); n != 20 {
		t.Errorf("%d rows", n)
	}
	write(strings.Join(all, ""))
	if err := f.WriteSummary(runfolder.Summary{TestAccuracy: 0.25, Unusable: "<b>diverged</b>"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p.until("the end", func() bool { return p.status().State == watch.StateEnded && p.status().Text == "<b>diverged</b>" })
	p.until("its rounds", newest(60))
}

// Folders of others and damaged ones are refused in a sentence of one line, and beside others
// they hide none.
func TestFolderOfFolders(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantRefused := func(dir, what string) {
		t.Helper()
		err := scenes.Folder(newBoard(), dir)
		if err == nil || !intake.IsUserError(err) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	wantRefused(filepath.Join(parent, "none"), "no such file")
	wantRefused(parent, "holds none")
	good, seeds, damaged := filepath.Join(parent, "20260101-good"), filepath.Join(parent, "seeds"), filepath.Join(parent, "bad")
	ranIn(t, good)
	for _, dir := range []string{filepath.Join(seeds, "seed-1"), damaged} {
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(damaged, runfolder.MetricsName), []byte("round,<script>\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(damaged, "the header is")
	b := newBoard()
	if err := scenes.Folder(b, parent); err != nil {
		t.Fatal(err)
	}
	p := open(t, b)
	if len(p.hello.Scenes) != 3 {
		t.Fatalf("%+v", p.hello)
	}
	p.look(1)
	p.until("the damage", func() bool { return p.status().State == watch.StateFailed })
	if text := p.status().Text; !strings.Contains(text, "the header is") {
		t.Errorf("%q", text)
	}
	// A header alone is a run that has begun; without one it has not.
	for text, want := range map[string]string{"": "no header", strings.Repeat("x", 1<<20): "longer than", "\x00\n": "the header is"} {
		if err := os.WriteFile(filepath.Join(damaged, runfolder.MetricsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefused(damaged, want)
	}
	if err := os.WriteFile(filepath.Join(damaged, runfolder.ConfigName), []byte("x = {"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(damaged, runfolder.ConfigName)
}
