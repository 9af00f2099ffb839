package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/external"
	"ringwave/learner/model"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// JournalName is the run folder's record of decryption shares.
const JournalName = "shares.journal"

// Experiment is one sitting at a run: what runs, and where it is written.
type Experiment struct {
	lab     Lab
	Config  config.Config
	digest  runfolder.Digest
	root    keystream.Seed
	Task    *Task
	Channel *channel.Channel
	known   *uplink.LinkStats // of the links; nil for all that their simulation knows
	Design  *xmkckks.Design   // nil without encryption

	folder  *runfolder.Folder
	extends *config.Config // of before this sitting, which has more rounds; nil elsewhere
	// formerEnds are the last rounds of the run before it was extended, which were
	// evaluated as such.
	formerEnds []int
	// shorter has what an extension changed of the folder, until it cannot fail any more.
	shorter  map[string][]byte
	metrics  *runfolder.Metrics
	log      *runfolder.Log
	journal  *xmkckks.Journal
	keyEpoch uint32 // the first of this sitting, of keys from the system
	// remembered stands around protocol where no round may be sent twice; nil elsewhere.
	remembered *remembered
	protocol   *protocol
	Trainer    trainer
	held       *heldOut // nil where no samples are
	fleet      *hosted  // in the place of protocol where devices are on other hosts; nil elsewhere
	// mismatched stands around protocol where gains do not match; nil elsewhere.
	mismatched *mismatched
	facts      []string // of a system with one key
	// patience is how long radios may stand still; 0 for setup.RadioPatience.
	patience time.Duration
	// carriersOff cuts off what radios still have to send; nil without radios.
	carriersOff context.CancelCauseFunc
	// guarded says why the radios' guard is lost, once it is; nil without radios.
	guarded func() error

	observer Observer
	stopping atomic.Bool // behind the round at hand

	before time.Duration // spent in earlier sittings
	began  time.Time
}

