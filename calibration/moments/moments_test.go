package moments

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
)

// counted returns how many trials a test makes: all of them with RINGWAVE_LONG set.
func counted(usual, long int) int {
	if os.Getenv("RINGWAVE_LONG") != "" {
		return long
	}
	return usual
}

func random(name string, index ...uint64) *rand.Rand {
	return rand.New(keystream.FromInteger(5).Derive(name, index...).Stream())
}

// truth is a simulated bench: real gains of a law times a phase a session, measured
// with noise by soundings of 500 samples.
type truth struct {
	law                    channel.Fading
	snrDB                  float64
	devices, blocks, looks int
	sessions               int
	lasts                  bool
	burst, dof             float64
}

func (c truth) noise() float64 {
	return c.law.SecondMoment() / math.Pow(10, c.snrDB/10)
}

func (c truth) draw(rnd *rand.Rand) Bench {
	if c.burst == 0 {
		c.burst, c.dof = 500, 990
	}
	b := Bench{Looks: c.looks, BlockSeconds: 1, LookSeconds: 0.1, Session: make([]int, c.blocks)}
	sessions := max(1, c.sessions)
	for k := range b.Session {
		b.Session[k] = k * sessions / c.blocks
	}
	noise := c.noise()
	for range c.devices {
		s := Series{NoiseDoF: c.dof}
		phase := 2 * math.Pi * rnd.Float64()
		for k := range c.blocks {
			if k > 0 && b.Session[k] != b.Session[k-1] && !c.lasts {
				phase = 2 * math.Pi * rnd.Float64()
			}
			h := cmplx.Rect(1, phase) * complex(c.law.Draw(rnd), 0)
			for range c.looks {
				e := complex(rnd.NormFloat64(), rnd.NormFloat64()) * complex(math.Sqrt(noise/c.burst/2), 0)
				power := noise * (1 + math.Sqrt(2/c.dof)*rnd.NormFloat64())
				s.Gain = append(s.Gain, h+e)
				s.GainVar = append(s.GainVar, power/c.burst)
				s.Noise = append(s.Noise, power)
				s.Delay = append(s.Delay, 0.3+0.01*rnd.NormFloat64())
				s.DelayVar = append(s.DelayVar, 1e-4)
				s.Offset = append(s.Offset, 10+rnd.NormFloat64())
				s.OffsetVar = append(s.OffsetVar, 1)
				s.Clipped = append(s.Clipped, 0)
			}
		}
		b.Devices = append(b.Devices, s)
	}
	return b
}

type coverage struct {
	covered, n  int
	values      []float64
	target      float64
	below, over int
}

func (c *coverage) add(v Value, target float64) {
	c.n++
	c.target = target
	if v.Low <= target && target <= v.High {
		c.covered++
	} else if v.High < target {
		c.below++
	} else {
		c.over++
	}
	c.values = append(c.values, v.Value)
}

// bias is that of the mean in its standard errors.
func (c *coverage) bias() float64 {
	mean, sd := stat.MeanStdDev(c.values, nil)
	return (mean - c.target) / (sd / math.Sqrt(float64(len(c.values))))
}

// The intervals cover the truth as often as they say, and the estimates are
// unbiased, over 400 calibrations in each row. Quick runs make fewer.
// Longer, or of more branches, than most because it is a table of links and estimates.
func TestCoverage(t *testing.T) {
	type row struct {
		law    channel.Fading
		model  Model
		k      float64
		blocks int
	}
	var rows []row
	for _, sigma := range []float64{0.01, 0.1, 1, 10} {
		blocks := 400
		if sigma == 10 {
			blocks = 2000 // sign of the mean: see Device.BlocksNeeded
		}
		rows = append(rows, row{channel.Gaussian{Mu: 1, Sigma: sigma}, Undecided, 1 / (2 * sigma * sigma), blocks})
	}
	rows = append(rows, row{channel.Gaussian{Mu: 1, Sigma: 0.3}, Gaussian, 1 / 0.18, 64})
	for _, k := range []float64{5000, 50, 5, 1} {
		rows = append(rows, row{channel.NewRicianMean(k, 1), Rician, k, 400})
	}
	rows = append(rows, row{channel.NewRicianMean(5, 1), Rician, 5, 64})
	calibrations := counted(30, 400)
	snrs := []float64{5, 40}
	if calibrations == 400 {
		snrs = []float64{5, 20, 40}
	}
	slack := 3 * math.Sqrt(0.95*0.05/float64(calibrations))
	beyond, cells := 0, 0
	for i, r := range rows {
		for _, snr := range snrs {
			if calibrations < 400 && r.blocks > 1000 && snr > 5 {
				continue
			}
			c := truth{law: r.law, snrDB: snr, devices: 1, blocks: r.blocks, looks: 1}
			names := []string{"mu", "Omega", "sigma", "K", "SNR", "SNR/dB"}
			tallies := make([]coverage, len(names))
			mu, omega := r.law.Mean(), r.law.SecondMoment()
			told := 0
			for trial := range calibrations {
				model := r.model
				// At sigma 0.01 there is nothing that the choice of the law would change;
				// elsewhere it is left to the data where they can make it.
				if g, ok := r.law.(channel.Gaussian); ok && g.Sigma == 0.1 {
					model = Gaussian
				}
				res, err := Analyse(c.draw(random("coverage", uint64(i), uint64(snr), uint64(trial))), Options{Model: model})
				if err != nil {
					t.Fatal(err)
				}
				d := res.Devices[0]
				if d.Model != Undecided {
					told++
				}
				linear := math.Pow(10, snr/10)
				for j, v := range []struct {
					v Value
					t float64
				}{{d.Mu, mu}, {d.Omega, omega}, {d.Sigma, math.Sqrt(omega - mu*mu)}, {d.KFactor, r.k}, {d.SNR, linear}, {d.SNRdB, snr}} {
					tallies[j].add(v.v, v.t)
				}
			}
			var line strings.Builder
			for j := range tallies {
				q := &tallies[j]
				share, bias := float64(q.covered)/float64(q.n), q.bias()
				fmt.Fprintf(&line, " %s %.1f%% %+.1f;", names[j], 100*share, bias)
				cells++
				if math.Abs(bias) > 2 {
					beyond++
				}
				if math.Abs(share-0.95) > slack && !(calibrations < 400 && share > 0.95) {
					t.Errorf("%v at %v dB: the interval of %s covers %.4f of the truths (%d above, %d below)", r.law, snr, names[j], share, q.over, q.below)
				}
				// 180 cells: one in twenty lies beyond two standard errors by chance.
				if math.Abs(bias) > 3.8 {
					t.Errorf("%v at %v dB: %s is biased by %.1f standard errors", r.law, snr, names[j], bias)
				}
			}
			t.Logf("%T %.4v, %v dB, %d blocks, law told %d:%s", r.law, r.law, snr, r.blocks, told, line.String())
		}
	}
	t.Logf("%d of %d biases beyond two standard errors", beyond, cells)
	if float64(beyond) > 0.05*float64(cells)+3*math.Sqrt(0.05*float64(cells))+1 {
		t.Errorf("%d of %d biases lie beyond two standard errors", beyond, cells)
	}
}

func BenchmarkAnalyse(b *testing.B) {
	bench := truth{law: channel.Gaussian{Mu: 1, Sigma: 0.3}, snrDB: 20, devices: 10, blocks: 1000, looks: 4}.draw(random("benchmark"))
	for b.Loop() {
		if _, err := Analyse(bench, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
