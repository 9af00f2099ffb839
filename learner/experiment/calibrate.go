package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/sounder"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// The files of a calibration's folder, beside config.toml, plots and recordings.
const (
	SoundingsName = "soundings.csv"
	// SpectraName is the file of the spectra of phases and gains. They are not in
	// calibration.toml, whose readers refuse keys that they do not know.
	SpectraName = "spectra.csv"
)

// Calibration is one sitting at a calibration.
type Calibration struct {
	Config config.Config
	root   keystream.Seed
	folder *runfolder.Folder
	// resumed says that the folder is that of an earlier sitting.
	resumed bool
	table   *os.File
	blocks  []sounder.Block
	bench   *soundedBench
	// recording is what is measured in place of the bench; "" for none.
	recording string
	radios    setup.Radios
	// patience is how long radios may stand still; 0 for the usual.
	patience time.Duration
	air      radio.Sink          // is shown what the receiver reads; nil for nothing
	each     func(sounder.Block) // hears of blocks; nil for nobody
}

// CalibrationObserver hears of a calibration, from one goroutine. What is nil is left out.
type CalibrationObserver struct {
	// Opening hears of the calibration before its bench is open. What it returns is shown
	// what the receiver reads from then on, and must not hold that up; nil for nothing.
	Opening func() radio.Sink
	// Block hears of each block that is in the table, those of earlier sittings before.
	Block func(b sounder.Block)
	// Blocks hears how many are done, of so many: first once the bench stands, then with
	// each. Sounded hears that no more will come.
	Blocks  func(done, total int)
	Sounded func()
	// Advice hears of the simulations for it, which take the most time. NoAdvice leaves
	// them out.
	Advice   func(done, total int)
	NoAdvice bool
	// Result hears what the blocks tell, before the advice and again with it.
	Result func(r campaign.Result)
}

// CalibrationResult is what came of a sitting at a calibration.
type CalibrationResult struct {
	campaign.Result
	Dir    string
	Blocks int // that are done
	// GoesOn says, of one that failed, that a resumed one need not do its blocks again.
	GoesOn       bool
	Files, Plots []string
}

// NewCalibration checks what needs no bench, so that nothing is written where that is
// wrong. Recording, if it is not "", is the folder or the file of an earlier calibration's
// recording, which is measured in place of the bench.
func (l Lab) NewCalibration(c config.Config, recording string) (*Calibration, error) {
	k, err := newCalibration(l, c)
	if err != nil || recording == "" {
		return k, err
	}
	k.recording = recording
	_, err = soundingRecordings(recording)
	return k, err
}

// Run measures the blocks that are left, analyses all and writes the folder: dir, or ""
// for one under calibrations/ with the time and the experiment's name. A calibration that
// is resumed has its folder. It ends with ErrInterrupted where ctx did, and goes on then.
func (k *Calibration) Run(ctx context.Context, dir string, o CalibrationObserver) (out CalibrationResult, err error) {
	if k.folder == nil {
		if dir == "" {
			remove := runfolder.IfMade("calibrations")
			defer func() {
				if err != nil {
					remove()
				}
			}()
			if dir, err = runfolder.MakeDir("calibrations", k.Config.Experiment.Name, time.Now()); err != nil {
				return out, intake.PathError(err)
			}
		}
		if err := k.create(dir); err != nil {
			k.abandon()
			return out, err
		}
	}
	defer func() {
		out.Dir, out.Blocks = k.folder.Path(), len(k.blocks)
		if !k.resumed && len(k.blocks) == 0 && intake.IsUserError(err) {
			k.abandon()
			return
		}
		if closeErr := k.close(); err == nil {
			err = closeErr
		}
	}()
	k.begin(o)
	err = k.measure(ctx, func(done, total int) {
		if o.Blocks != nil {
			o.Blocks(done, total)
		}
	})
	if o.Sounded != nil {
		o.Sounded()
	}
	if err != nil {
		out.GoesOn, err = k.failed(ctx, err)
		return out, err
	}
	return out, k.conclude(ctx, &out, o)
}

// begin has the observer hear of what is there.
func (k *Calibration) begin(o CalibrationObserver) {
	if o.Opening != nil {
		k.air = o.Opening()
	}
	if k.each = o.Block; k.each == nil {
		return
	}
	for _, b := range k.blocks {
		k.each(b)
	}
}

