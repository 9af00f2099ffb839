package campaign_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// These tests go the whole way of a calibration: soundings over a medium in memory, with
// each device's delay and phase and the receiver's noise, through sounder and estimator
// to the statistics. The truth is that of the simulation: mu = E[h], Omega = E[h^2], K
// of the law, and as SNR Omega over the variance of a complex sample of noise.

// setting is a bench whose truth is known.
type setting struct {
	law    channel.Fading
	model  moments.Model // what the analysis is told
	k      float64       // the K-factor
	snrDB  float64
	blocks int
	devs   int
	offset float64 // of carriers, in cycles a sample; phases turn with it
	chips  int     // of a period; 0 for few
}

func (s setting) noise() float64 { return s.law.SecondMoment() / math.Pow(10, s.snrDB/10) }

// sounding returns what is sent: 31 chips keep a calibration of 100 blocks at 20,000
// samples.
func (s setting) sounding() sounding.Config {
	return sounding.Config{Kind: sounding.ZadoffChu, Length: cmp.Or(s.chips, 31), SamplesPerChip: 2, Repetitions: 2}
}

const rate = 1e6

// link is a device's truth in one calibration.
type link struct {
	delay, phase float64
	energy       float64 // sum of squared gains over the soundings
}

// measured is one calibration: what was found, and the truth that it is of.
type measured struct {
	result moments.Result
	pooled []sounding.Pooled
	links  []link
	sound  *sounding.Sounding
	// latency is the paths' constant delay.
	latency float64
}

// calibrate makes one calibration of the setting.
func calibrate(s setting, seed keystream.Seed) (measured, error) {
	rnd := rand.New(seed.Derive("truth").Stream())
	m := measured{}
	cfg := bench.Config{Rate: rate, NoiseStd: math.Sqrt(s.noise() / 2), Seed: seed}
	for range s.devs {
		l := link{delay: 3 * rnd.Float64(), phase: 2 * math.Pi * rnd.Float64()}
		m.links = append(m.links, l)
		cfg.Devices = append(cfg.Devices, channel.Impairments{DelaySamples: l.delay, PhaseRad: l.phase, CarrierOffset: s.offset})
	}
	air, err := bench.New(cfg)
	if err != nil {
		return m, err
	}
	m.latency = float64(air.Latency())
	defer air.Close()
	if m.sound, err = sounding.New(s.sounding()); err != nil {
		return m, err
	}
	played := sounder.Config{
		Sounding: m.sound, Devices: s.devs, Blocks: s.blocks, Looks: 1, Guard: 24,
		Search: sounding.Search{Delay: 20, Offset: 2e-4}, Amplitude: 1,
	}
	played.OnLook = func(_, _ int, at radio.SampleIndex) error {
		for i := range m.links {
			h := s.law.Draw(rnd)
			m.links[i].energy += h * h
			if err := air.Medium.SetGain(i, at, complex(float32(h), 0)); err != nil {
				return err
			}
		}
		return nil
	}
	if played.Transmitters, played.Receiver, err = air.Streams(); err != nil {
		return m, err
	}
	return m, m.hear(s, played)
}

// hear plays the soundings and analyses them.
func (m *measured) hear(s setting, cfg sounder.Config) error {
	var blocks []sounder.Block
	err := campaign.Sound(context.Background(), cfg, io.Discard, func(b sounder.Block) { blocks = append(blocks, b) })
	if err != nil {
		return err
	}
	for i := range s.devs {
		all := campaign.Estimates(blocks, campaign.AllSessions, i, s.devs)
		if len(all) != s.blocks {
			return fmt.Errorf("device %d has %d estimates of %d blocks", i+1, len(all), s.blocks)
		}
		m.pooled = append(m.pooled, sounding.Pool(all))
	}
	if s.offset != 0 {
		return nil // phases turn: it is about delay and offset alone
	}
	bench := calibration.Want{Transmitters: make([]calibration.Transmitter, s.devs)}
	r, err := campaign.Analyse(campaign.Config{Soundings: cfg, SampleRate: rate, Law: s.model}, blocks, bench)
	m.result = r.Links
	return err
}

// tally counts how often intervals cover a truth.
type tally struct {
	name    string
	covered int
	values  []float64
	truth   float64
}

func (c *tally) add(v moments.Value, truth float64) {
	if v.Low <= truth && truth <= v.High {
		c.covered++
	}
	c.values, c.truth = append(c.values, v.Value), truth
}

// bias is that of the mean in its standard errors.
func (c *tally) bias() float64 {
	mean, sd := stat.MeanStdDev(c.values, nil)
	return (mean - c.truth) / (sd / math.Sqrt(float64(len(c.values))))
}

