package scenes_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"ringwave/learner/watch"
)

// page is a viewer's.
type page struct {
	t     *testing.T
	board *watch.Board
	url   string
	conn  *websocket.Conn

	hello  watch.Hello
	scene  string
	parts  map[string]json.RawMessage
	events []watch.Event
}

func newBoard() *watch.Board { return watch.NewBoard("test", fstest.MapFS{}) }

// open opens a page and waits for its list of scenes.
func open(t *testing.T, b *watch.Board) *page {
	t.Helper()
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	conn, _, err := websocket.Dial(t.Context(), server.URL+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 24)
	t.Cleanup(func() { conn.CloseNow() })
	p := &page{t: t, board: b, url: server.URL, conn: conn}
	p.until("scenes", func() bool { return len(p.hello.Scenes) > 0 })
	return p
}

// look looks at a scene, by its place.
func (p *page) look(k int) {
	p.t.Helper()
	p.scene, p.parts, p.events = p.hello.Scenes[k].ID, map[string]json.RawMessage{}, nil
	if err := wsjson.Write(p.t.Context(), p.conn, watch.Wish{Scene: p.scene, View: watch.ViewLearning}); err != nil {
		p.t.Fatal(err)
	}
}

// until takes in messages until something is so.
func (p *page) until(what string, is func() bool) {
	p.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		kind, data, err := p.conn.Read(p.t.Context())
		if err != nil || time.Now().After(end) {
			p.t.Fatalf("waiting for %s: %v; %d parts, %+v", what, err, len(p.parts), p.status())
		}
		if kind != websocket.MessageText {
			continue
		}
		var m struct {
			Scene, Part string
			Value       json.RawMessage
		}
		decode(p.t, data, &m)
		switch {
		case m.Part == watch.PartHello:
			p.hello = watch.Hello{}
			decode(p.t, m.Value, &p.hello)
		case m.Scene != p.scene:
		case m.Part == watch.PartEvents:
			var list []watch.Event
			decode(p.t, m.Value, &list)
			p.events = append(p.events, list...)
		default:
			p.parts[m.Part] = m.Value
		}
	}
}

func decode(t *testing.T, data []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%v in %.1000s", err, data)
	}
}

// part decodes a part that is there, if it is.
func (p *page) part(name string, to any) bool {
	p.t.Helper()
	data, ok := p.parts[name]
	if ok {
		decode(p.t, data, to)
	}
	return ok
}

func (p *page) status() (s watch.Status) {
	p.t.Helper()
	p.part(watch.PartStatus, &s)
	return s
}

// table returns a table by its name; without columns where there is none.
func (p *page) table(name string) watch.Table {
	p.t.Helper()
	var list []watch.Table
	p.part(watch.PartTables, &list)
	for _, table := range list {
		if table.Name == name {
			return table
		}
	}
	return watch.Table{}
}

func (p *page) plots() (list []watch.Plot) {
	p.t.Helper()
	p.part(watch.PartPlots, &list)
	return list
}

// svg returns a plot's text.
func (p *page) svg(name string) string {
	p.t.Helper()
	code, text := p.get("/scenes/" + p.scene + "/plots/" + name + ".svg")
	if code != http.StatusOK || !strings.Contains(text, "<svg") {
		p.t.Errorf("the plot %s: %d %.200s", name, code, text)
	}
	return text
}

func (p *page) get(path string) (int, string) {
	p.t.Helper()
	r, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// has reports whether an event has a text.
func (p *page) has(kind, text string) bool {
	for _, e := range p.events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}
