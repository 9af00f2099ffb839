package scenes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"ringwave/crypto/round"
	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/radio"
)

// Run makes the scene of a run, and one after the other of several. Its methods are for the
// goroutine of the run, but End.
type Run struct {
	board *watch.Board
	meter Meter
	off   func() // takes all carriers off
	// hosts tells of devices on other hosts; nil where there are none.
	hosts func() (watch.Table, bool)

	mu      sync.Mutex // the page looks while the run goes on
	scene   *watch.Scene
	run     *experiment.Experiment
	config  config.Config
	devices []experiment.DeviceState
	receive experiment.ReceiverState
	means   []meanGain
	history history
	voids   map[round.Check]int
	title   string
	status  watch.Status
	first   int // rounds of earlier sittings
	counts  counts
	frames  *air.Display // nil without a waveform
	evaluated
}

// counts are those of a sitting.
type counts struct {
	read, skipped, attempts int
	clipped                 int64 // samples, by the receiver
	repeated                float64
}

// evaluated is the last accuracy that was measured.
type evaluated struct {
	accuracy string
	at       int
}

// meanGain is what a device's gains were like.
type meanGain struct {
	sum   float64
	n     int
	zeros int
	heard int // the last round of another gain than 0; 0 for none
}

// Meter counts what a run does: package metrics has one.
type Meter interface {
	Row(row runfolder.Row)
	Void(check round.Check)
	Progress(s watch.Status)
	// UplinkBytes says how many bytes all devices together send in an attempt.
	UplinkBytes(n float64)
}

// RunOptions are what a Run is made of.
type RunOptions struct {
	Board *watch.Board
	Meter Meter // nil for none
	// CarriersOff takes all carriers off, and so ends the run.
	CarriersOff func()
	// Hosts returns a table of the hosts that take part; nil where there are none.
	Hosts func() (watch.Table, bool)
}

// NewRun returns what makes the scenes of runs.
func NewRun(o RunOptions) *Run {
	return &Run{board: o.Board, meter: o.Meter, off: o.CarriersOff, hosts: o.Hosts}
}

// Observer returns what hears of a run for its scene, and then for the next.
func (r *Run) Observer(next experiment.Observer) experiment.Observer {
	o := next
	o.Opening = r.opening
	o.Started = func(e *experiment.Experiment) {
		r.started(e)
		if next.Started != nil {
			next.Started(e)
		}
	}
	o.Row = func(line runfolder.Row) {
		r.row(line)
		if next.Row != nil {
			next.Row(line)
		}
	}
	o.Void = func(k int, f round.Failure) {
		r.void(f)
		if next.Void != nil {
			next.Void(k, f)
		}
	}
	o.Round = func(rec learner.Record) {
		if next.Round != nil {
			next.Round(rec)
		}
	}
	o.Log = &events{of: r}
	return o
}

// opening begins the scene of a run.
func (r *Run) opening(e *experiment.Experiment) uplink.Viewer {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := e.Config
	r.scene = r.board.Add(watch.KindRun, c.Heading())
	r.run, r.config, r.title, r.voids = e, c, c.Heading(), map[round.Check]int{}
	r.history, r.counts, r.evaluated, r.devices, r.frames = history{}, counts{}, evaluated{}, nil, nil
	r.means = make([]meanGain, c.Devices.Count)
	done := e.Trainer.State().Round
	r.first = done
	r.status = watch.Status{State: watch.StatePreparing, Unit: "round", Done: done, Of: c.Optimizer.Rounds, Share: share(done, c.Optimizer.Rounds), Began: time.Now(), SecondsLeft: -1}
	r.tell()
	if text, err := c.Encode(); err == nil { // else Run has said so
		r.scene.SetConfig(string(text))
	}
	r.scene.SetControls(r.controls(e))
	r.scene.SetRefresh(r.refresh)
	if !c.OverWaveform() {
		return nil
	}
	r.frames = air.New(air.Config{SampleRate: radio.Hertz(c.Link.SampleRateHz), Centre: radio.Hertz(c.Radio.FrequencyHz)})
	r.scene.SetAir(r.frames)
	return r.frames
}

