package moments

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/phy/channel"
)

// A bench that violates nothing is accused of something in at most 1 % of
// calibrations: over 400 benches, at most 4.
func TestFalseAlarms(t *testing.T) {
	laws := []channel.Fading{
		channel.Gaussian{Mu: 1, Sigma: 0.01}, channel.Gaussian{Mu: 0.5, Sigma: 0.15}, channel.Gaussian{Mu: 1, Sigma: 1},
		channel.NewRicianMean(5, 1), channel.NewRicianMean(1, 1),
	}
	benches, alarms := counted(45, 400), 0
	for i := range benches {
		rnd := random("honest", uint64(i))
		c := truth{law: laws[i%len(laws)], snrDB: []float64{5, 20, 40}[i%3], devices: []int{1, 3, 10}[i/3%3],
			blocks: []int{64, 200, 400}[i/9%3], looks: 4, sessions: 1 + i/27%2, lasts: i%4 == 0}
		r, err := Analyse(c.draw(rnd), Options{RoundSeconds: 0.3, OffsetHz: 20})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Violations(); len(v) > 0 {
			alarms++
			t.Logf("%+v: %s", c, strings.Join(v, "; "))
		}
		for _, test := range r.Tests {
			if test.Sentence == "" || test.Holds && len(test.Devices) > 0 {
				t.Fatalf("%+v", test)
			}
		}
	}
	t.Logf("%d of %d benches accused", alarms, benches)
	if alarms > max(1, benches/100) {
		t.Errorf("%d of %d benches that violate nothing were accused", alarms, benches)
	}
}

