package sweeps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"ringwave/calibration"
	"ringwave/crypto/lockfile"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/jobs"
	"ringwave/radio/intake"
)

// Options say what a Sweep is.
type Options struct {
	Lab    experiment.Lab
	Plan   sweep.Plan
	Out    string // its folder, which goes on if it has begun
	Engine EngineOptions
	// Retry takes up again what was set aside.
	Retry bool
	// Say hears what a user should know, Progress how far all runs are.
	Say      func(string)
	Progress func(s State)
}

// Sweep is the runs of a plan, in a folder.
type Sweep struct {
	o      Options
	engine *Engine
	points []point
	// resumed are the results that were there, and aside the runs that had been set aside, when
	// this sitting began.
	resumed, aside int

	mu sync.Mutex // of what points have come to
}

// point is one of the plan, as a job.
type point struct {
	job    jobs.Job
	dir    string // of its run
	done   bool
	failed string // why it has none; "" where it may get one
}

// RunState is where a run of a sweep stands.
type RunState struct {
	Title   string   // its values and its seed
	Values  []string // of the plan's keys
	Seed    int64
	Dir     string // its folder, once it is done
	Done    bool
	Running bool
	Worker  string  // that has it, where it is running
	Share   float64 // of it that is done, where it is running
	Aside   bool
	Why     string // it was set aside
}

// States returns where each run stands, in the plan's order. It may be called at any time,
// from any goroutine.
func (s *Sweep) States() []RunState {
	running := s.engine.Running()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RunState, len(s.points))
	for i := range s.points {
		p, point := &s.points[i], s.o.Plan.Points[i]
		at, busy := running[p.job.ID]
		list[i] = RunState{
			Title: p.job.Title, Values: point.Values, Seed: point.Config.Experiment.Seed, Dir: p.dir, Done: p.done,
			Running: busy && !p.done && p.failed == "", Worker: at.Worker, Share: at.Share, Aside: p.failed != "", Why: p.failed,
		}
	}
	return list
}

// The names in a sweep's folder.
const (
	runsName    = "runs"   // a folder a run
	failedName  = "failed" // a folder for each that was set aside
	queueName   = "queue"  // the engine's
	stateName   = "state.json"
	cancelName  = "cancelled"
	ReportName  = "report" // the report's folder
	whyName     = "error.txt"
	logName     = "log.txt"
	mostWhyFile = 1 << 20
)

// State is where a sweep stands: state.json.
type State struct {
	Name    string `json:"name"`
	Runs    int    `json:"runs"`
	Done    int    `json:"done"`
	Aside   int    `json:"set_aside"`
	Running int    `json:"running"`
	// Share is that of the work, runs on their way counted in part. First is what of it had
	// been done when this sitting began, SecondsLeft an estimate.
	Share       float64             `json:"share"`
	First       float64             `json:"first"`
	SecondsLeft float64             `json:"seconds_left"` // negative where there is none
	Workers     []jobs.WorkerStatus `json:"workers"`
	Written     time.Time           `json:"written"`
	Active      bool                `json:"active"` // a process is at it
	Cancelled   bool                `json:"cancelled"`
	// Join and Bench are those of EngineOptions, for what ends the sweep from outside.
	Join  string `json:"join,omitempty"`
	Bench string `json:"bench,omitempty"`
}

// New makes the jobs of a plan, looks which results are there, and begins the engine.
func New(ctx context.Context, o Options) (s *Sweep, err error) {
	o.Engine.Folder = filepath.Join(o.Out, queueName)
	o.Engine.Kinds = map[string]jobs.Kind{RunKind: Runs{o.Lab}}
	if o.Engine.Bench != "" { // which cancel finds from elsewhere, too
		if o.Engine.Bench, err = filepath.Abs(o.Engine.Bench); err != nil {
			return nil, fmt.Errorf("finding --bench: %w", err)
		}
	}
	o.Engine.Say = o.Say
	s = &Sweep{o: o}
	program, err := jobs.Program()
	if err != nil {
		return nil, err
	}
	if err := ownFolder(o.Out); err != nil {
		return nil, err
	}
	if err := s.makeJobs(program); err != nil { // before anything is written
		return nil, err
	}
	if s.engine, err = Open(ctx, o.Engine); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.engine.Close())
		}
	}()
	if err := removed(os.Remove(filepath.Join(o.Out, cancelName))); err != nil {
		return nil, intake.PathError(err)
	}
	return s, s.look()
}