// controls returns what viewers may do to a run.
func (r *Run) controls(e *experiment.Experiment) watch.Controls {
	scene := r.scene
	c := watch.Controls{Stop: func() {
		e.StopAfterRound()
		r.asked(scene, "a stop behind this round was asked for in the browser")
	}}
	if e.Config.OverRadios() && r.off != nil {
		c.CarriersOff = func() {
			r.off()
			r.asked(scene, "carriers off was asked for in the browser")
		}
	}
	return c
}

// asked says that a viewer has asked for an end.
func (r *Run) asked(scene *watch.Scene, text string) {
	scene.Event(watch.EventWarning, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scene == scene && (r.status.State == watch.StateRunning || r.status.State == watch.StatePreparing) {
		r.status.State = watch.StateStopping
		r.tell()
	}
}

// tell brings the status to those who look.
func (r *Run) tell() {
	r.scene.SetStatus(r.status)
	if r.meter != nil {
		r.meter.Progress(r.status)
	}
}

// started says that the run's next round is about to begin.
func (r *Run) started(e *experiment.Experiment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.State == watch.StatePreparing {
		r.status.State = watch.StateRunning
	}
	r.status.Began = time.Now()
	r.devices, r.receive = e.Devices(), e.Receiver()
	if r.meter != nil && e.Design != nil {
		r.meter.UplinkBytes(float64(e.Design.UplinkBits()) / 8 * float64(e.Config.Devices.Count))
	}
	for _, note := range []string{e.FallbackNote(), e.RandomnessNote()} {
		if note != "" {
			r.scene.Event(watch.EventInfo, note)
		}
	}
	r.tell()
	r.scene.Touch()
}

// row takes in a round.
func (r *Run) row(line runfolder.Row) {
	devices, receiver := r.run.Devices(), r.run.Receiver()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.devices, r.receive = devices, receiver
	var gains []float64
	if !line.Skipped {
		r.counts.read++
		gains = r.addGains(line.Round)
	} else {
		r.counts.skipped++
	}
	r.counts.attempts += line.Attempts
	r.counts.clipped += receiver.Clipped
	if line.Link != nil && !math.IsNaN(line.Link.FramesRepeated) {
		r.counts.repeated += line.Link.FramesRepeated
	}
	if !math.IsNaN(line.TestAccuracy) {
		r.accuracy, r.at = number(line.TestAccuracy), line.Round
	}
	r.history.add(line, gains)
	r.status.Done, r.status.Share = line.Round, share(line.Round, r.status.Of)
	r.status.SecondsLeft = left(r.status.Began, r.first, line.Round, r.status.Of)
	r.tell()
	if r.meter != nil {
		r.meter.Row(line)
	}
	r.scene.Touch()
}

// addGains takes in the gains of a round that was read, and returns them; nil where nothing
// tells them.
func (r *Run) addGains(round int) []float64 {
	gains := make([]float64, len(r.devices))
	known := false
	for i, d := range r.devices {
		gains[i] = d.Gain
		if math.IsNaN(d.Gain) || i >= len(r.means) {
			continue
		}
		known = true
		m := &r.means[i]
		m.sum, m.n = m.sum+d.Gain, m.n+1
		if d.Gain == 0 {
			m.zeros++
		} else {
			m.heard = round
		}
	}
	if !known {
		return nil
	}
	return gains
}

// void takes in an attempt that a check declared void.
func (r *Run) void(f round.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.voids[f.Check]++
	if r.meter != nil {
		r.meter.Void(f.Check)
	}
}

// End says how the run has ended: its error, nil where it came to its end.
func (r *Run) End(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scene == nil { // it has not begun
		return
	}
	r.status.State, r.status.Text, r.status.SecondsLeft = endState(err), "", -1
	if err != nil && !errors.Is(err, experiment.ErrInterrupted) {
		r.status.Text = err.Error()
		r.scene.Event(watch.EventWarning, err.Error())
	}
	r.scene.SetControls(watch.Controls{})
	r.tell()
	r.scene.Touch()
}

// endState is the state of what has ended with an error, nil for none.
func endState(err error) watch.State {
	switch {
	case err == nil:
		return watch.StateEnded
	case errors.Is(err, experiment.ErrInterrupted):
		return watch.StateStopped
	}
	return watch.StateFailed
}

// share returns a share of rounds.
func share(done, of int) float64 {
	if of <= 0 {
		return 0
	}
	return float64(done) / float64(of)
}

// left returns how many seconds the rest will take, negative where nothing tells.
func left(began time.Time, first, done, of int) float64 {
	if done <= first {
		return -1
	}
	return time.Since(began).Seconds() / float64(done-first) * float64(of-done)
}

// number writes a number as metrics.csv does: "" for NaN.
func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// short writes a number in four digits, "" for NaN.
func short(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// refresh sets what somebody looks at.
func (r *Run) refresh() {
	hosts, hasHosts := watch.Table{}, false
	if r.hosts != nil {
		hosts, hasHosts = r.hosts()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scene.SetFigures(slices.Concat(r.learningFigures(), r.airFigures(), r.benchFigures()))
	layout := runfolder.InMemory
	switch {
	case hasHosts:
		layout = runfolder.OfHosts
	case r.config.Task.Validation > 0:
		layout = runfolder.Validated
	}
	tables := []watch.Table{roundsTable(r.history.last, layout), r.retriesTable(), r.devicesTable()}
	if hasHosts {
		tables = append(tables, hosts)
	}
	r.scene.SetTables(slices.DeleteFunc(tables, func(t watch.Table) bool { return len(t.Rows) == 0 }))
	r.scene.SetPlots(r.history.plots(r.title, r.config.OverWaveform()))
}

// learningFigures are those of the last round.
func (r *Run) learningFigures() []watch.Figure {
	row := runfolder.Row{TrainLoss: math.NaN(), M: math.NaN(), MIdeal: math.NaN(), Eps: math.NaN(), EpsStdPredicted: math.NaN(), Eta: math.NaN(), Gamma: math.NaN()}
	if n := len(r.history.last); n > 0 {
		row = r.history.last[n-1]
	}
	accuracy := watch.Figure{Key: "test_accuracy", Label: "test accuracy", Value: r.accuracy, Note: "share of the test samples that are decided rightly, from 0 to 1"}
	if r.at > 0 {
		accuracy.Note += fmt.Sprintf("; measured after round %d", r.at)
	}
	list := []watch.Figure{
		{Key: "train_loss", Label: "training loss", Value: number(row.TrainLoss), Note: "mean over the round's batches, before the model moves"},
		accuracy,
		{Key: "m", Label: "message M", Value: number(row.M), Note: "what the server decodes of a round"},
		{Key: "m_ideal", Label: "noiseless M", Value: number(row.MIdeal), Note: "what M would be without noise, which the simulation knows"},
		{Key: "eps", Label: "decoded noise ε", Value: number(row.Eps), Note: "M less its noiseless value"},
		{Key: "eps_std_predicted", Label: "predicted deviation of ε", Value: number(row.EpsStdPredicted), Note: "by the noise budget"},
		{Key: "eta", Label: "step size η", Value: number(row.Eta)},
		{Key: "gamma", Label: "smoothing radius γ", Value: number(row.Gamma)},
		{Key: "rounds_read", Label: "rounds read", Value: strconv.Itoa(r.counts.read), Note: "in this sitting"},
		{Key: "rounds_skipped", Label: "rounds skipped", Value: strconv.Itoa(r.counts.skipped), Note: "given up after the last attempt, in this sitting", Alarm: r.counts.skipped > 0},
	}
	for i := range list {
		list[i].View = watch.ViewLearning
	}
	return list
}

// airFigures are those of the link in the last round.
func (r *Run) airFigures() []watch.Figure {
	n := len(r.history.last)
	if n == 0 || r.history.last[n-1].Link == nil {
		return nil
	}
	link := r.history.last[n-1].Link
	list := []watch.Figure{
		{Key: "alpha", Label: "lattice scale α", Value: number(link.Alpha), Note: "at which the superposition is whole numbers but for noise"},
		{Key: "quality", Label: "quality", Value: number(link.Quality), Note: "the worst transmission's mean cos 2παy: 1 where all symbols are whole"},
		{Key: "misfit", Label: "misfit", Value: number(link.Misfit), Note: "the worst device's |H/α − h| / |h|, which the simulation knows"},
		{Key: "zero_gains", Label: "gains of 0", Value: number(link.ZeroGains), Note: "devices that were not heard in the round", Alarm: link.ZeroGains > 0},
		{Key: "wrong_signs", Label: "wrong signs", Value: number(link.WrongSigns), Note: "devices whose gain has a sign that their mean has not", Alarm: link.WrongSigns > 0},
		{Key: "frames_repeated", Label: "frames sent again", Value: number(link.FramesRepeated), Note: "in all attempts at the round"},
		{Key: "attempts", Label: "attempts", Value: strconv.Itoa(r.counts.attempts), Note: "in this sitting"},
		{Key: "attempts_void", Label: "void attempts", Value: strconv.Itoa(r.voided()), Note: "in this sitting, by any check"},
	}
	for i := range list {
		list[i].View = watch.ViewAir
	}
	return list
}

// benchFigures are those of the receiver.
func (r *Run) benchFigures() []watch.Figure {
	if !r.config.OverWaveform() {
		return nil
	}
	return []watch.Figure{
		{Key: "carrier_offset", View: watch.ViewBench, Label: "common carrier offset", Value: number(float64(r.receive.Carrier)), Unit: "Hz", Note: "of the last frame that was found, as it was tracked; devices' own are not told apart"},
		{Key: "clipped_samples", View: watch.ViewBench, Label: "samples clipped", Value: strconv.FormatInt(r.counts.clipped, 10), Note: "by the receiver, in this sitting", Alarm: r.counts.clipped > 0},
	}
}

func (r *Run) voided() (n int) {
	for _, k := range r.voids {
		n += k
	}
	return n
}

// roundsTable has the last rounds as metrics.csv has them, the newest first.
func roundsTable(rows []runfolder.Row, layout runfolder.Layout) watch.Table {
	t := watch.Table{Name: "rounds", View: watch.ViewLearning, Title: fmt.Sprintf("The last %d rounds, as metrics.csv has them", lastRows)}
	for _, name := range layout.Columns() {
		t.Columns = append(t.Columns, watch.Column{Label: name, Numeric: true})
	}
	for _, row := range slices.Backward(rows) {
		t.Rows = append(t.Rows, row.Cells(layout))
	}
	return t
}

// retriesTable says which checks have declared attempts void.
func (r *Run) retriesTable() watch.Table {
	t := watch.Table{Name: "retries", View: watch.ViewAir, Title: "Void attempts by the check that found them", Note: "of this sitting", Columns: []watch.Column{{Label: "check"}, {Label: "attempts", Numeric: true}, {Label: "share", Unit: "%", Numeric: true}}}
	for _, check := range slices.Sorted(maps.Keys(r.voids)) {
		n := r.voids[check]
		t.Rows = append(t.Rows, []string{check.String(), strconv.Itoa(n), strconv.FormatFloat(100*share(n, max(n, r.counts.attempts)), 'f', 1, 64)})
	}
	return t
}

// devicesTable says how each device is.
func (r *Run) devicesTable() watch.Table {
	t := watch.Table{Name: "devices", View: watch.ViewBench, Title: "Devices", Columns: []watch.Column{
		{Label: "device", Numeric: true}, {Label: "radio"}, {Label: "serial"},
		{Label: "mean gain μ", Numeric: true}, {Label: "deviation σ", Numeric: true}, {Label: "phase", Unit: "rad", Numeric: true}, {Label: "carrier offset", Unit: "Hz", Numeric: true},
		{Label: "gain in the last round", Numeric: true}, {Label: "mean so far", Numeric: true}, {Label: "rounds of gain 0", Numeric: true}, {Label: "last heard", Unit: "round", Numeric: true},
	}, Note: "μ and σ are what the run goes by, phase and carrier those of the calibration in use; gains are H/α, in units of what counts as gain 1."}
	const most = 200
	for i, d := range r.devices[:min(len(r.devices), most)] {
		m := r.means[i]
		mean := math.NaN()
		if m.n > 0 {
			mean = m.sum / float64(m.n)
		}
		heard := ""
		if m.heard > 0 {
			heard = strconv.Itoa(m.heard)
		}
		model := d.Radio.Model
		if model == "" {
			model = map[bool]string{true: "not open yet", false: "in memory"}[r.config.OverRadios()]
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), model, d.Radio.Serial, short(d.Mu), short(math.Sqrt(max(0, d.Omega-d.Mu*d.Mu))), short(d.Phase), short(d.OffsetHz), short(d.Gain), short(mean), strconv.Itoa(m.zeros), heard})
	}
	if board := r.receive.Radio; board.Model != "" {
		t.Rows = append(t.Rows, []string{"receiver", board.Model, board.Serial, "", "", "", "", "", "", "", ""})
	}
	if n := len(r.devices); n > most {
		t.Note += fmt.Sprintf(" The first %d of %d are shown.", most, n)
	}
	return t
}

// plots returns what can be drawn of the rounds: as they are now.
func (h *history) plots(title string, link bool) (list []watch.Plot) {
	rows := slices.Clone(h.rows)
	caption := ""
	if h.stride > 1 {
		caption = fmt.Sprintf("%d rounds are drawn as one: the last of them, with the most attempts and the worst quality and misfit.", h.stride)
	}
	add := func(view watch.View, pictures []chart.Picture) {
		for _, p := range pictures {
			list = append(list, watch.Plot{Name: p.Name, View: viewOf(p.Name, view), Title: titleOf(p.Name), Caption: caption, Draw: func(w io.Writer) error { return p.WriteSVG(w) }})
		}
	}
	add(watch.ViewLearning, chart.RunPictures(title, rows))
	if link {
		add(watch.ViewAir, chart.LinkPictures(title, rows, h.roundGains()))
	}
	return list
}

// viewOf returns where a plot is shown.
func viewOf(name string, usual watch.View) watch.View {
	if name == "gains" {
		return watch.ViewBench
	}
	return usual
}

// roundGains returns the gains for a plot.
func (h *history) roundGains() (g chart.RoundGains) {
	for k, row := range h.gains {
		if row != nil {
			g.Rounds, g.Gains = append(g.Rounds, h.rows[k].Round), append(g.Gains, row)
		}
	}
	return g
}

// events hears of a run's log for its scene.
type events struct {
	of    *Run
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (e *events) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (e *events) Handle(_ context.Context, rec slog.Record) error {
	e.of.mu.Lock()
	scene := e.of.scene
	e.of.mu.Unlock()
	if scene != nil {
		kind, text := eventOf(rec, e.attrs)
		scene.EventAt(rec.Time, kind, text)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (e *events) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &events{e.of, append(slices.Clone(e.attrs), attrs...)}
}

// WithGroup implements slog.Handler. Names of groups are left out.
func (e *events) WithGroup(string) slog.Handler { return e }

// eventOf says in a line what a log says.
func eventOf(rec slog.Record, attrs []slog.Attr) (kind, text string) {
	text = rec.Message
	add := func(a slog.Attr) bool {
		if v := a.Value.String(); v != "" {
			text += fmt.Sprintf(", %s %s", a.Key, v)
		}
		return true
	}
	for _, a := range attrs {
		add(a)
	}
	rec.Attrs(add)
	switch {
	case rec.Message == "attempt void":
		kind = watch.EventVoid
	case rec.Level >= slog.LevelWarn:
		kind = watch.EventWarning
	default:
		kind = watch.EventInfo
	}
	return kind, text
}
