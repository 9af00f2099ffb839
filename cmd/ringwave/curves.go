package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
	"ringwave/radio/intake"
)

// The files of a folder of curves: the JSON is what a rerun goes on from.
const (
	curvesJSON = "curves.json"
	curvesCSV  = "curves.csv"
)

// curveTable is the table of physics.md section 3: shares of blocks of 8192 trits
// without an error, gains N(1, sigma^2).
var curveTable = []tableEntry{
	{2, 0.05, 30, 1}, {2, 0.3, 30, 0.95}, {2, 0.3, 40, 1}, {2, 1, 40, 1}, {2, 1, 50, 1},
	{3, 0.05, 30, 1}, {3, 0.3, 30, 0.69}, {3, 0.3, 40, 0.95}, {3, 1, 40, 0.97}, {3, 1, 50, 1},
	{4, 0.05, 30, 1}, {4, 0.3, 30, 0.30}, {4, 0.3, 40, 0.61}, {4, 1, 40, 0.71}, {4, 1, 50, 0.97},
}

type tableEntry struct {
	devices           int
	sigma, snr, share float64
}

// curveSettings are what a folder of curves is measured with.
type curveSettings struct {
	Devices     []int     `json:"devices"`
	Sigma       []float64 `json:"sigma"`
	SNRdB       []float64 `json:"snr_db"`
	Blocks      int       `json:"blocks"`
	Attempts    int       `json:"attempts"`
	WholeRounds bool      `json:"whole_rounds"`
	Seed        int64     `json:"seed"`

	Base               int     `json:"base"`
	BlockSymbols       int     `json:"block_symbols"`
	Pulse              string  `json:"pulse"`
	SamplesPerSymbol   int     `json:"samples_per_symbol"`
	EdgeSamples        float64 `json:"edge_samples"`
	ToleranceSamples   float64 `json:"tolerance_samples"`
	RollOff            float64 `json:"roll_off"`
	SpanSymbols        int     `json:"span_symbols"`
	PreambleSymbols    int     `json:"preamble_symbols"`
	MaxAlpha           float64 `json:"max_alpha"`
	DelaySpreadSamples float64 `json:"delay_spread_samples"`
	PhaseSpreadRad     float64 `json:"phase_spread_rad"`
}

// curvePoint is what was measured at one N, sigma and SNR. Shares are from 0 to 1,
// with the ends of their 95 % intervals.
type curvePoint struct {
	Devices     int             `json:"devices"`
	Sigma       float64         `json:"sigma"`
	SNRdB       float64         `json:"snr_db"`
	Blocks      int             `json:"blocks"`
	ReadFirst   int             `json:"read_first"`
	First       float64         `json:"first_share"`
	FirstLow    float64         `json:"first_low"`
	FirstHigh   float64         `json:"first_high"`
	ReadWithin  int             `json:"read_within"`
	Within      float64         `json:"within_share"`
	WithinLow   float64         `json:"within_low"`
	WithinHigh  float64         `json:"within_high"`
	Wrong       int             `json:"wrong"`
	FirstWrong  string          `json:"first_wrong,omitempty"`
	Misread     int             `json:"patterns_misread"`
	Misfit      runfolder.Float `json:"median_misfit"`
	ZeroGains   runfolder.Float `json:"mean_zero_gains"`
	ReadAt      []int           `json:"read_at_attempt"`
	PhysicsRead *float64        `json:"physics_md_share,omitempty"`
}

// curveResult is curves.json.
type curveResult struct {
	Settings curveSettings `json:"settings"`
	Complete bool          `json:"complete"`
	Points   []curvePoint  `json:"points"`
}

// curveFlags are the command's.
type curveFlags struct {
	devices, sigma, snr string
	blocks, attempts    int
	wholeRounds, json   bool
	set                 []string
	seed                int64
	out                 string
}

