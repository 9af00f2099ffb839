package gains

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// law is the distribution of a gain.
type law struct {
	name      string
	mean, std float64
	draw      func(r *rand.Rand) float64
}

func normal(mu, sigma float64) law {
	return law{"Gaussian", mu, sigma, func(r *rand.Rand) float64 { return mu + sigma*r.NormFloat64() }}
}

func rayleigh() law {
	return law{"Rayleigh", math.Sqrt(math.Pi / 2), math.Sqrt(2 - math.Pi/2), func(r *rand.Rand) float64 {
		return math.Hypot(r.NormFloat64(), r.NormFloat64())
	}}
}

// watching makes a Watch of equal devices, in groups, whose means are known exactly.
func watching(t *testing.T, l law, devices, group int, alarm float64, turned bool) *Watch {
	t.Helper()
	cfg := Config{FalseAlarm: alarm, Turned: turned}
	for i := range devices {
		cfg.Links = append(cfg.Links, Link{Mean: l.mean, Std: l.std, Low: l.mean, High: l.mean, Group: i / group})
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// alarms counts the runs in which some device's running mean is said to have left.
func alarms(t *testing.T, l law, runs, rounds int, alarm float64) int {
	t.Helper()
	const devices = 10
	r := rand.New(rand.NewPCG(11, 2))
	h, slack := make([]float64, devices), make([]float64, devices)
	count := 0
	for range runs {
		w := watching(t, l, devices, devices, alarm, false)
		for range rounds {
			for i := range h {
				h[i] = l.draw(r)
			}
			w.Look(h, slack, true)
		}
		if slices.ContainsFunc(w.State().Devices, func(d DeviceState) bool { return d.Left > 0 }) {
			count++
		}
	}
	return count
}

// Ten devices that are what is known of them raise an alarm in 400 rounds, with a look
// after each, no more often than asked for: in one run of twenty, and of a thousand. The
// bounds are four deviations of the count above its mean.
func TestFalseAlarms(t *testing.T) {
	runs := 600
	if os.Getenv("RINGWAVE_LONG") != "" {
		runs = 10_000
	}
	for _, l := range []law{normal(1, 0.4), normal(1, 1), rayleigh()} {
		for _, p := range []float64{0.05, 0.001} {
			n := alarms(t, l, runs, 400, p)
			mean := p * float64(runs)
			t.Logf("%s, sigma/mu %.2f: %d of %d runs, allowed in the mean %.1f", l.name, l.std/l.mean, n, runs, mean)
			if float64(n) > mean+4*math.Sqrt(mean) {
				t.Errorf("%s, sigma/mu %.2f: %d of %d runs raised an alarm, allowed in the mean are %.1f", l.name, l.std/l.mean, n, runs, mean)
			}
		}
	}
}

// A mean that is off by half a deviation is found in 400 rounds, and one that is off by
// two deviations in 20; by that device alone.
func TestFindsWrongMean(t *testing.T) {
	for _, c := range []struct {
		shift  float64
		rounds int
	}{{0.5, 400}, {-0.5, 400}, {2, 20}, {-2, 20}} {
		l := normal(1, 0.4)
		r := rand.New(rand.NewPCG(3, 4))
		for range 100 {
			w := watching(t, l, 3, 3, 0, false)
			for range c.rounds {
				h := []float64{l.draw(r), l.draw(r) + c.shift*l.std, l.draw(r)}
				w.Look(h, make([]float64, 3), true)
			}
			d := w.State().Devices
			if d[0].Left > 0 || d[1].Left == 0 || d[2].Left > 0 {
				t.Fatalf("a shift of %v sigma over %d rounds: left after %d, %d and %d looks", c.shift, c.rounds, d[0].Left, d[1].Left, d[2].Left)
			}
		}
	}
}

// A receiver that turns groups to a positive sum shifts means, which are not blamed for
// it; where it does not turn them, they are.
func TestTurnedGroups(t *testing.T) {
	for _, c := range []struct {
		law   law
		group int
	}{{normal(1, 1), 1}, {normal(1, 1), 2}, {normal(0.3, 1), 2}, {normal(1, 10), 3}} {
		r := rand.New(rand.NewPCG(5, 6))
		turned := watching(t, c.law, 2*c.group, c.group, 0, true) // the other group is not of it
		plain := watching(t, c.law, 2*c.group, c.group, 0, false)
		const rounds = 20_000
		h, slack := make([]float64, 2*c.group), make([]float64, 2*c.group)
		for range rounds {
			sum := [2]float64{}
			for i := range h {
				h[i] = c.law.draw(r)
				sum[i/c.group] += h[i]
			}
			for i := range h {
				h[i] *= math.Copysign(1, sum[i/c.group])
			}
			turned.Look(h, slack, true)
			plain.Look(h, slack, true)
		}
		s := turned.Standing(0)
		if error := 5 * math.Hypot(c.law.mean, c.law.std) / math.Sqrt(rounds); math.Abs(s.Mean-s.High) > error {
			t.Errorf("N(%v, %v^2), G = %d: the mean is %.4f, expected %.4f within %.4f", c.law.mean, c.law.std, c.group, s.Mean, s.High, error)
		}
		if turned.State().Devices[0].Left != 0 {
			t.Errorf("N(%v, %v^2), G = %d: a device is blamed for what turning does", c.law.mean, c.law.std, c.group)
		}
		if plain.State().Devices[0].Left == 0 {
			t.Errorf("N(%v, %v^2), G = %d: the mean is off by %.3f, and nobody is blamed", c.law.mean, c.law.std, c.group, s.Mean-c.law.mean)
		}
	}
}

// A group whose sum is negative in the mean is turned over, and its messages with it.
func TestTurnedOver(t *testing.T) {
	l := normal(-1, 0.5)
	w := watching(t, l, 2, 2, 0, true)
	r := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		w.Look([]float64{-l.draw(r), -l.draw(r)}, make([]float64, 2), true)
	}
	if d := w.State().Devices; d[0].Left == 0 || d[1].Left == 0 {
		t.Errorf("gains of mean -1 that arrive as 1 are not found: %+v", d)
	}
}

// Whatever gains the receiver does not read, the mean of the others is not blamed for
// it: here the smallest fifth. Without a count of what was not read it would be.
func TestUnreadGains(t *testing.T) {
	l := normal(1, 0.5)
	r := rand.New(rand.NewPCG(9, 10))
	least := l.mean - 0.8416*l.std
	counted, uncounted := watching(t, l, 1, 1, 0, false), watching(t, l, 1, 1, 0, false)
	for range 5000 {
		h := l.draw(r)
		if h < least {
			counted.Unread(1)
			continue
		}
		counted.Look([]float64{h}, []float64{0}, true)
		uncounted.Look([]float64{h}, []float64{0}, true)
	}
	if counted.State().Devices[0].Left != 0 {
		t.Errorf("blamed for what was not read: %+v", counted.Standing(0))
	}
	if uncounted.State().Devices[0].Left == 0 {
		t.Errorf("not found: %+v", uncounted.Standing(0))
	}
}

// Rounding to coarse integers moves the mean of what is read, by no more than the slack.
func TestRounding(t *testing.T) {
	l := normal(0.3, 0.1)
	r := rand.New(rand.NewPCG(12, 13))
	w, blind := watching(t, l, 1, 1, 0, false), watching(t, l, 1, 1, 0, false)
	for range 2000 {
		h := math.Round(l.draw(r))
		w.Look([]float64{h}, []float64{0.5}, true)
		blind.Look([]float64{h}, []float64{0}, true)
	}
	if w.State().Devices[0].Left != 0 || blind.State().Devices[0].Left == 0 {
		t.Errorf("gains of 0.3 read as 0: %+v, without the slack %+v", w.Standing(0), blind.Standing(0))
	}
}

// Signs tell above mu/sigma = 4 only; a gain of 0 has none. Only new draws count.
func TestLook(t *testing.T) {
	w, err := New(Config{Links: []Link{
		{Mean: 1, Std: 0.24, Low: 1, High: 1}, {Mean: -1, Std: 0.24, Low: -1, High: -1},
		{Mean: 1, Std: 0.25, Low: 1, High: 1}, {Mean: 1, Std: 0, Low: 1, High: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	slack := make([]float64, 4)
	for _, c := range []struct {
		h    []float64
		want Verdict
	}{
		{[]float64{1, -1, 1, 1}, Verdict{}},
		{[]float64{-0.1, 0.1, -0.1, -0.1}, Verdict{WrongSigns: []int{0, 1, 3}}},
		{[]float64{0, 0, 0, math.Copysign(0, -1)}, Verdict{Zeros: 4}},
		{[]float64{0, 1, 1, 1}, Verdict{Zeros: 1, WrongSigns: []int{1}}},
	} {
		for _, fresh := range []bool{true, false} {
			if got := w.Look(c.h, slack, fresh); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v: %+v, want %+v", c.h, got, c.want)
			}
		}
	}
	s := w.State()
	if s.Looks != 4 || s.Draws != 4 || s.Devices[0].WrongSigns != 1 || s.Devices[1].WrongSigns != 2 || math.Abs(s.Devices[2].Sum-1.9) > 1e-15 {
		t.Errorf("%+v", s)
	}
}

// A Watch goes on from its state as if it had not stopped.
func TestRestore(t *testing.T) {
	l := normal(1, 1)
	one, other := watching(t, l, 2, 2, 0, true), watching(t, l, 2, 2, 0, true)
	r := rand.New(rand.NewPCG(14, 15))
	for k := range 40 {
		h, slack := []float64{l.draw(r) + 3, l.draw(r)}, []float64{0.1, 0.2}
		a, b := one.Look(h, slack, true), other.Look(h, slack, true)
		one.Unread(1)
		other.Unread(1)
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(one.State(), other.State()) {
			t.Fatalf("round %d: %+v and %+v", k, a, b)
		}
		data, err := json.Marshal(other.State())
		if err != nil {
			t.Fatal(err)
		}
		var s State
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		other = watching(t, l, 2, 2, 0, true)
		if err := other.Restore(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Restore(State{Devices: make([]DeviceState, 3)}); err == nil || !strings.Contains(err.Error(), "3 devices") {
		t.Errorf("the state of three devices: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	good := Link{Mean: 1, Std: 1, Low: 1, High: 1}
	for name, cfg := range map[string]Config{
		"no device":    {},
		"probability":  {Links: []Link{good}, FalseAlarm: 1},
		"not a number": {Links: []Link{good}, FalseAlarm: math.NaN()},
		"mean 0":       {Links: []Link{good, {Std: 1}}},
		"mean NaN":     {Links: []Link{{Mean: math.NaN(), Std: 1}}},
		"interval":     {Links: []Link{{Mean: 1, Low: 2, High: 1}}},
		"NaN interval": {Links: []Link{{Mean: 1, Low: math.NaN(), High: 1}}},
		"deviation":    {Links: []Link{{Mean: 1, Std: -1, Low: 1, High: 1}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, s := range map[string]State{
		"looks":       {Looks: -1},
		"draws":       {Looks: 2, Draws: 1},
		"sum":         {Devices: []DeviceState{{Sum: math.NaN()}}},
		"slack":       {Devices: []DeviceState{{Slack: -1}}},
		"wrong signs": {Looks: 1, Draws: 1, Devices: []DeviceState{{WrongSigns: 2}}},
		"left":        {Looks: 1, Draws: 1, Devices: []DeviceState{{Left: 2}}},
	} {
		if s.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
