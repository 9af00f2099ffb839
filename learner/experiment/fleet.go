package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/radio/intake"
)

// Fleet is the devices of a run that are on other hosts, as a server has them.
type Fleet interface {
	// Open begins the run, or a sitting at it, and returns the devices and the receiving
	// half of their uplink.
	Open(f FleetRun) ([]round.Participant, phy.Receiver, error)
	// Await waits until so many devices are there. Its error ends the sitting.
	Await(ctx context.Context, n int) error
	// Keep keeps what came of a round for devices to follow: M_k of each direction, nil
	// where the round was skipped, and the digest of theta before it. A round that is kept
	// already is the same.
	Keep(k int, m []float64, before [32]byte) error
	// Sync brings what is kept to disk.
	Sync() error
	// End tells all that the run is over, with the digest of theta, and returns what a user
	// should know of it.
	End(ctx context.Context, digest [32]byte) (notes []string, err error)
	Close() error
}

// FleetRun is what a Fleet must know of a run.
type FleetRun struct {
	*Common
	Dir string // the run's folder
	// Calibration is the file that the run goes by; nil for none.
	Calibration []byte
	// Dataset names the data set in use: the configuration's, or its fallback.
	Dataset string
	// Rounds is how many have lines in metrics.csv.
	Rounds int
	// State returns the model: the round that it is after, and a copy of theta. It may be
	// called where Keep is.
	State func() (round int, theta []float64)
}

// Common is what all hosts of a run compute alike from its configuration.
type Common struct {
	Config  Config
	Seed    keystream.Seed // the root of every random stream
	Channel *channel.Channel
	Design  xmkckks.Design
	Context *xmkckks.Context
	known   *uplink.LinkStats
}

// Waveform describes a waveform link to its hosts, whose secret of patterns and check weights
// is given.
func (c *Common) Waveform(secret keystream.Seed) uplink.Hosted {
	return uplink.Hosted{Config: c.Config, Seed: c.Seed, Secret: secret, Channel: c.Channel, Stats: c.known, Context: c.Context}
}

// Common returns what all hosts of a run compute alike. Dir is where the run's calibration
// lies, if it has one.
func (l Lab) Common(c Config, dir string) (*Common, error) {
	c = c.With(l.names())
	if err := c.Check(); err != nil {
		return nil, intake.UserError(err)
	}
	s := &Experiment{lab: l, Config: c, root: rootOf(c)}
	if err := s.checkFleet(); err != nil {
		return nil, err
	}
	if err := s.fit(dir); err != nil {
		return nil, err
	}
	return s.common()
}

func (s *Experiment) common() (*Common, error) {
	d := *s.Design
	ctx, err := xmkckks.NewContext(d.Params, d.Form, d.Link.Messages, d.Witnesses, s.root.Derive("public"))
	return &Common{s.Config, s.root, s.Channel, d, ctx, s.known}, err
}

// SeedLinkSecret returns the secret of patterns and check weights where all secrets come
// from the seed.
func (c *Common) SeedLinkSecret() keystream.Seed { return uplink.SeedLinkSecret(c.Seed) }

// RingNoise returns the seed of the ring link's noise.
func (c *Common) RingNoise() keystream.Seed { return c.Seed.Derive("ring noise") }

// hosted is the aggregator of devices on other hosts.
type hosted struct {
	fleet   Fleet
	engine  *round.Engine
	minimum int
	digest  func() [32]byte // of the server's theta
	failed  func(k int, f round.Failure)
	// waveform is the receiver where it is that of a waveform link; nil elsewhere.
	waveform *uplink.Receiving
	h        []float64 // of the devices

	// Of the last round, for its record.
	k       int
	m       []float64
	before  [32]byte
	present int
	sending bool // a round that metrics.csv does not have yet
}

// checkFleet says which runs cannot have their devices on other hosts.
func (s *Experiment) checkFleet() error {
	c := s.Config
	switch {
	case !c.System().Encrypts || c.System().Unchecked || c.System().Gradients:
		return intake.UserError(fmt.Errorf("experiment.aggregator = %q: must be a system of this program that encrypts and checks, for devices on other hosts", c.Experiment.Aggregator))
	case !c.OverWaveform() && c.Link.Kind != setup.KindRing:
		return intake.UserError(fmt.Errorf("link.kind = %q: must be %q or %q for devices on other hosts", c.Link.Kind, setup.KindRing, setup.KindWaveform))
	case c.OverWaveform() && c.Link.RealTime:
		return intake.UserError(errors.New("link.real_time = true: must be false for devices on other hosts, which take the time they take"))
	case c.OverRadios():
		if err := CheckHosts(c); err != nil {
			return err
		}
	}
	_, err := remoteLearning(c)
	return err
}