func newCurvesCommand() *cobra.Command {
	var flags curveFlags
	cmd := &cobra.Command{
		Use:   "curves [CONFIG]",
		Short: "Measure and plot how often the blind receiver reads, against SNR, N and sigma",
		Long: `Send random blocks through the whole modem (digits, frame, pulses, delays, phases,
gains, noise) to a receiver that is told nothing, and measure the share that it
reads at the first attempt and within all attempts, each with fresh gains.
Every accepted block is compared with what was sent.

Of CONFIG the modem's keys in [link] count, with delay_spread_samples,
phase_spread_rad, max_alpha and block_symbols; without it the defaults, delays up
to a sample and phases over 0.2 rad. A frame is never repeated within an attempt,
and gains are N(1, sigma^2). Root-raised-cosine pulses have their delays
compensated, as after a calibration.

Lists are values and ranges first:last:step, as in 20:40:5,50. Ctrl-C stops; the
same command with the same --out goes on, a point of the curves at a time.`,
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
			if err := checkMemory(c, neededForCurves(c, slices.Max(settings.Devices), runtime.GOMAXPROCS(0))); err != nil {
				return err
			}
			return runCurves(cmd, c, settings, flags.out, flags.json)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.devices, "devices", "2,3,4", "numbers of devices N")
	f.StringVar(&flags.sigma, "sigma", "0.05,0.3,1", "standard deviations of the gains, of mean 1")
	f.StringVar(&flags.snr, "snr", "20:55:5", "SNRs of a device of gain 1, in dB")
	f.IntVar(&flags.blocks, "blocks", 200, "blocks, or rounds, for each point")
	f.IntVar(&flags.attempts, "attempts", 4, "attempts at a block")
	f.BoolVar(&flags.wholeRounds, "whole-rounds", false, "an attempt is a round's four transmissions, a block each, read at one scale")
	f.StringArrayVar(&flags.set, "set", nil, "override one key of the config, as section.key=value (may be given several times)")
	f.Int64Var(&flags.seed, "seed", 0, "seed, in place of the config's")
	f.StringVar(&flags.out, "out", "", "folder for the results, new or begun with the same settings (default runs/<utc>-curves)")
	f.BoolVar(&flags.json, "json", false, "print the result as JSON")
	return cmd
}

// defaultCurves is the configuration without a file.
const defaultCurves = "[experiment]\nname = \"curves\"\n[link]\nkind = \"waveform\"\ndelay_spread_samples = 1.0\nphase_spread_rad = 0.2\n"

func (f *curveFlags) config(cmd *cobra.Command, args []string) (config.Config, error) {
	set := f.set
	if cmd.Flags().Changed("seed") {
		set = append(set, fmt.Sprintf("experiment.seed=%d", f.seed))
	}
	if len(args) == 1 {
		c, err := config.Load(args[0], set)
		return c, intake.UserError(err)
	}
	c, err := config.Parse("default configuration", []byte(defaultCurves), set)
	return c, intake.UserError(err)
}

// The most values of a list, and points of all curves.
const (
	maxCurveList   = 1000
	maxCurvePoints = 1 << 16
)

func (f *curveFlags) settings(c config.Config) (curveSettings, error) {
	l := c.Link
	s := curveSettings{
		Blocks: f.blocks, Attempts: f.attempts, WholeRounds: f.wholeRounds, Seed: c.Experiment.Seed,
		Base: l.Base, BlockSymbols: l.BlockSymbols, Pulse: l.Pulse, SamplesPerSymbol: l.SamplesPerSymbol,
		EdgeSamples: l.EdgeSamples, ToleranceSamples: l.ToleranceSamples, RollOff: l.RollOff, SpanSymbols: l.SpanSymbols,
		PreambleSymbols: l.PreambleSymbols, MaxAlpha: l.MaxAlpha, DelaySpreadSamples: l.DelaySpreadSamples, PhaseSpreadRad: l.PhaseSpreadRad,
	}
	devices, err := parseList("--devices", f.devices, 1, trial.MaxDevices)
	if err != nil {
		return s, err
	}
	for _, n := range devices {
		if n != math.Trunc(n) {
			return s, fmt.Errorf("--devices: %v is not a whole number", n)
		}
		s.Devices = append(s.Devices, int(n))
	}
	if s.Sigma, err = parseList("--sigma", f.sigma, 0, 1000); err != nil {
		return s, err
	}
	if s.SNRdB, err = parseList("--snr", f.snr, -20, 200); err != nil {
		return s, err
	}
	for _, list := range []struct {
		flag   string
		values int
	}{{"--devices", len(s.Devices)}, {"--sigma", len(s.Sigma)}, {"--snr", len(s.SNRdB)}} {
		if list.values > maxCurveList {
			return s, fmt.Errorf("%s has %d values: allowed are at most %d", list.flag, list.values, maxCurveList)
		}
	}
	if n := len(s.Devices) * len(s.Sigma) * len(s.SNRdB); n > maxCurvePoints {
		return s, fmt.Errorf("--devices, --sigma and --snr make %d points: allowed are at most %d", n, maxCurvePoints)
	}
	const mostBlocks, mostAttempts = 1_000_000, 1000
	if f.blocks < 1 || f.blocks > mostBlocks {
		return s, fmt.Errorf("--blocks is %d: allowed are 1 to %d", f.blocks, mostBlocks)
	}
	if f.attempts < 1 || f.attempts > mostAttempts {
		return s, fmt.Errorf("--attempts is %d: allowed are 1 to %d", f.attempts, mostAttempts)
	}
	return s, nil
}

