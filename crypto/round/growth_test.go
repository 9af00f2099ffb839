package round

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/chart"
)

// growthPrimes are the primes of 50 bits that are 1 modulo 32768 next below 2^50, which
// serve all dimensions of the measurement, so that n alone differs.
func growthPrimes() []uint64 { return []uint64{0x3ffffffdf0001, 0x3ffffffd48001} }

// TestGrowth measures how the time of a round grows with N and with n, and what memory a
// device takes, and draws it. It judges nothing: the time is the machine's.
func TestGrowth(t *testing.T) {
	dir := os.Getenv("RINGWAVE_GROWTH")
	if dir == "" {
		t.Skip("a measurement, not a test: set RINGWAVE_GROWTH to a folder for its plot, and run with -v")
	}
	defaults := params(t, "ringwave-4096-100")
	devices := chart.Series{Name: "N devices, n = 4096", Style: chart.LinePoints, Color: chart.Blue}
	for _, n := range []int{10, 30, 100, 300, 1000, 3000, 10000} {
		seconds, bytes := timeOfRound(t, defaults, n)
		t.Logf("N = %5d: %8.2f ms a round, %.0f kB a device", n, 1e3*seconds, bytes/float64(n)/1e3)
		devices.X, devices.Y = append(devices.X, float64(n)), append(devices.Y, seconds)
	}
	dimensions := chart.Series{Name: "dimension n, N = 10, whole form", Style: chart.LinePoints, Color: chart.Vermillion}
	for _, n := range []int{1024, 2048, 4096, 8192, 16384} {
		p := params(t, "paper-4096")
		p.N, p.Primes = n, growthPrimes()
		seconds, bytes := timeOfRound(t, p, 10)
		t.Logf("n = %5d: %8.2f ms a round, %.0f kB a device", n, 1e3*seconds, bytes/10/1e3)
		dimensions.X, dimensions.Y = append(dimensions.X, float64(n)), append(dimensions.Y, seconds)
	}
	figure := chart.Figure{
		Title: "How a round of the ring link grows", XLabel: "N, or n", YLabel: "seconds a round", LogX: true, LogY: true,
		Series: []chart.Series{devices, dimensions},
		Note:   fmt.Sprintf("Exponents, fitted: %.2f in N, %.2f in n.", exponent(devices), exponent(dimensions)),
	}
	t.Log(figure.Note)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := figure.Save(filepath.Join(dir, "growth")); err != nil {
		t.Fatal(err)
	}
}

// exponent is the slope of the logarithms.
func exponent(s chart.Series) float64 {
	logs := func(x []float64) (y []float64) {
		for _, v := range x {
			y = append(y, math.Log(v))
		}
		return y
	}
	_, slope := stat.LinearRegression(logs(s.X), logs(s.Y), nil, false)
	return slope
}

// timeOfRound returns the median time of a round, and the memory of the devices, of the
// link and of what they share.
func timeOfRound(t *testing.T, p xmkckks.Params, devices int) (seconds, bytes float64) {
	t.Helper()
	before := heap()
	x := newBench(t, setup{params: p, form: p.Form, devices: devices, sigma: 1, f: 8, guard: openGuard{}, seed: 6})
	bytes = heap() - before
	delta := x.deltas()
	var times []float64
	for k := range uint32(max(5, min(50, 20000/devices))) {
		start := time.Now()
		out, err := x.engine.Run(t.Context(), k, delta)
		if err != nil || out.Skipped {
			t.Fatalf("N = %d, round %d: %v, skipped: %v", devices, k, err, out.Skipped)
		}
		times = append(times, time.Since(start).Seconds())
	}
	slices.Sort(times)
	runtime.KeepAlive(x)
	return times[len(times)/2], bytes
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