// CheckHosts says which radios of a configuration are not those of devices on other hosts.
func CheckHosts(c Config) error {
	for i, uri := range c.Radio.Transmitters {
		if want := fmt.Sprintf("%s:%d", setup.HostScheme, i+1); uri != want {
			return intake.UserError(fmt.Errorf("radio.transmitters has %q in the place of device %d: must be %q for devices on other hosts, each of which names its own (ringwave device --radio)", uri, i+1, want))
		}
	}
	if m := c.Devices.Minimum; m != 0 && m != c.Devices.Count {
		return intake.UserError(fmt.Errorf("devices.minimum = %d: must be 0, for all, where devices on other hosts have radios of their own, whose streams begin together", m))
	}
	return nil
}

// openFleet makes the aggregator of devices on other hosts and the trainer around it, behind
// a checkpoint or in a new folder. No round is sent twice: of one that was broken off,
// devices may have answered.
func (s *Experiment) openFleet(from *runfolder.Checkpoint) error {
	s.fleet = &hosted{fleet: s.lab.Fleet, minimum: s.Config.Devices.Minimum, digest: s.digestOfTheta}
	var rows []runfolder.Row
	var err error
	if from != nil {
		if rows, err = runfolder.ReadMetrics(filepath.Join(s.folder.Path(), runfolder.MetricsName), s.Config.Optimizer.Rounds); err != nil {
			return intake.PathError(err)
		}
	}
	if err := s.remember(from, rows); err != nil {
		return err
	}
	s.remembered.Aggregator = s.fleet
	if from != nil {
		broken, err := s.unsettled()
		if err != nil {
			return err
		}
		if broken {
			s.remembered.until = min(s.remembered.until+1, s.Config.Optimizer.Rounds)
		}
	}
	if err := s.settle(false); err != nil {
		return err
	}
	if err := s.openEngine(len(rows)); err != nil {
		return err
	}
	s.Trainer, err = s.Task.Remote(s.Config, s.fleet.recording(s.remembered))
	return err
}

// openEngine opens the fleet, and the engine over its devices.
func (s *Experiment) openEngine(rounds int) error {
	common, err := s.common()
	if err != nil {
		return err
	}
	ctx, design := common.Context, common.Design
	run := FleetRun{Common: common, Dir: s.folder.Path(), Dataset: s.Task.Name, Rounds: rounds, State: func() (int, []float64) {
		state := s.Trainer.State()
		return state.Round, state.Theta
	}}
	if s.known != nil && s.known.File != nil {
		run.Calibration = s.known.File.Text()
	}
	devices, receiver, err := s.lab.Fleet.Open(run)
	if err != nil {
		return err
	}
	f := s.fleet
	if f.minimum == 0 {
		f.minimum = len(devices)
	}
	f.waveform, _ = receiver.(*uplink.Receiving)
	engine := round.Config{
		Context: ctx, Participants: devices, Server: ctx.NewServer(design), Receiver: receiver,
		Minimum: f.minimum, Attempts: s.Config.Encryption.AttemptsPerRound, Workers: len(devices),
	}
	if w := f.waveform; w != nil {
		engine.Admit, f.h = w.Watch.Admit, make([]float64, len(devices))
		if err := w.Record(s.folder.Path()); err != nil {
			return intake.PathError(err)
		}
	}
	f.failed = func(k int, x round.Failure) {
		s.log.Warn("attempt void", "round", k, "attempt", x.Attempt, "again", x.Again, "check", x.Check.String(), "transmission", x.Transmission.String(), "reason", x.Reason)
		s.tellVoid(k, x)
	}
	f.engine, err = round.New(engine)
	return err
}

// digestOfTheta returns the digest of the model as it is.
func (s *Experiment) digestOfTheta() [32]byte { return s.Trainer.(*learner.Trainer).Digest() }

