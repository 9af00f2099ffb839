package watch

import (
	"io"
	"time"
)

// Kind says what a scene is of.
type Kind string

// The kinds of scenes.
const (
	KindRun         Kind = "run"
	KindCalibration Kind = "calibration"
	KindCurves      Kind = "curves"
	KindSweep       Kind = "sweep"
	KindReport      Kind = "report"
	KindRecording   Kind = "recording"
)

// View is a part of the page that figures, tables and plots are shown in.
type View string

// The views of a scene. What has nothing to show is not offered.
const (
	ViewLearning View = "learning"
	ViewAir      View = "air"
	ViewBench    View = "bench"
	ViewMatrix   View = "matrix" // of the runs of a sweep
	ViewEvents   View = "events"
	ViewConfig   View = "config"
)

// The parts of Messages.
const (
	PartHello    = "hello"    // Hello
	PartStatus   = "status"   // Status
	PartFigures  = "figures"  // []Figure
	PartTables   = "tables"   // []Table
	PartPlots    = "plots"    // []Plot
	PartMatrix   = "matrix"   // Matrix
	PartEvents   = "events"   // []Event, those that are new
	PartConfig   = "config"   // string, TOML
	PartControls = "controls" // Controls
	PartPlayer   = "player"   // Playback
	PartAir      = "air"      // true where the scene has something that changes fast
)

// Message is what a viewer is sent.
type Message struct {
	Scene string `json:"scene,omitempty"` // its ID; "" for PartHello
	Part  string `json:"part"`
	Value any    `json:"value"`
}

// Hello says what there is to look at. It comes again when that has changed.
type Hello struct {
	Program string       `json:"program"` // and its version
	Scenes  []SceneTitle `json:"scenes"`  // the newest last
}

// SceneTitle names a scene.
type SceneTitle struct {
	ID    string `json:"id"` // of letters, digits and hyphens
	Kind  Kind   `json:"kind"`
	Title string `json:"title"`
}

// State is how the work of a scene stands.
type State string

// The states. Those from StateEnded on are final.
const (
	StatePreparing State = "preparing"
	StateRunning   State = "running"
	StateStopping  State = "stopping" // as was asked for
	StateEnded     State = "ended"
	StateStopped   State = "stopped" // before its end; it can go on
	StateFailed    State = "failed"
)

// Status is how far a scene is.
type Status struct {
	State State  `json:"state"`
	Text  string `json:"text,omitempty"` // in a sentence, as why it has failed
	// Unit is what is counted, as "round": Done Of so many. Share is that of the work, from
	// 0 to 1.
	Unit  string  `json:"unit,omitempty"`
	Done  int     `json:"done"`
	Of    int     `json:"of"`
	Share float64 `json:"share"`
	// Began is when this sitting did; SecondsLeft is an estimate, negative where there is
	// none.
	Began       time.Time `json:"began"`
	SecondsLeft float64   `json:"seconds_left"`
}

// Figure is one number, or word, that is shown large.
type Figure struct {
	Key   string `json:"key"` // for tests and style, as "train_loss"
	View  View   `json:"view"`
	Label string `json:"label"`
	Value string `json:"value"`          // as it is in files; "" where nothing is known
	Unit  string `json:"unit,omitempty"` // as "dB" or "Hz"; "" for a pure number
	Note  string `json:"note,omitempty"` // what it means, in a sentence
	Alarm bool   `json:"alarm,omitempty"`
}

// Table is numbers in rows.
type Table struct {
	Name    string     `json:"name"` // for tests and style, as "rounds"
	View    View       `json:"view"`
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"`
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"` // of as many cells as there are columns
}

// Column is a column's head.
type Column struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"`
	// Numeric columns are set to the right.
	Numeric bool `json:"numeric,omitempty"`
}

// Plot is a figure that changes slowly.
type Plot struct {
	Name    string `json:"name"` // of letters, digits and hyphens
	View    View   `json:"view"`
	Title   string `json:"title"`
	Caption string `json:"caption,omitempty"`
	// Version grows with what is drawn.
	Version uint64 `json:"version"`
	// Draw writes it as SVG, of what is known when it is called: by any goroutine, one at a
	// time.
	Draw func(w io.Writer) error `json:"-"`
}