// conclude makes and writes what the blocks tell.
func (k *Calibration) conclude(ctx context.Context, out *CalibrationResult, o CalibrationObserver) (err error) {
	if out.Result, err = k.analyse(time.Now()); err != nil {
		return err
	}
	if out.Files, err = k.writeSeries(&out.Result); err != nil {
		return err
	}
	tell := func() {
		if o.Result != nil {
			o.Result(out.Result)
		}
	}
	if tell(); !o.NoAdvice {
		if err := k.advise(ctx, &out.Result, o.Advice); err != nil {
			if ctx.Err() != nil {
				return ErrInterrupted
			}
			return err
		}
		tell()
	}
	if err := k.writeFile(&out.Result); err != nil {
		return err
	}
	if out.Plots, err = k.draw(&out.Result); err != nil {
		return fmt.Errorf("drawing the plots: %w", err)
	}
	return nil
}

// failed classes an error of the measurement, and reports whether something is kept that
// is not to be done again.
func (k *Calibration) failed(ctx context.Context, err error) (goesOn bool, _ error) {
	stalled := errors.Is(err, sounder.ErrStalled)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return true, ErrInterrupted
	case stalled:
		err = intake.UserError(fmt.Errorf("%w: raise radio.search_seconds, which is %v, and where no room was found the window of the URIs in radio.transmitters", err, k.Config.Radio.SearchSeconds))
	}
	return len(k.blocks) > 0 && (stalled || !intake.IsUserError(err)), err
}

// newCalibration checks what needs no bench, so that nothing is written where that is
// wrong.
func newCalibration(l Lab, c config.Config) (*Calibration, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	c = c.With(l.names())
	if err := c.Check(); err != nil {
		return nil, intake.UserError(err)
	}
	if c.System().Ideal {
		return nil, intake.UserError(fmt.Errorf("experiment.aggregator is %q, whose channel is ideal: there is nothing to calibrate", c.Experiment.Aggregator))
	}
	if _, err := setup.SoundingConfig(c); err != nil {
		return nil, err
	}
	if err := setup.CheckMemory(c, setup.NeededToCalibrate(c)); err != nil {
		return nil, err
	}
	k := &Calibration{Config: c, root: keystream.FromInteger(uint64(c.Experiment.Seed)), radios: l.Radios}
	return k, intake.UserError(spread(&k.Config, k.root))
}