// Aggregate carries round k: learner.Aggregator.
func (a *hosted) Aggregate(ctx context.Context, k int, _ [][]float64) (aggregate.Outcome, error) {
	out, err := a.engine.Run(ctx, uint32(k), nil)
	if err != nil {
		return aggregate.Outcome{}, err
	}
	for _, f := range out.Failures {
		a.failed(k, f)
	}
	a.present = out.Present
	if w := a.waveform; w != nil {
		if err := w.EndRound(k, out.Failures); err != nil {
			return aggregate.Outcome{}, err
		}
		if !out.Skipped {
			w.Read(a.h, k)
		}
	}
	return aggregate.Outcome{M: out.M, Attempts: out.Attempts, Skipped: out.Skipped}, nil
}

// recording is an aggregator that notes what came of each round for its record.
type recording struct {
	*hosted
	through learner.Aggregator
}

func (a *hosted) recording(through learner.Aggregator) learner.Aggregator {
	return &recording{a, through}
}

// Aggregate carries round k: learner.Aggregator.
func (r *recording) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	before := r.digest()
	r.present, r.sending = 0, true
	out, err := r.through.Aggregate(ctx, k, delta)
	if err != nil {
		return out, err
	}
	r.k, r.before, r.m = k, before, nil
	if !out.Skipped {
		r.m = append(r.m, out.M...)
	}
	return out, nil
}

// keep keeps the record of the last round, which metrics.csv has.
func (a *hosted) keep() error {
	if a.k == 0 {
		return nil
	}
	if err := a.fleet.Keep(a.k, a.m, a.before); err != nil {
		return fmt.Errorf("keeping the record of round %d: %w", a.k, err)
	}
	a.sending = false
	return nil
}

// await waits for the devices of a round, unless it is not sent.
func (a *hosted) await(ctx context.Context, k, until int) error {
	if k <= until {
		return nil
	}
	return a.fleet.Await(ctx, a.minimum)
}

// endFleet tells the devices that the run is over.
func (s *Experiment) endFleet(ctx context.Context) error {
	if s.fleet == nil {
		return nil
	}
	notes, err := s.fleet.fleet.End(ctx, s.digestOfTheta())
	s.facts = append(s.facts, notes...)
	for _, note := range notes {
		s.log.Info(note)
	}
	return err
}

// closeFleet lets go of the devices.
func (s *Experiment) closeFleet() error {
	f := s.fleet
	s.fleet = nil
	if f.engine == nil {
		return nil
	}
	f.engine.Close()
	if f.waveform != nil {
		_ = f.waveform.Close() // drops what is recorded of a round
	}
	return errors.Join(f.fleet.Close(), s.settle(!f.sending))
}

// sittingName is the file that says whether the last sitting at a run of other hosts has
// ended between two rounds.
const sittingName = "sitting.json"

// sittingEnd is what the file has.
type sittingEnd struct {
	Settled bool `json:"settled"`
}

// sameHosts refuses to go on in one process with a run whose devices are on other hosts, and
// the other way round: their keys and journals are elsewhere.
func (l Lab) sameHosts(dir string) error {
	_, err := os.Stat(filepath.Join(dir, sittingName))
	switch elsewhere := err == nil; {
	case elsewhere && l.Fleet == nil:
		return intake.UserError(fmt.Errorf("%s is a run whose devices are on other hosts: go on with ringwave serve --resume %s", dir, dir))
	case !elsewhere && l.Fleet != nil:
		return intake.UserError(fmt.Errorf("%s is a run whose devices are in one process: go on with ringwave run --resume %s", dir, dir))
	}
	return nil
}

// settle notes that a sitting begins, or has ended between two rounds.
func (s *Experiment) settle(ended bool) error {
	if s.folder == nil {
		return nil
	}
	b, err := json.Marshal(sittingEnd{ended})
	if err != nil {
		return err
	}
	return intake.PathError(s.folder.WriteAtomic(sittingName, append(b, '\n')))
}

// unsettled reports whether the last sitting was broken off: a round may have been sent then
// that metrics.csv does not have.
func (s *Experiment) unsettled() (bool, error) {
	path := filepath.Join(s.folder.Path(), sittingName)
	b, err := intake.ReadFile(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, intake.PathError(fmt.Errorf("reading %s: %w", path, err))
	}
	var last sittingEnd
	if err := json.Unmarshal(b, &last); err != nil {
		return false, intake.UserError(fmt.Errorf("%s is no record of a sitting: %w", path, err))
	}
	return !last.Settled, nil
}
