package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/radio/intake"
)

// RoundTimes are the times of whole encrypted rounds on the ring link, without learning,
// with all devices in this process.
type RoundTimes struct {
	ParameterSet string      `json:"parameter_set"`
	Rounds       int         `json:"rounds"` // timed for each point
	Points       []RoundTime `json:"points"`
	// Exponent is that of N, from ten devices on, or of n, where dimensions are compared;
	// NaN where it cannot be told.
	Exponent runfolder.Float `json:"exponent"`
	Plot     string          `json:"plot"` // the path of Draw's PNG
}

// RoundTime is the median time of a round with some devices.
type RoundTime struct {
	Devices int `json:"devices"`
	// Dimension is n; 0 before it is measured stands for the set's own.
	Dimension int     `json:"dimension"`
	Seconds   float64 `json:"seconds"`
	// DeviceBytes is the memory of the devices, of the link and of what they share, over
	// the number of devices.
	DeviceBytes float64 `json:"device_bytes"`
}

// RoundsToTime returns the points of so many devices each, or of the dimensions, with one
// number of devices, where there are any. It is an error if there is no such parameter set.
func RoundsToTime(parameterSet string, devices, dimensions []int) ([]RoundTime, error) {
	if _, _, err := setup.ParameterSet(config.Encryption{ParameterSet: parameterSet}); err != nil {
		return nil, err
	}
	var points []RoundTime
	for _, n := range devices {
		points = append(points, RoundTime{Devices: n})
	}
	if len(dimensions) == 0 {
		return points, nil
	}
	if len(devices) != 1 {
		return nil, intake.UserError(fmt.Errorf("--dimensions takes one number of --devices, not %d: give, for example, --devices 10", len(devices)))
	}
	points = nil
	for _, n := range dimensions {
		if n < 1024 || n > 16384 || bits.OnesCount(uint(n)) != 1 {
			return nil, intake.UserError(fmt.Errorf("--dimensions: %d is not a power of two from 1024 to 16384", n))
		}
		points = append(points, RoundTime{Devices: devices[0], Dimension: n})
	}
	return points, nil
}

// Measure measures a point and adds it. It ends with ErrInterrupted where ctx did.
func (t *RoundTimes) Measure(ctx context.Context, p RoundTime) error {
	seconds, err := timeRounds(ctx, t.ParameterSet, &p, t.Rounds)
	if err != nil {
		return err
	}
	_, p.Seconds, _ = chart.Quartiles(seconds)
	t.Points = append(t.Points, p)
	t.Exponent = runfolder.Float(t.exponent())
	return nil
}

// byDimension reports whether points differ by n.
func (t *RoundTimes) byDimension() bool {
	return len(t.Points) > 1 && t.Points[0].Dimension != t.Points[1].Dimension
}

// size returns what the time is drawn against.
func (t *RoundTimes) size(p RoundTime) float64 {
	if t.byDimension() {
		return float64(p.Dimension)
	}
	return float64(p.Devices)
}

// exponent fits log time = a + exponent log size by least squares, of devices from ten
// on.
func (t *RoundTimes) exponent() float64 {
	var x, y []float64
	for _, p := range t.Points {
		if t.byDimension() || p.Devices >= 10 {
			x, y = append(x, math.Log(t.size(p))), append(y, math.Log(p.Seconds))
		}
	}
	if len(x) < 2 {
		return math.NaN()
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return slope
}

// Draw draws the times into a folder, new or empty.
func (t *RoundTimes) Draw(dir string) error {
	if len(t.Points) == 0 {
		return errors.New("drawing times of rounds: there is no point")
	}
	measured := chart.Series{Name: "a whole round, " + t.ParameterSet, Style: chart.LinePoints}
	name, label := "N", "devices N"
	if t.byDimension() {
		name, label = "n", fmt.Sprintf("dimension n, %d devices", t.Points[0].Devices)
	}
	linear := chart.Series{Name: "proportional to " + name, Dashed: true}
	last := t.Points[len(t.Points)-1]
	for _, p := range t.Points {
		n := t.size(p)
		measured.X, measured.Y = append(measured.X, n), append(measured.Y, p.Seconds*1e3)
		linear.X, linear.Y = append(linear.X, n), append(linear.Y, last.Seconds*1e3*n/t.size(last))
	}
	folder, err := runfolder.Create(dir)
	if err != nil {
		return intake.PathError(err)
	}
	defer folder.Close()
	base := filepath.Join(folder.Path(), "round-time")
	err = chart.Figure{
		Title:  "Whole encrypted rounds, " + t.ParameterSet + ", ring link, no learning",
		XLabel: label, YLabel: "time of a round, all devices in one process (ms)",
		LogX: true, LogY: true, Series: []chart.Series{linear, measured},
	}.Save(base)
	if err != nil {
		return fmt.Errorf("drawing the plot: %w", err)
	}
	t.Plot = base + ".png"
	return nil
}

// WriteText writes the times as a table, and how they grow.
func (t *RoundTimes) WriteText(to io.Writer) error {
	w := new(bytes.Buffer)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "devices\tn\tms a round\tus a device and round\tkB a device\t")
	for _, p := range t.Points {
		ms := p.Seconds * 1e3
		fmt.Fprintf(table, "%d\t%d\t%.3f\t%.1f\t%.0f\t\n", p.Devices, p.Dimension, ms, 1e3*ms/float64(p.Devices), p.DeviceBytes/1e3)
	}
	_ = table.Flush() // into memory
	switch exponent := float64(t.Exponent); {
	case math.IsNaN(exponent):
	case t.byDimension():
		fmt.Fprintf(w, "The time grows as n^%.3f.\n", exponent)
	default:
		fmt.Fprintf(w, "From ten devices on the time grows as N^%.3f.\n", exponent)
	}
	_, err := w.WriteTo(to)
	return err
}

// timeRounds returns how long each of some whole encrypted rounds took, and completes the
// point.
func timeRounds(ctx context.Context, parameterSet string, point *RoundTime, rounds int) ([]float64, error) {
	c, devices := config.Default(), point.Devices
	c.Devices.Count, c.Encryption.ParameterSet, c.Encryption.DeltaMax = devices, parameterSet, 1
	c.Encryption.N = point.Dimension
	c.Optimizer.Rounds, c.Channel.GainLatticeBits, c.Channel.Std = rounds+1, 2, 0.3
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		return nil, err
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		return nil, err
	}
	point.Dimension = design.Params.N
	before := heap()
	p, err := newProtocol(c, root, uplink.SeedLinkSecret(root), ch, nil, nil, design, xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	delta := make([][]float64, devices)
	for i := range delta {
		delta[i] = make([]float64, 1)
	}
	var times []float64
	for k := 1; k <= rounds+1; k++ { // the first warms up
		if ctx.Err() != nil {
			return nil, ErrInterrupted
		}
		began := time.Now()
		if _, err := p.Aggregate(ctx, k, delta); err != nil {
			return nil, err
		}
		if k > 1 {
			times = append(times, time.Since(began).Seconds())
		}
	}
	point.DeviceBytes = (heap() - before) / float64(devices)
	runtime.KeepAlive(p)
	return times, nil
}

// heap returns the bytes in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