// Each violation is named, with the device that it belongs to, in at least 99 % of
// calibrations.
// Longer, or of more branches, than most because it is a table of violations.
func TestViolations(t *testing.T) {
	const blocks, looks = 300, 4
	turn := func(s *Series, k int, by float64) {
		for l := k * looks; l < (k+1)*looks; l++ {
			s.Gain[l] *= cmplx.Rect(1, by)
		}
	}
	each := func(s *Series, f func(k, look int)) {
		for k := range blocks {
			for l := range looks {
				f(k, k*looks+l)
			}
		}
	}
	cases := []struct {
		name    string
		want    Assumption
		devices []int
		say     string
		spoil   func(b *Bench, rnd *rand.Rand)
	}{
		{"zero mean", NonzeroMean, []int{1}, "cannot be told from 0", func(b *Bench, rnd *rand.Rand) {
			s := &b.Devices[1]
			for k := range blocks {
				h := rnd.NormFloat64()
				for l := k * looks; l < (k+1)*looks; l++ {
					s.Gain[l] = complex(h, 0) + cmplx.Rect(math.Sqrt(s.GainVar[l]/2), 2*math.Pi*rnd.Float64())
				}
			}
		}},
		{"two levels", Fit, []int{2}, "neither Gaussian nor Rician", func(b *Bench, rnd *rand.Rand) {
			s := &b.Devices[2]
			unit := s.unit()
			for k := range blocks {
				h := unit * complex(0.3+1.5*float64(rnd.IntN(2)), 0)
				for l := k * looks; l < (k+1)*looks; l++ {
					s.Gain[l] += h
				}
			}
		}},
		{"drifting mean", Stationary, []int{0}, "mean of the gain", func(b *Bench, _ *rand.Rand) {
			s := &b.Devices[0]
			each(s, func(k, l int) { s.Gain[l] *= complex(1+float64(k)/blocks, 0) })
		}},
		{"changed spread", Stationary, []int{3}, "spread of the gain", func(b *Bench, rnd *rand.Rand) {
			s := &b.Devices[3]
			unit := s.unit()
			for k := 150; k < blocks; k++ {
				h := unit * complex(0.8*rnd.NormFloat64(), 0)
				for l := k * looks; l < (k+1)*looks; l++ {
					s.Gain[l] += h
				}
			}
		}},
		{"same fading", IndependentDevices, []int{0, 2}, "devices 1 and 3", func(b *Bench, rnd *rand.Rand) {
			a, c := &b.Devices[0], &b.Devices[2]
			ua, uc := a.unit(), c.unit()
			for k := range blocks {
				h := complex(0.3*rnd.NormFloat64(), 0)
				for l := k * looks; l < (k+1)*looks; l++ {
					a.Gain[l] += h * ua
					c.Gain[l] += h * uc
				}
			}
		}},
		{"slow fading", IndependentBlocks, []int{1}, "successive blocks", func(b *Bench, rnd *rand.Rand) {
			s := &b.Devices[1]
			unit, h := s.unit(), 0.0
			for k := range blocks {
				h = 0.6*h + 0.3*rnd.NormFloat64()
				for l := k * looks; l < (k+1)*looks; l++ {
					s.Gain[l] += unit * complex(h, 0)
				}
			}
		}},
		{"change within a block", ConstantInBlock, []int{2}, "changes within a block", func(b *Bench, rnd *rand.Rand) {
			s := &b.Devices[2]
			each(s, func(_, l int) { s.Gain[l] *= complex(1+0.02*rnd.NormFloat64(), 0) })
		}},
		{"carrier offset", ConstantInBlock, []int{1}, "carrier is off by 0.0", func(b *Bench, _ *rand.Rand) {
			s := &b.Devices[1]
			each(s, func(k, l int) {
				s.Gain[l] *= cmplx.Rect(1, 2*math.Pi*0.05*(float64(k)*b.BlockSeconds+float64(l%looks)*b.LookSeconds))
			})
		}},
		{"drift of phase", FixedPhase, []int{3}, "phase does not stay", func(b *Bench, _ *rand.Rand) {
			s := &b.Devices[3]
			for k := range blocks {
				turn(s, k, 0.003*float64(k))
			}
		}},
		{"clock of one device", OneClock, []int{2}, "the clock of device 3 alone jumped before block 151", func(b *Bench, _ *rand.Rand) {
			for k := 150; k < blocks; k++ {
				turn(&b.Devices[2], k, 0.5)
			}
		}},
		{"clock of one device, far", OneClock, []int{0}, "+2.5 (", func(b *Bench, _ *rand.Rand) {
			for k := 170; k < blocks; k++ {
				turn(&b.Devices[0], k, 2.5)
			}
		}},
		{"clock of two devices", OneClock, []int{1, 3}, "a clock that devices 2 and 4 share jumped before block 101", func(b *Bench, _ *rand.Rand) {
			for k := 100; k < blocks; k++ {
				turn(&b.Devices[1], k, -0.4)
				turn(&b.Devices[3], k, -0.4)
			}
		}},
		{"receiver's clock", OneClock, []int{0, 1, 2, 3}, "the receiver's clock, since all devices are hit at once, jumped before block 201", func(b *Bench, _ *rand.Rand) {
			for k := 200; k < blocks; k++ {
				for i := range b.Devices {
					turn(&b.Devices[i], k, 1.2)
				}
			}
		}},
		{"jump of delays", OneClock, []int{0, 1}, "samples on device 2", func(b *Bench, _ *rand.Rand) {
			for i := range 2 {
				for l := 150 * looks; l < blocks*looks; l++ {
					b.Devices[i].Delay[l] += 0.1
				}
			}
		}},
		{"clipped", Unclipped, []int{1}, "3 samples clipped in 1 of 1200", func(b *Bench, _ *rand.Rand) {
			b.Devices[1].Clipped[17] = 3
		}},
		{"compression", Linear, []int{3}, "grows with its gain", func(b *Bench, _ *rand.Rand) {
			s := &b.Devices[3]
			each(s, func(_, l int) {
				a := cmplx.Abs(s.Gain[l])
				s.Noise[l] += 0.003 * a * a * a * a
			})
		}},
		{"wrong frequency", OnFrequency, []int{0}, "wrong frequency: the carrier is off by 1", func(b *Bench, _ *rand.Rand) {
			s := &b.Devices[0]
			each(s, func(_, l int) { s.Offset[l] += 2 })
		}},
	}
	trials := counted(5, 100)
	for i, c := range cases {
		named := 0
		for trial := range trials {
			rnd := random("violation", uint64(i), uint64(trial))
			b := truth{law: channel.Gaussian{Mu: 1, Sigma: 0.2}, snrDB: 20, devices: 4, blocks: blocks, looks: looks}.draw(rnd)
			c.spoil(&b, rnd)
			r, err := Analyse(b, Options{RoundSeconds: 0.3, OffsetHz: 11})
			if err != nil {
				t.Fatal(err)
			}
			test := r.Tests[slices.Index(Assumptions(), c.want)]
			if !test.Holds && strings.Contains(test.Sentence, c.say) && slices.Equal(test.Devices, c.devices) {
				named++
			}
			if trial == 0 {
				t.Logf("%s: %s", c.name, strings.Join(r.Violations(), "\n        also: "))
			}
			for _, d := range c.devices {
				if !test.Holds && len(r.Devices[d].Violations()) == 0 {
					t.Errorf("%s: nothing is said of device %d itself", c.name, d+1)
				}
			}
		}
		if float64(named) < 0.99*float64(trials) {
			t.Errorf("%s: named in %d of %d calibrations", c.name, named, trials)
		}
	}
}

