package watch

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// mostScenes is how many scenes there are at a time: the oldest whose work is over makes
	// room.
	mostScenes = 128
	// mostViewers is how many WebSockets there are at a time.
	mostViewers = 64
)

// Board is the scenes of a program, and what shows them. Its methods are for any goroutine.
type Board struct {
	program string
	assets  fs.FS
	viewers sync.WaitGroup
	room    chan struct{} // a place for each viewer
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	scenes  []*Scene
	made    int
	version uint64 // of the list of scenes
}

// NewBoard returns a board without scenes, of a program of a name and version. Assets are
// the page's: index.html, and what it asks for below /assets/.
func NewBoard(program string, assets fs.FS) *Board {
	return &Board{program: program, assets: assets, room: make(chan struct{}, mostViewers), closed: make(chan struct{}), version: 1}
}

// Add adds a scene. One whose work is over makes room where there are very many.
func (b *Board) Add(kind Kind, title string) *Scene {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	b.version++
	s := newScene(b, fmt.Sprintf("%s-%d", kind, b.made), kind, title)
	if len(b.scenes) >= mostScenes {
		if k := slices.IndexFunc(b.scenes, (*Scene).Final); k >= 0 {
			b.scenes = slices.Delete(b.scenes, k, k+1)
		}
	}
	b.scenes = append(b.scenes, s)
	return s
}

// Remove takes a scene away.
func (b *Board) Remove(s *Scene) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	b.scenes = slices.DeleteFunc(b.scenes, func(x *Scene) bool { return x == s })
}

// Scenes returns how many scenes there are.
func (b *Board) Scenes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.scenes)
}

func (b *Board) retitled() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
}

// scene returns the scene of an ID; nil if there is none.
func (b *Board) scene(id string) *Scene {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := slices.IndexFunc(b.scenes, func(s *Scene) bool { return s.id == id }); k >= 0 {
		return b.scenes[k]
	}
	return nil
}

// hello returns the list of scenes, and its version.
func (b *Board) hello() (Hello, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := Hello{Program: b.program, Scenes: []SceneTitle{}}
	for _, s := range b.scenes {
		s.mu.Lock()
		h.Scenes = append(h.Scenes, SceneTitle{ID: s.id, Kind: s.kind, Title: s.title})
		s.mu.Unlock()
	}
	return h, b.version
}

// Handler serves the page. Who may come to it is not its business: package gate is the
// door.
func (b *Board) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, b.assets, "index.html")
	})
	assets := http.StripPrefix("/assets", http.FileServerFS(b.assets))
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		assets.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /socket", b.serveSocket)
	mux.HandleFunc("GET /scenes/{scene}/plots/{plot}", func(w http.ResponseWriter, r *http.Request) {
		s := b.scene(r.PathValue("scene"))
		name, isSVG := cutSVG(r.PathValue("plot"))
		if s == nil || !isSVG {
			http.NotFound(w, r)
			return
		}
		s.servePlot(w, r, name)
	})
	for _, name := range []string{"carriers-off", "stop"} {
		mux.HandleFunc("POST /scenes/{scene}/"+name, func(w http.ResponseWriter, r *http.Request) {
			b.serveControl(w, r, name)
		})
	}
	return mux
}

// serveControl does what a viewer wants of a scene's work.
func (b *Board) serveControl(w http.ResponseWriter, r *http.Request, name string) {
	s := b.scene(r.PathValue("scene"))
	if s == nil {
		http.NotFound(w, r)
		return
	}
	do := s.control(name)
	if do == nil {
		http.Error(w, fmt.Sprintf("%s is not offered here", name), http.StatusConflict)
		return
	}
	do()
	w.WriteHeader(http.StatusNoContent)
}

// Close ends the viewers, which are sent what is new before, as far as they take it within
// a moment.
func (b *Board) Close() {
	b.once.Do(func() { close(b.closed) })
	done := make(chan struct{})
	go func() {
		b.viewers.Wait()
		close(done)
	}()
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C: // the door closes their connections
	}
}
