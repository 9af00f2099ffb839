package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ringwave/calibration/sounder"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// The files of a calibration's folder, beside config.toml, plots and recordings.
const (
	calibrationName = "calibration.toml"
	soundingsName   = "soundings.csv"
)

// calibrateFlags are those of calibrate.
type calibrateFlags struct {
	configFlags
	out, resume, recording string
	noAdvice               bool
}

func newCalibrateCommand() *cobra.Command {
	var flags calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate CONFIG",
		Short: "Measure mean and second moment of every link, and what the bench can carry",
		Long: `Let each device in turn send soundings, as [calibration] says, and measure its link:
mu_i and Omega_i of the real effective gain with 95 % intervals, sigma_i, K-factor,
SNR, phase, delay, carrier offset, DC and IQ mismatch; test what the paper assumes of
the channel; and say which regime, group size and digits the bench can carry.

The folder gets calibration.toml, which run takes as calibration.file, soundings.csv
with a line a burst, gains-<device>.npy (complex128, in order of blocks and looks;
numpy.load reads it), spectra.csv with phase noise L(f) and the gain's density, plots,
and with link.record a recording.

The bench is the one of the config: radios where [radio] names some, else the
simulated one. --recording measures a recording of an earlier calibration instead:
its folder, or one of its files.

Ctrl-C stops after a block; calibrate --resume DIR goes on. Exit status: 0 also where
an assumption is violated, which the output names; 2 if a device is not heard.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.resume != "" {
				return exactly(0, "no CONFIG beside --resume")(cmd, args)
			}
			return exactly(1, "one CONFIG file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := flags.begin(cmd, args)
			if err != nil {
				return err
			}
			return runCalibration(cmd, k, &flags)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.out, "out", "", "the calibration's folder, new or empty (default calibrations/<utc>-<name>)")
	cmd.Flags().StringVar(&flags.resume, "resume", "", "go on with the calibration in this folder")
	cmd.Flags().StringVar(&flags.recording, "recording", "", "measure a recorded calibration: its folder, or one .sigmf-meta file")
	cmd.Flags().BoolVar(&flags.noAdvice, "no-advice", false, "do not compute what the bench can carry, which takes the most time")
	return cmd
}

// calibrator is one sitting at a calibration.
type calibrator struct {
	cfg     config.Config
	root    keystream.Seed
	folder  *runfolder.Folder
	table   *os.File
	blocks  []sounder.Block
	bench   *soundedBench
	devices registryOf // nil stands for those of this machine
	// patience is how long radios may stand still; 0 for the usual.
	patience time.Duration
}

// begin makes or opens the folder.
func (f *calibrateFlags) begin(cmd *cobra.Command, args []string) (*calibrator, error) {
	if f.resume != "" {
		for _, name := range []string{"set", "seed", "out", "recording"} {
			if cmd.Flags().Changed(name) {
				return nil, intake.UserError(fmt.Errorf("--%s cannot go with --resume: a calibration goes on as it began", name))
			}
		}
		return resumeCalibration(f.resume)
	}
	c, err := f.load(cmd, args[0])
	if err != nil {
		return nil, err
	}
	k, err := newCalibrator(c)
	if err != nil {
		return nil, err
	}
	if f.recording != "" {
		if k.bench, err = recordedBench(c, k.root, f.recording); err != nil {
			return nil, err
		}
	}
	if f.out == "" {
		f.out = runfolder.DefaultDir("calibrations", c.Experiment.Name, time.Now())
	}
	if err := k.create(f.out); err != nil {
		k.abandon()
		return nil, err
	}
	return k, nil
}

// newCalibrator checks what needs no bench, so that nothing is written where that is
// wrong.
func newCalibrator(c config.Config) (*calibrator, error) {
	if c.System().Ideal {
		return nil, intake.UserError(fmt.Errorf("experiment.aggregator is %q, whose channel is ideal: there is nothing to calibrate", c.Experiment.Aggregator))
	}
	if _, err := soundingConfig(c); err != nil {
		return nil, err
	}
	if err := checkMemory(c, neededToCalibrate(c)); err != nil {
		return nil, err
	}
	k := &calibrator{cfg: c, root: keystream.FromInteger(uint64(c.Experiment.Seed))}
	return k, intake.UserError(spread(&k.cfg, k.root))
}

// create makes the folder.
func (k *calibrator) create(dir string) (err error) {
	if k.folder, err = runfolder.Create(dir); err != nil {
		return intake.PathError(err)
	}
	encoded, err := k.cfg.Encode()
	if err != nil {
		return err
	}
	if err := k.folder.WriteAtomic(runfolder.ConfigName, encoded); err != nil {
		return intake.PathError(err)
	}
	if err := k.writeManifest(); err != nil {
		return err
	}
	k.table, err = os.OpenFile(filepath.Join(dir, soundingsName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return intake.PathError(err)
	}
	return sounder.WriteHeader(k.table)
}

// writeManifest keeps what the calibration is made by.
func (k *calibrator) writeManifest() (err error) {
	m := runfolder.NewManifest(time.Now())
	m.Seeds["experiment"] = uint64(k.cfg.Experiment.Seed)
	if m.ConfigDigest, err = k.cfg.Digest(); err != nil {
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

// resumeCalibration opens an earlier calibration behind its last whole block.
func resumeCalibration(dir string) (*calibrator, error) {
	folder, err := runfolder.Open(dir)
	if err != nil {
		return nil, intake.PathError(err)
	}
	k, err := calibratorIn(folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return k, nil
}

func calibratorIn(folder *runfolder.Folder) (*calibrator, error) {
	c, err := config.Load(filepath.Join(folder.Path(), runfolder.ConfigName), nil)
	if err != nil {
		return nil, intake.UserError(err)
	}
	k, err := newCalibrator(c)
	if err != nil {
		return nil, err
	}
	k.folder = folder
	if err := sameConfig(folder, c); err != nil {
		return nil, err
	}
	path := filepath.Join(folder.Path(), soundingsName)
	if k.table, err = os.OpenFile(path, os.O_RDWR, 0o644); err != nil {
		return nil, intake.PathError(fmt.Errorf("this is no calibration's folder: %w", err))
	}
	if err := k.readTable(path); err != nil {
		return nil, errors.Join(err, k.table.Close())
	}
	return k, nil
}

// readTable takes in the whole blocks of the table, and leaves it behind them.
func (k *calibrator) readTable(path string) error {
	c := k.cfg
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

// runCalibration measures, writes and prints.
func runCalibration(cmd *cobra.Command, k *calibrator, flags *calibrateFlags) (err error) {
	defer func() {
		if flags.resume == "" && len(k.blocks) == 0 && intake.IsUserError(err) {
			k.abandon()
			return
		}
		if closeErr := k.close(); err == nil {
			err = closeErr
		}
	}()
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	if err := k.measure(ctx, stderr); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return k.stopped(stderr)
		}
		return k.howToGoOn(err)
	}
	r, err := k.analyse(time.Now())
	if err != nil {
		return err
	}
	if !flags.noAdvice {
		if err := k.advise(ctx, stderr, &r); err != nil {
			if ctx.Err() != nil {
				return k.stopped(stderr)
			}
			return err
		}
	}
	text, err := r.file.Encode()
	if err != nil {
		return err
	}
	if err := k.folder.WriteAtomic(calibrationName, text); err != nil {
		return intake.PathError(err)
	}
	if r.plots, err = k.draw(r); err != nil {
		return fmt.Errorf("drawing the plots: %w", err)
	}
	if flags.json {
		return printJSON(cmd.OutOrStdout(), r.json())
	}
	r.print(cmd.OutOrStdout(), k.folder.Path())
	return nil
}

// stopped says how a calibration that Ctrl-C stopped goes on.
func (k *calibrator) stopped(stderr io.Writer) error {
	fmt.Fprintf(stderr, "Stopped after block %d of %d. Go on with:\n  ringwave calibrate --resume %s\n", len(k.blocks), k.cfg.Calibration.Blocks, k.folder.Path())
	return errInterrupted
}

// measure makes the blocks that are left.
func (k *calibrator) measure(ctx context.Context, stderr io.Writer) error {
	if len(k.blocks) == k.cfg.Calibration.Blocks {
		return nil
	}
	if k.bench == nil {
		var err error
		if k.bench, err = k.openBench(ctx); err != nil {
			return err
		}
	}
	s, err := sounder.New(k.bench.cfg)
	if err != nil {
		return intake.UserError(err)
	}
	p := newBlockProgress(stderr, len(k.blocks), k.cfg.Calibration.Blocks)
	defer p.stop()
	err = s.Run(ctx, func(b sounder.Block) error {
		if err := sounder.WriteBlock(k.table, b, k.cfg.Devices.Count); err != nil {
			return err
		}
		k.blocks = append(k.blocks, b)
		p.report(len(k.blocks))
		return nil
	})
	err = lostGuard(k.bench.guarded, err)
	// Carriers go off before what is heard is looked at, which takes its time.
	if ended := errors.Join(k.bench.stop(), k.bench.close()); ended != nil && !errors.Is(err, radio.ErrGuard) {
		return ended
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	var unheard *sounder.NotHeardError
	if errors.As(err, &unheard) && !errors.Is(err, radio.ErrGuard) {
		return intake.UserError(k.bench.explain(unheard, k.cfg.Calibration))
	}
	return errors.Join(err, k.table.Sync())
}

// howToGoOn says how a calibration that failed goes on, where something is kept of it
// that is not to be done again.
func (k *calibrator) howToGoOn(err error) error {
	if errors.Is(err, sounder.ErrStalled) {
		err = intake.UserError(fmt.Errorf("%w: raise radio.search_seconds, which is %v, and where no room was found the window of the URIs in radio.transmitters", err, k.cfg.Radio.SearchSeconds))
	}
	if len(k.blocks) == 0 || intake.IsUserError(err) && !errors.Is(err, sounder.ErrStalled) {
		return err
	}
	return fmt.Errorf("%w; after block %d of %d the calibration can go on with: ringwave calibrate --resume %s", err, len(k.blocks), k.cfg.Calibration.Blocks, k.folder.Path())
}

// abandon removes the folder of a calibration that could not begin: it was new or empty.
func (k *calibrator) abandon() {
	_ = k.close() // there is nothing to keep
	if k.folder != nil {
		_ = os.RemoveAll(k.folder.Path())
	}
}

// close lets go of everything.
func (k *calibrator) close() error {
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

// blockProgress shows how far a calibration is: a bar on a terminal, a line every
// tenth elsewhere.
type blockProgress struct {
	w            io.Writer
	bar          *progressbar.ProgressBar
	first, total int
	began        time.Time
}

func newBlockProgress(w io.Writer, done, total int) *blockProgress {
	p := &blockProgress{w: w, first: done, total: total, began: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription("blocks"))
		_ = p.bar.Set(done) // a bar that cannot be drawn is no reason to stop
	}
	return p
}

func (p *blockProgress) report(done int) {
	if p.bar != nil {
		_ = p.bar.Set(done)
		return
	}
	if step := max(1, p.total/10); done%step != 0 && done != p.total {
		return
	}
	left := time.Duration(float64(time.Since(p.began)) / float64(done-p.first) * float64(p.total-done))
	fmt.Fprintf(p.w, "block %d of %d, about %v left\n", done, p.total, left.Round(100*time.Millisecond))
}

// stop ends the bar's line.
func (p *blockProgress) stop() {
	if p.bar != nil {
		fmt.Fprintln(p.w)
	}
}
