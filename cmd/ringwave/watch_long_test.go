package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"ringwave/learner/watch/page/pagetest"
)

// A browser that looks at a fast run of 200,000 rounds holds no more in the end than in the
// beginning, but for a bound.
func TestWatchManyRounds(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") != "1" {
		t.Skip("200,000 rounds: RINGWAVE_LONG=1 runs them")
	}
	browser := pagetest.Start(t)
	r, url := watched(t, "run", repoPath(t, "hw-configs/loopback.toml"), "--watch", "localhost:0", "-q", "--out", filepath.Join(t.TempDir(), "run"),
		"--set", "task.dataset=strokes", "--set", "task.strokes_train=100", "--set", "task.strokes_test=50", "--set", "experiment.aggregator=ezofl", "--set", "optimizer.rounds=200000", "--set", "optimizer.checkpoint_every_rounds=10000")
	tab := browser.Open(t, url+"#learning", 1300, 900, false)
	tab.Await(`document.querySelector(".plots img")?.naturalWidth > 0 && Number(document.querySelector("#view-learning table")?.rows[1].cells[0].textContent) > 2000`)
	before := tab.Heap()
	if status := <-r.status; status != 0 {
		t.Fatalf("status %d: %s", status, r.said())
	}
	tab.Await(`document.querySelector("#view-learning table").rows[1].cells[0].textContent === "200000" && document.getElementById("state").textContent === "ended"`)
	const bound = 8 << 20
	after := tab.Heap()
	t.Logf("%.2f MB in the beginning, %.2f MB after 200,000 rounds", before/1e6, after/1e6)
	if after > before+bound {
		t.Errorf("the page holds %.1f MB more", (after-before)/1e6)
	}
}

// What a run over a waveform takes that nobody, one and ten look at: the air view, and all
// parts, as pages take them.
func BenchmarkWatch(b *testing.B) {
	config, err := filepath.Abs("../../hw-configs/waveform-mnist.toml")
	if err != nil {
		b.Fatal(err)
	}
	for _, viewers := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("viewers=%d", viewers), func(b *testing.B) {
			for b.Loop() {
				r := &watchedRun{status: make(chan int, 1)}
				go func() {
					r.status <- execute(b.Context(), []string{"run", config, "--watch", "localhost:0", "-q", "--out", filepath.Join(b.TempDir(), "run"),
						"--set", "task.dataset=strokes", "--set", "optimizer.rounds=100"}, r, r)
				}()
				var url string
				for url == "" {
					if m := watchLine.FindStringSubmatch(r.said()); m != nil {
						url = m[1]
					}
				}
				var all sync.WaitGroup
				for range viewers {
					all.Go(func() { lookAt(b, url) })
				}
				if status := <-r.status; status != 0 {
					b.Fatalf("status %d: %s", status, r.said())
				}
				all.Wait()
			}
		})
	}
}

// lookAt is a viewer of the air of the first run until that ends.
func lookAt(t testing.TB, url string) {
	base, token, _ := strings.Cut(url, "/?token=")
	c, _, err := websocket.Dial(context.Background(), base+"/socket", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Error(err)
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(8 << 20)
	if err := c.Write(context.Background(), websocket.MessageText, []byte(`{"scene":"run-1","view":"air","columns":1000}`)); err != nil {
		t.Error(err)
		return
	}
	for {
		if _, _, err := c.Read(context.Background()); err != nil {
			return
		}
	}
}