// parseList reads values and ranges first:last:step, and gives them ascending, each
// once.
func parseList(flag, text string, least, most float64) ([]float64, error) {
	var list []float64
	for _, part := range strings.Split(text, ",") {
		values, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is neither a number nor a range first:last:step of at most %d values", flag, part, longestRange)
		}
		for _, v := range values {
			if !(v >= least && v <= most) {
				return nil, fmt.Errorf("%s: %v is not allowed: allowed are %v to %v", flag, v, least, most)
			}
		}
		list = append(list, values...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// longestRange keeps a slip of the pen from asking for years.
const longestRange = 1000

func parseRange(text string) ([]float64, error) {
	var ends []float64
	for _, field := range strings.Split(text, ":") {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		ends = append(ends, v)
	}
	if len(ends) == 1 {
		return ends, nil
	}
	if len(ends) != 3 || !(ends[2] > 0) || !(ends[1] >= ends[0]) || !((ends[1]-ends[0])/ends[2] < longestRange) {
		return nil, errors.New("no range")
	}
	var values []float64
	const slack = 1e-9 // of a step: rounding must not lose the last
	for i := 0.0; ends[0]+i*ends[2] <= ends[1]+slack*ends[2]; i++ {
		// 0.1 + 2 x 0.1 is to be the 0.3 that one writes.
		v, err := strconv.ParseFloat(strconv.FormatFloat(ends[0]+i*ends[2], 'g', 12, 64), 64)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// grid gives the points to be measured, in their order.
func (s curveSettings) grid() []curvePoint {
	var grid []curvePoint
	for _, n := range s.Devices {
		for _, sigma := range s.Sigma {
			for _, snr := range s.SNRdB {
				grid = append(grid, curvePoint{Devices: n, Sigma: sigma, SNRdB: snr, PhysicsRead: s.physics(n, sigma, snr)})
			}
		}
	}
	return grid
}

// physics gives the table's share at a point, where it is of the same measure: a
// block of 8192 trits.
func (s curveSettings) physics(n int, sigma, snr float64) *float64 {
	if s.Base != 3 || s.BlockSymbols != 8192 || s.WholeRounds {
		return nil
	}
	for _, e := range curveTable {
		if e.devices == n && e.sigma == sigma && e.snr == snr {
			return &e.share
		}
	}
	return nil
}

// trials gives the trials of a point. Their seed has the point's coordinates in it:
// its result does not depend on which others are measured.
func (s curveSettings) trials(link config.Link, p curvePoint) trial.Config {
	return trial.Config{
		Devices: p.Devices, Gain: channel.Gaussian{Mu: 1, Sigma: p.Sigma}, SNRdB: p.SNRdB,
		Base: s.Base, BlockSymbols: s.BlockSymbols, Modem: modemConfig(link), MaxAlpha: s.MaxAlpha,
		DelaySpread: modem.Samples(s.DelaySpreadSamples), PhaseSpread: modem.Radians(s.PhaseSpreadRad),
		Compensated: s.Pulse != "flat-top", Attempts: s.Attempts, WholeRounds: s.WholeRounds,
		Seed: keystream.FromInteger(uint64(s.Seed)).Derive("curves", uint64(p.Devices), math.Float64bits(p.Sigma), math.Float64bits(p.SNRdB)),
	}
}

// runCurves measures what a folder has not got yet, and reports.
func runCurves(cmd *cobra.Command, c config.Config, settings curveSettings, out string, asJSON bool) error {
	grid := settings.grid()
	// What cannot be made is said before anything is written. The last point has the
	// most devices, which ask for the longest blocks.
	if err := tryBench(settings.trials(c.Link, grid[len(grid)-1])); err != nil {
		return intake.UserError(fmt.Errorf("curves: %w", err))
	}
	if out == "" {
		out = runfolder.DefaultDir("runs", "curves", time.Now())
	}
	folder, result, err := openCurves(out, c, settings)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := measureCurves(cmd, c.Link, folder, &result, grid); err != nil {
		if errors.Is(err, errInterrupted) {
			fmt.Fprintf(cmd.ErrOrStderr(), "Stopped after point %d of %d. Go on with the same command and\n  --out %s\n", len(result.Points), len(grid), folder.Path())
		}
		return err
	}
	plots, err := chart.CurvePlots(folder.Path(), chartPoints(result.Points), settings.Attempts, "physics.md, section 3")
	if err != nil {
		return fmt.Errorf("drawing the curves: %w", err)
	}
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), result)
	} else {
		printCurves(cmd.OutOrStdout(), folder.Path(), result, plots)
	}
	return errors.Join(err, wrongBlocks(result.Points))
}

func tryBench(cfg trial.Config) error {
	b, err := trial.New(cfg)
	if err != nil {
		return err
	}
	return b.Close()
}

// readCurves reads curves that were begun, of so many points. There are none where the
// file cannot be read.
func readCurves(path string, points int) (begun curveResult, any bool, err error) {
	// A point takes some hundred bytes, and the lists of settings a line a number.
	data, err := intake.ReadFile(path, 1<<18+2048*int64(points))
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return begun, false, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return begun, false, nil
	}
	// First: decoded, short elements of a list take many times their text.
	limits := intake.JSONLimits{Depth: 8, Members: 256, Elements: max(points, maxCurveList)}
	if err := intake.CheckJSON("the result", data, limits); err != nil {
		return begun, false, fmt.Errorf("%s is not what this command writes (%w): name a new folder", path, err)
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		return begun, false, fmt.Errorf("%s is not what this command writes (%w): name a new folder", path, err)
	}
	return begun, true, nil
}

