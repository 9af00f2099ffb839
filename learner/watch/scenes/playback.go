package scenes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/replay"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/sigmf"
)

const (
	// wholeTrack is how long a track takes at the speed that it begins with.
	wholeTrack = 10 * time.Second
	// slowest and fastest bound the speed.
	slowest, fastest = 1e-5, 100
	// mostFrames is how many frames of a track are kept, and mostMarks how many marks.
	mostFrames, mostMarks = 64, 500
	// mostAtOnce is how many samples a step of the player reads.
	mostAtOnce = 1 << 16
)

// player plays recordings: a watch.Player, and a watch.Air.
type player struct {
	*air.Display
	// config is the file of the run's configuration; "" where frames are not decoded.
	config string
	now    func() time.Time

	mu       sync.Mutex
	tracks   []string // paths
	names    []string
	state    watch.Playback
	last     time.Time // when the position was brought up to date; zero while it stands
	rate     float64
	count    radio.SampleCount
	from     *sigmf.Recording
	rx       radio.Receiver
	at       radio.SampleCount // that rx reads next, counted from its first
	shown    float64           // the position that was shown; NaN for none
	frames   []replay.Frame    // ascending by End
	last0    radio.SampleIndex // of the frame that was shown; 0 for none
	decoding context.CancelFunc
	track    int // counts selections
}

