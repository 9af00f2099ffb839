package theory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner"
)

// plainLink has Gaussian gains and noise of one deviation, without encryption.
type plainLink struct {
	*learner.EZOFL
	mu, omega []float64
	noise     float64
}

func (l *plainLink) Moments() (mu, omega []float64, decodedVariance float64) {
	return l.mu, l.omega, l.noise * l.noise
}

func (l *plainLink) Close() {}

// openPlain opens plain links: less noise over the ring, so that the two differ.
func openPlain(r Run) (Link, error) {
	l, sigma := &plainLink{noise: 0.01}, make([]float64, r.Devices)
	if r.Ring {
		l.noise /= 2
	}
	for i := range sigma {
		sigma[i] = r.Uplink.Sigma
		l.mu, l.omega = append(l.mu, r.Uplink.Mu), append(l.omega, r.Uplink.Mu*r.Uplink.Mu+sigma[i]*sigma[i])
	}
	var err error
	l.EZOFL, err = learner.NewEZOFL(&drawnGains{l.mu, sigma, r.Seed.Stream(), make([]float64, r.Devices)}, l.mu, l.noise, r.Seed)
	return l, err
}

// small is the smallest run of everything.
func small() Options {
	return Options{Seed: keystream.FromInteger(2), Rounds: []int{20, 50, 100}, Seeds: 5, RingRounds: []int{20}, RingSeeds: 2, LemmaDraws: 50}
}

// TestSameOnAnyNumberOfCores prints both reports, to the bit.
func TestSameOnAnyNumberOfCores(t *testing.T) {
	text := func(workers int) string {
		o := small()
		o.Workers = workers
		r, err := Verify(context.Background(), o, openPlain, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, x := range r.Settings {
			s += fmt.Sprintf("%v %v %v %v %v %v\n", x.Name, x.Points, x.Fits, x.Ring, x.AtStart, x.AtMinimum)
		}
		return s
	}
	if one, three := text(1), text(3); one != three {
		t.Errorf("with one worker the report is\n%s\nand with three\n%s", one, three)
	}
}

func TestVerifyStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := small()
	o.Rounds = []int{20, 100_000}
	_, err := Verify(ctx, o, openPlain, func(done, _ int) {
		if done > 100 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run gives %v", err)
	}
}

// A link that cannot be opened ends all work, and its error names the setting.
func TestVerifyWithoutLink(t *testing.T) {
	broken := errors.New("no link")
	_, err := Verify(context.Background(), small(), func(r Run) (Link, error) {
		if r.Ring {
			return nil, broken
		}
		return openPlain(r)
	}, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "quadratic, paper-4096") {
		t.Errorf("without a link: %v", err)
	}
}

func TestOptionsRefuse(t *testing.T) {
	for what, spoil := range map[string]func(*Options){
		"no horizon":            func(o *Options) { o.Rounds = nil },
		"descending horizons":   func(o *Options) { o.Rounds = []int{100, 20} },
		"a horizon of 1":        func(o *Options) { o.Rounds = []int{1, 20} },
		"three seeds":           func(o *Options) { o.Seeds = 3 },
		"an unknown horizon":    func(o *Options) { o.RingRounds = []int{21} },
		"more seeds over rings": func(o *Options) { o.RingSeeds = 6 },
		"one draw":              func(o *Options) { o.LemmaDraws = 1 },
		"negative workers":      func(o *Options) { o.Workers = -1 },
	} {
		o := small()
		spoil(&o)
		if _, err := Verify(context.Background(), o, openPlain, nil); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

// TestFits recovers what is put in.
func TestFits(t *testing.T) {
	var points []Point
	for _, k := range horizons {
		x := math.Pow(float64(k), -0.75)
		points = append(points, Point{Rounds: k, Minimum: 3 + 7*x, Tail: 3 + 7/math.Sqrt(float64(k))})
	}
	minimum := func(p Point) float64 { return p.Minimum }
	f := slope(points, 100, 3, minimum)
	if !f.Known || f.Points != 7 || math.Abs(f.Slope+0.75) > 1e-9 || f.StdErr > 1e-9 {
		t.Errorf("the slope is %+v; it must be -0.75", f)
	}
	if f := slope(points, 100, 3.05, minimum); f.Dropped == 0 || f.Points+f.Dropped != 7 {
		t.Errorf("with a floor above some points the fit is %+v", f)
	}
	if f := slope(points, 100, 10, minimum); f.Known || f.Dropped != 7 {
		t.Errorf("with a floor above all points the fit is %+v", f)
	}
	if f := floor(points); !f.Known || math.Abs(f.Value-3) > 1e-9 || f.StdErr > 1e-6 {
		t.Errorf("the floor is %+v; it must be 3", f)
	}
	if f := floor(points[:4]); f.Known {
		t.Errorf("the floor of two settled points is %+v", f)
	}
	// The standard error is what it says: of slopes over points that scatter by a
	// known deviation it is the deviation over the root of the spread of log K.
	var scattered []Point
	for i, p := range points {
		p.Minimum = math.Exp(0.1 * float64(1-2*(i%2)))
		scattered = append(scattered, p)
	}
	var mean, spread float64
	for _, p := range scattered {
		mean += math.Log(float64(p.Rounds)) / 7
	}
	for _, p := range scattered {
		d := math.Log(float64(p.Rounds)) - mean
		spread += d * d
	}
	near(t, "the slope's standard error", slope(scattered, 100, 0, minimum).StdErr, 0.1*math.Sqrt(7.0/5/spread), 0.05)
}