// openCurves makes the folder, or opens one that was begun with the same settings.
func openCurves(dir string, c config.Config, settings curveSettings) (*runfolder.Folder, curveResult, error) {
	result := curveResult{Settings: settings, Points: []curvePoint{}}
	grid := settings.grid()
	begun, any, err := readCurves(filepath.Join(dir, curvesJSON), len(grid))
	if err != nil {
		return nil, result, intake.UserError(err)
	}
	if !any {
		folder, err := createCurves(dir, c, result)
		return folder, result, err
	}
	if err := sameSettings(filepath.Join(dir, curvesJSON), begun.Settings, settings); err != nil {
		return nil, result, intake.UserError(err)
	}
	for i, p := range begun.Points {
		if i >= len(grid) || p.Devices != grid[i].Devices || p.Sigma != grid[i].Sigma || p.SNRdB != grid[i].SNRdB || p.Blocks != settings.Blocks {
			return nil, result, intake.UserError(fmt.Errorf("%s: point %d is not the one that its settings ask for: name a new folder", filepath.Join(dir, curvesJSON), i+1))
		}
	}
	folder, err := runfolder.Open(dir)
	if err != nil {
		return nil, result, intake.PathError(err)
	}
	result.Points = append(result.Points, begun.Points...)
	return folder, result, nil
}

func createCurves(dir string, c config.Config, result curveResult) (*runfolder.Folder, error) {
	folder, err := runfolder.Create(dir)
	if err != nil {
		return nil, intake.PathError(err)
	}
	encoded, err := c.Encode()
	if err == nil {
		err = folder.WriteAtomic(runfolder.ConfigName, encoded)
	}
	m := runfolder.NewManifest(time.Now())
	m.Seeds["experiment"] = uint64(c.Experiment.Seed)
	if err == nil {
		m.ConfigDigest, err = c.Digest()
	}
	if err == nil {
		err = folder.WriteManifest(m)
	}
	if err == nil {
		err = saveCurves(folder, result)
	}
	if err != nil {
		return nil, errors.Join(intake.PathError(err), folder.Close())
	}
	return folder, nil
}

// sameSettings names the first setting that differs.
func sameSettings(path string, begun, asked curveSettings) error {
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, s := range []struct {
		from curveSettings
		to   *map[string]json.RawMessage
	}{{begun, &was}, {asked, &is}} {
		data, err := json.Marshal(s.from)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, s.to); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if !bytes.Equal(was[key], is[key]) {
			return fmt.Errorf("%s: the curves were begun with %s = %s, and now it is %s: go on with the same, or name a new folder", path, key, was[key], is[key])
		}
	}
	return nil
}

// saveCurves writes what there is so far.
func saveCurves(folder *runfolder.Folder, result curveResult) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := folder.WriteAtomic(curvesCSV, curveLines(result.Points)); err != nil {
		return err
	}
	// What a rerun goes on from comes last: the lines are there by then.
	return folder.WriteAtomic(curvesJSON, append(data, '\n'))
}