// Matrix is the runs of a sweep.
type Matrix struct {
	Columns []string    `json:"columns"` // their names
	Rows    []MatrixRow `json:"rows"`
	Note    string      `json:"note,omitempty"`
}

// MatrixRow is a row of runs.
type MatrixRow struct {
	Label string `json:"label"`
	// States has a letter for each column: MatrixWaiting and so on.
	States string `json:"states"`
}

// The letters of MatrixRow.States.
const (
	MatrixNone     = ' ' // there is no such run
	MatrixWaiting  = '.'
	MatrixRunning  = 'r'
	MatrixDone     = 'd'
	MatrixUnusable = 'u' // it has ended without a usable result
	MatrixAside    = 'x' // it was set aside
)

// Event is something that happened.
type Event struct {
	Seq  uint64    `json:"seq"` // rising
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // a word: EventInfo and so on
	Text string    `json:"text"`
}

// The kinds of events.
const (
	EventInfo    = "info"
	EventRound   = "round"   // one has ended
	EventVoid    = "void"    // an attempt, and why
	EventLost    = "lost"    // a round, a device, samples
	EventWarning = "warning" // what a user should look into
)

// Controls are what viewers may do. What is nil is not offered.
type Controls struct {
	// CarriersOff takes all carriers off at once; Stop ends the work where it can go on
	// later, as between two rounds. Both return without waiting.
	CarriersOff func()
	Stop        func()
}

// Playback is where a recording's player stands.
type Playback struct {
	// Tracks are what can be played, one at a time, as the rounds of a run: Track is the
	// index of the one that is.
	Tracks []string `json:"tracks"`
	Track  int      `json:"track"`
	// Seconds is the position in the track, from 0 to Duration.
	Seconds  float64 `json:"seconds"`
	Duration float64 `json:"duration"`
	Playing  bool    `json:"playing"`
	// Speed is that of the playing over that of the recording.
	Speed float64 `json:"speed"`
	// Marks are what was noted about stretches of the track.
	Marks []Mark `json:"marks,omitempty"`
	// Problem says why nothing is played, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Mark is what was noted about a stretch of a track.
type Mark struct {
	From float64 `json:"from"` // seconds
	To   float64 `json:"to"`
	Text string  `json:"text"`
	Void bool    `json:"void,omitempty"`
}

// Wish is what a viewer sends: what it looks at, or what a player is to do.
type Wish struct {
	// Scene is the ID of the scene that it looks at, View what of it; Columns is how many
	// pixels a spectrum has room for, from 64 to 4096.
	Scene   string `json:"scene,omitempty"`
	View    View   `json:"view,omitempty"`
	Columns int    `json:"columns,omitempty"`
	// Air is a word for the scene's Look, as "reset" for its peak hold.
	Air string `json:"air,omitempty"`
	// Player is what the scene's player is to do.
	Player *PlayerWish `json:"player,omitempty"`
}

// PlayerWish is what a player is to do: of each field that is not nil what it says.
type PlayerWish struct {
	Track   *int     `json:"track,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
	Playing *bool    `json:"playing,omitempty"`
	Speed   *float64 `json:"speed,omitempty"`
}

// Player plays recordings. Its methods are for any goroutine.
type Player interface {
	Playback() Playback
	// Wish does what is asked for as far as it is allowed, and clamps the rest.
	Wish(w PlayerWish)
}

// Air has what changes fast. Its methods are for any goroutine.
type Air interface {
	// Look begins the look of a viewer. Nothing is computed for nobody.
	Look() Look
}

// Look is one viewer's. Its methods are for one goroutine.
type Look interface {
	// Next returns binary messages of what is new since the last call, the oldest first, for
	// so many pixels of a spectrum. What was missed is left out.
	Next(columns int) [][]byte
	// Ask does what a viewer's Wish.Air says; words that it does not know are ignored.
	Ask(word string)
	Close()
}
