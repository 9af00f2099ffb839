package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
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

// begin makes the calibration, or takes up the one to be resumed.
func (f *calibrateFlags) begin(cmd *cobra.Command, args []string) (*experiment.Calibration, error) {
	if f.resume != "" {
		for _, name := range []string{"set", "seed", "out", "recording"} {
			if cmd.Flags().Changed(name) {
				return nil, intake.UserError(fmt.Errorf("--%s cannot go with --resume: a calibration goes on as it began", name))
			}
		}
		return lab("").ResumeCalibration(f.resume)
	}
	c, err := f.load(cmd, args[0])
	if err != nil {
		return nil, err
	}
	return lab("").NewCalibration(c, f.recording)
}

// runCalibration measures, writes and prints.
func runCalibration(cmd *cobra.Command, k *experiment.Calibration, flags *calibrateFlags) error {
	stderr := cmd.ErrOrStderr()
	p := blockProgress{w: stderr}
	r, err := k.Run(cmd.Context(), flags.out, experiment.CalibrationObserver{
		Blocks: p.report, Sounded: p.stop, Advice: adviceProgress(stderr), NoAdvice: flags.noAdvice,
	})
	switch again := "ringwave calibrate --resume " + r.Dir; {
	case errors.Is(err, experiment.ErrInterrupted):
		fmt.Fprintf(stderr, "Stopped after block %d of %d. Go on with:\n  %s\n", r.Blocks, k.Config.Calibration.Blocks, again)
		return err
	case err != nil && r.GoesOn:
		return fmt.Errorf("%w; after block %d of %d the calibration can go on with: %s", err, r.Blocks, k.Config.Calibration.Blocks, again)
	case err != nil:
		return err
	}
	return printCalibration(cmd.OutOrStdout(), r, flags.json)
}

// printCalibration is a calibration's last word: what came of it, and what was written.
func printCalibration(w io.Writer, r experiment.CalibrationResult, asJSON bool) error {
	if asJSON {
		files := r.Files
		for _, p := range r.Plots {
			files = append(files, filepath.Base(p))
		}
		return printJSON(w, r.Summary(files))
	}
	if err := r.WriteText(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nFile: %s\nPlots:\n", filepath.Join(r.Dir, runfolder.CalibrationName))
	for _, p := range r.Plots {
		if strings.HasSuffix(p, ".png") {
			fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Clean(p))
		}
	}
	return nil
}

// adviceProgress says every few seconds how far an advice is.
func adviceProgress(w io.Writer) func(done, total int) {
	began, said := time.Now(), time.Now()
	return func(done, total int) {
		if now := time.Now(); now.Sub(said) > 5*time.Second && done > 0 {
			left := time.Duration(float64(now.Sub(began)) / float64(done) * float64(total-done))
			fmt.Fprintf(w, "advice: %d of %d simulations, about %v left\n", done, total, left.Round(time.Second))
			said = now
		}
	}
}

// blockProgress shows how far a calibration is: a bar on a terminal, a line every
// tenth elsewhere.
type blockProgress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	first int       // blocks that were done when it began
	began time.Time // zero before the first report
}

func (p *blockProgress) begin(done, total int) {
	p.first, p.began = done, time.Now()
	if f, ok := p.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription("blocks"))
		_ = p.bar.Set(done) // a bar that cannot be drawn is no reason to stop
	}
}

// report shows how many blocks are done. The first one is of those that were before.
func (p *blockProgress) report(done, total int) {
	if p.began.IsZero() {
		p.begin(done, total)
		return
	}
	if p.bar != nil {
		_ = p.bar.Set(done)
		return
	}
	if step := max(1, total/10); done%step != 0 && done != total {
		return
	}
	left := time.Duration(float64(time.Since(p.began)) / float64(done-p.first) * float64(total-done))
	fmt.Fprintf(p.w, "block %d of %d, about %v left\n", done, total, left.Round(100*time.Millisecond))
}

// stop ends the bar's line.
func (p *blockProgress) stop() {
	if p.bar != nil {
		fmt.Fprintln(p.w)
	}
}
