package curves

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// The files of a folder of curves: the JSON is what Open goes on from.
const (
	JSONName = "curves.json"
	CSVName  = "curves.csv"
)

// Curves are those of one folder, which this process holds the lock of.
type Curves struct {
	options Options
	folder  *runfolder.Folder
	result  Result
	grid    []Point
}

// Open makes the folder, or opens one that was begun with the same settings. What cannot
// be made is said before anything is written. What is wrong with the options, and with a
// folder that is there, is the user's to mend.
func Open(dir string, o Options) (*Curves, error) {
	if err := o.check(); err != nil {
		return nil, intake.UserError(fmt.Errorf("curves: %w", err))
	}
	// The most devices ask for the longest blocks.
	if _, err := o.trials(Point{Devices: slices.Max(o.Devices), Sigma: slices.Max(o.Sigma), SNRdB: slices.Max(o.SNRdB)}).Config(); err != nil {
		return nil, intake.UserError(fmt.Errorf("curves: %w", err))
	}
	c := &Curves{options: o, grid: o.Grid(), result: Result{Settings: o.Settings, Points: []Point{}}}
	begun, any, err := readCurves(filepath.Join(dir, JSONName), len(c.grid))
	if err != nil {
		return nil, intake.UserError(err)
	}
	if any {
		err = c.goOn(dir, begun)
	} else {
		err = c.create(dir)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Path returns the folder's.
func (c *Curves) Path() string { return c.folder.Path() }

// Result returns what there is so far. It is not to be changed.
func (c *Curves) Result() Result { return c.result }

// Close releases the folder.
func (c *Curves) Close() error { return c.folder.Close() }

// readCurves reads curves that were begun, of so many points. There are none where the
// file cannot be read.
func readCurves(path string, points int) (begun Result, any bool, err error) {
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
	limits := intake.JSONLimits{Depth: 8, Members: 256, Elements: max(points, MaxList)}
	if err := intake.CheckJSON("the result", data, limits); err != nil {
		return begun, false, fmt.Errorf("%s is not what this command writes (%w): name a new folder", path, err)
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		return begun, false, fmt.Errorf("%s is not what this command writes (%w): name a new folder", path, err)
	}
	return begun, true, nil
}

// goOn opens the folder of curves that were begun.
func (c *Curves) goOn(dir string, begun Result) (err error) {
	path := filepath.Join(dir, JSONName)
	if err := sameSettings(path, begun.Settings, c.options.Settings); err != nil {
		return intake.UserError(err)
	}
	for i, p := range begun.Points {
		if i >= len(c.grid) || p.Devices != c.grid[i].Devices || p.Sigma != c.grid[i].Sigma || p.SNRdB != c.grid[i].SNRdB || p.Blocks != c.options.Blocks {
			return intake.UserError(fmt.Errorf("%s: point %d is not the one that its settings ask for: name a new folder", path, i+1))
		}
		begun.Points[i].PhysicsRead = c.grid[i].PhysicsRead // earlier programs gave it another name
	}
	if c.folder, err = runfolder.Open(dir); err != nil {
		return intake.PathError(err)
	}
	c.result.Points = append(c.result.Points, begun.Points...)
	return nil
}

// create makes the folder, with what the settings come from.
func (c *Curves) create(dir string) (err error) {
	if c.folder, err = runfolder.Create(dir); err != nil {
		return intake.PathError(err)
	}
	err = c.folder.WriteAtomic(runfolder.ConfigName, c.options.Config)
	if err == nil {
		err = c.folder.WriteManifest(c.options.Manifest)
	}
	if err == nil {
		err = c.save()
	}
	if err != nil {
		return errors.Join(intake.PathError(err), c.folder.Close())
	}
	return nil
}

// sameSettings names the first setting that differs.
func sameSettings(path string, begun, asked Settings) error {
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, s := range []struct {
		from Settings
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

// save writes what there is so far.
func (c *Curves) save() error {
	data, err := json.MarshalIndent(c.result, "", "  ")
	if err != nil {
		return err
	}
	if err := c.folder.WriteAtomic(CSVName, curveLines(c.result.Points)); err != nil {
		return err
	}
	// What a rerun goes on from comes last: the lines are there by then.
	return c.folder.WriteAtomic(JSONName, append(data, '\n'))
}

// curveLines returns the points as CSV.
func curveLines(points []Point) []byte {
	b := []byte("devices,sigma,snr_db,blocks,read_first,first_share,first_low,first_high,read_within,within_share,within_low,within_high,wrong,patterns_misread,median_misfit,mean_zero_gains,prototype_share\n")
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

// Draw draws what there is so far into the folder, and returns the plots' paths.
func (c *Curves) Draw() ([]string, error) {
	plots, err := chart.CurvePlots(c.folder.Path(), c.options.Heading(), chartPoints(c.result.Points), c.options.Attempts, reference)
	if err != nil {
		return nil, fmt.Errorf("drawing the curves: %w", err)
	}
	return plots, nil
}

// reference names what PhysicsRead is from.
const reference = "phy/README.md, section 3"

// Pictures returns what Draw draws of points of these settings.
func Pictures(s Settings, points []Point) []chart.Picture {
	return chart.CurvePictures(s.Heading(), chartPoints(points), s.Attempts, reference)
}

// Read reads what there is so far in a folder, which another process may be at.
func Read(dir string) (Result, error) {
	path := filepath.Join(dir, JSONName)
	begun, any, err := readCurves(path, MaxPoints)
	if err == nil && !any {
		err = fmt.Errorf("%s cannot be read", path)
	}
	if err == nil {
		err = begun.Settings.check()
	}
	return begun, intake.UserError(err)
}

// Heading says what was measured.
func (s Settings) Heading() string {
	unit := "blocks"
	if s.WholeRounds {
		unit = "rounds"
	}
	return fmt.Sprintf("Blind receiver: %d %s a point, base %d, %s pulses, %d samples a symbol, seed %d", s.Blocks, unit, s.Base, s.Pulse, s.SamplesPerSymbol, s.Seed)
}

// chartPoints returns the points as they are drawn.
func chartPoints(points []Point) []chart.CurvePoint {
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
