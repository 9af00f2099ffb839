package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts"
	"ringwave/radio/boards"
	"ringwave/radio/intake"
)

// calibrateFlags are those of calibrate.
type calibrateFlags struct {
	configFlags
	out, resume, recording string
	noAdvice               bool
	bench                  hosts.BenchOptions
}

func newCalibrateCommand() *cobra.Command {
	var flags calibrateFlags
	cmd := &cobra.Command{
		Use: "calibrate CONFIG",
		Example: `  ringwave calibrate hw-configs/waveform-aligned.toml --out cal
  ringwave calibrate --resume cal
  ringwave calibrate hw-configs/virtual-bench-hosts.toml --bench bench
  ringwave calibrate hw-configs/waveform-aligned.toml --recording cal`,
		Short: "Measure mean and second moment of every link, and what the bench can carry",
		Long: `Let each device in turn send soundings, as [calibration] says, and measure its
link: mu_i and Omega_i of the real effective gain with 95 % intervals, sigma_i,
K-factor, SNR, phase, delay, carrier offset, echoes, DC, IQ mismatch; test what
the paper assumes of the channel; and say which regime, group size and digits
the bench can carry.

The folder gets calibration.toml, which run takes as calibration.file,
soundings.csv with a line a burst, gains-<device>.npy (complex128, in order of
blocks and looks; numpy.load reads it), spectra.csv with phase noise L(f) and
the gain's density, plots, and with link.record a recording.

The bench is the one of the config: radios where [radio] names some, else the
simulated one. --recording measures a recording of an earlier calibration
instead: its folder, or one of its files. With --bench devices are on other
hosts (ringwave device), as with serve: their radios sound, and nothing else of
them is asked for.

Ctrl-C stops after a block; calibrate --resume DIR goes on. Exit status: 0 also
where an assumption is violated, which the output names; 2 if a device is not
heard.`,
		Args: configOrResume(&flags.resume),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.calibrate(cmd, args) },
	}
	flags.add(cmd)
	flags.watch.Add(cmd)
	cmd.Flags().StringVar(&flags.out, "out", "", "the calibration's folder, new or empty (default calibrations/<utc>-<name>)")
	cmd.Flags().StringVar(&flags.resume, "resume", "", "go on with the calibration in this folder")
	benchFlags(cmd, &flags.bench, "")
	cmd.Flags().StringVar(&flags.recording, "recording", "", "measure a recorded calibration: its folder, or one .sigmf-meta file")
	cmd.Flags().BoolVar(&flags.noAdvice, "no-advice", false, "do not compute what the bench can carry, which takes the most time")
	return cmd
}

// calibrate makes a calibration, over the radios of other hosts if there is a bench of them.
func (f *calibrateFlags) calibrate(cmd *cobra.Command, args []string) (err error) {
	local := lab("")
	if f.bench.Folder == "" {
		k, err := f.begin(cmd, args, local)
		if err != nil {
			return err
		}
		return runCalibration(cmd, k, f)
	}
	if f.recording != "" {
		return intake.UserError(errors.New("--bench cannot go with --recording: a recording needs no radios"))
	}
	c := console.New(cmd)
	f.bench.Version, f.bench.Say = hostVersion(), func(text string) { c.Say("%s", text) }
	bench, err := hosts.NewBench(cmd.Context(), f.bench)
	if err != nil {
		return interrupted(err)
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	c.Say("Bus: %s", bench.URL())
	local.Radios.Drivers = []boards.Driver{bench.Driver()}
	k, err := f.begin(cmd, args, local)
	if err != nil {
		return err
	}
	if err := bench.Calibrate(cmd.Context(), k.Config); err != nil {
		return interrupted(err)
	}
	return runCalibration(cmd, k, f)
}

// begin makes the calibration, or takes up the one to be resumed.
func (f *calibrateFlags) begin(cmd *cobra.Command, args []string, local experiment.Lab) (*experiment.Calibration, error) {
	if f.resume != "" {
		for _, name := range []string{"set", "seed", "out", "recording"} {
			if cmd.Flags().Changed(name) {
				return nil, intake.UserError(fmt.Errorf("--%s cannot go with --resume: a calibration goes on as it began", name))
			}
		}
		return local.ResumeCalibration(f.resume)
	}
	c, err := f.load(cmd, args[0])
	if err != nil {
		return nil, err
	}
	return local.NewCalibration(c, f.recording)
}

// runCalibration measures, writes and prints.
func runCalibration(cmd *cobra.Command, k *experiment.Calibration, flags *calibrateFlags) error {
	stderr, c := cmd.ErrOrStderr(), console.New(cmd)
	page, err := flags.watch.Open(cmd, hostVersion())
	if err != nil {
		return intake.UserError(err)
	}
	defer page.Close()
	scene := page.Calibration(k)
	blocks, sounded := c.Steps("block")
	advice, advised := c.Steps("advice: simulation")
	r, err := k.Run(cmd.Context(), flags.out, scene.Observer(experiment.CalibrationObserver{
		Blocks: blocks, Sounded: sounded, Advice: advice, NoAdvice: flags.noAdvice,
	}))
	scene.Concluded(r, err)
	advised()
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
	fmt.Fprintf(w, "\nFile: %s\n", filepath.Join(r.Dir, runfolder.CalibrationName))
	showPlots(w, r.Plots)
	return nil
}