// newSessionIn checks and loads all that a run needs, and writes nothing. Dir is the run's
// folder, with the calibration that lies in it; "" for a run that has none yet.
func newSessionIn(lab Lab, dir string, cfg config.Config) (*Experiment, error) {
	if err := lab.check(); err != nil {
		return nil, err
	}
	cfg = cfg.With(lab.names())
	if err := cfg.Check(); err != nil {
		return nil, intake.UserError(err)
	}
	if _, err := learningOf(cfg); err != nil { // before a folder is made
		return nil, err
	}
	digest, err := cfg.Digest()
	if err != nil {
		return nil, err
	}
	s := &Experiment{lab: lab, Config: cfg, digest: digest, root: rootOf(cfg)}
	if err := s.fit(dir); err != nil {
		return nil, err
	}
	if lab.Fleet == nil {
		s.Task, err = lab.LoadTask(cfg, s.root, s.Design)
	} else if err = s.checkFleet(); err == nil {
		s.Task, err = lab.LoadTest(cfg)
	}
	if err != nil {
		return nil, err
	}
	if s.Task.Validation != nil {
		s.held = &heldOut{patience: cfg.Optimizer.EndAfterPlateau}
	}
	if err := s.checkTensors(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// fit makes the channel, what is known of its links, and the design for them.
func (s *Experiment) fit(dir string) (err error) {
	if s.Channel, err = setup.NewChannel(s.Config, s.root); err != nil {
		return err
	}
	if s.known, err = s.readLinkStats(dir); err != nil || !s.Config.System().Encrypts {
		return err
	}
	d, err := setup.NewDesign(s.Config, s.links())
	if err != nil {
		return err
	}
	if err := setup.CheckWaveform(s.Config, s.links(), d); err != nil {
		return intake.UserError(err)
	}
	s.Design = &d
	return nil
}

// checkTensors refuses a model whose tensors are not its theta, as it could not leave the
// folder after all rounds, and one whose checkpoints could not be read back.
func (s *Experiment) checkTensors() error {
	sum := 0
	for _, t := range model.Tensors(s.Task.Model) {
		sum += t.Size()
	}
	if d := s.Task.Model.Dim(); d > runfolder.MaxTheta {
		return intake.UserError(fmt.Errorf("task.model = %q has %d parameters with these samples; allowed is at most %d", s.Config.Task.Model, d, runfolder.MaxTheta))
	} else if sum != d {
		return fmt.Errorf("task.model = %q: its tensors have %d values and theta has %d; allowed is a model whose Tensors are all of theta", s.Config.Task.Model, sum, d)
	}
	return nil
}

// rootOf returns the root of a configuration's random streams.
func rootOf(c config.Config) keystream.Seed { return keystream.FromInteger(uint64(c.Experiment.Seed)) }

// links returns the channel whose moments the run goes by.
func (s *Experiment) links() *channel.Channel {
	if s.known != nil {
		return s.known.Channel
	}
	return s.Channel
}

// assemble makes aggregator and trainer, the next round being firstRound.
func (s *Experiment) assemble(guard xmkckks.Guard, baseEpoch uint32, firstRound int) (err error) {
	a, err := s.aggregator(guard, baseEpoch, firstRound)
	if err != nil {
		return err
	}
	s.Trainer, err = s.Task.trainer(s.Config, a, s.root)
	return err
}

// aggregator makes what experiment.aggregator names.
func (s *Experiment) aggregator(guard xmkckks.Guard, baseEpoch uint32, firstRound int) (a learner.Aggregator, err error) {
	if s.Config.System().Encrypts {
		return s.encrypted(guard, baseEpoch, firstRound)
	}
	system, err := s.lab.system(s.Config.Experiment.Aggregator)
	if err != nil {
		return nil, err
	}
	mu, _ := s.links().Moments()
	a, s.facts, err = system.New(Setting{Config: s.Config, Seed: s.root, Gains: gainsOf(s.Channel), Mu: mu, Dim: s.Task.Model.Dim()})
	if err != nil {
		return nil, intake.UserError(fmt.Errorf("experiment.aggregator = %q: %w", s.Config.Experiment.Aggregator, err))
	}
	return a, nil
}

// encrypted makes the aggregator of a system that encrypts with xMK-CKKS.
func (s *Experiment) encrypted(guard xmkckks.Guard, baseEpoch uint32, firstRound int) (learner.Aggregator, error) {
	secret, err := s.linkSecret()
	if err != nil {
		return nil, err
	}
	p, err := newProtocol(s.Config, s.root, secret, s.Channel, s.known, s.lab.Links, *s.Design, guard, baseEpoch, firstRound)
	if err != nil {
		return nil, err
	}
	s.protocol = p
	var system learner.Simulated = p
	if s.Config.System().Unchecked {
		s.mismatched = newMismatched(s.Config, p)
		system = s.mismatched
	}
	if s.remembered == nil {
		return system, nil
	}
	s.remembered.Aggregator = system
	return s.remembered, nil
}

// linkSecret returns the secret of patterns and check weights: that of the folder, or a
// new one for an experiment without.
func (s *Experiment) linkSecret() (keystream.Seed, error) {
	if s.folder == nil {
		return uplink.NewLinkSecret(s.Config, s.root)
	}
	return uplink.ReadLinkSecret(s.folder.Path(), s.Config, s.root)
}

// create begins a run in a new folder. Radios live by ctx: when it ends, their carriers
// go off.
func (s *Experiment) create(ctx context.Context, dir string) (err error) {
	if s.folder, err = runfolder.Create(dir); err != nil {
		return intake.PathError(err)
	}
	encoded, err := s.Config.Encode()
	if err != nil {
		return err
	}
	if err := s.folder.WriteAtomic(runfolder.ConfigName, encoded); err != nil {
		return intake.PathError(err)
	}
	if err := s.keepCalibration(); err != nil {
		return intake.PathError(err)
	}
	if s.Config.System().Encrypts && s.lab.Fleet == nil { // whose hosts have theirs of their enrolment
		secret, err := uplink.NewLinkSecret(s.Config, s.root)
		if err != nil {
			return err
		}
		if err := uplink.KeepLinkSecret(dir, s.Config, secret); err != nil {
			return intake.PathError(err)
		}
	}
	if err := s.folder.WriteManifest(s.manifest()); err != nil {
		return intake.PathError(err)
	}
	layout := runfolder.InMemory
	switch {
	case s.lab.Fleet != nil:
		layout = runfolder.OfHosts
	case s.Task.Validation != nil:
		layout = runfolder.Validated
	}
	if s.metrics, err = s.folder.CreateMetrics(layout); err != nil {
		return intake.PathError(err)
	}
	if err := s.open(ctx, nil); err != nil {
		return err
	}
	s.log.Info("started", "seed", s.Config.Experiment.Seed, "data_set", s.Task.Name, "fallback_used", s.Task.FallbackUsed)
	if why := s.Task.Unpublished(); why != "" {
		s.log.Warn("data", "reason", why)
	}
	// A run that is killed before its first checkpoint can be resumed, too.
	return s.checkpoint()
}

// open opens the log and the journal and assembles the rest. With a checkpoint
// the run goes on behind it.
func (s *Experiment) open(ctx context.Context, from *runfolder.Checkpoint) (err error) {
	var besides []slog.Handler
	if h := s.observer.Log; h != nil {
		besides = append(besides, h)
	}
	if s.log, err = s.folder.OpenLog(besides...); err != nil {
		return intake.PathError(err)
	}
	s.Task.record(s.folder.Path())
	epoch, firstRound := uint32(0), 1
	var guard xmkckks.Guard
	switch {
	case s.lab.Fleet != nil:
		err = s.openFleet(from)
	case s.Design != nil:
		if epoch, firstRound, err = s.openJournal(from); err != nil {
			return err
		}
		guard = s.journal
		fallthrough
	default:
		err = s.assemble(guard, epoch, firstRound)
	}
	if err != nil {
		return err
	}
	s.began = time.Now()
	// Before restore, whose checkpoint keeps what the gains have shown.
	if err := s.watchGains(from); err != nil {
		return intake.UserError(err)
	}
	if from != nil {
		if err := s.restore(ctx, from); err != nil {
			return err
		}
	}
	s.showLink()
	if s.protocol != nil {
		if err := s.connect(ctx); err != nil {
			return err
		}
		if w := s.protocol.waveform; w != nil {
			if err := w.Record(s.folder.Path()); err != nil {
				return intake.PathError(err)
			}
		}
		what := "attempt void"
		if s.Config.System().Unchecked {
			what = "a check would have declared the round void"
		}
		s.protocol.failed = func(k int, f round.Failure) {
			s.log.Warn(what, "round", k, "attempt", f.Attempt, "again", f.Again, "check", f.Check.String(), "transmission", f.Transmission.String(), "reason", f.Reason)
			s.tellVoid(k, f)
		}
	}
	return nil
}

// showLink has the observer be shown what the link receives.
func (s *Experiment) showLink() {
	if s.observer.Opening == nil {
		return
	}
	if v, w := s.observer.Opening(s), s.waveform(); w != nil && v != nil {
		w.Viewer = v
	}
}

// tellVoid tells of an attempt that was declared void.
func (s *Experiment) tellVoid(k int, f round.Failure) {
	if s.observer.Void != nil {
		s.observer.Void(k, f)
	}
}

// restore takes the trainer to where the run was.
func (s *Experiment) restore(ctx context.Context, from *runfolder.Checkpoint) error {
	err := s.Trainer.Restore(learner.State{
		Round: from.Round, Theta: from.Theta, Past: from.Past,
		Repeated: from.Repeated, Skipped: from.Skipped, Clipped: from.Clipped,
	})
	s.held.restore(from.Best, from.ConfigDigest != s.digest)
	if err != nil || s.remembered == nil {
		return intake.UserError(err)
	}
	return s.recall(ctx, from)
}

func (s *Experiment) manifest() runfolder.Manifest {
	m := runfolder.NewManifest(time.Now())
	m.ConfigDigest = s.digest
	m.Seeds["experiment"] = uint64(s.Config.Experiment.Seed)
	m.Data = s.dataFiles()
	if s.known != nil && s.known.File != nil {
		m.Calibration = runfolder.CalibrationName
	}
	if s.Design != nil {
		m.Modulus, m.Primes = s.Design.Params.Modulus().String(), s.Design.Params.Primes
	}
	return m
}

func (s *Experiment) dataFiles() []runfolder.DataFile {
	files := []runfolder.DataFile{}
	for _, f := range s.Task.Files {
		var sum runfolder.Digest
		if err := sum.UnmarshalText([]byte(f.SHA256)); err != nil {
			continue // dataset gives 64 hexadecimal digits
		}
		files = append(files, runfolder.DataFile{Name: filepath.Base(f.Path), Bytes: f.Bytes, SHA256: sum})
	}
	return files
}

// resumeSession opens an earlier run behind its last checkpoint, extended to so many rounds,
// if not 0.
func resumeSession(ctx context.Context, lab Lab, dir string, rounds int, o Observer) (*Experiment, error) {
	folder, err := runfolder.Open(dir)
	if err != nil {
		return nil, intake.PathError(err)
	}
	s, err := experimentIn(lab, folder, rounds)
	if err != nil {
		_ = folder.Close() // the first error counts
		return nil, err
	}
	s.observer = o
	if err := s.resume(ctx); err != nil {
		return nil, errors.Join(err, s.undoExtension(), s.Close())
	}
	return s, nil
}

// experimentIn makes the experiment of a run folder, with the folder in it. The run is extended
// to so many rounds, if not 0.
func experimentIn(lab Lab, folder *runfolder.Folder, rounds int) (*Experiment, error) {
	began, err := lab.Load(filepath.Join(folder.Path(), runfolder.ConfigName))
	if err != nil {
		return nil, err
	}
	if err := lab.sameHosts(folder.Path()); err != nil {
		return nil, err
	}
	cfg := began
	if rounds != 0 {
		if cfg, err = extended(lab, folder, began, rounds); err != nil {
			return nil, err
		}
	}
	s, err := newSessionIn(lab, folder.Path(), cfg)
	if err != nil {
		return nil, err
	}
	s.folder = folder
	if cfg.Optimizer.Rounds != began.Optimizer.Rounds {
		s.extends = &began
	}
	return s, nil
}

// resume goes to where the folder's checkpoint is.
func (s *Experiment) resume(ctx context.Context) error {
	folder := s.folder
	point, err := folder.LoadCheckpoint()
	if err != nil {
		return intake.PathError(err)
	}
	if err := s.sameRun(point); err != nil {
		return err
	}
	if err := s.sameData(); err != nil {
		return err
	}
	if s.extends != nil {
		if err := s.keepExtension(*s.extends); err != nil {
			return err
		}
	}
	if err := s.readFormerEnds(); err != nil {
		return err
	}
	open := folder.OpenMetricsAt
	if sendsOnce(s.Config) || s.lab.Fleet != nil {
		open = folder.OpenMetricsAfter
	}
	if s.metrics, err = open(point.MetricsOffset, point.MetricsDigest); err != nil {
		return intake.PathError(err)
	}
	s.before = time.Duration(point.Seconds * float64(time.Second))
	if err := s.open(ctx, &point); err != nil {
		return err
	}
	at := s.Trainer.State().Round
	s.log.Info("resumed", "after_round", at)
	if s.extends != nil {
		s.log.Info("extended", "from", s.extends.Optimizer.Rounds, "to", s.Config.Optimizer.Rounds)
	}
	if s.remembered != nil && s.remembered.until > at {
		s.log.Warn("rounds that may have been sent are skipped", "from", at+1, "to", s.remembered.until)
	}
	return nil
}

// sameData refuses to go on with other data than the run began with.
func (s *Experiment) sameData() error {
	m, err := s.folder.ReadManifest()
	if err != nil {
		return intake.PathError(err)
	}
	if s.Config.Task.Model == process && !slices.Equal(m.Data, s.dataFiles()) {
		return intake.UserError(fmt.Errorf("%s: the program that learns says other things of itself, or has another first theta, than when the run began: go on with that program, its samples and its seed", s.folder.Path()))
	}
	if !slices.Equal(m.Data, s.dataFiles()) {
		return intake.UserError(fmt.Errorf("%s: the data found now are not those that the run began with (%d files then, %d now, or other checksums): point --data or RINGWAVE_DATA at them",
			s.folder.Path(), len(m.Data), len(s.Task.Files)))
	}
	return nil
}

// checkpoint saves the state after the last round.
func (s *Experiment) checkpoint() error {
	if err := s.metrics.Sync(); err != nil {
		return err
	}
	// Lines of metrics.csv without their decryption shares are refused by a resume.
	if s.journal != nil {
		if err := s.journal.Sync(); err != nil {
			return err
		}
	}
	if s.fleet != nil {
		if err := s.fleet.fleet.Sync(); err != nil {
			return err
		}
	}
	state := s.Trainer.State()
	return s.folder.SaveCheckpoint(runfolder.Checkpoint{
		ConfigDigest: s.digest, Round: state.Round,
		Repeated: state.Repeated, Skipped: state.Skipped, Clipped: state.Clipped,
		MetricsOffset: s.metrics.Offset(), MetricsDigest: s.metrics.Digest(), Seconds: s.seconds(), KeyEpoch: s.keyEpoch, Theta: state.Theta, Past: state.Past, Gains: s.gainState(), Best: s.held.state(),
	})
}

func (s *Experiment) seconds() float64 { return (s.before + time.Since(s.began)).Seconds() }

// Step runs the next round. In memory a round that has begun is finished, so that no
// decryption share was given for nothing; over radios ctx breaks it off.
func (s *Experiment) Step(ctx context.Context) (learner.Record, error) {
	if err := ctx.Err(); err != nil {
		return learner.Record{}, err
	}
	if s.Trainer == nil {
		return learner.Record{}, errors.New("a step of a run that has not begun: StartInMemory comes first")
	}
	if s.fleet != nil {
		if err := s.fleet.await(ctx, s.Trainer.State().Round+1, s.remembered.until); err != nil {
			return learner.Record{}, err
		}
	}
	if !s.Config.OverRadios() {
		ctx = context.WithoutCancel(ctx)
	}
	return s.Trainer.Step(ctx)
}

// train runs the rounds that are left, and tells report of each. On a cancelled context
// it stops between two rounds and returns ErrInterrupted; either way the last round is
// saved.
func (s *Experiment) train(ctx context.Context, report func(r learner.Record)) (err error) {
	defer func() {
		if err != nil {
			s.endRadios(err)
		}
	}()
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, s.Task.interrupt)()
	var lost losses
	for !s.Trainer.Done() && !s.held.plateau() {
		if s.stopping.Load() {
			return s.stopped(ctx, errStopAsked)
		}
		record, err := s.Step(ctx)
		if err != nil {
			return s.stopped(ctx, err)
		}
		s.held.after(record, func() []float64 { return s.Trainer.State().Theta })
		line := s.line(record)
		if err := s.addLine(line); err != nil {
			return err
		}
		if s.fleet != nil {
			if err := s.fleet.keep(); err != nil {
				return err
			}
		}
		report(record)
		if s.observer.Row != nil {
			s.observer.Row(line)
		}
		if lost.after(record, s.Config.Optimizer.EndAfterLost) && !s.Trainer.Done() {
			return s.lost(lost)
		}
		if record.Round%s.Config.Optimizer.CheckpointEvery == 0 || s.Trainer.Done() || s.held.plateau() {
			if err := s.checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// errStopAsked is why a run ends that StopAfterRound was called of.
var errStopAsked = errors.New("a stop was asked for")

// StopAfterRound has Run end behind the round at hand, with ErrInterrupted, as between two
// rounds of a run in memory whose context has ended: over radios, too, where the end of the
// context breaks a round off. It may be called from any goroutine.
func (s *Experiment) StopAfterRound() { s.stopping.Store(true) }

// stopped returns the error with which training ends where a round had err, and saves what
// a resumed run needs.
func (s *Experiment) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && s.Config.OverRadios() {
		// Carriers go off at once, and the round at hand with them.
		s.log.Info("the round was broken off", "error", err)
		err = ctx.Err()
	}
	if err == errStopAsked || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		s.log.Info("interrupted", "after_round", s.Trainer.State().Round)
		if err := s.checkpoint(); err != nil {
			return err
		}
		return ErrInterrupted
	}
	if errors.Is(err, external.ErrBrokenOff) {
		return ErrInterrupted // that round is not one to save
	}
	if errors.Is(err, learner.ErrDiverged) {
		if err := s.metrics.Sync(); err != nil {
			return err
		}
		if s.held != nil && !sendsOnce(s.Config) {
			if err := s.checkpoint(); err != nil { // with the model that is kept
				return err
			}
		}
		return &Unusable{fmt.Sprintf("%v%s", err, s.smallerSteps())}
	}
	if model.Err(s.Task.Model) != nil {
		return intake.UserError(err) // whose program it is
	}
	err = setup.LostGuard(s.guarded, err)
	if errors.Is(err, phy.ErrStalled) && !errors.Is(err, radio.ErrGuard) {
		return s.stoodStill(err)
	}
	return err
}

// line returns a round's line of metrics.csv. The log hears of what overflowed or was
// clipped in it.
func (s *Experiment) line(record learner.Record) runfolder.Row {
	if record.Overflowed > 0 {
		s.log.Warn("losses overflowed", "round", record.Round, "devices", record.Overflowed)
	}
	line := row(record)
	if s.fleet != nil {
		line.Present = s.fleet.present
	}
	if w := s.waveform(); w != nil && record.Attempts > 0 {
		line.Link = w.Row()
		if n := w.ClippedSamples(); n > 0 {
			s.log.Warn("the receiver clipped", "round", record.Round, "samples", n)
		}
	}
	return line
}

// addLine writes a line of metrics.csv. Where a resumed run takes its rounds from
// there, the next is not sent before it is on the disk.
func (s *Experiment) addLine(line runfolder.Row) error {
	if err := s.metrics.Add(line); err != nil || s.remembered == nil || !s.remembered.sync {
		return err
	}
	return s.metrics.Sync()
}

// row is a record as a line of metrics.csv.
func row(r learner.Record) runfolder.Row {
	out := runfolder.Row{
		Round: r.Round, TrainLoss: r.TrainLoss, TestAccuracy: math.NaN(),
		M: r.M, MIdeal: r.MIdeal, Eps: r.Eps, EpsStdPredicted: r.EpsStdPredicted,
		Attempts: r.Attempts, Skipped: r.Skipped, Clipped: r.Clipped, Eta: r.Eta, Gamma: r.Gamma,
	}
	if r.Evaluated {
		out.TestAccuracy = r.TestAccuracy
	}
	if r.Validated {
		out.Validation = &runfolder.ValidationRow{Loss: r.ValidationLoss, Accuracy: r.ValidationAccuracy}
	}
	if r.Skipped {
		out.M, out.MIdeal, out.Eps, out.EpsStdPredicted = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	return out
}

// finish evaluates the model, draws the plots and writes the summary. spoilt says why
// training has ended early without a usable result; "" where it came to its end.
func (s *Experiment) finish(spoilt string) (runfolder.Summary, []string, error) {
	result := s.result()
	if err := model.Err(s.Task.Model); err != nil {
		return runfolder.Summary{}, nil, err
	}
	summary := s.summary(result)
	rows, err := runfolder.ReadMetrics(filepath.Join(s.folder.Path(), runfolder.MetricsName), s.Config.Optimizer.Rounds)
	if err != nil {
		return summary, nil, err
	}
	bound := s.hopeless()
	for _, r := range rows {
		bound.learn(r.TrainLoss)
	}
	summary.Unusable = cmp.Or(spoilt, unusableReason(s.Trainer.State(), result, bound, s.whyLost))
	if n := overflowedRows(rows); n > 0 {
		summary.Notes = append(summary.Notes, fmt.Sprintf("the training loss of %d rounds overflowed: it is reported as the largest number there is, and the model was left as it was", n))
	}
	if text := s.Task.restarted(); text != "" {
		summary.Notes = append(summary.Notes, text)
	}
	s.summariseGains(&summary, rows)
	plots, err := s.plot(rows)
	if err != nil {
		return summary, nil, err
	}
	if more, err := s.plotConfusion(); err != nil {
		return summary, plots, err
	} else {
		plots = append(plots, more...)
	}
	summary.Seconds = s.seconds()
	if summary.Unusable != "" {
		s.log.Warn("no usable result", "reason", summary.Unusable)
	}
	s.log.Info("finished", "test_accuracy", result.TestAccuracy, "train_loss", runfolder.Float(result.TrainLoss))
	if err := s.writeModel(); err != nil {
		return summary, plots, err
	}
	return summary, plots, s.folder.WriteSummary(summary)
}

// plot draws what the run's folder shows of its rounds, and returns the files.
func (s *Experiment) plot(rows []runfolder.Row) ([]string, error) {
	if s.lab.NoPlots {
		return nil, nil
	}
	plots, err := chart.RunPlots(s.folder.Path(), s.Config.Heading(), rows)
	if err != nil {
		return nil, fmt.Errorf("drawing the plots: %w", err)
	}
	w := s.waveform()
	if w == nil {
		return plots, nil
	}
	more, err := w.Plot(s.folder.Path(), s.Config.Heading(), rows)
	if err != nil {
		return nil, fmt.Errorf("drawing the link's plots: %w", err)
	}
	return append(plots, more...), nil
}

// waveform returns the receiving half of a run over a waveform link; nil elsewhere, and before
// there is one.
func (s *Experiment) waveform() *uplink.Receiving {
	switch {
	case s.fleet != nil:
		return s.fleet.waveform
	case s.protocol == nil || s.protocol.waveform == nil:
		return nil
	}
	return &s.protocol.waveform.Receiving
}

func (s *Experiment) summary(result learner.Result) runfolder.Summary {
	state, c := s.Trainer.State(), s.Config
	out := runfolder.Summary{
		Dataset: s.Task.Name, FallbackUsed: s.Task.FallbackUsed, DataUnpublished: s.Task.Unpublished() != "", Model: c.Task.Model,
		Aggregator: c.Experiment.Aggregator, Randomness: "none", Seed: uint64(c.Experiment.Seed),
		Devices: c.Devices.Count, Rounds: c.Optimizer.Rounds, RoundsCompleted: state.Round,
		RoundsRepeated: state.Repeated, RoundsSkipped: state.Skipped, MessagesClipped: state.Clipped,
		TrainLoss: runfolder.Float(result.TrainLoss), TestAccuracy: runfolder.Float(result.TestAccuracy),
		Seconds: s.seconds(), FloodingBits: runfolder.Float(math.NaN()),
	}
	if d := s.Design; d != nil {
		out.ParameterSet, out.Form = d.Params.Name, d.Form.String()
		out.Randomness = c.Encryption.Randomness
		out.UplinkBitsPerRound = int64(d.UplinkBits())
		out.FloodingBits = runfolder.Float(d.FloodingBits)
		if s.fleet == nil { // else they are each device's own
			out.UplinkOverheadBitsPerRound = int64(s.protocol.link.OverheadBits())
			out.KeyEpochs = int(s.journal.NextEpoch())
			out.SharesAnswered = s.journal.Answered(0)
		}
	}
	if c.System().SharesKey {
		out.Randomness = c.Encryption.Randomness
	}
	if b := s.held.state(); b != nil {
		out.BestRound, out.ValidationLoss, out.ValidationAccuracy = b.Round, runfolder.Float(b.Loss), runfolder.Float(b.Accuracy)
	}
	out.Notes = append(s.notes(), s.heldOutNotes()...)
	if note := s.lostNote(state); note != "" {
		out.Notes = append(out.Notes, note)
	}
	return out
}

// notes are the sentences that every output carries.
func (s *Experiment) notes() []string {
	notes := append([]string{s.RandomnessNote()}, s.radioNotes()...)
	if stats := s.known; stats != nil {
		notes = append(notes, stats.Notes()...)
	}
	if note := s.FallbackNote(); note != "" {
		notes = append(notes, note)
	}
	if why := s.Task.Unpublished(); why != "" {
		notes = append(notes, "WARNING: "+why)
	}
	if why := setup.EchoesApart(s.Config); why != "" && !s.known.TakesOffEchoes() {
		notes = append(notes, "WARNING: "+why)
	}
	if why := s.phasesApart(); why != "" {
		notes = append(notes, "WARNING: "+why)
	}
	if s.Design != nil {
		notes = append(notes, s.Design.Params.Note)
	}
	notes = append(append(append(notes, s.facts...), s.systemNotes()...), methodNotes(s.Config)...)
	if s.Trainer != nil && s.Trainer.State().Clipped > 0 {
		notes = append(notes, fmt.Sprintf("%d messages exceeded encryption.delta_max = %v and were clipped: eps of these rounds is the clipping's", s.Trainer.State().Clipped, s.Config.Encryption.DeltaMax))
	}
	if s.Channel.Continuous() && s.Design != nil && s.Config.Link.Kind != setup.KindWaveform {
		notes = append(notes, "continuous gains: the ring identities fail, and every round is expected to be rejected")
	}
	return notes
}

// phasesApart is setup.PhasesApart of this run's attempts.
func (s *Experiment) phasesApart() string {
	if s.Design == nil || s.waveform() == nil {
		return ""
	}
	samples, err := s.waveform().AttemptSamples()
	if err != nil { // who makes the link says so
		return ""
	}
	return setup.PhasesApart(s.Config, samples)
}

// FallbackNote says that another data set is used than was asked for; "" where it is that.
func (s *Experiment) FallbackNote() string {
	if !s.Task.FallbackUsed {
		return ""
	}
	return fmt.Sprintf("the data set %s was not found: the fallback %s was used instead", s.Config.Task.Dataset, s.Task.Name)
}

// abandon removes the folder of a run that could not begin: it was new or empty.
func (s *Experiment) abandon() {
	dir := ""
	if s.folder != nil {
		dir = s.folder.Path()
	}
	_ = s.Close() // there is nothing to keep
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
}

// Close lets go of all that the experiment holds.
func (s *Experiment) Close() error {
	s.endRadios(uplink.ErrClosed)
	var errs []error
	if s.fleet != nil {
		errs = append(errs, s.closeFleet())
	}
	if s.Task != nil {
		errs = append(errs, s.Task.Close())
	}
	if s.protocol != nil {
		errs = append(errs, s.protocol.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	if s.metrics != nil {
		errs = append(errs, s.metrics.Close())
	}
	if s.remembered != nil && s.remembered.messages != nil {
		errs = append(errs, s.remembered.messages.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Close())
	}
	// A second Close does nothing; that of the protocol is one, too.
	s.journal, s.metrics, s.remembered, s.log, s.folder = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
