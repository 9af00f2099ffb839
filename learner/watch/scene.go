package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostEvents is how many events a scene keeps.
	mostEvents = 500
	// between is the least time between two of a scene's refreshments.
	between = time.Second
	// drawingShare is how much longer than its drawing took a scene waits before it draws
	// again: plots take that part of a core at most.
	drawingShare = 40
	// mostSVG bounds a plot, in bytes.
	mostSVG = 8 << 20
)

// Scene is one thing to look at. Its methods are for any goroutine, and wait for nobody.
// What is set must not be changed afterwards.
type Scene struct {
	id    string
	kind  Kind
	board *Board

	// touched says that there is something new to refresh.
	touched atomic.Bool

	mu        sync.Mutex
	title     string
	parts     map[string]*part
	events    []Event // ring: the newest is at (seq-1) % mostEvents
	seq       uint64
	fill      func()
	refreshed time.Time
	plots     []Plot
	version   uint64 // of the plots
	drawings  map[string]*drawing
	idle      time.Time // before that no plot is drawn that was before
	controls  Controls
	player    Player
	air       Air
}

// part is a part as it was set last.
type part struct {
	version uint64
	value   any
	encoded []byte // the Message; nil before somebody has asked for it
}

// drawing is a plot as it was drawn last.
type drawing struct {
	turn    chan struct{} // of one: who has it draws
	svg     []byte        // nil before the first
	version uint64
}

func newScene(b *Board, id string, kind Kind, title string) *Scene {
	return &Scene{id: id, kind: kind, board: b, title: title, parts: map[string]*part{}, drawings: map[string]*drawing{}}
}

// set makes a part's value known.
func (s *Scene) set(name string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(name, value)
}

func (s *Scene) setLocked(name string, value any) {
	version := uint64(1)
	if p := s.parts[name]; p != nil {
		version = p.version + 1
	}
	s.parts[name] = &part{version: version, value: value}
}

// SetStatus says how far the work is.
func (s *Scene) SetStatus(v Status) {
	if !(v.Share >= 0 && v.Share <= 1) { // NaN, too, has no JSON
		v.Share = 0
	}
	if !(v.SecondsLeft >= 0 && v.SecondsLeft < 1e12) {
		v.SecondsLeft = -1
	}
	s.set(PartStatus, v)
}

// SetFigures says what is shown large.
func (s *Scene) SetFigures(list []Figure) { s.set(PartFigures, list) }

// SetTables sets all tables.
func (s *Scene) SetTables(list []Table) { s.set(PartTables, list) }

// SetMatrix sets the runs of a sweep.
func (s *Scene) SetMatrix(m Matrix) { s.set(PartMatrix, m) }

// SetConfig sets the text of the configuration.
func (s *Scene) SetConfig(toml string) { s.set(PartConfig, toml) }

// SetPlots says which plots there are. Their versions are the scene's business.
func (s *Scene) SetPlots(list []Plot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plots = slices.Clone(list)
	s.bumpPlots()
}

// bumpPlots says that what plots draw has changed.
func (s *Scene) bumpPlots() {
	s.version++
	list := slices.Clone(s.plots)
	for i := range list {
		list[i].Version = s.version
	}
	s.setLocked(PartPlots, list)
}

// SetControls says what viewers may do.
func (s *Scene) SetControls(c Controls) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controls = c
	s.setLocked(PartControls, map[string]bool{"carriers_off": c.CarriersOff != nil, "stop": c.Stop != nil})
}

// SetPlayer says what plays the scene's recordings.
func (s *Scene) SetPlayer(p Player) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.player = p
}

// SetAir says what has the scene's spectra and frames.
func (s *Scene) SetAir(a Air) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.air = a
	s.setLocked(PartAir, a != nil)
}

// SetTitle names the scene anew.
func (s *Scene) SetTitle(title string) {
	s.mu.Lock()
	s.title = title
	s.mu.Unlock()
	s.board.retitled()
}

// SetRefresh has f set parts before viewers are sent some: at most about once a second,
// where Touch was called since, and not while nobody looks. It is for those that have more
// to tell than anybody can read.
func (s *Scene) SetRefresh(f func()) {
	s.mu.Lock()
	s.fill = f
	s.mu.Unlock()
	s.Touch()
}

// Touch says that what plots draw, or what SetRefresh's function sets, has changed.
func (s *Scene) Touch() { s.touched.Store(true) }

// Event tells of something that happened, now.
func (s *Scene) Event(kind, text string) { s.EventAt(time.Now(), kind, text) }

// EventAt tells of something that happened. The newest mostEvents are kept.
func (s *Scene) EventAt(at time.Time, kind, text string) {
	const longest = 2000 // bytes of a sentence
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	e := Event{Seq: s.seq, Time: at, Kind: kind, Text: text}
	if len(s.events) < mostEvents {
		s.events = append(s.events, e)
		return
	}
	s.events[int((s.seq-1)%mostEvents)] = e
}

