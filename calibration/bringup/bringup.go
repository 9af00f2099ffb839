package bringup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ringwave/calibration/sounder"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/nullable"
)

// Verdict is what came of a step.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn" // it works, and something should be known
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped"
)

// Finding is one thing that a step found, in a sentence, and what to do about it.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	ToDo    string  `json:"to_do,omitempty"`
}

// Figure is a number that was measured. Least and Most bound what is good; NaN, null in
// JSON, is none.
type Figure struct {
	Name  string         `json:"name"`
	Value nullable.Float `json:"value"`
	Unit  string         `json:"unit"`
	Least nullable.Float `json:"least"`
	Most  nullable.Float `json:"most"`
}

// Board is a board that was opened.
type Board struct {
	Role string `json:"role"` // as "transmitter 1"
	URI  string `json:"uri"`
	// What the board says of itself; what it cannot say is empty.
	Driver   string   `json:"driver,omitempty"`
	Model    string   `json:"model,omitempty"`
	Serial   string   `json:"serial,omitempty"`
	Firmware string   `json:"firmware,omitempty"`
	Revision string   `json:"revision,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// Recording is a stretch of received samples, full scale being 1.
type Recording struct {
	Name    string      `json:"name"` // as "transmitter-1-tone"
	Rate    radio.Hertz `json:"sample_rate_hz"`
	Centre  radio.Hertz `json:"frequency_hz"`
	Samples []complex64 `json:"-"`
}

// Result is what came of a step: Verdict is the worst of its findings'.
type Result struct {
	Step       string      `json:"step"`
	Title      string      `json:"title"`
	Verdict    Verdict     `json:"verdict"`
	Findings   []Finding   `json:"findings"`
	Figures    []Figure    `json:"figures"`
	Boards     []Board     `json:"boards,omitempty"`
	Recordings []Recording `json:"recordings,omitempty"`
	// Spectra, and Delays of the devices in samples for each start, are there to be drawn.
	Spectra []*Spectrum `json:"-"`
	Delays  [][]float64 `json:"-"`
}

// rank orders verdicts from good to bad.
func (v Verdict) rank() int { return slices.Index([]Verdict{OK, Skipped, Warn, Fail}, v) }

// find adds a finding.
func (r *Result) find(v Verdict, text, toDo string) {
	r.Findings = append(r.Findings, Finding{v, text, toDo})
	if v.rank() > r.Verdict.rank() {
		r.Verdict = v
	}
}

// measured adds a figure with its bounds; NaN is none.
func (r *Result) measured(name string, value float64, unit string, least, most float64) {
	r.Figures = append(r.Figures, Figure{name, nullable.Float(value), unit, nullable.Float(least), nullable.Float(most)})
}

// none stands for a bound that there is not.
var none = math.NaN

// Config is the bench, and what is expected of it.
type Config struct {
	// Array is the bench as runs have it. Second, if it is not "", is the URI of another
	// receiver, which hears whether carriers go off.
	Array  array.Config
	Second string
	// Soundings are those of a calibration, without streams; Lead, Reach and Patience are
	// set.
	Soundings sounder.Config
	// Amplitude is the largest magnitude of what is sent. Level is the received amplitude that
	// counts as gain 1, and Means are the gains that the devices are expected to have; nil where
	// that is not known.
	Amplitude modem.Amplitude
	Level     radio.Amplitude
	Means     []float64
	// OffsetSearch is by how much carriers may be off, and Tolerance by how many samples
	// devices may be apart.
	OffsetSearch radio.Hertz
	Tolerance    modem.Samples
	Permit       radio.TransmitPermit

	// Devices makes what opens the boards, for one step, whose ctx it is; guarded says why
	// their guard is lost, once it is.
	Devices func(ctx context.Context) (devices *radio.Registry, guarded func() error, err error)
	// Ask asks whether what the sentence says may be sent; an error that wraps ErrRefused
	// skips the step.
	Ask func(ctx context.Context, sentence string) error
	// Child starts another program that sends with all transmitters as Beacon does, and
	// returns when it does; kill ends it without a word. nil leaves that part out.
	Child func(ctx context.Context) (kill func() error, err error)
	// Round makes an encrypted round, and returns why it was not read, "" if it was.
	Round func(ctx context.Context) (lost string, err error)
}

// ErrRefused: the user does not want this to be sent.
var ErrRefused = errors.New("you did not permit it")

// Step is one thing that is tried.
type Step struct {
	Name, Title string
	// Sends says that it transmits.
	Sends bool
	// Needs are the steps without which it cannot tell anything: if one of them has failed
	// it is skipped.
	Needs []string
	run   func(b *bench, ctx context.Context, r *Result) error
}

// Steps returns all steps in their order.
func Steps() []Step {
	return []Step{
		{"boards", "boards and firmware", false, nil, (*bench).boards},
		{"clock", "reference clock", false, []string{"boards"}, (*bench).clock},
		{"silence", "what the receiver hears of nobody", false, []string{"boards"}, (*bench).silence},
		{"carrier", "carriers off", true, []string{"boards"}, (*bench).carrier},
		{"levels", "levels and clipping", true, []string{"boards", "carrier"}, (*bench).levels},
		{"images", "DC, images and harmonics", true, []string{"boards", "carrier"}, (*bench).images},
		{"ppm", "carrier offsets", true, []string{"boards", "carrier", "clock"}, (*bench).ppm},
		{"samples", "lost samples at the rate wanted", true, []string{"boards", "carrier"}, (*bench).samples},
		{"starts", "start offsets", true, []string{"boards", "carrier", "clock", "levels", "images", "ppm", "samples"}, (*bench).starts},
		{"round", "one encrypted round", true, []string{"boards", "carrier", "clock", "silence", "levels", "images", "ppm", "samples", "starts"}, (*bench).round},
	}
}

// Chosen returns the steps of these names, in their order, all for none. An error names what
// is allowed.
func Chosen(names []string) (list []Step, err error) {
	all := Steps()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
		if slices.Contains(names, s.Name) {
			list = append(list, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is no step; allowed is %s", name, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// Observer hears of steps. What is nil is left out.
type Observer struct {
	Begun func(s Step)
	Ended func(r Result)
}

// Run makes the steps, one after the other. It ends early, with ctx's error and what was
// measured by then, where ctx does.
func Run(ctx context.Context, cfg Config, steps []Step, o Observer) (results []Result, err error) {
	b := &bench{cfg: cfg, heard: map[string][]*hearing{}}
	for _, s := range steps {
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		if o.Begun != nil {
			o.Begun(s)
		}
		r, err := b.step(ctx, s, results)
		results = append(results, r)
		if o.Ended != nil {
			o.Ended(r)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// bench is a bench while it is tried.
type bench struct {
	cfg Config
	// heard has what a receiver has heard of each transmitter, by the receiver's URI.
	heard map[string][]*hearing
	// quiet is what the receiver heard before anything was sent; nil if nobody listened.
	quiet *Spectrum
}

// step makes one step. The error is ctx's.
func (b *bench) step(ctx context.Context, s Step, before []Result) (Result, error) {
	r := Result{Step: s.Name, Title: s.Title, Verdict: OK, Findings: []Finding{}, Figures: []Figure{}}
	for _, p := range before {
		if slices.Contains(s.Needs, p.Step) && (p.Verdict == Fail || p.Verdict == Skipped) {
			r.find(Skipped, fmt.Sprintf("it needs the step %s, which %s", p.Step, map[Verdict]string{Fail: "failed", Skipped: "was skipped"}[p.Verdict]), "")
			return r, nil
		}
	}
	// Whatever a step leaves open ends with it.
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.run(b, own, &r)
	switch {
	case ctx.Err() != nil:
		r.find(Skipped, "it was stopped", "")
		return r, ctx.Err()
	case errors.Is(err, ErrRefused):
		r.find(Skipped, err.Error(), "")
	case err != nil:
		r.find(Fail, sentence(err), remedy(s, err))
	case len(r.Findings) == 0:
		r.find(OK, "all is within bounds", "")
	}
	return r, nil
}

// sentence returns what an error says first: what follows is what came of it.
func sentence(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// remedy says what to do about an error.
func remedy(s Step, err error) string {
	var unheard *sounder.NotHeardError
	switch {
	case s.Name == "boards":
		return "plug the board in, or name it in [radio] as ringwave devices lists it: ringwave devices --probe says what else is the matter with it"
	case errors.Is(err, radio.ErrGuard):
		return "do not stop the program or end its guard while it sends, and begin again"
	case errors.As(err, &unheard):
		return "look at the cable or antenna of that transmitter, and at the steps levels and ppm"
	case errors.Is(err, array.ErrIncoherent) && s.Name == "starts":
		return "put a wire from the first transmitter's trigger output to the trigger input of each other board, and one for ground; or say radio.trigger = \"sounded\", which needs no wires"
	case errors.Is(err, radio.ErrStarved):
		return "give this machine nothing else to do, or lower link.sample_rate_hz"
	}
	return "mend what the sentence names and begin again with this step: --steps " + s.Name
}

// ask asks whether something may be sent.
func (b *bench) ask(ctx context.Context, format string, args ...any) error {
	if b.cfg.Ask == nil {
		return fmt.Errorf("sending: %w", ErrRefused)
	}
	return b.cfg.Ask(ctx, fmt.Sprintf(format, args...))
}

// loudness says how loud transmitters are set.
func (b *bench) loudness() string {
	var parts []string
	for stage, g := range b.cfg.Array.TransmitGains {
		parts = append(parts, fmt.Sprintf("%s %v", stage, g))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "gains as the URIs have them"
	}
	return strings.Join(parts, ", ")
}