// curveLines gives the points as CSV.
func curveLines(points []curvePoint) []byte {
	b := []byte("devices,sigma,snr_db,blocks,read_first,first_share,first_low,first_high,read_within,within_share,within_low,within_high,wrong,patterns_misread,median_misfit,mean_zero_gains,physics_md_share\n")
	number := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	for _, p := range points {
		physics := math.NaN()
		if p.PhysicsRead != nil {
			physics = *p.PhysicsRead
		}
		b = fmt.Appendf(b, "%d,%s,%s,%d,%d,%s,%s,%s,%d,%s,%s,%s,%d,%d,%s,%s,%s\n",
			p.Devices, number(p.Sigma), number(p.SNRdB), p.Blocks, p.ReadFirst, number(p.First), number(p.FirstLow), number(p.FirstHigh),
			p.ReadWithin, number(p.Within), number(p.WithinLow), number(p.WithinHigh), p.Wrong, p.Misread, number(float64(p.Misfit)), number(float64(p.ZeroGains)), number(physics))
	}
	return b
}

// measureCurves adds the points that result has not got, one by one.
func measureCurves(cmd *cobra.Command, link config.Link, folder *runfolder.Folder, result *curveResult, grid []curvePoint) error {
	s := result.Settings
	p := newCurveProgress(cmd.ErrOrStderr(), s, grid, len(result.Points))
	defer p.stop()
	for _, point := range grid[len(result.Points):] {
		tally, err := measurePoint(cmd.Context(), s.trials(link, point), s.Blocks, p.trial)
		if err != nil {
			return err
		}
		point.fill(tally, s.Attempts)
		result.Points = append(result.Points, point)
		if err := saveCurves(folder, *result); err != nil {
			return err
		}
		p.point(point)
	}
	if result.Complete {
		return nil
	}
	result.Complete = true
	return saveCurves(folder, *result)
}

// measurePoint carries out trials, each worker with a bench of its own. A trial's
// outcome depends on its number alone, so that their share of the work does not
// matter. done is called under a lock.
func measurePoint(ctx context.Context, cfg trial.Config, blocks int, done func()) (*trial.Tally, error) {
	outcomes := make([]trial.Outcome, blocks)
	workers := min(runtime.GOMAXPROCS(0), blocks)
	var mu sync.Mutex
	var next atomic.Int64
	group, working := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() (err error) {
			b, err := trial.New(cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Close()) }()
			for working.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= blocks {
					return nil
				}
				if outcomes[k], err = b.Trial(working, uint32(k)); err != nil {
					return err
				}
				mu.Lock()
				done()
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	if err != nil {
		return nil, err
	}
	var tally trial.Tally
	for _, o := range outcomes {
		tally.Add(o)
	}
	return &tally, nil
}

// fill writes what was counted.
func (p *curvePoint) fill(t *trial.Tally, attempts int) {
	p.Blocks, p.ReadFirst, p.ReadWithin = t.Trials, t.Within(1), t.Within(attempts)
	p.First, p.Within = float64(p.ReadFirst)/float64(p.Blocks), float64(p.ReadWithin)/float64(p.Blocks)
	p.FirstLow, p.FirstHigh = trial.Wilson(p.ReadFirst, p.Blocks)
	p.WithinLow, p.WithinHigh = trial.Wilson(p.ReadWithin, p.Blocks)
	p.Wrong, p.FirstWrong, p.Misread = t.Wrong, t.FirstWrong, t.Misread
	p.Misfit, p.ZeroGains = runfolder.Float(t.Misfit()), runfolder.Float(t.ZeroGains())
	p.ReadAt = make([]int, attempts)
	copy(p.ReadAt, t.ReadAt)
}

// curveProgress shows how far the curves are: a bar on a terminal, a line every
// tenth elsewhere.
type curveProgress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	began time.Time
	// Work is counted in devices times trials, of which the time is made.
	done, first, total int
	grid               []curvePoint
	points, said       int
}

func newCurveProgress(w io.Writer, s curveSettings, grid []curvePoint, points int) *curveProgress {
	p := &curveProgress{w: w, began: time.Now(), grid: grid, points: points}
	for i, g := range grid {
		work := s.Blocks * (g.Devices + 1) // the receiver's own counts as one more
		p.total += work
		if i < points {
			p.done += work
		}
	}
	p.first, p.said = p.done, 10*p.done/p.total
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(p.total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription("curves"))
		_ = p.bar.Set(p.done) // a bar that cannot be drawn is no reason to stop
	}
	return p
}