// The number of blocks asked for is enough: a mean of a tenth of the deviation is
// told from zero with it, and seldom with a quarter of it.
func TestBlocksForMean(t *testing.T) {
	need := BlocksForMean(1, 10)
	if need < 3000 || need > 3200 {
		t.Fatalf("%d blocks", need)
	}
	trials := counted(20, 400)
	for _, c := range []struct {
		blocks int
		enough bool
	}{{need, true}, {need / 4, false}} {
		told := 0
		for trial := range trials {
			b := truth{law: channel.Gaussian{Mu: 1, Sigma: 10}, snrDB: 20, devices: 1, blocks: c.blocks, looks: 1}.draw(random("blocks", uint64(c.blocks), uint64(trial)))
			r, err := Analyse(b, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Tests[0].Holds {
				told++
			}
		}
		t.Logf("%d blocks: told in %d of %d", c.blocks, told, trials)
		if share := float64(told) / float64(trials); c.enough && share < 0.97 || !c.enough && share > 0.75 {
			t.Errorf("%d blocks: told from zero in %d of %d", c.blocks, told, trials)
		}
	}
}

// unit is the direction of the gains.
func (s *Series) unit() complex128 {
	var sum complex128
	for _, g := range s.Gain {
		sum += g
	}
	return sum / complex(cmplx.Abs(sum), 0)
}

// Probabilities are uniform, and in their tails no smaller than they say, since the
// checks are made far out.
func TestProbabilities(t *testing.T) {
	trials := counted(4000, 100000)
	rnd := random("probabilities")
	for _, law := range []channel.Fading{channel.Gaussian{Mu: 0, Sigma: 1}, channel.NewRicianMean(2, 1)} {
		names := []string{"fit", "Kendall", "CUSUM", "serial", "correlation"}
		tenth, thousandth := make([]int, len(names)), make([]int, len(names))
		repeat := trials
		_, isRician := law.(channel.Rician)
		if isRician {
			repeat = trials / 40
		}
		for range repeat {
			const n = 64
			p := sample{x: make([]float64, n), n: n, axes: 1}
			other := make([]float64, n)
			for i := range p.x {
				p.x[i], other[i] = law.Draw(rnd), law.Draw(rnd)
			}
			p.mean = meanOf(p.x)
			for _, x := range p.x {
				p.s2 += (x - p.mean) * (x - p.mean) / (n - 1)
			}
			p.w = 1e-6 * p.s2
			var ps [5]float64
			_, ps[0] = p.fitsGaussian()
			if isRician {
				_, _, _, ps[0] = p.fits()
			}
			ranks := ranksOf(p.x)
			_, ps[1] = kendall(ranks)
			_, _, ps[2] = changePoint(ranks)
			_, _, ps[3], _ = serial(scores(p.x), []span{{0, n}})
			r := correlation(scores(p.x), scores(other))
			ps[4] = studentTail(r*math.Sqrt((n-2)/(1-r*r)), n-2)
			for j, v := range ps {
				if v < 0.1 {
					tenth[j]++
				}
				if v < 0.001 {
					thousandth[j]++
				}
			}
		}
		for j, name := range names {
			share, tail := float64(tenth[j])/float64(repeat), float64(thousandth[j])
			t.Logf("%T %s: p below 0.1 in %.4f, below 0.001 in %.5f", law, name, share, tail/float64(repeat))
			slack := 4*math.Sqrt(0.09/float64(repeat)) + 0.012 // discrete or asymptotic
			if share > 0.1+slack || name != "CUSUM" && name != "serial" && share < 0.1-slack {
				t.Errorf("%s: p below 0.1 in %.4f", name, share)
			}
			expected := 0.001 * float64(repeat)
			if tail > 2*expected+4*math.Sqrt(2*expected)+2 {
				t.Errorf("%s: p below 0.001 in %v of %d", name, tail, repeat)
			}
		}
	}
}
