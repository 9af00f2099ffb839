package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/curves"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/watch/scenes"
	"ringwave/phy/trial"
	"ringwave/radio/intake"
)

// curveFlags are the command's.
type curveFlags struct {
	devices, sigma, snr string
	blocks, attempts    int
	wholeRounds         bool
	out                 string
	configFlags
}

func newCurvesCommand() *cobra.Command {
	var flags curveFlags
	cmd := &cobra.Command{
		Use: "curves [CONFIG]",
		Example: `  ringwave curves
  ringwave curves --devices 2,3 --snr 20:50:5 --blocks 400 --out curves
  ringwave curves hw-configs/waveform-mnist.toml --whole-rounds --json`,
		Short: "Measure and plot how often the blind receiver reads, against SNR, N and sigma",
		Long: `Send random blocks through the whole modem (digits, frame, pulses, delays,
phases, gains, noise) to a receiver that is told nothing, and measure the share
that it reads at the first attempt and within all attempts, each with fresh
gains. Every accepted block is compared with what was sent.

Of CONFIG the modem's keys in [link] count, with delay_spread_samples,
phase_spread_rad, max_alpha and block_symbols; without it the defaults, delays
up to a sample and phases over 0.2 rad. A frame is never repeated within an
attempt, and gains are N(1, sigma^2). Root-raised-cosine pulses have their
delays compensated, as after a calibration.

Lists are values and ranges first:last:step, as in 20:40:5,50. Ctrl-C stops;
the same command with the same --out goes on, a point of the curves at a time.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return intake.UserError(fmt.Errorf("%s takes one CONFIG file or none; got %d arguments", cmd.CommandPath(), len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.config(cmd, args)
			if err != nil {
				return err
			}
			settings, err := flags.settings(c)
			if err != nil {
				return intake.UserError(err)
			}
			if err := setup.CheckMemory(c, setup.NeededForCurves(c, slices.Max(settings.Devices), runtime.GOMAXPROCS(0))); err != nil {
				return err
			}
			o, err := curveOptions(c, settings)
			if err != nil {
				return err
			}
			return runCurves(cmd, o, &flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.devices, "devices", "2,3,4", "numbers of devices N")
	f.StringVar(&flags.sigma, "sigma", "0.05,0.3,1", "standard deviations of the gains, of mean 1")
	f.StringVar(&flags.snr, "snr", "20:55:5", "SNRs of a device of gain 1, in dB")
	f.IntVar(&flags.blocks, "blocks", 200, "blocks, or rounds, for each point")
	f.IntVar(&flags.attempts, "attempts", 4, "attempts at a block")
	f.BoolVar(&flags.wholeRounds, "whole-rounds", false, "an attempt is a round's four transmissions, a block each, read at one scale")
	flags.addConfig(f)
	flags.watch.Add(cmd)
	f.Lookup("seed").Usage = "seed, in place of the config's"
	f.StringVar(&flags.out, "out", "", "folder for the results, new or begun with the same settings (default curves/<utc>-curves)")
	f.BoolVar(&flags.json, "json", false, "print the result as JSON")
	return cmd
}

// defaultCurves is the configuration without a file.
const defaultCurves = "[experiment]\nname = \"curves\"\n[link]\nkind = \"waveform\"\ndelay_spread_samples = 1.0\nphase_spread_rad = 0.2\n"

func (f *curveFlags) config(cmd *cobra.Command, args []string) (config.Config, error) {
	if len(args) == 1 {
		return f.load(cmd, args[0])
	}
	c, err := config.Parse("default configuration", []byte(defaultCurves), f.overrides(cmd))
	return c, intake.UserError(err)
}

// settings reads the flags, beside the link of a configuration.
func (f *curveFlags) settings(c config.Config) (curves.Settings, error) {
	l := c.Link
	s := curves.Settings{
		Blocks: f.blocks, Attempts: f.attempts, WholeRounds: f.wholeRounds, Seed: c.Experiment.Seed,
		Base: l.Base, BlockSymbols: l.BlockSymbols, Pulse: l.Pulse, SamplesPerSymbol: l.SamplesPerSymbol,
		EdgeSamples: l.EdgeSamples, ToleranceSamples: l.ToleranceSamples, RollOff: l.RollOff, SpanSymbols: l.SpanSymbols,
		PreambleSymbols: l.PreambleSymbols, MaxAlpha: l.MaxAlpha, DelaySpreadSamples: l.DelaySpreadSamples, PhaseSpreadRad: l.PhaseSpreadRad,
	}
	devices, err := curves.ParseList("--devices", f.devices, 1, trial.MaxDevices)
	if err != nil {
		return s, err
	}
	for _, n := range devices {
		if n != math.Trunc(n) {
			return s, fmt.Errorf("--devices: %v is not a whole number", n)
		}
		s.Devices = append(s.Devices, int(n))
	}
	if s.Sigma, err = curves.ParseList("--sigma", f.sigma, 0, 1000); err != nil {
		return s, err
	}
	if s.SNRdB, err = curves.ParseList("--snr", f.snr, -20, 200); err != nil {
		return s, err
	}
	for _, list := range []struct {
		flag   string
		values int
	}{{"--devices", len(s.Devices)}, {"--sigma", len(s.Sigma)}, {"--snr", len(s.SNRdB)}} {
		if list.values > curves.MaxList {
			return s, fmt.Errorf("%s has %d values: allowed are at most %d", list.flag, list.values, curves.MaxList)
		}
	}
	if n := len(s.Devices) * len(s.Sigma) * len(s.SNRdB); n > curves.MaxPoints {
		return s, fmt.Errorf("--devices, --sigma and --snr make %d points: allowed are at most %d", n, curves.MaxPoints)
	}
	if f.blocks < 1 || f.blocks > curves.MaxBlocks {
		return s, fmt.Errorf("--blocks is %d: allowed are 1 to %d", f.blocks, curves.MaxBlocks)
	}
	if f.attempts < 1 || f.attempts > curves.MaxAttempts {
		return s, fmt.Errorf("--attempts is %d: allowed are 1 to %d", f.attempts, curves.MaxAttempts)
	}
	return s, nil
}

// curveOptions returns what a folder of curves is begun with.
func curveOptions(c config.Config, settings curves.Settings) (o curves.Options, err error) {
	o = curves.Options{Settings: settings, Modem: setup.ModemConfig(c.Link), Manifest: runfolder.NewManifest(time.Now())}
	o.Manifest.Seeds["experiment"] = uint64(c.Experiment.Seed)
	if o.Manifest.ConfigDigest, err = c.Digest(); err != nil {
		return o, err
	}
	o.Config, err = c.Encode()
	return o, err
}

// runCurves measures what a folder has not got yet, and reports.
func runCurves(cmd *cobra.Command, o curves.Options, flags *curveFlags) error {
	page, err := flags.watch.Open(cmd, hostVersion())
	if err != nil {
		return intake.UserError(err)
	}
	defer page.Close()
	dir, err := outFolder(flags.out, "curves", "curves")
	if err != nil {
		return err
	}
	measured, err := curves.Open(dir, o)
	if err != nil {
		if flags.out == "" {
			_ = os.Remove(dir) // it was made for these, and is empty
		}
		return err
	}
	defer measured.Close()
	grid := o.Grid()
	p := newCurveProgress(console.New(cmd), o.Settings, grid, len(measured.Result().Points))
	p.scene = page.Curves(o.Settings, measured.Result().Points, o.Config)
	err = p.end(interrupted(measured.Measure(cmd.Context(), curves.Watch{Trial: p.trial, Point: p.point})))
	p.Stop()
	result := measured.Result()
	if errors.Is(err, experiment.ErrInterrupted) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped after point %d of %d. Go on with the same command and\n  --out %s\n", len(result.Points), len(grid), measured.Path())
	}
	if err != nil {
		return err
	}
	plots, err := measured.Draw()
	if err != nil {
		return err
	}
	err = show(cmd.OutOrStdout(), flags.json, result, func(w io.Writer) error {
		if err := result.WriteText(w); err != nil {
			return err
		}
		fmt.Fprintf(w, "Folder: %s\n", measured.Path())
		showPlots(w, plots)
		return nil
	})
	return errors.Join(err, result.Wrong())
}

// curveProgress shows how far the curves are.
type curveProgress struct {
	*console.Progress
	// Work is counted in devices times trials, of which the time is made.
	done, total int
	grid        []curves.Point
	points      int
	text        string         // of the last point
	scene       *scenes.Curves // nil unless it is watched
}

func newCurveProgress(c *console.Console, s curves.Settings, grid []curves.Point, points int) *curveProgress {
	p := &curveProgress{grid: grid, points: points}
	for i, g := range grid {
		work := s.Blocks * (g.Devices + 1) // the receiver's own counts as one more
		p.total += work
		if i < points {
			p.done += work
		}
	}
	p.Progress = c.Progress("point", len(grid), points, p.share())
	return p
}

func (p *curveProgress) share() float64 { return float64(p.done) / float64(p.total) }

// trial counts a trial of the point at hand.
func (p *curveProgress) trial() {
	p.done += p.grid[p.points].Devices + 1
	p.Report(p.points, p.share(), p.text)
	if p.scene != nil {
		p.scene.Progress("point", p.points, len(p.grid), p.share())
	}
}

// end says how the measurement has ended.
func (p *curveProgress) end(err error) error {
	if p.scene != nil {
		return p.scene.End(err)
	}
	return err
}

// point counts a whole point.
func (p *curveProgress) point(point curves.Point) {
	p.points++
	p.text = fmt.Sprintf("N = %d, sigma = %v, %v dB: %.1f %% at once", point.Devices, point.Sigma, point.SNRdB, 100*point.First)
	p.Report(p.points, p.share(), p.text)
	if p.scene != nil {
		p.scene.Point(point)
	}
}