// trial counts a trial of the point at hand.
func (p *curveProgress) trial() {
	p.done += p.grid[p.points].Devices + 1
	if p.bar != nil {
		_ = p.bar.Set(p.done)
	}
}

// point counts a whole point.
func (p *curveProgress) point(point curvePoint) {
	p.points++
	text := fmt.Sprintf("N = %d, sigma = %v, %v dB: %.1f %% at once", point.Devices, point.Sigma, point.SNRdB, 100*point.First)
	if p.bar != nil {
		p.bar.Describe(text)
		return
	}
	if 10*p.done/p.total == p.said {
		return
	}
	p.said = 10 * p.done / p.total
	left := time.Duration(float64(time.Since(p.began)) / float64(p.done-p.first) * float64(p.total-p.done))
	fmt.Fprintf(p.w, "point %d of %d, %s, about %v left\n", p.points, len(p.grid), text, left.Round(100*time.Millisecond))
}

// stop ends the bar's line.
func (p *curveProgress) stop() {
	if p.bar != nil {
		fmt.Fprintln(p.w)
	}
}

// chartPoints gives the points as they are drawn.
func chartPoints(points []curvePoint) []chart.CurvePoint {
	var list []chart.CurvePoint
	for _, p := range points {
		q := chart.CurvePoint{
			Devices: p.Devices, Sigma: p.Sigma, SNRdB: p.SNRdB, First: p.First, FirstLow: p.FirstLow, FirstHigh: p.FirstHigh,
			Within: p.Within, WithinLow: p.WithinLow, WithinHigh: p.WithinHigh, Misfit: float64(p.Misfit), Reference: math.NaN(),
		}
		if p.PhysicsRead != nil {
			q.Reference = *p.PhysicsRead
		}
		list = append(list, q)
	}
	return list
}

// wrongBlocks is the error of a receiver that accepted what is not true.
func wrongBlocks(points []curvePoint) error {
	wrong, first := 0, ""
	for _, p := range points {
		wrong += p.Wrong
		if first == "" && p.Wrong > 0 {
			first = fmt.Sprintf("N = %d, sigma = %v, %v dB, %s", p.Devices, p.Sigma, p.SNRdB, p.FirstWrong)
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("*** %d TRIALS ACCEPTED WHAT IS NOT TRUE: the receiver is broken; the first: %s", wrong, first)
}

func printCurves(w io.Writer, dir string, result curveResult, plots []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	s := result.Settings
	unit := map[bool]string{false: "blocks", true: "rounds"}[s.WholeRounds]
	fmt.Fprintf(t, "N\tsigma\tSNR dB\t%s\tat once %%\t95 %% interval\tphysics.md\twithin %d %%\t95 %% interval\twrong\tmisfit %%\tH = 0\t\n", unit, s.Attempts)
	for _, p := range result.Points {
		physics := ""
		if p.PhysicsRead != nil {
			physics = fmt.Sprintf("%.0f", 100**p.PhysicsRead)
		}
		misfit, zeros := "", ""
		if p.ReadWithin > 0 {
			misfit, zeros = fmt.Sprintf("%.2f", 100*float64(p.Misfit)), fmt.Sprintf("%.3f", float64(p.ZeroGains))
		}
		fmt.Fprintf(t, "%d\t%v\t%v\t%d\t%.1f\t%.1f to %.1f\t%s\t%.1f\t%.1f to %.1f\t%d\t%s\t%s\t\n", p.Devices, p.Sigma, p.SNRdB, p.Blocks,
			100*p.First, 100*p.FirstLow, 100*p.FirstHigh, physics, 100*p.Within, 100*p.WithinLow, 100*p.WithinHigh, p.Wrong, misfit, zeros)
	}
	_ = t.Flush() // a terminal that is gone cannot be told so
	if wrongBlocks(result.Points) == nil {
		fmt.Fprintln(w, "Nothing was accepted that is not the superposition with H = round(alpha h).")
		misread := 0
		for _, p := range result.Points {
			misread += p.Misread
		}
		if misread > 0 {
			fmt.Fprintf(w, "Beside %d of the accepted blocks a symbol of the pattern was misread, which no block's check covers: a round is void then.\n", misread)
		}
	}
	fmt.Fprintf(w, "Folder: %s\nPlots:\n", dir)
	for _, p := range plots {
		if strings.HasSuffix(p, ".png") {
			fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Clean(p))
		}
	}
}