// ownFolder refuses a folder of something else: a sweep writes and removes what has its
// names.
func ownFolder(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return intake.PathError(fmt.Errorf("looking into the sweep's folder: %w", err))
	}
	if state, err := readState(out); err == nil && state.Runs > 0 || len(entries) == 0 {
		return nil
	}
	// One that was killed as it began has a lock, or not even that.
	queue := filepath.Join(out, queueName)
	if _, err := os.Lstat(filepath.Join(queue, engineLock)); err == nil {
		return nil
	}
	if inside, err := os.ReadDir(queue); err == nil && len(inside) == 0 && len(entries) == 1 {
		return nil
	}
	return intake.UserError(fmt.Errorf("the sweep's folder, %s, holds %s: must be new or empty, or that of an earlier sweep, which goes on", out, entries[0].Name()))
}

// makeJobs names and describes all points.
func (s *Sweep) makeJobs(program string) error {
	data, calibrations := map[string]string{}, map[string]string{}
	for _, p := range s.o.Plan.Points {
		found, err := s.data(data, p.Config)
		if err != nil {
			return err
		}
		text, err := calibrationOf(calibrations, p.Config)
		if err != nil {
			return err
		}
		encoded, err := p.Config.Encode()
		if err != nil {
			return err
		}
		body, err := json.Marshal(runBody{Config: string(encoded), Calibration: text, Data: found})
		if err != nil {
			return fmt.Errorf("encoding a run: %w", err)
		}
		id := jobs.NewID(program, encoded, []byte(text), []byte(found))
		title := titleOf(s.o.Plan.Keys, p)
		s.points = append(s.points, point{job: jobs.Job{ID: id, Kind: RunKind, Title: title, Body: body}, dir: filepath.Join(s.o.Out, runsName, folderName(title, id))})
	}
	return nil
}

// folderName returns what the folder of a run is called: what people know it by, and what it
// is computed from.
func folderName(title, id string) string {
	return plainName(strings.ReplaceAll(title, ", ", ",")) + "-" + id[:12]
}

// DefaultOut returns the folder of a sweep that names none.
func DefaultOut(p sweep.Plan) string { return filepath.Join("sweeps", plainName(p.Name)) }

// plainName returns a text as one name of a folder that may be seen everywhere.
func plainName(text string) string {
	const most = 120
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=.,+-_", r) {
			return r
		}
		return '_'
	}, text)
	name = strings.TrimLeft(name[:min(most, len(name))], ".-")
	return cmp.Or(name, "_")
}

// data returns what a configuration's data are on this machine, which is looked up once for
// all that have the same files.
func (s *Sweep) data(known map[string]string, c config.Config) (string, error) {
	t := c.Task
	key := fmt.Sprintf("%q", []string{t.Dataset, t.Fallback, t.TrainImages, t.TrainLabels, t.TestImages, t.TestLabels})
	if found, ok := known[key]; ok {
		return found, nil
	}
	e, err := s.o.Lab.New(c)
	if err != nil {
		return "", err
	}
	if note := e.FallbackNote(); note != "" {
		s.o.Say("*** " + note)
	}
	if why := e.Task.Unpublished(); why != "" {
		s.o.Say("*** WARNING: " + why)
	}
	known[key] = dataOf(e.Task)
	return known[key], e.Close()
}

// calibrationOf returns the text of the calibration that a configuration names.
func calibrationOf(known map[string]string, c config.Config) (string, error) {
	path := c.Calibration.File
	if path == "" {
		return "", nil
	}
	if text, ok := known[path]; ok {
		return text, nil
	}
	text, err := intake.ReadFile(path, calibration.MaxFile)
	if err != nil {
		return "", intake.PathError(fmt.Errorf("%s: %w", path, err))
	}
	known[path] = string(text)
	return known[path], nil
}

// look finds the results that are there, and what was set aside.
func (s *Sweep) look() error {
	for i := range s.points {
		p := &s.points[i]
		if _, err := os.Stat(filepath.Join(p.dir, runfolder.SummaryName)); err == nil {
			p.done = true
			s.resumed++
			continue
		}
		// A folder without a summary was removed in part.
		if err := os.RemoveAll(p.dir); err != nil {
			return intake.PathError(err)
		}
		aside := s.asideDir(p)
		if s.o.Retry {
			if err := os.RemoveAll(aside); err != nil {
				return intake.PathError(err)
			}
			continue
		}
		why, err := intake.ReadFile(filepath.Join(aside, whyName), mostWhyFile)
		if err == nil {
			p.failed = intake.Sentence(string(why))
			s.aside++
		}
	}
	return nil
}

func (s *Sweep) asideDir(p *point) string {
	return filepath.Join(s.o.Out, failedName, filepath.Base(p.dir))
}

// Resumed returns how many results were there, and how many runs had been set aside.
func (s *Sweep) Resumed() (done, aside int) { return s.resumed, s.aside }

// Engine returns what has the runs done.
func (s *Sweep) Engine() *Engine { return s.engine }