// newPlayer plays the first of some recordings.
func newPlayer(tracks []string, configPath string, d *air.Display, now func() time.Time) *player {
	p := &player{Display: d, config: configPath, now: now, tracks: tracks}
	for _, t := range tracks {
		p.names = append(p.names, strings.TrimSuffix(filepath.Base(t), ".sigmf-meta"))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose(0)
	return p
}

// playAll has the recordings of a folder be played in a scene. Those of rounds are decoded
// again with the run's receiver.
func playAll(s *watch.Scene, dir string, tracks []string, c config.Config) error {
	configPath := ""
	if c.Link.Kind == setup.KindWaveform && there(dir, "metrics.csv") {
		configPath = filepath.Join(dir, "config.toml")
	}
	d := air.New(air.Config{SampleRate: radio.Hertz(c.Link.SampleRateHz), Centre: radio.Hertz(c.Radio.FrequencyHz)})
	p := newPlayer(tracks, configPath, d, time.Now)
	s.SetPlayer(p)
	s.SetAir(p)
	return nil
}

// recordingFile shows one recording of anybody.
func recordingFile(b *watch.Board, path string) error {
	base, ok := strings.CutSuffix(path, ".sigmf-meta")
	if !ok {
		base, ok = strings.CutSuffix(path, ".sigmf-data")
	}
	if !ok {
		return intake.UserError(fmt.Errorf("%s: it is neither a folder nor a recording, whose name ends in .sigmf-meta or .sigmf-data", path))
	}
	r, err := sigmf.Open(base, sigmf.Options{})
	if err != nil {
		return intake.UserError(err)
	}
	m := r.Metadata()
	if err := r.Close(); err != nil {
		return err
	}
	if m.SampleRate <= 0 {
		return intake.UserError(fmt.Errorf("%s: core:sample_rate is not there: without it nothing can be played", path))
	}
	s := b.Add(watch.KindRecording, filepath.Base(base))
	s.SetStatus(watch.Status{State: watch.StateEnded, Share: 1, SecondsLeft: -1})
	s.SetTables([]watch.Table{recordingTable(m)})
	centre := radio.Hertz(0)
	if len(m.Captures) > 0 && m.Captures[0].Frequency != nil {
		centre = *m.Captures[0].Frequency
	}
	// A run's recording lies beside its configuration.
	configPath := filepath.Join(filepath.Dir(base), "..", "config.toml")
	if filepath.Base(filepath.Dir(base)) != uplink.IQFolder || !there(filepath.Dir(configPath), "config.toml") || !there(filepath.Dir(configPath), "metrics.csv") {
		configPath = ""
	}
	p := newPlayer([]string{base + ".sigmf-meta"}, configPath, air.New(air.Config{SampleRate: m.SampleRate, Centre: centre}), time.Now)
	s.SetPlayer(p)
	s.SetAir(p)
	return nil
}

// recordingTable says what a recording is.
func recordingTable(m *sigmf.Metadata) watch.Table {
	t := watch.Table{Name: "recording", View: watch.ViewBench, Title: "Recording", Columns: []watch.Column{{Label: "field"}, {Label: "value"}}}
	add := func(name, value string) {
		if value != "" && value != "0" {
			t.Rows = append(t.Rows, []string{name, value})
		}
	}
	add("datatype", string(m.Datatype))
	add("sample rate", m.SampleRate.String())
	add("samples", fmt.Sprint(int64(m.Samples)))
	add("SigMF version", m.Version)
	add("hardware", m.Hardware)
	add("author", m.Author)
	add("description", m.Description)
	add("recorder", m.Recorder)
	add("annotations", fmt.Sprint(len(m.Annotations)))
	return t
}

// choose turns to a track. The caller has mu.
func (p *player) choose(k int) {
	p.close()
	p.track++
	p.state = watch.Playback{Tracks: p.names, Track: k, Speed: 1}
	p.shown, p.frames, p.last0, p.last = math.NaN(), nil, 0, time.Time{}
	if err := p.open(p.tracks[k]); err != nil {
		p.state.Problem = err.Error()
		return
	}
	p.state.Duration = float64(p.count) / p.rate
	p.state.Speed = tidy(p.state.Duration / wholeTrack.Seconds())
	p.state.Playing = true
	if p.config == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.decoding = cancel
	go p.decode(ctx, p.tracks[k], p.track)
}

// tidy returns a speed of one digit.
func tidy(x float64) float64 {
	if !(x > slowest) {
		return slowest
	}
	size := math.Pow(10, math.Floor(math.Log10(x)))
	return min(1, math.Ceil(x/size)*size)
}

// close lets go of the track. The caller has mu.
func (p *player) close() {
	if p.decoding != nil {
		p.decoding()
		p.decoding = nil
	}
	if p.rx != nil {
		_ = p.rx.Close() // it was read
		p.rx = nil
	}
	if p.from != nil {
		_ = p.from.Close()
		p.from = nil
	}
}

// open opens a recording. The caller has mu.
func (p *player) open(path string) error {
	r, err := sigmf.Open(path, sigmf.Options{})
	if err != nil {
		return err
	}
	p.from, p.rate, p.count = r, float64(r.Metadata().SampleRate), r.Samples()
	if !(p.rate > 0) {
		return fmt.Errorf("%s: core:sample_rate is not there: without it nothing can be played", path)
	}
	first := p.first()
	for _, a := range r.Annotations() {
		if len(p.state.Marks) == mostMarks {
			break
		}
		text := a.Label
		if a.Comment != "" {
			text += ": " + a.Comment
		}
		if a.Tag != nil && a.Tag.Phase != "" {
			text = fmt.Sprintf("round %d, attempt %d, %s: %s", a.Tag.Round, a.Tag.Attempt+1, a.Tag.Phase, text)
		}
		from := float64(a.First-first) / p.rate
		p.state.Marks = append(p.state.Marks, watch.Mark{From: from, To: from + float64(a.Count)/p.rate, Text: text, Void: strings.HasPrefix(a.Comment, uplink.CommentVoid)})
	}
	slices.SortStableFunc(p.state.Marks, func(a, b watch.Mark) int {
		switch {
		case a.To < b.To:
			return -1
		case a.To > b.To:
			return 1
		}
		return 0
	})
	return p.rewind()
}

// first returns the index of the recording's first sample by its stream's clock.
func (p *player) first() radio.SampleIndex {
	if c := p.from.Metadata().Captures; len(c) > 0 {
		return c[0].Index
	}
	return 0
}

// rewind begins to read anew. The caller has mu.
func (p *player) rewind() error {
	if p.rx != nil {
		_ = p.rx.Close()
	}
	rx, err := p.from.OpenReceiver(context.Background())
	if err != nil {
		return err
	}
	p.rx, p.at = rx, 0
	return rx.Start(context.Background())
}

// decode has the track's frames be found again.
func (p *player) decode(ctx context.Context, path string, track int) {
	_, err := replay.Watch(ctx, path, p.config, func(f replay.Frame) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.track == track && len(p.frames) < mostFrames {
			p.frames = append(p.frames, f)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.track == track && err != nil && ctx.Err() == nil {
		p.state.Problem = "frames are not shown: " + err.Error()
	}
}

// Playback returns where the player stands: watch.Player.
func (p *player) Playback() watch.Playback {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	return p.state
}

// Wish does what a viewer asks for: watch.Player.
func (p *player) Wish(w watch.PlayerWish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	if w.Track != nil && *w.Track >= 0 && *w.Track < len(p.tracks) {
		p.choose(*w.Track)
	}
	if w.Speed != nil && *w.Speed == *w.Speed {
		p.state.Speed = min(max(*w.Speed, slowest), fastest)
	}
	if w.Seconds != nil && *w.Seconds == *w.Seconds {
		p.state.Seconds = min(max(*w.Seconds, 0), p.state.Duration)
		p.shown = math.NaN() // what lies between is passed over
	}
	if w.Playing != nil && p.rx != nil {
		p.state.Playing, p.last = *w.Playing, time.Time{}
		if p.state.Playing && p.state.Seconds >= p.state.Duration {
			p.state.Seconds = 0
		}
	}
}

// move brings the position up to date. The caller has mu.
func (p *player) move() {
	now := p.now()
	if p.state.Playing && !p.last.IsZero() {
		p.state.Seconds += p.state.Speed * now.Sub(p.last).Seconds()
		if p.state.Seconds >= p.state.Duration {
			p.state.Seconds, p.state.Playing = p.state.Duration, false
		}
	}
	p.last = now
}

// Look begins a viewer's look: watch.Air.
func (p *player) Look() watch.Look { return &playerLook{p.Display.Look(), p} }

// playerLook is one viewer's.
type playerLook struct {
	watch.Look
	of *player
}

// Next returns what is new where the player stands: watch.Look.
func (l *playerLook) Next(columns int) [][]byte {
	l.of.step()
	return l.Look.Next(columns)
}

// step shows what was passed since the last step.
func (p *player) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	if p.rx == nil {
		return
	}
	if p.state.Seconds != p.shown { // NaN, too
		if err := p.show(); err != nil {
			p.state.Problem = err.Error()
			p.close()
			return
		}
		p.shown = p.state.Seconds
	}
	p.showFrame()
}

// show reads the samples that end at the position. The caller has mu.
func (p *player) show() error {
	to := max(min(radio.SampleCount(p.state.Seconds*p.rate), p.count), min(air.Bins, p.count))
	from := max(0, to-mostAtOnce)
	if p.shown == p.shown && p.state.Seconds > p.shown { // what was not shown yet, but a block at least
		from = max(from, min(radio.SampleCount(p.shown*p.rate), to-air.Bins))
	} else {
		from = max(0, to-air.Bins)
	}
	if from < p.at {
		if err := p.rewind(); err != nil {
			return err
		}
	}
	buffer := make([]complex64, mostAtOnce)
	for p.at < to {
		most := int(min(to-p.at, mostAtOnce))
		if p.at < from {
			most = int(min(from-p.at, mostAtOnce))
		}
		n, meta, err := p.rx.Read(context.Background(), buffer[:most])
		if n > 0 && p.at >= from {
			_ = p.Display.Record(buffer[:n], meta) // it never fails
		}
		p.at += radio.SampleCount(n)
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showFrame shows the last frame that has ended at the position. The caller has mu.
func (p *player) showFrame() {
	at := p.first() + radio.SampleIndex(p.state.Seconds*p.rate)
	for _, f := range slices.Backward(p.frames) {
		if f.End > at {
			continue
		}
		if f.End != p.last0 && p.WantsFrame() {
			p.last0 = f.End
			p.Display.Frame(f.Look)
		}
		return
	}
}
