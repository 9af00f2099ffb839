package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"
)

// served returns a board and its address.
func served(t *testing.T) (*Board, string) {
	t.Helper()
	b := NewBoard("test", fstest.MapFS{"index.html": {Data: []byte("<html>")}, "app.js": {Data: []byte("1")}})
	s := httptest.NewServer(b.Handler())
	t.Cleanup(func() { b.Close(); s.Close() })
	return b, s.URL
}

// look opens a viewer of a scene.
func look(t *testing.T, url, wish string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	c.SetReadLimit(1 << 20)
	if err := c.Write(t.Context(), websocket.MessageText, []byte(wish)); err != nil {
		t.Fatal(err)
	}
	return c
}

// heard reads messages until one of a part comes.
func heard(t *testing.T, c *websocket.Conn, part string, v any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v", part, err)
		}
		var m struct {
			Part  string
			Value json.RawMessage
		}
		if json.Unmarshal(data, &m) == nil && m.Part == part {
			if err := json.Unmarshal(m.Value, v); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// A viewer hears of scenes, of their parts as they are, of each event once, and what was set
// last before the end.
func TestViewer(t *testing.T) {
	b, url := served(t)
	s := b.Add(KindRun, "a run")
	s.SetStatus(Status{State: StateRunning, Done: 1})
	s.Event(EventInfo, "one")
	c := look(t, url, `{"scene":"run-1","view":"learning"}`)
	var h Hello
	heard(t, c, PartHello, &h)
	if len(h.Scenes) != 1 || h.Scenes[0] != (SceneTitle{"run-1", KindRun, "a run"}) || h.Program != "test" {
		t.Errorf("%+v", h)
	}
	var status Status
	heard(t, c, PartStatus, &status)
	if status.State != StateRunning || status.Done != 1 {
		t.Errorf("%+v", status)
	}
	var events []Event
	heard(t, c, PartEvents, &events)
	s.Event(EventVoid, "two")
	var more []Event
	heard(t, c, PartEvents, &more)
	if len(events) != 1 || len(more) != 1 || events[0].Text != "one" || more[0].Text != "two" || more[0].Seq != 2 {
		t.Errorf("%+v, then %+v", events, more)
	}
	s.SetStatus(Status{State: StateEnded, Done: 9})
	go b.Close()
	for status.State != StateEnded {
		heard(t, c, PartStatus, &status)
	}
}

// A viewer that takes nothing is let go in the end, holds up nobody, and costs bounded memory;
// whoever sends what is no wish, or too much, is let go.
func TestStalledViewer(t *testing.T) {
	b, url := served(t)
	s := b.Add(KindRun, "a run")
	look(t, url, `{"scene":"run-1","view":"learning"}`) // and never reads
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := strings.Repeat("x", 1000)
	for k := range 100_000 { // of 100 MB
		s.SetTables([]Table{{Name: "t", Rows: [][]string{{text, fmt.Sprint(k)}}}})
		s.Event(EventRound, text)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are held for a viewer that takes nothing", grown)
	}
	for _, wish := range []string{"no JSON", `{"scene":"` + strings.Repeat("x", 2*mostWish) + `"}`} {
		c := look(t, url, wish)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for {
			if _, _, err := c.Read(ctx); err != nil {
				if ctx.Err() != nil {
					t.Errorf("%.20q is borne", wish)
				}
				break
			}
		}
		cancel()
	}
}

// There are places for so many viewers; who is one too many is told so.
func TestTooManyViewers(t *testing.T) {
	b, url := served(t)
	for range mostViewers {
		b.room <- struct{}{}
	}
	answer, err := http.Get(url + "/socket")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Error(answer.Status)
	}
}

// A plot is drawn once for all who ask, anew when it has changed, and not more than a share
// of the time; parts are refreshed where somebody looks, and not otherwise.
func TestPlots(t *testing.T) {
	b, url := served(t)
	s := b.Add(KindRun, "a run")
	draws, fills := 0, 0
	s.SetRefresh(func() { fills++ })
	s.SetPlots([]Plot{{Name: "loss", Draw: func(w io.Writer) error {
		draws++
		_, err := fmt.Fprintf(w, "<svg>%d</svg>", draws)
		return err
	}}, {Name: "large", Draw: func(w io.Writer) error {
		_, err := w.Write(make([]byte, mostSVG+1))
		return err
	}}})
	get := func(path string) (int, string) {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for range 3 {
		if code, text := get("/scenes/run-1/plots/loss.svg"); code != 200 || text != "<svg>1</svg>" {
			t.Errorf("%d %q", code, text)
		}
	}
	if fills != 0 {
		t.Error("refreshed while nobody looks")
	}
	s.Touch()
	s.refresh(time.Now(), false)
	if code, text := get("/scenes/run-1/plots/loss.svg"); code != 200 || text != "<svg>2</svg>" || fills != 1 {
		t.Errorf("%d %q after a change, %d refreshed", code, text, fills)
	}
	for path, want := range map[string]int{
		"/scenes/run-1/plots/none.svg": 404, "/scenes/none/plots/loss.svg": 404, "/scenes/run-1/plots/loss.png": 404,
		"/scenes/run-1/plots/..%2F..%2Fsecret.svg": 404, "/assets/..%2Fsecret": 404, "/scenes/run-1/plots/large.svg": 500, "/": 200, "/assets/app.js": 200,
	} {
		if code, _ := get(path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	for path, want := range map[string]int{"/scenes/run-1/stop": 409, "/scenes/run-1/carriers-off": 409, "/scenes/none/stop": 404} {
		answer, err := http.Post(url+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// Of very many events and scenes the newest are kept.
func TestBounds(t *testing.T) {
	b := NewBoard("test", fstest.MapFS{})
	var s *Scene
	for range 3 * mostScenes {
		s = b.Add(KindRun, "run")
		s.SetStatus(Status{State: StateEnded})
	}
	if n := b.Scenes(); n != mostScenes {
		t.Errorf("%d scenes", n)
	}
	for k := range 3 * mostEvents {
		s.Event(EventInfo, fmt.Sprint(k))
	}
	list := s.eventsAfter(0)
	if len(list) != mostEvents || list[0].Text != fmt.Sprint(2*mostEvents) || list[mostEvents-1].Seq != 3*mostEvents {
		t.Errorf("%d events from %+v", len(list), list[0])
	}
	if more := s.eventsAfter(3*mostEvents - 2); len(more) != 2 {
		t.Errorf("%+v", more)
	}
}