// Run has all runs done that are left. It ends with experiment.ErrInterrupted where ctx did.
// Whatever ends it, the same sweep goes on.
func (s *Sweep) Run(ctx context.Context) error {
	var left sync.WaitGroup
	var failed error // of this host's disk
	for i := range s.points {
		p := &s.points[i]
		if p.done || p.failed != "" {
			continue
		}
		left.Add(1)
		err := s.engine.Add(p.job, p.dir, func(err error) {
			defer left.Done()
			s.mu.Lock()
			defer s.mu.Unlock()
			var f *jobs.Failure
			if errors.As(err, &f) {
				p.failed = f.Why
				failed = errors.Join(failed, s.setAside(p, f))
				return
			}
			p.done = true
		})
		p.job.Body = nil // the engine has it
		if err != nil {
			return err
		}
	}
	over := make(chan struct{})
	go func() { left.Wait(); close(over) }()
	first := float64(s.resumed) / float64(max(1, len(s.points)))
	began := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		err := s.turn(ctx, first, began, over)
		if err != nil || s.over(over) {
			err = errors.Join(err, s.finish(err == nil))
			s.mu.Lock() // of an interrupted sweep a job may end meanwhile
			defer s.mu.Unlock()
			return errors.Join(err, failed)
		}
		select {
		case <-over:
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (s *Sweep) over(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// turn tells how far the sweep is, and says why it cannot go on.
func (s *Sweep) turn(ctx context.Context, first float64, began time.Time, over <-chan struct{}) error {
	state := s.state(first, began)
	if err := s.write(state); err != nil {
		return err
	}
	if s.o.Progress != nil {
		s.o.Progress(state)
	}
	if s.over(over) {
		return nil
	}
	if ctx.Err() != nil {
		return experiment.ErrInterrupted
	}
	if err := s.engine.Err(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.o.Out, cancelName)); err == nil {
		return ErrCancelled
	}
	return nil
}

// ErrCancelled says that the sweep was cancelled by another command.
var ErrCancelled = intake.UserError(errors.New("the sweep was cancelled; the same command takes it up again"))

// finish lets workers go where all is done, and withdraws what was cancelled.
func (s *Sweep) finish(all bool) error {
	if !all {
		if _, err := os.Stat(filepath.Join(s.o.Out, cancelName)); err != nil {
			return nil // what is in the queue waits
		}
	}
	if err := s.engine.Finish(); err != nil {
		s.o.Say("workers may not know that there is nothing left: " + err.Error())
	}
	return nil
}

// state returns where the sweep stands.
func (s *Sweep) state(first float64, began time.Time) State {
	status := s.engine.Status()
	n := float64(max(1, len(s.points)))
	out := State{Name: s.o.Plan.Name, Runs: len(s.points), Running: status.Running, Workers: status.Workers, Written: time.Now().UTC(), Active: true, First: first, SecondsLeft: -1,
		Join: s.o.Engine.URL, Bench: s.o.Engine.Bench}
	out.Done, out.Aside = s.resumed+status.Ended-status.Aside, s.aside+status.Aside
	out.Share = (float64(len(s.points)-status.Jobs) + status.Share*float64(status.Jobs)) / n
	if out.Share > first {
		out.SecondsLeft = time.Since(began).Seconds() / (out.Share - first) * (1 - out.Share)
	}
	return out
}

func (s *Sweep) write(state State) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", stateName, err)
	}
	return intake.PathError(runfolder.WriteFile(filepath.Join(s.o.Out, stateName), append(text, '\n')))
}

// setAside writes down why a run has no result.
func (s *Sweep) setAside(p *point, f *jobs.Failure) error {
	dir := s.asideDir(p)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		runfolder.WriteFile(filepath.Join(dir, logName), []byte(f.Log)),
		runfolder.WriteFile(filepath.Join(dir, whyName), []byte(f.Why+"\n")),
	)
}

// Close lets go of the engine.
func (s *Sweep) Close() error {
	err := s.engine.Close()
	if state, rerr := readState(s.o.Out); rerr == nil {
		state.Active, state.Running, state.Workers = false, 0, []jobs.WorkerStatus{}
		err = errors.Join(err, s.write(state))
	}
	return err
}