// Over 400 calibrations of each setting the intervals of mu, Omega, K and SNR cover the
// truth as often as they say, without bias; delay and carrier offset meet their bounds.
// Quick runs make few.
// Longer, or of more branches, than most because it is one table of settings and what is asked of each.
func TestEndToEnd(t *testing.T) {
	const devs = 2
	calibrations, settings := 20, []setting{
		{law: channel.Gaussian{Mu: 1, Sigma: 0.1}, model: moments.Gaussian, k: 50, snrDB: 20, blocks: 100},
		{law: channel.NewRicianMean(5, 1), model: moments.Rician, k: 5, snrDB: 20, blocks: 100},
	}
	if os.Getenv("RINGWAVE_LONG") != "" {
		calibrations, settings = 200, nil
		gaussian := func(sigma, snr float64, blocks int) {
			settings = append(settings, setting{law: channel.Gaussian{Mu: 1, Sigma: sigma}, model: moments.Gaussian, k: 1 / (2 * sigma * sigma), snrDB: snr, blocks: blocks})
		}
		rician := func(k, snr float64) {
			settings = append(settings, setting{law: channel.NewRicianMean(k, 1), model: moments.Rician, k: k, snrDB: snr, blocks: 128})
		}
		for _, snr := range []float64{5, 40} {
			for _, sigma := range []float64{0.1, 1} {
				gaussian(sigma, snr, 128)
			}
			rician(50, snr)
			rician(5, snr)
		}
		// With less, so little fading is not told from the noise, and 0 bounds sigma below.
		for _, snr := range []float64{5, 40} {
			gaussian(0.01, snr, 400)
			settings[len(settings)-1].chips = 127
		}
		rician(1, 20)
		gaussian(10, 20, 3200) // with fewer the sign of the mean is not certain (Device.BlocksNeeded)
	}
	beyond, cells := 0, 0
	var bounds bound
	for i, s := range settings {
		s.devs = devs
		tallies, b := repeat(t, s, calibrations, keystream.FromInteger(11).Derive("end to end", uint64(i)))
		bounds.join(b)
		n := float64(calibrations * devs)
		slack := 3 * math.Sqrt(0.95*0.05/n)
		var line strings.Builder
		for j := range tallies {
			c := &tallies[j]
			share, bias := float64(c.covered)/n, c.bias()
			fmt.Fprintf(&line, " %s %.1f%% %+.1f;", c.name, 100*share, bias)
			cells++
			if math.Abs(bias) > 2 {
				beyond++
			}
			// One of so many cells lies beyond three standard errors by chance in few
			// hundred; quick runs may cover all.
			if share < 0.95-slack || share > 0.95+slack && calibrations > 20 {
				t.Errorf("%T %v at %v dB: the interval of %s covers %.4f of the truths", s.law, s.law, s.snrDB, c.name, share)
			}
			if math.Abs(bias) > 3.8 {
				t.Errorf("%T %v at %v dB: %s is biased by %.1f standard errors", s.law, s.law, s.snrDB, c.name, bias)
			}
		}
		t.Logf("%T %.4v, %v dB, %d blocks, %v calibrations of a link:%s %v", s.law, s.law, s.snrDB, s.blocks, n, line.String(), b)
	}
	t.Logf("%d of %d biases beyond two standard errors; %v", beyond, cells, bounds)
	if float64(beyond) > 0.05*float64(cells)+3*math.Sqrt(0.05*float64(cells))+1 {
		t.Errorf("%d of %d biases lie beyond two standard errors", beyond, cells)
	}
	bounds.judge(t)
}

// The same of carriers that are off.
func TestEndToEndOffFrequency(t *testing.T) {
	calibrations := 20
	if os.Getenv("RINGWAVE_LONG") != "" {
		calibrations = 400
	}
	var bounds bound
	for i, offset := range []float64{-3.3e-5, 7.1e-5} {
		s := setting{law: channel.Gaussian{Mu: 1, Sigma: 0.3}, snrDB: 20, blocks: 40, devs: 2, offset: offset}
		_, b := repeat(t, s, calibrations, keystream.FromInteger(12).Derive("off frequency", uint64(i)))
		bounds.join(b)
	}
	t.Log(bounds)
	bounds.judge(t)
}

// repeat makes so many calibrations of a setting.
func repeat(t *testing.T, s setting, calibrations int, seed keystream.Seed) ([]tally, bound) {
	t.Helper()
	tallies := []tally{{name: "mu"}, {name: "Omega"}, {name: "sigma"}, {name: "K"}, {name: "SNR"}, {name: "SNR/dB"}}
	mu, omega := s.law.Mean(), s.law.SecondMoment()
	var b bound
	for trial := range calibrations {
		m, err := calibrate(s, seed.Derive("trial", uint64(trial)))
		if err != nil {
			t.Fatalf("%v at %v dB, trial %d: %v", s.law, s.snrDB, trial, err)
		}
		b.add(s, m)
		for _, d := range m.result.Devices {
			linear := math.Pow(10, s.snrDB/10)
			truths := []float64{mu, omega, math.Sqrt(omega - mu*mu), s.k, linear, s.snrDB}
			for j, v := range []moments.Value{d.Mu, d.Omega, d.Sigma, d.KFactor, d.SNR, d.SNRdB} {
				tallies[j].add(v, truths[j])
			}
		}
	}
	return tallies, b
}

// bound is squared errors of delay and offset over their Cramer-Rao bounds.
type bound struct {
	delay, offset float64
	n             int
}

func (b *bound) add(s setting, m measured) {
	for i, l := range m.links {
		least := m.sound.Bound(complex(math.Sqrt(l.energy), 0), modem.Power(s.noise()))
		delay := float64(m.pooled[i].Delay) - l.delay - m.latency
		offset := float64(m.pooled[i].Offset) - s.offset
		b.delay += delay * delay / least.Delay
		b.offset += offset * offset / least.Offset
		b.n++
	}
}

func (b *bound) join(o bound) { b.delay, b.offset, b.n = b.delay+o.delay, b.offset+o.offset, b.n+o.n }

func (b bound) String() string {
	return fmt.Sprintf("delay %.3f, offset %.3f of the bound's variance over %d", b.delay/float64(b.n), b.offset/float64(b.n), b.n)
}

// judge wants no more than 1.1 times the bound, and three standard errors of so few.
func (b bound) judge(t *testing.T) {
	t.Helper()
	most := 1.1
	if b.n < 2000 {
		most += 3 * math.Sqrt(2/float64(b.n))
	}
	if b.delay > most*float64(b.n) || b.offset > most*float64(b.n) {
		t.Errorf("%v; allowed is %.3f", b, most)
	}
}
