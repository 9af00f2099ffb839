package phy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// counted returns how many trials a test makes: few with -short, all of them with
// RINGWAVE_LONG in the environment.
func counted(short, usual, long int) int {
	switch {
	case os.Getenv("RINGWAVE_LONG") != "":
		return long
	case testing.Short():
		return short
	}
	return usual
}

// noiseFor returns the deviation a branch and sample that leaves trits the given
// SNR in dB, per device of gain 1 and soft real symbol.
func noiseFor(c modem.Config, snr float64) float64 {
	return math.Sqrt(2.0 / 3 * math.Pow(10, -snr/10) / modem.NoiseBandwidth(c.Pulse, c.SamplesPerSymbol))
}

// fadingAir is a bench of continuous gains about 1, delays within the tolerance of
// flatTop, and no phases.
func fadingAir(t testing.TB, devices int, sigma, snr float64) *air {
	return newAir(t, devices, scene{sigma: sigma, bits: -1, noiseStd: noiseFor(flatTop, snr), impair: func(i int) channel.Impairments {
		return channel.Impairments{DelaySamples: delayOf(i)}
	}})
}

func delayOf(i int) float64 { return 0.3 * float64(i%4) }

// passage measures the real gain of a device of gain 1 on fadingAir: the filter
// that makes a fraction of a sample overshoots at the edges of flat-top pulses,
// and raises the gain by up to 0.7 %.
func passage(t testing.TB, m *zq.Modulus, i int) float64 {
	a := newAir(t, 1, scene{bits: 0, impair: func(int) channel.Impairments {
		return channel.Impairments{DelaySamples: delayOf(i)}
	}})
	w := newWaveform(t, a, m, func(c *WaveformConfig) { c.Alpha = 1 })
	rx := Reception{Y: m.NewVector(200), Pattern: make([]int64, w.PatternSymbols())}
	sendOver(t, w, slot.Slot{}, randomPayloads(m, 1, 200, rand.New(rand.NewPCG(12, 12))), &rx)
	sum, n := 0.0, 0.0
	for _, y := range w.groups[0].read.sum {
		if size := math.Abs(float64(y)); size > 0.5 {
			sum += size
			n++
		}
	}
	return sum / n
}

// superposition returns sum H_i x_i.
func superposition(m *zq.Modulus, h []float64, x []zq.Vector) zq.Vector {
	y := m.NewVector(x[0].Len())
	for i := range x {
		m.AddScaled(y, int64(h[i]), x[i])
	}
	return y
}

// verdict is a round as its judge has it (crypto/round): read in all four
// transmissions with one scale and one pattern that is not 0.
type verdict struct {
	good   bool
	failed slot.Transmission // the first that was refused
	reason string
}

// attemptOf carries an attempt up to the first transmission that is refused.
// accepted hears of each whose check passed.
func attemptOf(t testing.TB, w *Waveform, m *zq.Modulus, round, attempt uint32, lengths [slot.Transmissions]int, rnd *rand.Rand, accepted func(tr slot.Transmission, x []zq.Vector, rx *Reception)) verdict {
	t.Helper()
	var pattern []int64
	var alpha float64
	for tr := range slot.Transmission(slot.Transmissions) {
		rx := Reception{Y: m.NewVector(lengths[tr]), Pattern: make([]int64, w.PatternSymbols())}
		x := randomPayloads(m, len(w.sender.devices), lengths[tr], rnd)
		sendOver(t, w, slot.Slot{Round: round, Attempt: attempt, Transmission: tr}, x, &rx)
		if !rx.CheckPassed {
			if w.Report().Failure == "" {
				t.Errorf("round %d, %v: refused, and nothing is said about it", round, tr)
			}
			return verdict{failed: tr, reason: w.Report().Failure}
		}
		if accepted != nil {
			accepted(tr, x, &rx)
		}
		if tr == slot.TxKey {
			pattern, alpha = slices.Clone(rx.Pattern), rx.Alpha
		}
		if !slices.Equal(pattern, rx.Pattern) || alpha != rx.Alpha {
			return verdict{failed: tr, reason: "other gains"}
		}
		if !slices.ContainsFunc(pattern, func(p int64) bool { return p != 0 }) {
			return verdict{failed: tr, reason: "no signal"}
		}
	}
	return verdict{good: true}
}

// No wrong round is accepted, at SNRs where 1 % to 50 % of frames fail: what
// passes is sum H_i x_i with H_i = round(alpha h_i), the same in all four
// transmissions and not all zero.
func TestWaveformAcceptsNoWrongRound(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	const devices = 3
	snrs := []float64{20.5, 22, 26, 32, 40}
	rounds := counted(100, 1500, 10000) / len(snrs)
	for _, snr := range snrs {
		t.Run(fmt.Sprintf("%v dB", snr), func(t *testing.T) {
			a := fadingAir(t, devices, 0.3, snr)
			w := newWaveform(t, a, m, func(c *WaveformConfig) { c.BlockSymbols = 3000 }) // 166 coefficients
			through, h := make([]float64, devices), make([]float64, devices)
			for i := range through {
				through[i] = passage(t, m, i)
			}
			rnd := rand.New(rand.NewPCG(6, uint64(snr)))
			frames, failed, good := 0, 0, 0
			for k := range uint32(rounds) {
				var lengths [slot.Transmissions]int
				for i := range lengths {
					lengths[i] = 60 + 60*rnd.IntN(5)
				}
				var first []float64
				v := attemptOf(t, w, m, k, 0, lengths, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
					frames++
					for i := range h {
						h[i] = a.h[i] * through[i]
					}
					w.Scaled(a.scaled, h)
					if tr == slot.TxKey {
						first = slices.Clone(a.scaled)
					} else if !slices.Equal(first, a.scaled) {
						t.Errorf("round %d, %v: H = %v, and %v in b", k, tr, a.scaled, first)
					}
					if !slices.ContainsFunc(a.scaled, func(h float64) bool { return h != 0 }) {
						t.Errorf("round %d, %v: accepted with H = 0", k, tr)
					}
					if !rx.Y.Equal(superposition(m, a.scaled, x)) {
						t.Errorf("round %d, %v: accepted, and not the superposition with H = %v: alpha h = %v x %v", k, tr, a.scaled, rx.Alpha, h)
					}
				})
				if v.good {
					good++
				} else {
					frames++
					failed++
				}
			}
			share := float64(failed) / float64(frames)
			t.Logf("%v dB: %d of %d rounds accepted, %d of %d frames (%.1f %%) failed", snr, good, rounds, failed, frames, 100*share)
			if !testing.Short() && (share < 0.005 || share > 0.55) {
				t.Errorf("%.1f %% of frames failed: the test is for 1 %% to 50 %%", 100*share)
			}
		})
	}
}

