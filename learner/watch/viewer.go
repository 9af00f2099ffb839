package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// tick is between two looks at what changes fast; every slow-th of them is one at
	// parts, too, and every beat-th sends the status even if it has not changed, so that
	// the page knows that the program is there.
	tick = 50 * time.Millisecond
	slow = 5
	beat = 40
	// patience is how long a message may take to go out.
	patience = 10 * time.Second
	// lastWords is how long viewers have for what is new at the end.
	lastWords = 500 * time.Millisecond
	// mostWish bounds a viewer's message, in bytes.
	mostWish = 4096

	leastColumns, mostColumns, usualColumns = 64, 4096, 1024
)

func cutSVG(file string) (name string, ok bool) { return strings.CutSuffix(file, ".svg") }

// serveSocket serves one viewer until it goes, or the board is closed.
func (b *Board) serveSocket(w http.ResponseWriter, r *http.Request) {
	select {
	case b.room <- struct{}{}:
		defer func() { <-b.room }()
	default:
		http.Error(w, "too many viewers: close another", http.StatusServiceUnavailable)
		return
	}
	b.viewers.Add(1)
	defer b.viewers.Done()
	c, err := websocket.Accept(w, r, nil) // which refuses another Origin
	if err != nil {
		return // it has answered
	}
	defer c.CloseNow()
	c.SetReadLimit(mostWish)
	v := &viewer{board: b, conn: c, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		v.listen(ctx)
	}()
	err = v.speak(ctx)
	v.leave()
	if errors.Is(err, errClosed) {
		c.Close(websocket.StatusGoingAway, "the program has ended")
	}
}

// errClosed says that the board was closed.
var errClosed = errors.New("the board is closed")

// viewer is one page somewhere.
type viewer struct {
	board   *Board
	conn    *websocket.Conn
	changed chan struct{} // of one: wish has

	mu   sync.Mutex
	wish Wish
	asks []Wish // of airs and players, to be passed on

	// What follows is of the goroutine that speaks.
	scene  *Scene
	look   Look
	has    map[string]uint64 // versions of parts
	events uint64            // the last that it has
	hello  uint64
	played []byte // what it was told of the player last
}

// listen takes in what the viewer wants until it goes.
func (v *viewer) listen(ctx context.Context) {
	for {
		kind, data, err := v.conn.Read(ctx)
		if err != nil {
			return
		}
		var w Wish
		if kind != websocket.MessageText || json.Unmarshal(data, &w) != nil {
			v.conn.Close(websocket.StatusUnsupportedData, "a wish is JSON")
			return
		}
		v.take(w)
		select {
		case v.changed <- struct{}{}:
		default:
		}
	}
}

// take takes in a wish.
func (v *viewer) take(w Wish) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.Scene != "" {
		v.wish.Scene = w.Scene
	}
	if w.View != "" {
		v.wish.View = w.View
	}
	if w.Columns != 0 {
		v.wish.Columns = min(max(w.Columns, leastColumns), mostColumns)
	}
	const most = 64 // who asks for more than is done asks in vain
	if (w.Air != "" || w.Player != nil) && len(v.asks) < most {
		v.asks = append(v.asks, w)
	}
}

// wishes returns what the viewer looks at, and what it has asked for since the last call.
func (v *viewer) wishes() (Wish, []Wish) {
	v.mu.Lock()
	defer v.mu.Unlock()
	asks := v.asks
	v.asks = nil
	return v.wish, asks
}

// speak sends what is new until the viewer does not take it or the board is closed.
func (v *viewer) speak(ctx context.Context) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		if err := v.turn(ctx, n); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.board.closed:
			return v.last(ctx)
		case <-v.changed:
			n = -1 // all that is new, at once
		case <-t.C:
		}
	}
}

// last sends what is new at the end.
func (v *viewer) last(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	if v.scene != nil {
		v.scene.refresh(time.Now(), true)
		if err := v.sendParts(ctx, true); err != nil {
			return err
		}
	}
	return errClosed
}