// Dirs returns the run's folder of each point; "" for one that has no result.
func (s *Sweep) Dirs() (dirs []string) {
	for _, p := range s.points {
		dir := ""
		if p.done {
			dir = p.dir
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// Failed is a run that was set aside.
type Failed struct {
	Title string `json:"title"`
	Why   string `json:"why"`
	Dir   string `json:"dir"` // with its log
}

// Failed returns those that were set aside.
func (s *Sweep) Failed() []Failed {
	list := []Failed{}
	for i := range s.points {
		if p := &s.points[i]; p.failed != "" {
			list = append(list, Failed{p.job.Title, p.failed, s.asideDir(p)})
		}
	}
	return list
}

// readState reads where the sweep of a folder stood.
func readState(out string) (State, error) {
	var state State
	path := filepath.Join(out, stateName)
	text, err := intake.ReadFile(path, 1<<24)
	if errors.Is(err, fs.ErrNotExist) {
		return state, intake.UserError(fmt.Errorf("%s holds no sweep: there is no %s; allowed is the folder of ringwave sweep, its --out", out, stateName))
	}
	if err != nil {
		return state, intake.PathError(err)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, intake.UserError(fmt.Errorf("%s: %w; allowed is what ringwave sweep has written", path, err))
	}
	return state, nil
}

// Look returns where the sweep of a folder stands, whether a process is at it or not.
func Look(out string) (State, error) {
	state, err := readState(out)
	if err != nil {
		return state, err
	}
	_, err = os.Stat(filepath.Join(out, cancelName))
	state.Cancelled = err == nil
	if state.Active = lockfile.Held(filepath.Join(out, queueName, engineLock)); !state.Active {
		state.Running, state.Workers = 0, []jobs.WorkerStatus{}
	}
	return state, nil
}

// Cancel has the sweep of a folder be withdrawn: by the process that is at it, within a
// second or so, or where there is none by taking its runs out of the queue.
func Cancel(ctx context.Context, out string, say func(string)) (State, error) {
	state, err := Look(out)
	if err != nil {
		return state, err
	}
	if err := runfolder.WriteFile(filepath.Join(out, cancelName), nil); err != nil {
		return state, intake.PathError(err)
	}
	state.Cancelled = true
	if state.Active {
		return state, nil
	}
	// To empty the queue it wants no worker.
	e, err := open(ctx, EngineOptions{Folder: filepath.Join(out, queueName), Bench: state.Bench, URL: state.Join, Workers: -1, Say: say})
	if err != nil {
		return state, err
	}
	return state, errors.Join(e.Finish(), e.Close())
}

// titleOf returns what people know a point by, as in "std=10, count=5, seed=3".
func titleOf(keys []string, p sweep.Point) string {
	var parts []string
	for i, key := range keys {
		parts = append(parts, key[strings.IndexByte(key, '.')+1:]+"="+p.Values[i])
	}
	return strings.Join(append(parts, fmt.Sprintf("seed=%d", p.Config.Experiment.Seed)), ", ")
}

// Unusable returns an *experiment.Unusable where runs were set aside or have no usable result;
// nil where all have one.
func (s *Sweep) Unusable() error {
	aside, unusable := 0, 0
	for _, p := range s.points {
		if p.failed != "" {
			aside++
			continue
		}
		summary, err := runfolder.ReadSummary(filepath.Join(p.dir, runfolder.SummaryName))
		if err != nil {
			return err
		}
		if summary.Unusable != "" {
			unusable++
		}
	}
	if aside+unusable == 0 {
		return nil
	}
	return &experiment.Unusable{Reason: fmt.Sprintf("of %d runs %d were set aside, and %d have ended without a usable one; the report names them", len(s.points), aside, unusable)}
}

// Text says in a few words what is going on.
func (s State) Text() string {
	slots := 0
	for _, w := range s.Workers {
		slots += w.Slots
	}
	text := fmt.Sprintf("%d at work", s.Running)
	if len(s.Workers) > 1 {
		text += fmt.Sprintf(" of %d workers", len(s.Workers))
	} else if slots == 0 {
		text = "no worker yet"
	}
	if s.Aside > 0 {
		text += fmt.Sprintf(", %d set aside", s.Aside)
	}
	return text
}

// WriteText writes the state for a terminal.
func (s State) WriteText(w io.Writer, now time.Time) error {
	what := "stopped"
	switch {
	case s.Done+s.Aside == s.Runs && !s.Active:
		what = "done"
	case s.Cancelled:
		what = "cancelled"
	case s.Active:
		what = "running"
	}
	if _, err := fmt.Fprintf(w, "%s: %s, %d of %d runs done, %d set aside, %d at work\n", s.Name, what, s.Done, s.Runs, s.Aside, s.Running); err != nil {
		return err
	}
	if s.Active && s.SecondsLeft >= 0 {
		left := time.Duration(s.SecondsLeft * float64(time.Second)).Round(time.Second)
		if _, err := fmt.Fprintf(w, "About %v left\n", left); err != nil {
			return err
		}
	}
	if len(s.Workers) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "worker\tat a time\tat work\tdone\theard, s ago\t")
	for _, k := range s.Workers {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.0f\t\n", k.Name, k.Slots, k.Jobs, k.Done, now.Sub(k.Heard).Seconds())
	}
	return t.Flush()
}