// At N = 3, sigma = 0.3, 40 dB, with the gains of the channel unchanged, the fresh
// gains of up to four attempts, from the link's secret, read at least 99 % of rounds.
func TestWaveformRetry(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	a := fadingAir(t, 3, 0.3, 40)
	w := newWaveform(t, a, m, nil)
	h, through := make([]float64, 3), [3]float64{passage(t, m, 0), passage(t, m, 1), passage(t, m, 2)}
	rnd := rand.New(rand.NewPCG(7, 7))
	rounds := counted(30, 200, 2000)
	lengths := [slot.Transmissions]int{440, 440, 440, 440} // a block of 8,000 symbols each
	var within [5]int                                      // rounds read at attempt i
	var key []int64                                        // the attempt's pattern
	for k := range uint32(rounds) {
		for attempt := range uint32(4) {
			v := attemptOf(t, w, m, k, attempt, lengths, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
				for i := range h {
					h[i] = a.h[i] * through[i]
				}
				w.Scaled(a.scaled, h)
				if tr == slot.TxKey {
					key = append(key[:0], rx.Pattern...)
				} else if !slices.Equal(key, rx.Pattern) {
					return // of other gains: the attempt is void
				}
				if !rx.Y.Equal(superposition(m, a.scaled, x)) && !midway(w, m, h, x, rx.Y) {
					t.Errorf("round %d, attempt %d, %v: accepted, and not the superposition with H = %v", k, attempt, tr, a.scaled)
				}
			})
			if v.good {
				within[attempt]++
				break
			}
			if attempt == 3 {
				within[4]++
			}
		}
	}
	t.Logf("%d rounds: read in attempts 1 to 4: %v, not read: %d", rounds, within[:4], within[4])
	if within[4]*100 > rounds {
		t.Errorf("%d of %d rounds were not read in four attempts: allowed is 1 %%", within[4], rounds)
	}
}

// midway reports whether y is the superposition with the gains that its pattern tells, each
// within 0.6 of alpha h: what lies about midway between two integers may be read as either,
// by frames that each go by their own phase.
func midway(w *Waveform, m *zq.Modulus, h []float64, x []zq.Vector, y zq.Vector) bool {
	solved := make([]float64, len(h))
	if !w.Gains(solved) || !y.Equal(superposition(m, solved, x)) {
		return false
	}
	real, slack := make([]float64, len(h)), make([]float64, len(h))
	if !w.RealGains(real, slack) {
		return false
	}
	for i := range h {
		if math.Abs(real[i]-h[i]) > 1.2*slack[i] {
			return false
		}
	}
	return true
}

// The table of phy/README.md, section 3, through the whole modem: the share of single
// blocks of 8,192 symbols that are read at once. Bound: no less than the table's
// share but for three deviations of the count and 0.01 of rounding.
func TestWaveformReadsAsOftenAsTheTable(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	trials := counted(20, 100, 1000)
	for _, e := range []struct {
		devices           int
		sigma, snr, share float64
	}{
		{2, 0.3, 30, 0.95}, {2, 1, 40, 1},
		{3, 0.05, 30, 1}, {3, 0.3, 30, 0.69}, {3, 0.3, 40, 0.95}, {3, 1, 40, 0.97},
		{4, 0.3, 40, 0.61}, {4, 1, 50, 0.97},
	} {
		a := fadingAir(t, e.devices, e.sigma, e.snr)
		w := newWaveform(t, a, m, nil)
		rnd := rand.New(rand.NewPCG(8, uint64(e.devices)))
		rx := Reception{Y: m.NewVector(453), Pattern: make([]int64, w.PatternSymbols())}
		read := 0
		for k := range uint32(trials) {
			sendOver(t, w, slot.Slot{Round: k}, randomPayloads(m, e.devices, 453, rnd), &rx)
			if rx.CheckPassed {
				read++
			}
		}
		got := float64(read) / float64(trials)
		spread := math.Sqrt(e.share * (1 - e.share) / float64(trials))
		t.Logf("N = %d, sigma = %v, %v dB: %.3f, the table has %.2f", e.devices, e.sigma, e.snr, got, e.share)
		if got < e.share-0.01-3*spread {
			t.Errorf("N = %d, sigma = %v, %v dB: %.3f of blocks were read, the table has %.2f", e.devices, e.sigma, e.snr, got, e.share)
		}
	}
}