// turn sends what is new in the n-th turn.
func (v *viewer) turn(ctx context.Context, n int) error {
	if n%slow == 0 {
		if err := v.sendHello(ctx); err != nil {
			return err
		}
	}
	wish, asks := v.wishes()
	if err := v.goTo(wish); err != nil || v.scene == nil {
		return err
	}
	player, _ := v.scene.sources()
	for _, a := range asks {
		if a.Player != nil && player != nil {
			player.Wish(*a.Player)
		}
		if a.Air != "" && v.look != nil {
			v.look.Ask(a.Air)
		}
	}
	if n%slow == 0 {
		v.scene.refresh(time.Now(), false)
		if err := v.sendParts(ctx, n%beat == 0); err != nil {
			return err
		}
	}
	return v.sendAir(ctx, wish.Columns)
}

// goTo looks at what the viewer wants to see.
func (v *viewer) goTo(wish Wish) error {
	if v.scene == nil || v.scene.id != wish.Scene {
		v.leave()
		v.scene, v.has, v.events, v.played = v.board.scene(wish.Scene), map[string]uint64{}, 0, nil
	}
	if v.scene == nil {
		return nil
	}
	_, air := v.scene.sources()
	switch looks := wish.View == ViewAir && air != nil; {
	case looks && v.look == nil:
		v.look = air.Look()
	case !looks:
		v.leave()
	}
	return nil
}

// leave ends the look at what changes fast.
func (v *viewer) leave() {
	if v.look != nil {
		v.look.Close()
		v.look = nil
	}
}

func (v *viewer) sendHello(ctx context.Context) error {
	h, version := v.board.hello()
	if version == v.hello {
		return nil
	}
	v.hello = version
	return v.sendJSON(ctx, Message{Part: PartHello, Value: h})
}

// sendParts sends the parts of the scene that are new to the viewer, and where alive is true
// the status in any case.
func (v *viewer) sendParts(ctx context.Context, alive bool) error {
	if alive {
		delete(v.has, PartStatus)
	}
	for _, name := range []string{PartStatus, PartControls, PartAir, PartFigures, PartTables, PartPlots, PartMatrix, PartConfig} {
		encoded, version, err := v.scene.message(name, v.has[name])
		if err != nil {
			return err
		}
		if encoded == nil {
			continue
		}
		v.has[name] = version
		if err := v.send(ctx, websocket.MessageText, encoded); err != nil {
			return err
		}
	}
	if list := v.scene.eventsAfter(v.events); len(list) > 0 {
		v.events = list[len(list)-1].Seq
		if err := v.sendJSON(ctx, Message{Scene: v.scene.id, Part: PartEvents, Value: list}); err != nil {
			return err
		}
	}
	return v.sendPlayer(ctx)
}

// sendPlayer sends where the scene's player stands, if that has changed.
func (v *viewer) sendPlayer(ctx context.Context) error {
	player, _ := v.scene.sources()
	if player == nil {
		return nil
	}
	encoded, err := json.Marshal(Message{Scene: v.scene.id, Part: PartPlayer, Value: player.Playback()})
	if err != nil || bytes.Equal(encoded, v.played) {
		return err
	}
	v.played = encoded
	return v.send(ctx, websocket.MessageText, encoded)
}

// sendAir sends what changes fast.
func (v *viewer) sendAir(ctx context.Context, columns int) error {
	if v.look == nil {
		return nil
	}
	if columns == 0 {
		columns = usualColumns
	}
	for _, m := range v.look.Next(columns) {
		if err := v.send(ctx, websocket.MessageBinary, m); err != nil {
			return err
		}
	}
	return nil
}

func (v *viewer) sendJSON(ctx context.Context, m Message) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return v.send(ctx, websocket.MessageText, encoded)
}

// send sends a message. A viewer that does not take it in time is let go.
func (v *viewer) send(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return v.conn.Write(ctx, kind, data)
}
