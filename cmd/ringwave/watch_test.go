package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/watch/page/pagetest"
)

// watchedRun is the program at work in this process, with a page.
type watchedRun struct {
	mu     sync.Mutex
	text   strings.Builder
	status chan int
	cancel context.CancelFunc

	begin chan struct{} // closed when the program may go on after it gave the page's address
}

// Write implements io.Writer. It holds the program before its work until a browser is there:
// the work may take less time than a browser to open.
func (r *watchedRun) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("Watch: ")) {
		defer func() { <-r.begin }()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *watchedRun) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// connected reports, in the page, whether the program has been heard.
const connected = `document.getElementById("program").textContent !== ""`

var watchLine = regexp.MustCompile(`(?m)^Watch: (http://\S+)$`)

// watched starts the program, and returns the address of its page.
func watched(t *testing.T, args ...string) (r *watchedRun, url string) {
	t.Helper()
	r, url = held(t, args...)
	close(r.begin)
	return r, url
}

// held starts the program, and returns the address of its page. The program begins with its
// work when r.begin is closed.
func held(t *testing.T, args ...string) (r *watchedRun, url string) {
	t.Helper()
	r = &watchedRun{status: make(chan int, 1), begin: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	t.Cleanup(cancel)
	go func() { r.status <- execute(ctx, args, r, r) }()
	experimenttest.Until(t, "the page's address", func() bool {
		if m := watchLine.FindStringSubmatch(r.said()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	return r, url
}

// table returns metrics.csv of a run's folder.
func table(t *testing.T, dir string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Longer than 60 lines because one browser is started for all.
//
// A real browser sees of the program's work what its files have.
func TestWatch(t *testing.T) {
	browser := pagetest.Start(t)
	dir := t.TempDir()
	small := []string{"--set", "task.dataset=strokes", "--set", "task.strokes_train=200", "--set", "task.strokes_test=100"}
	recorded := filepath.Join(dir, "recorded")

	t.Run("a waveform run", func(t *testing.T) {
		args := append([]string{"run", repoPath(t, "hw-configs/waveform-mnist.toml"), "--out", recorded, "--watch", "localhost:0", "-q",
			"--set", "link.record=ci16_le", "--set", "optimizer.rounds=100000", "--set", "experiment.name=<script>", "--set", "devices.carrier_offset_hz=50"}, small...)
		// Recordings of very many rounds are not wanted: the page ends the run.
		r, url := watched(t, args...)
		tab := browser.Open(t, url, 1300, 900, false)
		tab.Await(`Number(document.querySelector("#view-learning table")?.rows[1].cells[0].textContent) >= 2`)
		tab.Keys("2")
		tab.Await(`/^round \d+, attempt \d+, (b|c0|c1|D): read; α = /.test(document.getElementById("frame-name").textContent)`)
		tab.Await(`document.getElementById("spectrum").getAttribute("aria-label").startsWith("Spectrum: the average is strongest at ")`)
		tab.Screenshot("run-air")
		tab.Keys("3")
		tab.Await(`document.querySelector("#view-bench table")?.rows.length === 4 && document.querySelector("#view-bench img")?.naturalWidth > 0`)
		// A frame of 58 ms tells the common carrier to some Hz.
		tab.Await(`Math.abs(Number(document.querySelector("[data-key=carrier_offset] .value").dataset.value) - 50) < 5`)
		tab.Await(`document.querySelector("[data-key=clipped_samples] .value").dataset.value === "0" && /^\d+$/.test(document.querySelector("#view-bench table").rows[1].cells[10].textContent)`)
		tab.Screenshot("run-bench")
		tab.Keys("1")
		tab.Await(`document.querySelectorAll("#view-learning img").length >= 4 && document.querySelector("#view-learning img").naturalWidth > 0`)
		tab.Screenshot("run-learning")
		tab.Click("#stop")
		tab.Click("#yes")
		if status := <-r.status; status != exitInterrupted {
			t.Fatalf("status %d: %s", status, r.said())
		}
		tab.Await(`document.getElementById("lost").textContent.startsWith("The program has ended") && document.getElementById("state").textContent === "stopped, can go on"`)
		var shown [][]string
		tab.Eval(`[...document.querySelector("#view-learning table").rows].map(r => [...r.cells].map(c => c.textContent))`, &shown)
		rows := table(t, recorded)
		if !slices.Equal(shown[0], rows[0]) {
			t.Errorf("columns %q, want %q", shown[0], rows[0])
		}
		for k, row := range shown[1:] {
			if want := rows[len(rows)-1-k]; !slices.Equal(row, want) {
				t.Errorf("the page's row %q, want %q as metrics.csv has it", row, want)
			}
		}
		for column, key := range map[string]string{"train_loss": "train_loss", "m": "m", "m_ideal": "m_ideal", "eps": "eps", "eps_std_predicted": "eps_std_predicted", "alpha": "alpha", "quality": "quality", "misfit": "misfit"} {
			tab.Keys(map[bool]string{true: "2", false: "1"}[slices.Contains([]string{"alpha", "quality", "misfit"}, key)])
			got := tab.Text(fmt.Sprintf(`document.querySelector("[data-key=%s] .value").dataset.value`, key))
			if want := rows[len(rows)-1][slices.Index(rows[0], column)]; got != want {
				t.Errorf("%s is shown as %q, want %q as metrics.csv has it", key, got, want)
			}
		}
		if hosts := tab.Hosts(); len(hosts) != 1 {
			t.Errorf("the page asked %q", hosts)
		}
		if err := tab.Wrong(); err != nil {
			t.Error(err)
		}
	})

	t.Run("its recording", func(t *testing.T) {
		r, url := watched(t, "view", recorded)
		tab := browser.Open(t, url+"#air", 1300, 900, true)
		tab.Await(`document.getElementById("lost").hidden && !document.getElementById("player").hidden`)
		tab.Keys("2")
		tab.Await(`/^round 1, attempt 1, (b|c0|c1|D): read; α = /.test(document.getElementById("frame-name").textContent) && document.getElementById("problem").hidden`)
		tab.Click("#play") // pauses
		tab.Await(`document.getElementById("play").textContent === "Play"`)
		before := tab.Text(`document.getElementById("position").textContent`)
		tab.Click("#next")
		tab.Await(fmt.Sprintf(`document.getElementById("position").textContent !== %q`, before))
		tab.Screenshot("recording")
		tab.Keys("1")
		rows := table(t, recorded)
		tab.Await(fmt.Sprintf(`document.querySelector("[data-key=m] .value")?.dataset.value === %q`, rows[len(rows)-1][slices.Index(rows[0], "m")]))
		r.cancel()
		if status := <-r.status; status != 0 {
			t.Errorf("status %d: %s", status, r.said())
		}
	})

	t.Run("a sweep", func(t *testing.T) {
		spec := filepath.Join(dir, "sweep.toml")
		text := fmt.Sprintf("[sweep]\nbase = %q\nseeds = \"1-3\"\n[grid]\ndevices.count = [2, 3]\n", repoPath(t, "hw-configs/loopback.toml"))
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "sweep")
		r, url := held(t, append([]string{"sweep", spec, "--out", out, "--watch", "localhost:0", "-q", "--set", "optimizer.rounds=30"}, small...)...)
		tab := browser.Open(t, url, 1300, 900, false)
		tab.Await(connected)
		close(r.begin)
		tab.Await(`document.getElementById("matrix-counts").textContent.includes("done")`)
		tab.Screenshot("sweep")
		if status := <-r.status; status != 0 {
			t.Fatalf("status %d: %s", status, r.said())
		}
		tab.Await(`document.getElementById("matrix-counts").textContent === "6 done (✓)" && document.getElementById("state").textContent === "ended"`)
		if got := tab.Text(`document.getElementById("matrix").getAttribute("aria-label")`); got != "Runs: 6 done (✓)" {
			t.Error(got)
		}
		v, url := watched(t, "view", out, recorded)
		tab = browser.Open(t, url, 390, 844, false)
		tab.Await(`document.getElementById("scene").length === 2`)
		tab.Screenshot("sweep-viewed-390")
		v.cancel()
		if status := <-v.status; status != 0 {
			t.Errorf("status %d: %s", status, v.said())
		}
	})

	t.Run("curves and a calibration", func(t *testing.T) {
		for name, args := range map[string][]string{
			"curves":      {"curves", "--devices", "2", "--sigma", "0.3", "--snr", "30,40", "--blocks", "40"},
			"calibration": {"calibrate", repoPath(t, "hw-configs/waveform-aligned.toml"), "--no-advice", "--set", "calibration.blocks=40"},
		} {
			r, url := held(t, append(args, "--out", filepath.Join(dir, name), "--watch", "localhost:0", "-q")...)
			tab := browser.Open(t, url, 1300, 900, false)
			tab.Await(connected)
			close(r.begin)
			tab.Await(`["running", "ended"].includes(document.getElementById("state").textContent)`)
			if status := <-r.status; status != 0 {
				t.Fatalf("%s: status %d: %s", name, status, r.said())
			}
			tab.Await(`document.getElementById("state").textContent === "ended"`)
			tab.Keys(map[string]string{"curves": "2", "calibration": "3"}[name])
			tab.Await(`document.querySelector("table")?.rows.length >= 3`)
			tab.Screenshot(name)
		}
	})
}

// What the page's flags must not be is said in a sentence, and nothing is begun.
func TestWatchRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for want, args := range map[string][]string{
		"allowed is host:port":         {"--watch", "8080"},
		"--watch-token goes with":      {"--watch-token", "x"},
		"no such file":                 {"--watch", "localhost:0", "--watch-token", filepath.Join(dir, "none")},
		"--watch-cert and --watch-key": {"--watch", "0.0.0.0:0", "--watch-cert", "x"},
	} {
		status, _, stderr := run(t, append([]string{"run", repoPath(t, "hw-configs/loopback.toml"), "--set", "task.dataset=strokes", "--out", dir}, args...)...)
		if status != exitBadInput || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%v: something was written", args)
		}
	}
	for want, path := range map[string]string{"is the folder of no run": t.TempDir(), "no such file": dir, "neither a folder nor a recording": repoPath(t, "README.md")} {
		if status, _, stderr := run(t, "view", path); status != exitBadInput || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q", path, status, stderr)
		}
	}
}

// Metrics are there without a token on this machine, and the page is not.
func TestWatchDoor(t *testing.T) {
	r, url := watched(t, "run", repoPath(t, "hw-configs/loopback.toml"), "--set", "task.dataset=strokes", "--set", "optimizer.rounds=1000000", "--out", filepath.Join(t.TempDir(), "run"), "--watch", "localhost:0", "-q")
	base, _, _ := strings.Cut(url, "/?")
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/": 403, "/socket": 403, "/scenes/run-1/plots/loss.svg": 403} {
		answer, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
	r.cancel()
	if status := <-r.status; status != exitInterrupted {
		t.Errorf("status %d: %s", status, r.said())
	}
}
