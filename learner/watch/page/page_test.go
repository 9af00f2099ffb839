package page_test

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/cmplx"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/learner/watch/gate"
	"ringwave/learner/watch/page"
	"ringwave/learner/watch/page/pagetest"
	"ringwave/phy/lattice"
	"ringwave/radio"
)

// script is markup that must stay text.
const script = `<script>window.hurt=1</script><img src=x onerror="window.hurt=1">`

func assets(t *testing.T) fs.FS {
	t.Helper()
	files, err := page.Assets()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// serve opens a board's door.
func serve(t *testing.T, b *watch.Board, addr string) *gate.Gate {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-this-test"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := gate.Listen(gate.Options{Addr: addr, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	g.Serve(b.Handler(), http.NotFoundHandler())
	t.Cleanup(func() { b.Close(); _ = g.Close() })
	return g
}

// All files together are small, and none asks for another host.
func TestAssets(t *testing.T) {
	total := 0
	err := fs.WalkDir(assets(t), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(assets(t), path)
		total += len(text)
		for _, scheme := range []string{"http://", "https://"} {
			if at := strings.Index(string(text), scheme); at >= 0 && !strings.Contains(string(text), "http://www.w3.org/2000/svg") {
				t.Errorf("%s names another host", path)
			}
		}
		if strings.HasSuffix(path, ".js") && strings.Contains(string(text), "innerHTML") {
			t.Errorf("%s makes markup of text", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || total > 150_000 {
		t.Errorf("the assets have %d bytes, allowed are 150,000", total)
	}
}

// tall is a plot, and narrow one of other numbers.
func plot(draws *atomic.Int32) func(w io.Writer) error {
	return func(w io.Writer) error {
		draws.Add(1)
		f := chart.Figure{Title: "title", XLabel: "x", YLabel: "y", Series: []chart.Series{{X: []float64{1, 2, 3}, Y: []float64{1, 4, 2}}}}
		return f.Picture("p").WriteSVG(w)
	}
}

// Longer than 60 lines because one browser is started for all.
func TestPage(t *testing.T) {
	browser := pagetest.Start(t)

	t.Run("views", func(t *testing.T) {
		b := watch.NewBoard("ringwave test", assets(t))
		s := b.Add(watch.KindSweep, "a title "+script)
		var draws atomic.Int32
		s.SetStatus(watch.Status{State: watch.StateRunning, Unit: "round", Done: 37, Of: 400, Share: 37.0 / 400, SecondsLeft: 130})
		s.SetFigures([]watch.Figure{
			{Key: "train_loss", View: watch.ViewLearning, Label: "training loss", Value: "0.1234567890123", Note: "a note"},
			{Key: "eps", View: watch.ViewLearning, Label: "ε", Value: "-1.0666091644e-05"},
			{Key: "snr", View: watch.ViewBench, Label: "SNR " + script, Value: "31.5", Unit: "dB", Alarm: true},
		})
		s.SetTables([]watch.Table{{Name: "rounds", View: watch.ViewLearning, Title: "Rounds", Columns: []watch.Column{{Label: "round", Numeric: true}, {Label: "gain", Unit: "dB"}}, Rows: [][]string{{"2", script}, {"1", "-0.25"}}}})
		s.SetPlots([]watch.Plot{{Name: "loss", View: watch.ViewLearning, Title: "training loss", Draw: plot(&draws)}})
		s.SetMatrix(watch.Matrix{Columns: []string{"seed 1", "seed 2", "seed 3"}, Rows: []watch.MatrixRow{{Label: "N = 2", States: "dr."}, {Label: script, States: "ux "}}})
		s.SetConfig("[experiment]\nname = \"" + script + "\"\n")
		s.Event(watch.EventVoid, "attempt void "+script)
		s.Event(watch.EventInfo, "started")
		g := serve(t, b, "localhost:0")
		for _, size := range [][2]int64{{1400, 900}, {360, 800}} {
			for _, dark := range []bool{false, true} {
				tab := browser.Open(t, g.URL()+"#learning", size[0], size[1], dark)
				tab.Await(`document.querySelector("[data-key=train_loss] .value")?.dataset.value === "0.1234567890123"`)
				tab.Await(`document.querySelector(".plots img")?.naturalWidth > 0`)
				for key, want := range map[string]string{
					`document.getElementById("title").textContent`:                                  "a title " + script,
					`document.getElementById("state").textContent`:                                  "running",
					`document.getElementById("done").textContent`:                                   "round 37 of 400",
					`document.getElementById("left").textContent`:                                   "about 2 min left",
					`document.querySelector("[data-key=eps] .value").textContent`:                   "-1.0666e-5 ",
					`document.querySelector("[data-key=train_loss] .value").textContent`:            "0.12346 ",
					`document.querySelector("#view-learning table").rows[0].cells[1].textContent`:   "gain (dB)",
					`document.querySelector("#view-learning table").rows[1].cells[1].textContent`:   script,
					`document.querySelector("#view-learning table").rows[2].cells[1].textContent`:   "-0.25",
					`[...document.querySelectorAll("#tabs button")].map(x => x.textContent).join()`: "Learning,Bench,Runs,Events,Config",
					`getComputedStyle(document.documentElement).colorScheme`:                        map[bool]string{true: "dark", false: "light"}[dark],
				} {
					if got := tab.Text(key); got != want {
						t.Errorf("%v, dark %v: %s is %q, want %q", size, dark, key, got, want)
					}
				}
				for n, view := range []string{"learning", "air", "bench", "matrix", "events", "config"} {
					if view == "air" { // this scene has none
						continue
					}
					tab.Keys(fmt.Sprint(n + 1))
					tab.Await(fmt.Sprintf(`!document.getElementById("view-%s").hidden && location.hash === "#%s"`, view, view))
					if wide := tab.Text(`document.scrollingElement.scrollWidth - innerWidth`); wide != "0" && !strings.HasPrefix(wide, "-") {
						t.Errorf("%v: the view %s is %s pixels wider than the window", size, view, wide)
					}
					tab.Screenshot(fmt.Sprintf("view-%s-%d-%v", view, size[0], map[bool]string{true: "dark", false: "light"}[dark]))
				}
				tab.Await(`document.querySelectorAll("#events li").length === 2`)
				for key, want := range map[string]string{
					`document.querySelector("#view-bench .figure").textContent`:                     "SNR " + script + "31.5 dB",
					`document.querySelector("#view-bench .figure").classList.contains("alarm")`:     "true",
					`document.getElementById("matrix-counts").textContent`:                          "1 waiting, 1 running (▶), 1 done (✓), 1 unusable (!), 1 set aside (✕)",
					`document.getElementById("config").textContent`:                                 "[experiment]\nname = \"" + script + "\"\n",
					`document.querySelectorAll("#events li")[1].querySelector(".text").textContent`: "attempt void " + script,
					`document.querySelectorAll("#events li")[1].querySelector(".kind").textContent`: "⚠ void",
					`window.hurt`: "undefined",
				} {
					if got := tab.Text(key); got != want {
						t.Errorf("%s is %q, want %q", key, got, want)
					}
				}
				if hosts := tab.Hosts(); len(hosts) != 1 || !strings.HasPrefix(g.Address(), "http://"+hosts[0]) {
					t.Errorf("the page asked %q", hosts)
				}
				if err := tab.Wrong(); err != nil {
					t.Error(err)
				}
			}
		}
		if n := draws.Load(); n != 1 {
			t.Errorf("a plot that did not change was drawn %d times", n)
		}
	})

	t.Run("air", func(t *testing.T) { airOf(t, browser) })

	t.Run("controls", func(t *testing.T) {
		b := watch.NewBoard("ringwave test", assets(t))
		s := b.Add(watch.KindRun, "run")
		s.SetStatus(watch.Status{State: watch.StateRunning, Text: "in words"})
		done := make(chan string, 10)
		s.SetControls(watch.Controls{CarriersOff: func() { done <- "off" }, Stop: func() { done <- "stop" }})
		g := serve(t, b, "localhost:0")
		tab := browser.Open(t, g.URL(), 1000, 700, false)
		tab.Await(`!document.getElementById("off").hidden`)
		tab.Await(`document.getElementById("why").textContent === "in words" && !document.getElementById("why").classList.contains("alarm")`)
		tab.Click("#off") // no question
		if got := <-done; got != "off" {
			t.Error(got)
		}
		tab.Await(`document.getElementById("told").textContent === "carriers off: asked for"`)
		tab.Click("#stop")
		tab.Await(`document.getElementById("ask").open`)
		tab.Click("#no")
		tab.Await(`!document.getElementById("ask").open`)
		tab.Click("#stop")
		tab.Click("#yes")
		if got := <-done; got != "stop" {
			t.Error(got)
		}
		s.SetControls(watch.Controls{})
		s.SetStatus(watch.Status{State: watch.StateFailed, Text: "why"})
		tab.Await(`document.getElementById("why").textContent === "why" && document.getElementById("why").classList.contains("alarm")`)
		tab.Await(`document.getElementById("off").hidden && document.getElementById("stop").hidden`)
	})

	t.Run("lost", func(t *testing.T) {
		b := watch.NewBoard("ringwave test", assets(t))
		s := b.Add(watch.KindRun, "before")
		s.SetStatus(watch.Status{State: watch.StateRunning, Unit: "round", Done: 1, Of: 9})
		g := serve(t, b, "localhost:0")
		tab := browser.Open(t, g.URL(), 1000, 700, false)
		tab.Await(`document.getElementById("done").textContent === "round 1 of 9"`)
		addr := strings.TrimPrefix(g.Address(), "http://")
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		tab.Await(`document.getElementById("lost").textContent.startsWith("The program does not answer") && !document.getElementById("lost").hidden`)
		// The same program's board is back, with the token that the page has.
		again := watch.NewBoard("ringwave test", assets(t))
		again.Add(watch.KindRun, "after").SetStatus(watch.Status{State: watch.StateRunning, Unit: "round", Done: 5, Of: 9})
		serve(t, again, addr)
		tab.Await(`document.getElementById("done").textContent === "round 5 of 9" && document.getElementById("lost").hidden && document.getElementById("title").textContent === "after"`)
	})

	t.Run("a day", func(t *testing.T) {
		b := watch.NewBoard("ringwave test", assets(t))
		s := b.Add(watch.KindRun, "run")
		var round atomic.Int64
		s.SetRefresh(func() {
			n := int(round.Load())
			t := watch.Table{Name: "rounds", View: watch.ViewLearning, Title: "Rounds", Columns: []watch.Column{{Label: "round"}, {Label: "m"}}}
			for k := range 50 {
				t.Rows = append(t.Rows, []string{fmt.Sprint(n - k), fmt.Sprint(math.Sin(float64(n - k)))})
			}
			s.SetTables([]watch.Table{t})
		})
		g := serve(t, b, "localhost:0")
		tab := browser.Open(t, g.URL()+"", 1000, 700, false)
		feed := func(to int64) {
			for k := round.Load() + 1; k <= to; k++ {
				round.Store(k)
				s.SetStatus(watch.Status{State: watch.StateRunning, Unit: "round", Done: int(k), Of: 200_000})
				s.Event(watch.EventRound, fmt.Sprintf("round %d", k))
				s.Touch()
			}
			tab.Await(fmt.Sprintf(`document.querySelector("#view-learning table")?.rows[1].cells[0].textContent === "%d" && document.querySelector("#events li .text")?.textContent === "round %d"`, to, to))
		}
		feed(2000)
		before := tab.Heap()
		for to := int64(50_000); to <= 200_000; to += 50_000 {
			feed(to)
		}
		const bound = 4 << 20
		if after := tab.Heap(); after > before+bound || after > 32<<20 {
			t.Errorf("the page holds %.1f MB after 200,000 rounds, and held %.1f after 2,000", after/1e6, before/1e6)
		} else {
			t.Logf("%.2f MB after 2,000 rounds, %.2f MB after 200,000", before/1e6, after/1e6)
		}
		if n := tab.Text(`document.querySelectorAll("#events li").length`); n != "500" {
			t.Errorf("%s events are kept", n)
		}
	})
}

// airOf shows a tone and a lattice, and looks for both in the pixels.
func airOf(t *testing.T, browser *pagetest.Browser) {
	const rate, at = 2e6, 600e3
	b := watch.NewBoard("ringwave test", assets(t))
	s := b.Add(watch.KindRun, "run")
	s.SetStatus(watch.Status{State: watch.StateRunning})
	d := air.New(air.Config{SampleRate: rate, Centre: 433.92e6})
	s.SetAir(d)
	g := serve(t, b, "localhost:0")
	tone := make([]complex64, 1<<13)
	for k := range tone {
		tone[k] = complex64(cmplx.Rect(0.1, 2*math.Pi*at/rate*float64(k)) + cmplx.Rect(1e-4, float64(k*k%997)))
	}
	v := chart.LinkView{Frame: "round 3, attempt 1, b", Alpha: 2, SNR: 31, SamplesPerSymbol: 4, Centre: 8, Samples: tone[:4000],
		Seconds: []float64{0, 0.001, 0.002}, Seen: []float64{0.1, 0.2, 0.3}, Tracked: []float64{0.1, 0.2, 0.3},
		Density: lattice.View{Width: 0.05, Count: []float64{9, 1, 0, 0, 0, 0, 0, 0, 1, 8, 9, 7, 1}, Teeth: []lattice.Tooth{{From: 0, To: 0.1, Integer: 0}, {From: 0.4, To: 0.6, Integer: 1}}}}
	for k := range 600 {
		v.Soft = append(v.Soft, float32(k%7-3)/2)
		v.Symbols = append(v.Symbols, complex(float32(k%7-3)/2, 0))
	}
	stop := make(chan struct{})
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for k := 0; ; k++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond): // a receiver's pace
			}
			_ = d.Record(tone, radio.Meta{First: radio.SampleIndex(k) * 20000})
			if d.WantsFrame() {
				d.Frame(func() chart.LinkView { return v })
			}
		}
	}()
	defer func() { close(stop); <-fed }()
	tab := browser.Open(t, g.URL(), 1200, 1000, false)
	tab.Await(`document.getElementById("tab-air")`)
	tab.Keys("2")
	tab.Await(`document.getElementById("frame-name").textContent === "round 3, attempt 1, b: read; α = 2, 31.0 dB by the preamble"`)
	tab.Await(`document.getElementById("waterfall").getAttribute("aria-label").startsWith("Waterfall of") && document.getElementById("spectrum").dataset.left`)
	tab.Click("#auto")
	tab.Await(`document.getElementById("low").value !== "-110"`)
	tab.Screenshot("air-tone-and-lattice")
	// The waterfall's brightest column, and the spectrum's highest line.
	type column struct{ Got, Want float64 }
	var c column
	brightest := `(() => {
		const w = document.getElementById("waterfall"), d = w.dataset, r = w.width / w.clientWidth, g = w.getContext("2d");
		const y = Math.round((Number(d.upper) + 1) * r), x0 = Math.round(d.left * r), n = Math.round((d.right - d.left) * r);
		const p = g.getImageData(x0, y, n, 1).data;
		let best = 0, at = 0;
		for (let k = 0; k < n; k++) { const v = p[4*k] + p[4*k+1] + p[4*k+2]; if (v > best) { best = v; at = k; } }
		return {got: at / n, want: (%v - Number(d.low)) / (Number(d.high) - Number(d.low))};
	})()`
	tab.Await(fmt.Sprintf(`(({got, want}) => Math.abs(got - want) < 0.004)(%s)`, fmt.Sprintf(brightest, at)))
	tab.Eval(fmt.Sprintf(brightest, at), &c)
	if math.Abs(c.Got-c.Want) > 0.004 {
		t.Errorf("the tone lights the column at %.4f of the width, want %.4f", c.Got, c.Want)
	}
	tab.Eval(fmt.Sprintf(`(() => {
		const w = document.getElementById("spectrum"), d = w.dataset, r = w.width / w.clientWidth, g = w.getContext("2d");
		const y0 = Math.round(Number(d.upper) * r), h = Math.round((d.lower - d.upper) * r), x0 = Math.round(d.left * r), n = Math.round((d.right - d.left) * r);
		const p = g.getImageData(x0, y0, n, h).data, css = getComputedStyle(document.documentElement).getPropertyValue("--average").trim();
		const [R, G, B] = [1, 3, 5].map(k => parseInt(css.slice(k, k + 2), 16));
		for (let y = 0; y < h; y++) for (let k = 0; k < n; k++) {
			const q = 4 * (y * n + k);
			if (Math.abs(p[q] - R) + Math.abs(p[q+1] - G) + Math.abs(p[q+2] - B) < 12) return {got: k / n, want: (%v - Number(d.low)) / (Number(d.high) - Number(d.low)), db: Number(d.top) - y / h * (d.top - d.bottom)};
		}
		return {got: -1, want: 0};
	})()`, at), &c)
	if math.Abs(c.Got-c.Want) > 0.004 {
		t.Errorf("the average is highest at %.4f of the width, want %.4f", c.Got, c.Want)
	}
	// Constellation points lie on the lattice's lines: each column of dots is at a whole number.
	var off []float64
	tab.Eval(`(() => {
		const w = document.getElementById("constellation"), d = w.dataset, r = w.width / w.clientWidth, g = w.getContext("2d");
		const y = Math.round((Number(d.upper) + Number(d.lower)) / 2 * r), x0 = Math.round(d.left * r), n = Math.round((d.right - d.left) * r);
		const p = g.getImageData(x0, y - 1, n, 2).data, css = getComputedStyle(document.documentElement).getPropertyValue("--now").trim();
		const [R, G, B] = [1, 3, 5].map(k => parseInt(css.slice(k, k + 2), 16)), found = [];
		for (let k = 0; k < n; k++) if ([0, n].some(row => Math.abs(p[4*(row+k)] - R) + Math.abs(p[4*(row+k)+1] - G) + Math.abs(p[4*(row+k)+2] - B) < 40)) found.push(Number(d.low) + (k + 0.5) / n * (d.high - d.low));
		return found;
	})()`, &off)
	seen := map[int]bool{}
	for _, x := range off {
		seen[int(math.Round(x))] = true
		if math.Abs(x-math.Round(x)) > 0.05 {
			t.Errorf("there is a dot at %.3f, off the lattice", x)
		}
	}
	if len(seen) != 7 {
		t.Errorf("dots at %v, want those at -3 to 3", seen)
	}
	// Held pictures stand still; the cursor reads the level.
	tab.Eval(`document.getElementById("spectrum").focus()`, nil)
	tab.Keys(kb.ArrowRight)
	tab.Await(`/MHz .* dBFS, average/.test(document.getElementById("readout").textContent)`)
	tab.Click("#hold")
	tab.Await(`document.getElementById("hold").getAttribute("aria-pressed") === "true"`)
	if err := tab.Wrong(); err != nil {
		t.Error(err)
	}
	tab.Resize(360, 800)
	tab.Await(`document.scrollingElement.scrollWidth <= innerWidth`)
	tab.Screenshot("air-360-light")
}