// create makes the folder.
func (k *Calibration) create(dir string) (err error) {
	if k.folder, err = runfolder.Create(dir); err != nil {
		return intake.PathError(err)
	}
	encoded, err := k.Config.Encode()
	if err != nil {
		return err
	}
	if err := k.folder.WriteAtomic(runfolder.ConfigName, encoded); err != nil {
		return intake.PathError(err)
	}
	if err := k.writeManifest(); err != nil {
		return err
	}
	k.table, err = os.OpenFile(filepath.Join(dir, SoundingsName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return intake.PathError(err)
	}
	return sounder.WriteHeader(k.table)
}

// writeManifest keeps what the calibration is made by.
func (k *Calibration) writeManifest() (err error) {
	m := runfolder.NewManifest(time.Now())
	m.Seeds["experiment"] = uint64(k.Config.Experiment.Seed)
	if m.ConfigDigest, err = k.Config.Digest(); err != nil {
		return err
	}
	return intake.PathError(k.folder.WriteManifest(m))
}

// sameConfig refuses to go on with another configuration than the calibration began
// with: soundings of two benches would be one's.
func sameConfig(folder *runfolder.Folder, c config.Config) error {
	m, err := folder.ReadManifest()
	if err != nil {
		return intake.PathError(fmt.Errorf("this is no calibration's folder: %w", err))
	}
	digest, err := c.Digest()
	if err != nil {
		return err
	}
	if m.ConfigDigest != digest {
		return intake.UserError(fmt.Errorf("%s: it was changed since the calibration began (digest %.16s…, that of %s is %.16s…): restore it, or calibrate anew",
			filepath.Join(folder.Path(), runfolder.ConfigName), runfolder.Digest(digest), runfolder.ManifestName, m.ConfigDigest))
	}
	return nil
}

// ResumeCalibration opens an earlier calibration behind its last whole block.
func (l Lab) ResumeCalibration(dir string) (*Calibration, error) {
	folder, err := runfolder.Open(dir)
	if err != nil {
		return nil, intake.PathError(err)
	}
	k, err := calibrationIn(l, folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return k, nil
}

func calibrationIn(l Lab, folder *runfolder.Folder) (*Calibration, error) {
	c, err := l.Load(filepath.Join(folder.Path(), runfolder.ConfigName))
	if err != nil {
		return nil, err
	}
	k, err := newCalibration(l, c)
	if err != nil {
		return nil, err
	}
	k.folder, k.resumed = folder, true
	if err := sameConfig(folder, c); err != nil {
		return nil, err
	}
	path := filepath.Join(folder.Path(), SoundingsName)
	if k.table, err = os.OpenFile(path, os.O_RDWR, 0o644); err != nil {
		return nil, intake.PathError(fmt.Errorf("this is no calibration's folder: %w", err))
	}
	if err := k.readTable(path); err != nil {
		return nil, errors.Join(err, k.table.Close())
	}
	return k, nil
}

// readTable takes in the whole blocks of the table, and leaves it behind them.
func (k *Calibration) readTable(path string) error {
	c := k.Config
	blocks, length, err := sounder.ReadTable(k.table, c.Calibration.Blocks, c.Calibration.Looks, c.Devices.Count)
	if err != nil {
		return intake.UserError(fmt.Errorf("%s: %w", path, err))
	}
	k.blocks = blocks
	if err := k.table.Truncate(length); err != nil {
		return err
	}
	_, err = k.table.Seek(0, io.SeekEnd)
	return err
}

// measure makes the blocks that are left. progress hears how many are done, of so many:
// first once the bench stands, then with each block.
func (k *Calibration) measure(ctx context.Context, progress func(done, total int)) error {
	if len(k.blocks) == k.Config.Calibration.Blocks {
		return nil
	}
	if k.bench == nil {
		var err error
		if k.bench, err = k.openBench(ctx); err != nil {
			return err
		}
	}
	progress(len(k.blocks), k.Config.Calibration.Blocks)
	err := campaign.Sound(ctx, k.bench.cfg, k.table, func(b sounder.Block) {
		k.blocks = append(k.blocks, b)
		if k.each != nil {
			k.each(b)
		}
		progress(len(k.blocks), k.Config.Calibration.Blocks)
	})
	err = setup.LostGuard(k.bench.guarded, err)
	// Carriers go off before what is heard is looked at, which takes its time.
	if ended := errors.Join(k.bench.stop(), k.bench.close()); ended != nil && !errors.Is(err, radio.ErrGuard) {
		return ended
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	var unheard *sounder.NotHeardError
	if errors.As(err, &unheard) && !errors.Is(err, radio.ErrGuard) {
		return intake.UserError(setup.Unheard(unheard, k.Config.Calibration, k.bench.radios != nil))
	}
	return errors.Join(err, k.table.Sync())
}

// analyse makes statistics and the file of all blocks.
func (k *Calibration) analyse(now time.Time) (campaign.Result, error) {
	cfg, err := campaignConfig(k.Config, k.root)
	if err != nil {
		return campaign.Result{}, err
	}
	bench, err := k.benchNow()
	if err != nil {
		return campaign.Result{}, err
	}
	bench.Now = now
	return campaign.Analyse(cfg, k.blocks, bench)
}

// advise computes what the bench can carry. progress hears of done parts of so many.
func (k *Calibration) advise(ctx context.Context, r *campaign.Result, progress func(done, total int)) error {
	use, err := usedAs(k.Config, k.root)
	if err != nil {
		return err
	}
	use.Progress = progress
	return r.Advise(ctx, use)
}

// writeSeries writes the raw gains for NumPy and the spectra, and returns the names of
// the files.
func (k *Calibration) writeSeries(r *campaign.Result) (files []string, err error) {
	write := func(name string, data []byte, err error) error {
		if err != nil {
			return err
		}
		files = append(files, name)
		return intake.PathError(k.folder.WriteAtomic(name, data))
	}
	for i := range r.Series.Devices {
		data, err := r.Gains(i)
		if err := write(fmt.Sprintf("gains-%d.npy", i+1), data, err); err != nil {
			return files, err
		}
	}
	data, err := r.Spectra()
	return files, write(SpectraName, data, err)
}

// writeFile writes the calibration file.
func (k *Calibration) writeFile(r *campaign.Result) error {
	text, err := r.File.Encode()
	if err != nil {
		return err
	}
	return intake.PathError(k.folder.WriteAtomic(runfolder.CalibrationName, text))
}

// benchNow says what the bench is. One that was measured whole before is not opened for
// that.
func (k *Calibration) benchNow() (w calibration.Want, err error) {
	switch {
	case k.bench != nil:
		return k.bench.want, nil
	case k.Config.OverRadios():
		return w, intake.UserError(fmt.Errorf("%s: all blocks were made in an earlier sitting, whose session of radios is over: calibrate again", k.folder.Path()))
	}
	return setup.SimulatedBench(k.Config, k.root), nil
}

// abandon removes the folder of a calibration that could not begin: it was new or empty.
func (k *Calibration) abandon() {
	_ = k.close() // there is nothing to keep
	if k.folder != nil {
		_ = os.RemoveAll(k.folder.Path())
	}
}

// close lets go of everything.
func (k *Calibration) close() error {
	var errs []error
	if k.bench != nil {
		errs = append(errs, k.bench.close())
	}
	if k.table != nil {
		errs = append(errs, k.table.Close())
	}
	if k.folder != nil {
		errs = append(errs, k.folder.Close())
	}
	return errors.Join(errs...)
}
