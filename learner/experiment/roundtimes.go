package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"text/tabwriter"
	"time"

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
	// Exponent is that of N, from ten devices on; NaN where it cannot be told.
	Exponent runfolder.Float `json:"exponent"`
	Plot     string          `json:"plot"` // the path of Draw's PNG
}

// RoundTime is the median time of a round with some devices.
type RoundTime struct {
	Devices int     `json:"devices"`
	Seconds float64 `json:"seconds"`
}

// Measure adds a point, of so many devices. It ends with ErrInterrupted where ctx did.
func (t *RoundTimes) Measure(ctx context.Context, devices int) error {
	seconds, err := timeRounds(ctx, t.ParameterSet, devices, t.Rounds)
	if err != nil {
		return err
	}
	_, median, _ := chart.Quartiles(seconds)
	t.Points = append(t.Points, RoundTime{devices, median})
	t.Exponent = runfolder.Float(t.exponent())
	return nil
}

// exponent fits log time = a + exponent log N by least squares over the points from ten
// devices on.
func (t *RoundTimes) exponent() float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range t.Points {
		if p.Devices < 10 {
			continue
		}
		x, y := math.Log(float64(p.Devices)), math.Log(p.Seconds)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// Draw draws the times into a folder, new or empty.
func (t *RoundTimes) Draw(dir string) error {
	if len(t.Points) == 0 {
		return errors.New("drawing times of rounds: there is no point")
	}
	measured := chart.Series{Name: "a whole round, " + t.ParameterSet, Style: chart.LinePoints}
	linear := chart.Series{Name: "proportional to N", Dashed: true}
	last := t.Points[len(t.Points)-1]
	for _, p := range t.Points {
		n := float64(p.Devices)
		measured.X, measured.Y = append(measured.X, n), append(measured.Y, p.Seconds*1e3)
		linear.X, linear.Y = append(linear.X, n), append(linear.Y, last.Seconds*1e3*n/float64(last.Devices))
	}
	folder, err := runfolder.Create(dir)
	if err != nil {
		return intake.PathError(err)
	}
	defer folder.Close()
	base := filepath.Join(folder.Path(), "round-time")
	err = chart.Figure{
		Title:  "Whole encrypted rounds, " + t.ParameterSet + ", ring link, no learning",
		XLabel: "devices N", YLabel: "time of a round, all devices in one process (ms)",
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
	fmt.Fprintln(table, "devices\tms a round\tus a device and round\t")
	for _, p := range t.Points {
		ms := p.Seconds * 1e3
		fmt.Fprintf(table, "%d\t%.3f\t%.1f\t\n", p.Devices, ms, 1e3*ms/float64(p.Devices))
	}
	_ = table.Flush() // into memory
	if exponent := float64(t.Exponent); !math.IsNaN(exponent) {
		fmt.Fprintf(w, "From ten devices on the time grows as N^%.3f.\n", exponent)
	}
	_, err := w.WriteTo(to)
	return err
}

// timeRounds returns how long each of some whole encrypted rounds took.
func timeRounds(ctx context.Context, parameterSet string, devices, rounds int) ([]float64, error) {
	c := config.Default()
	c.Devices.Count, c.Encryption.ParameterSet, c.Encryption.DeltaMax = devices, parameterSet, 1
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
	return times, nil
}