// eventsAfter returns the events that are kept and newer than seq, the oldest first.
func (s *Scene) eventsAfter(seq uint64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(seq+1, s.seq-uint64(len(s.events))+1)
	var list []Event
	for k := first; k <= s.seq; k++ {
		list = append(list, s.events[int((k-1)%mostEvents)])
	}
	return list
}

// refresh has parts set that are only made for those who look; at once where it is the
// last time.
func (s *Scene) refresh(now time.Time, last bool) {
	s.mu.Lock()
	if !s.touched.Load() || !last && now.Sub(s.refreshed) < between {
		s.mu.Unlock()
		return
	}
	s.touched.Store(false)
	s.refreshed = now
	fill := s.fill
	s.mu.Unlock()
	if fill != nil {
		fill()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bumpPlots()
}

// message returns a part's Message and its version; nil where it is not newer than one that
// a viewer has.
func (s *Scene) message(name string, has uint64) ([]byte, uint64, error) {
	s.mu.Lock()
	p := s.parts[name]
	s.mu.Unlock()
	if p == nil || p.version == has {
		return nil, has, nil
	}
	s.mu.Lock()
	encoded := p.encoded
	s.mu.Unlock()
	if encoded != nil {
		return encoded, p.version, nil
	}
	encoded, err := json.Marshal(Message{Scene: s.id, Part: name, Value: p.value})
	if err != nil {
		return nil, has, fmt.Errorf("encoding %s of the scene %s: %w", name, s.id, err)
	}
	s.mu.Lock()
	p.encoded = encoded
	s.mu.Unlock()
	return encoded, p.version, nil
}

// sources returns what viewers look at beside parts.
func (s *Scene) sources() (Player, Air) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.player, s.air
}

// control returns a control; nil where the scene has none of the name.
func (s *Scene) control(name string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case "carriers-off":
		return s.controls.CarriersOff
	case "stop":
		return s.controls.Stop
	}
	return nil
}

// Final reports whether the scene's work is over.
func (s *Scene) Final() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[PartStatus]
	if p == nil {
		return false
	}
	state := p.value.(Status).State
	return state == StateEnded || state == StateStopped || state == StateFailed
}

// plot returns a plot as it is to be drawn now, and what was drawn of it before.
func (s *Scene) plot(name string) (Plot, *drawing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := slices.IndexFunc(s.plots, func(p Plot) bool { return p.Name == name })
	if k < 0 || s.plots[k].Draw == nil {
		return Plot{}, nil
	}
	p := s.plots[k]
	p.Version = s.version
	d := s.drawings[name]
	if d == nil {
		d = &drawing{turn: make(chan struct{}, 1)}
		s.drawings[name] = d
	}
	return p, d
}

// svg returns a plot as SVG. It waits for its turn: plots take a small share of a core
// between them, however many ask. It returns nil where there is no such plot.
func (s *Scene) svg(ctx context.Context, name string) ([]byte, error) {
	p, d := s.plot(name)
	if d == nil {
		return nil, nil
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-d.turn }()
	if d.svg != nil && d.version >= p.Version { // somebody was before
		return d.svg, nil
	}
	if d.svg != nil {
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
		p, _ = s.plot(name) // which may be newer by now
		if p.Draw == nil {
			return nil, nil
		}
	}
	began := time.Now()
	out := &bounded{most: mostSVG}
	if err := p.Draw(out); err != nil {
		return nil, fmt.Errorf("drawing the plot %s: %w", name, err)
	}
	s.mu.Lock()
	now := time.Now()
	s.idle = now.Add(drawingShare * now.Sub(began))
	s.mu.Unlock()
	d.svg, d.version = out.Bytes(), p.Version
	return d.svg, nil
}

// wait waits until plots may be drawn again.
func (s *Scene) wait(ctx context.Context) error {
	s.mu.Lock()
	left := time.Until(s.idle)
	s.mu.Unlock()
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(min(left, 20*time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bounded is a buffer that takes in so many bytes at most.
type bounded struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("it has more than %d bytes", b.most)
	}
	return b.Buffer.Write(p)
}

// ReadFrom reads up to what may be taken in: io.Copy would pass by Write.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) {
	n, err := b.Buffer.ReadFrom(io.LimitReader(r, int64(b.most-b.Len()+1)))
	if err == nil && b.Len() > b.most {
		err = fmt.Errorf("it has more than %d bytes", b.most)
	}
	return n, err
}

// servePlot answers with a plot.
func (s *Scene) servePlot(w http.ResponseWriter, r *http.Request, name string) {
	svg, err := s.svg(r.Context(), name)
	switch {
	case r.Context().Err() != nil:
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case svg == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(svg) // a viewer that is gone needs none
	}
}
