package campaign_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// sounded returns the soundings of so many devices, blocks and looks.
func sounded(t testing.TB, devices, blocks, looks int) sounder.Config {
	t.Helper()
	s, err := sounding.New(sounding.Config{Kind: sounding.ZadoffChu, Length: 63, SamplesPerChip: 2, Repetitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	return sounder.Config{
		Sounding: s, Devices: devices, Blocks: blocks, Looks: looks, Sessions: 2, BlockEvery: 20e3, Guard: 40,
		Search: sounding.Search{Delay: 32, Offset: 1e-5}, Amplitude: 0.5,
	}
}

// The figures of found: of each device the mean and deviation of gains, the phase, the
// delay and the noise.
var (
	foundMu    = []float64{1, 0.5}
	foundSigma = []float64{0.1, 0.05}
	foundDelay = []modem.Samples{3, 1.25}
)

const foundNoise = 1e-3

// found returns a campaign of two devices and the blocks that it heard, in two sessions,
// 20 ms from block to block. In block 5 nothing was heard of device 2.
func found(t testing.TB, blocks int) (campaign.Config, []sounder.Block) {
	t.Helper()
	const looks = 2
	c := campaign.Config{Soundings: sounded(t, 2, blocks, looks), SampleRate: 1e6, Law: moments.Gaussian, Valid: time.Hour, Program: "a test"}
	rnd := rand.New(rand.NewPCG(1, 2))
	var out []sounder.Block
	for k := range blocks {
		b := sounder.Block{
			Number: k, Session: 2 * k / blocks, At: radio.SampleIndex(100 + 20e3*k), Receiver: radio.Epoch(3 + 2*k/blocks),
			Transmitters: []radio.Epoch{1, radio.Epoch(7 + 2*k/blocks)},
		}
		h := []float64{foundMu[0] + foundSigma[0]*rnd.NormFloat64(), foundMu[1] + foundSigma[1]*rnd.NormFloat64()}
		for n := range looks * 2 {
			i := n % 2
			if k == 5 && i == 1 {
				b.Records = append(b.Records, sounder.Record{Missed: "it was not heard"})
				continue
			}
			const variance = 1e-6
			g := cmplx.Rect(h[i], 0.5+float64(i)) + complex(math.Sqrt(variance/2)*rnd.NormFloat64(), math.Sqrt(variance/2)*rnd.NormFloat64())
			b.Records = append(b.Records, sounder.Record{Clipped: int64(i * k % 2), Estimate: &sounding.Estimate{
				Gain: g, GainVar: variance, Delay: foundDelay[i], DDelayVar: 1e-4, Offset: 1e-6, DOffsetVar: 1e-14,
				Noise: foundNoise, NoiseDoF: 200, DC: 0.01, Image: 0.1, ImageVar: 1e-4, DCVar: 1e-6,
			}})
		}
		out = append(out, b)
	}
	return c, out
}

// standing is a bench of two boards as of a moment.
func standing() calibration.Want {
	return calibration.Want{
		Bench:        calibration.Bench{Kind: calibration.Radios, SampleRateHz: 1e6, SessionID: "s"},
		Transmitters: []calibration.Transmitter{{Serial: "A"}, {Serial: "B"}},
		Now:          time.Date(2026, 11, 22, 12, 0, 0, 5e8, time.UTC),
	}
}

func analysed(t testing.TB, c campaign.Config, blocks []sounder.Block) campaign.Result {
	t.Helper()
	r, err := campaign.Analyse(c, blocks, standing())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// memory is a bench in memory whose gains are drawn block by block.
func memory(t testing.TB, cfg sounder.Config, receiver channel.Impairments, noiseStd float64) sounder.Config {
	t.Helper()
	of := bench.Config{Rate: 1e6, NoiseStd: noiseStd, Receiver: receiver, FullScale: 2, Seed: keystream.FromInteger(7)}
	for i := range cfg.Devices {
		of.Devices = append(of.Devices, channel.Impairments{PhaseRad: 0.7 + float64(i)})
	}
	air, err := bench.New(of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { air.Close() })
	h, rnd := make([]float64, cfg.Devices), rand.New(rand.NewPCG(3, 4))
	cfg.OnLook = func(_, look int, at radio.SampleIndex) error {
		for i := range h {
			if look == 0 {
				h[i] = 1 + 0.3*rnd.NormFloat64()
			}
			if err := air.Medium.SetGain(i, at, complex(float32(h[i]), 0)); err != nil {
				return err
			}
		}
		return nil
	}
	if cfg.Transmitters, cfg.Receiver, err = air.Streams(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Every block is in the table before it is handed on, in order, and the table reads back.
func TestSound(t *testing.T) {
	cfg := memory(t, sounded(t, 2, 40, 2), channel.Impairments{}, 0.01)
	var table bytes.Buffer
	if err := sounder.WriteHeader(&table); err != nil {
		t.Fatal(err)
	}
	var blocks []sounder.Block
	err := campaign.Sound(t.Context(), cfg, &table, func(b sounder.Block) {
		blocks = append(blocks, b)
		read, _, err := sounder.ReadTable(bytes.NewReader(table.Bytes()), 40, 2, 2)
		same := func(x, y sounder.Block) bool {
			return x.Number == y.Number && x.At == y.At && x.Records[3].Estimate.Gain == y.Records[3].Estimate.Gain
		}
		if err != nil || !slices.EqualFunc(read, blocks, same) {
			t.Errorf("behind block %d the table has %d blocks of %d, %v", b.Number, len(read), len(blocks), err)
		}
	})
	if err != nil || len(blocks) != 40 {
		t.Errorf("%d blocks of 40: %v", len(blocks), err)
	}
}

// full is a table that takes so many writes.
type full struct{ left int }

var errFull = errors.New("no space is left")

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A table that takes no more ends the soundings, and its block counts as not made; what
// cannot be sounded is the user's to mend.
func TestSoundEnds(t *testing.T) {
	cfg, n := memory(t, sounded(t, 1, 40, 1), channel.Impairments{}, 0.01), 0
	if err := campaign.Sound(t.Context(), cfg, &full{left: 35}, func(sounder.Block) { n++ }); !errors.Is(err, errFull) || n != 35 {
		t.Errorf("%d blocks of 35: %v", n, err)
	}
	cfg.Amplitude = 2
	if err := campaign.Sound(t.Context(), cfg, io.Discard, func(sounder.Block) {}); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "an amplitude of 2") {
		t.Errorf("an amplitude of 2: %v", err)
	}
}

// The file tells what was sent, when, over which bench, and of each device what was found.
func TestFile(t *testing.T) {
	c, blocks := found(t, 120)
	c.RoundSeconds = 0.004
	blocks[50].At += 7e3 // one long pause moves no median
	f := analysed(t, c, blocks).File
	if want := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC); !f.Created.Equal(want) || !f.ValidUntil.Equal(want.Add(time.Hour)) || f.Program != "a test" {
		t.Errorf("created %v, valid until %v, by %q", f.Created, f.ValidUntil, f.Program)
	}
	wantSounding := calibration.Sounding{
		Kind: "zadoff-chu", Length: 63, Root: 2, SamplesPerChip: 2, Repetitions: 2, Blocks: 120, Looks: 2, Sessions: 2,
		BlockSeconds: 0.02, RoundSeconds: 0.004, Amplitude: 0.5,
	}
	if f.Sounding != wantSounding {
		t.Errorf("sounding is %+v, want %+v", f.Sounding, wantSounding)
	}
	if f.Bench.SessionID != "s" || f.Bench.ReceiverEpoch != 4 {
		t.Errorf("the bench is %+v", f.Bench)
	}
	for i, d := range f.Devices {
		if d.Index != i+1 || d.Serial != []string{"A", "B"}[i] || d.Epoch != []uint64{1, 8}[i] || d.Soundings != 240-2*i || d.Missed != 2*i || d.Clipped != int64(118*i) {
			t.Errorf("device %d: %q, epoch %d, %d soundings, %d missed, %d clipped", d.Index, d.Serial, d.Epoch, d.Soundings, d.Missed, d.Clipped)
		}
		for _, v := range []struct {
			name string
			calibration.Value
			truth float64
		}{
			{"mu", d.Mu, foundMu[i]}, {"sigma", d.Sigma, foundSigma[i]}, {"phase", d.PhaseRad, 0.5 + float64(i)},
			{"offset", d.OffsetHz, 1}, {"delay", d.DelaySamples, float64(foundDelay[i] - foundDelay[0])},
		} {
			if !(v.Low <= v.truth && v.truth <= v.High) {
				t.Errorf("device %d: %s is %+v, want %v within", d.Index, v.name, v.Value, v.truth)
			}
		}
		if math.Abs(d.DCI-0.01) > 1e-9 || d.DCQ != 0 || math.Abs(d.ImageDB+20) > 1e-9 || d.Model != calibration.Gaussian {
			t.Errorf("device %d: dc %v, %v, image %v dB, %s", d.Index, d.DCI, d.DCQ, d.ImageDB, d.Model)
		}
	}
	if _, err := f.Encode(); err != nil {
		t.Error(err)
	}
}

// What one device alone violates is said of that device, and what several do of the bench,
// too. The offset that a carrier may have turns it by 0.1 rad a round.
func TestViolations(t *testing.T) {
	c, blocks := found(t, 120)
	for _, b := range blocks {
		for _, r := range b.Records {
			if r.Estimate != nil {
				r.Estimate.Offset = 4e-6 // 4 Hz
			}
		}
	}
	for _, far := range []struct {
		round float64
		says  bool
	}{{0, false}, {0.003, false}, {0.006, true}} { // 15.9, 5.3 and 2.7 Hz
		c.RoundSeconds = far.round
		if says := strings.Contains(strings.Join(analysed(t, c, blocks).Links.Violations(), "\n"), "wrong frequency"); says != far.says {
			t.Errorf("with rounds of %v s, a carrier that is off by 4 Hz is named: %t", far.round, says)
		}
	}
	f := analysed(t, c, blocks).File // of rounds of 6 ms
	if len(f.Violations) != 1 || !strings.Contains(f.Violations[0], "device 1: wrong") || !strings.Contains(f.Violations[0], "device 2: wrong") {
		t.Errorf("the bench is said to violate %q", f.Violations)
	}
	for i, more := range [][]string{nil, {"device 2: 118 samples clipped"}} {
		own := f.Devices[i].Violations
		for _, part := range append(more, "wrong frequency") {
			if !slices.ContainsFunc(own, func(s string) bool { return strings.Contains(s, part) }) || len(own) != 1+len(more) {
				t.Errorf("device %d is said to violate %q", i+1, own)
			}
		}
	}
}

// A converter's rounding that soundings passed through is not taken for distortion, as it
// is where nobody says that there was one.
func TestRoundingIsAllowedFor(t *testing.T) {
	cfg := memory(t, sounded(t, 1, 200, 2), channel.Impairments{ConverterBits: 8}, 1e-3)
	var blocks []sounder.Block
	if err := campaign.Sound(t.Context(), cfg, io.Discard, func(b sounder.Block) { blocks = append(blocks, b) }); err != nil {
		t.Fatal(err)
	}
	bench := standing()
	bench.Transmitters = bench.Transmitters[:1]
	for _, bits := range []int{0, 8} {
		c := campaign.Config{Soundings: cfg, SampleRate: 1e6, Law: moments.Gaussian, Converters: campaign.Converters{Receiver: campaign.Receiver{Bits: bits, FullScale: 2}}}
		r, err := campaign.Analyse(c, blocks, bench)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Links.Violations(); (len(v) == 0) != (bits == 8) {
			t.Errorf("told of %d bits: %q", bits, v)
		}
	}
}

// Rounding that follows the signal is the same in all periods and looks, of
// which there are four: what they average to has four times the error. Of rounding that
// noise dithers only the harmonic counts that is left.
func TestRoundingWidens(t *testing.T) {
	for _, k := range []struct {
		full, wider float64
	}{{1, 1}, {35.84, 2.30757909163591}, {51.2, 4}} { // steps of a sixteenth of the noise's deviation, of two and of three
		c, blocks := found(t, 120)
		c.Converters.Receiver = campaign.Receiver{Bits: 10, FullScale: k.full}
		r := analysed(t, c, blocks)
		if got := r.Series.Devices[0].GainVar[0] / 1e-6; math.Abs(got-k.wider) > 1e-9 {
			t.Errorf("full scale %v: errors are %v times as large, want %v", k.full, got, k.wider)
		}
	}
}

// What grows with the gain is distortion, but for as much as converters explain.
func TestDistortionIsAllowedFor(t *testing.T) {
	for _, k := range []struct {
		name       string
		converters campaign.Converters
		says       bool
	}{
		{"none", campaign.Converters{}, true},
		{"of one transmitter", campaign.Converters{TransmitterBits: []int{0, 6}}, false},     // 1.6e-4 of what is sent
		{"of a fine transmitter", campaign.Converters{TransmitterBits: []int{12, 12}}, true}, // 4e-8
		{"of a coarse receiver", campaign.Converters{Receiver: campaign.Receiver{Bits: 10, FullScale: 51.2}}, false},
	} {
		c, blocks := found(t, 400)
		c.Converters = k.converters
		for _, b := range blocks {
			for _, r := range b.Records {
				if e := r.Estimate; e != nil {
					e.Noise += modem.Power(2e-4 * real(e.Gain*cmplx.Conj(e.Gain)))
				}
			}
		}
		all := strings.Join(analysed(t, c, blocks).Links.Violations(), "\n")
		if says := strings.Contains(all, "grow"); says != k.says {
			t.Errorf("with converters %s, distortion is named: %t\n%s", k.name, says, all)
		}
	}
}

// Gains that lie on a grid fit their law where the grid is told, and not elsewhere.
func TestLattice(t *testing.T) {
	for _, told := range []bool{false, true} {
		c, blocks := found(t, 400)
		c.OnLattice, c.LatticeBits = told, 4
		for _, b := range blocks {
			for n, r := range b.Records {
				if e := r.Estimate; e != nil {
					turn := cmplx.Rect(1, 0.5+float64(n%2))
					h := e.Gain / turn
					e.Gain = complex(math.Round(real(h)*16)/16, imag(h)) * turn
				}
			}
		}
		v := analysed(t, c, blocks).Links.Violations()
		if says := slices.ContainsFunc(v, func(s string) bool { return strings.Contains(s, "neither Gaussian nor Rician") }); says == told {
			t.Errorf("told of the grid: %t: %q", told, v)
		}
	}
}

// Series have the figures of each burst in hertz and samples, and NaN where it was missed.
func TestSeries(t *testing.T) {
	c, blocks := found(t, 120)
	e := blocks[7].Records[1].Estimate
	e.DDelay, e.DOffset = 0.25, 2e-6
	s := analysed(t, c, blocks).Series
	if d := s.Devices[1]; len(d.Gain) != 240 || d.Gain[14] != e.Gain || d.Delay[14] != 1.5 || math.Abs(d.Offset[14]-3) > 1e-9 || d.DelayVar[14] != 1e-4 || math.Abs(d.OffsetVar[14]/1e-2-1) > 1e-9 || d.NoiseDoF != 200 {
		t.Errorf("gain %v, delay %v (%v), offset %v (%v), %v degrees of freedom", d.Gain[14], d.Delay[14], d.DelayVar[14], d.Offset[14], d.OffsetVar[14], d.NoiseDoF)
	}
	for _, v := range []float64{real(s.Devices[1].Gain[10]), s.Devices[1].GainVar[10], s.Devices[1].Noise[10], s.Devices[1].Delay[10], s.Devices[1].OffsetVar[10]} {
		if !math.IsNaN(v) {
			t.Errorf("a burst that was missed has %v", v)
		}
	}
	if s.Looks != 2 || len(s.Session) != 120 || s.Session[59] != 0 || s.Session[60] != 1 || math.Abs(s.LookSeconds*1e6-float64(c.Soundings.LookSamples())) > 1e-6 {
		t.Errorf("%d looks, %v s apart, sessions %v", s.Looks, s.LookSeconds, s.Session)
	}
}

// Noise that a converter hid in a burst is that of the others.
func TestHiddenNoise(t *testing.T) {
	c, blocks := found(t, 120)
	e := blocks[7].Records[0].Estimate
	e.Noise, e.GainVar = 0, 0
	s := analysed(t, c, blocks).Series.Devices[0]
	if math.Abs(s.Noise[14]/foundNoise-1) > 1e-9 || math.Abs(s.GainVar[14]/1e-6-1) > 1e-9 {
		t.Errorf("noise %v, variance %v", s.Noise[14], s.GainVar[14])
	}
}

// What cannot be analysed is refused in a sentence.
func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(c *campaign.Config, b *[]sounder.Block, w *calibration.Want){
		"needs a sounding":        func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) { c.Soundings.Sounding = nil },
		"a campaign of 0 devices": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) { c.Soundings.Devices = 0 },
		"the sample rate": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.SampleRate = radio.Hertz(math.NaN())
		},
		"1 transmitters for 2": func(_ *campaign.Config, _ *[]sounder.Block, w *calibration.Want) { w.Transmitters = w.Transmitters[:1] },
		"block 9 has 3": func(_ *campaign.Config, b *[]sounder.Block, _ *calibration.Want) {
			(*b)[9].Records = (*b)[9].Records[:3]
		},
		"converters of 3 transmitters": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.TransmitterBits = []int{8, 8, 8}
		},
		"a converter of 25 bits": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.Receiver = campaign.Receiver{Bits: 25, FullScale: 1}
		},
		"that clips at NaN": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.Receiver = campaign.Receiver{Bits: 8, FullScale: math.NaN()}
		},
		"that clips at +Inf": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.Receiver = campaign.Receiver{Bits: 8, FullScale: math.Inf(1)}
		},
		"groups of 0": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.Receiver = campaign.Receiver{Bits: 8, Links: bench.Links{Mu: []float64{1, 1}, Omega: []float64{1, 1}}}
		},
		"1 second moments": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.Receiver = campaign.Receiver{Bits: 8, Group: 1, Links: bench.Links{Mu: []float64{1, 1}, Omega: []float64{1}}}
		},
		"a converter of -1 bits": func(c *campaign.Config, _ *[]sounder.Block, _ *calibration.Want) {
			c.Converters.TransmitterBits = []int{8, -1}
		},
		"what the soundings say: devi": func(_ *campaign.Config, b *[]sounder.Block, _ *calibration.Want) { *b = (*b)[:8] },
	} {
		c, blocks := found(t, 40)
		w := standing()
		change(&c, &blocks, &w)
		if _, err := campaign.Analyse(c, blocks, w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The bench that the advice is of has gains in units of their mean, or as they are; delays
// behind the earliest; noise without what converters add.
func TestBench(t *testing.T) {
	c, blocks := found(t, 120)
	c.OnLattice, c.LatticeBits = true, 4
	r := analysed(t, c, blocks)
	mean := (r.File.Devices[0].Mu.Value + r.File.Devices[1].Mu.Value) / 2
	for _, relative := range []bool{false, true} {
		unit := 1.0
		if relative {
			unit = mean
		}
		b, err := r.Bench(campaign.Use{Relative: relative, FreshOnRetry: relative, Converters: campaign.Converters{
			TransmitterBits: []int{0, 5}, Receiver: campaign.Receiver{Bits: 7, FullScale: 0.5},
		}})
		if err != nil {
			t.Fatal(err)
		}
		// A twelfth of a squared step a branch: of 2/2^5 under a gain, and of 1/2^7.
		noise := (r.Links.Devices[0].Noise+r.Links.Devices[1].Noise)/2 - r.File.Devices[1].Omega.Value/1024*4/12 - 1.0/16384/6
		if math.Abs(float64(b.Noise)*unit*unit/noise-1) > 1e-9 || b.ReceiverBits != 7 || math.Abs(b.ReceiverFullScale*unit-0.5) > 1e-12 {
			t.Errorf("noise %v, want %v; converter of %d bits up to %v", b.Noise, noise/unit/unit, b.ReceiverBits, b.ReceiverFullScale)
		}
		if !b.OnLattice || b.LatticeBits != 4 || b.SampleRateHz != 1e6 || b.FreshOnRetry != relative {
			t.Errorf("%+v", b)
		}
		for i, d := range b.Devices {
			mu := r.File.Devices[i].Mu
			if math.Abs(d.Gain.Mean()*unit/mu.Value-1) > 1e-9 || math.Abs(d.MeanStd*unit-(mu.High-mu.Low)/(2*1.96)) > 1e-4*mu.Value || d.ConverterBits != 5*i {
				t.Errorf("device %d: mean %v with error %v, mu %+v; %d bits", i+1, d.Gain.Mean(), d.MeanStd, mu, d.ConverterBits)
			}
			for _, std := range []struct {
				name     string
				got      float64
				interval calibration.Value
			}{
				{"deviation", d.StdStd * unit, r.File.Devices[i].Sigma}, {"phase", float64(d.PhaseStd), r.File.Devices[i].PhaseRad},
				{"delay", float64(d.DelayStd), r.File.Devices[i].DelaySamples},
			} {
				if want := (std.interval.High - std.interval.Low) / (2 * 1.96); math.Abs(std.got-want) > 1e-4*want {
					t.Errorf("device %d: the standard error of the %s is %v, want %v", i+1, std.name, std.got, want)
				}
			}
			if want := foundDelay[i] - foundDelay[1]; math.Abs(float64(d.Delay-want)) > 1e-9 {
				t.Errorf("device %d: delay %v, want %v", i+1, d.Delay, want)
			}
		}
	}
	if _, err := r.Bench(campaign.Use{Converters: campaign.Converters{TransmitterBits: []int{8}}}); err == nil {
		t.Error("one converter for two devices was taken")
	}
}

// Of coherence times, the shortest that is known to be shorter than a round counts.
func TestCoherence(t *testing.T) {
	c, blocks := found(t, 40)
	r := analysed(t, c, blocks)
	for _, k := range []struct{ lasts, want float64 }{{1, 1}, {3, 2}} {
		r.Links.Devices[0].Coherence = moments.Coherence{High: k.lasts, LongEnough: moments.No}
		r.Links.Devices[1].Coherence = moments.Coherence{High: 2, LongEnough: moments.No}
		if b, err := r.Bench(campaign.Use{}); err != nil || b.CoherenceSeconds != k.want {
			t.Errorf("gains last %v s and 2 s, the bench's %v: %v", k.lasts, b.CoherenceSeconds, err)
		}
	}
	for i, v := range []moments.Verdict{moments.Yes, moments.Unresolved} {
		r.Links.Devices[i].Coherence.LongEnough = v
	}
	if b, err := r.Bench(campaign.Use{}); err != nil || b.CoherenceSeconds != 0 {
		t.Errorf("gains last long enough, the bench's %v s: %v", b.CoherenceSeconds, err)
	}
}

// A receiver whose full scale is not given has what suits its links; without a converter
// there is none.
func TestSuitingConverter(t *testing.T) {
	c, blocks := found(t, 120)
	r := analysed(t, c, blocks)
	links := bench.Links{Mu: []float64{0.01, 0.01}, Omega: []float64{1.01e-4, 1.01e-4}} // so that noise counts
	receiver := campaign.Receiver{Bits: 3, Links: links, Regime: bench.Blind, Group: 2}
	b, err := r.Bench(campaign.Use{Converters: campaign.Converters{Receiver: receiver}})
	if err != nil {
		t.Fatal(err)
	}
	step := links.FullScale(bench.Blind, 2, math.Sqrt(foundNoise/2)) / 4
	if want := (r.Links.Devices[0].Noise+r.Links.Devices[1].Noise)/2 - step*step/6; !(want > 0) || math.Abs(float64(b.Noise)/want-1) > 1e-9 || b.ReceiverFullScale != 0 {
		t.Errorf("noise %v, want %v; full scale %v, want 0 for what suits", b.Noise, want, b.ReceiverFullScale)
	}
	receiver.Bits, receiver.FullScale = 0, 3
	if b, err = r.Bench(campaign.Use{Converters: campaign.Converters{Receiver: receiver}}); err != nil || b.ReceiverFullScale != 0 {
		t.Errorf("no converter, and a full scale of %v: %v", b.ReceiverFullScale, err)
	}
}

// Laws are Rician where the file says so, with its mean and K-factor, in any unit.
func TestFading(t *testing.T) {
	d := calibration.Device{Model: calibration.Rician, Mu: calibration.Value{Value: 3}, Sigma: calibration.Value{Value: 0.6}, KFactor: calibration.Value{Value: 5}}
	if f := campaign.Fading(d, 2); math.Abs(f.Mean()-1.5) > 1e-9 || !reflect.DeepEqual(f, channel.NewRicianMean(5, 1.5)) {
		t.Errorf("%T %v", f, f)
	}
	for _, k := range []float64{0, math.NaN(), math.Inf(1)} {
		d.KFactor.Value = k
		if f := campaign.Fading(d, 2); f != (channel.Gaussian{Mu: 1.5, Sigma: 0.3}) {
			t.Errorf("K = %v: %T %v", k, f, f)
		}
	}
}

// shortUse asks for an advice of few rounds.
func shortUse() campaign.Use {
	m := modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}
	set, _ := xmkckks.Lookup("lean-2048")
	return campaign.Use{Options: advice.Options{
		Modem: m, BlockSymbols: 512, Attempts: 2, DeltaMax: 1, Regimes: []advice.Regime{bench.Blind}, Groups: []int{1}, Bases: []int{3},
		SamplesPerSymbol: []int{8}, Repeats: -1, Sets: []xmkckks.Params{set}, Coarse: 2, Fine: 2, Fresh: 8, MaxAlpha: 8, NoSuggestions: true,
		Own:  &advice.Own{Regime: bench.Blind, Group: 1, Base: 3, SamplesPerSymbol: 8, Params: set},
		Seed: keystream.FromInteger(1),
	}}
}

// The advice goes into the file, the own way first and marked, and again in its place;
// then it is in the texts.
func TestAdvise(t *testing.T) {
	c, blocks := found(t, 120)
	for _, b := range blocks {
		for _, r := range b.Records {
			if r.Estimate != nil {
				r.Estimate.Offset = 0 // else nothing can be carried
			}
		}
	}
	r := analysed(t, c, blocks)
	if text := textOf(t, &r); r.Advice != nil || r.Summary(nil).Advice != nil || strings.Contains(text, "can carry") {
		t.Errorf("before any advice there is one:\n%s", text)
	}
	var lines []calibration.AdviceLine
	for range 2 {
		if err := r.Advise(t.Context(), shortUse()); err != nil {
			t.Fatal(err)
		}
		if lines != nil && !slices.Equal(lines, r.File.Advice) {
			t.Errorf("the advice is %+v, and again %+v", lines, r.File.Advice)
		}
		lines = r.File.Advice
	}
	if len(lines) < 2 || len(lines) != 1+len(r.Advice.Outlooks) || !lines[0].Own || lines[1].Own || lines[0].Regime != "blind" || lines[0].Group != 1 {
		t.Fatalf("%+v", lines)
	}
	s := r.Summary(nil).Advice
	if s == nil || s.Own == nil || s.Own.AtOnce != lines[0].Success.Value || len(s.Outlooks) != len(r.Advice.Outlooks) || float64(s.Own.Airtime) != lines[0].AirtimeSeconds {
		t.Errorf("%+v", s)
	}
	if text := textOf(t, &r); !strings.Contains(text, "What the bench can carry") || !strings.Contains(text, "  * blind") {
		t.Error(text)
	}
	if _, err := r.File.Encode(); err != nil {
		t.Error(err)
	}
}

func textOf(t testing.TB, r *campaign.Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The text has a line a device in each table; a Write that fails is told.
func TestText(t *testing.T) {
	c, blocks := found(t, 120)
	r := analysed(t, c, blocks)
	text := textOf(t, &r)
	for _, part := range []string{
		"\nLinks of 2 devices, from 120 blocks of 2 looks in 2 sessions (95 % intervals)\n  device   mu ", "-1.7500 [", "gaussian   -20.0       2        118\n",
		"offset from the common carrier, Hz", "L(", "of the soundings", "Assumptions that this bench violates:\n  * ",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
	if n := strings.Count(text, "\n  2   "); n != 4 {
		t.Errorf("%d lines are of device 2:\n%s", n, text)
	}
	r.Links = moments.Result{Tests: slices.Repeat([]moments.Test{{Holds: true}}, 4), Devices: r.Links.Devices}
	if text := textOf(t, &r); !strings.Contains(text, "None of the 4 assumptions tested is violated.") {
		t.Error(text)
	}
	if err := r.WriteText(&full{}); !errors.Is(err, errFull) {
		t.Errorf("of a writer that takes nothing: %v", err)
	}
}

// The summary has null for what is not known, lists that are empty and not null, and the
// figures of the file.
func TestSummary(t *testing.T) {
	c, blocks := found(t, 40)
	r := analysed(t, c, blocks)
	r.File.Devices[0].CoherenceSeconds = math.Inf(1)
	r.File.Devices[0].KFactor = calibration.Value{Value: math.NaN(), Low: 1, High: math.Inf(1)}
	text, err := json.Marshal(r.Summary([]string{"gains-1.npy"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"created":"2026-11-22T12:00:00Z","bench":"radios","devices":[{"device":1,"serial":"A","mu":{"value":`,
		`"k_factor":{"value":null,"low":1,"high":null}`, `"coherence_seconds":null`, `"phase_noise":null`, `"files":["gains-1.npy"]}`, `"missed":2`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("there is no %s in\n%s", part, text)
		}
	}
	for i, d := range r.File.Devices {
		s := r.Summary(nil).Devices[i]
		for k, v := range map[calibration.Value]campaign.ValueSummary{
			d.Mu: s.Mu, d.Omega: s.Omega, d.Sigma: s.Sigma, d.SNRdB: s.SNRdB, d.PhaseRad: s.Phase, d.DelaySamples: s.Delay, d.OffsetHz: s.Offset,
		} {
			if float64(v.Value) != k.Value || float64(v.Low) != k.Low || float64(v.High) != k.High {
				t.Errorf("device %d: %+v of the file is %+v", i+1, k, v)
			}
		}
	}
	r.File.Devices[0].Violations, r.Links.Tests = nil, nil
	s := r.Summary(nil)
	if s.Violations == nil || s.Devices[0].Violations == nil || float64(s.Devices[1].Mu.Value) != r.File.Devices[1].Mu.Value {
		t.Errorf("%+v", s)
	}
}

// Spectra have a line a device and offset with values between their ends, and empty cells
// where the phase is not readable; the summary has the same figures.
func TestSpectra(t *testing.T) {
	c, blocks := found(t, 400)
	r := analysed(t, c, blocks)
	r.Links.Devices[1].PhaseSpectrum = moments.Spectrum{}
	data, err := r.Spectra()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	gain := campaign.GainNoise(r.Links.Devices[0])
	if len(gain.Hertz) == 0 || len(lines) != 1+2*len(gain.Hertz) {
		t.Fatalf("%d lines of %d offsets", len(lines), len(gain.Hertz))
	}
	for k, line := range lines[1:] {
		device := 1 + k/len(gain.Hertz)
		var cells []float64
		for _, cell := range line {
			v, _ := strconv.ParseFloat(cell, 64)
			cells = append(cells, v)
		}
		if line[0] != strconv.Itoa(device) || !(cells[7] < cells[6] && cells[6] < cells[8]) {
			t.Errorf("device %d: %q", device, line)
		}
		if device == 1 && !(cells[3] < cells[2] && cells[2] < cells[4]) || device == 2 && !slices.Equal(line[2:6], make([]string, 4)) {
			t.Errorf("device %d: %q", device, line)
		}
	}
	phase := campaign.PhaseNoise(r.Links.Devices[0])
	s := r.Summary(nil)
	if n := s.Devices[0].PhaseNoise; n == nil || float64(n.Decibels[3]) != phase.Decibels[3] || float64(n.Hertz[3]) != phase.Hertz[3] || float64(n.RMS) != phase.RMS {
		t.Errorf("%+v", n)
	}
	if s.Devices[1].PhaseNoise != nil || s.Devices[1].GainNoise == nil || !strings.Contains(textOf(t, &r), "not readable") {
		t.Error("the phase of device 2 is not told to be unreadable")
	}
}

// Raw gains are those of all bursts, in order, and NaN where one was missed.
func TestGains(t *testing.T) {
	c, blocks := found(t, 40)
	r := analysed(t, c, blocks)
	got, err := r.Gains(1)
	if err != nil {
		t.Fatal(err)
	}
	var gains []complex128
	for _, b := range blocks {
		for _, rec := range []sounder.Record{b.Records[1], b.Records[3]} {
			if rec.Estimate == nil {
				gains = append(gains, complex(math.NaN(), math.NaN()))
				continue
			}
			gains = append(gains, rec.Estimate.Gain)
		}
	}
	if want, err := calibration.EncodeGains(gains); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the gains of device 2 differ: %v", err)
	}
}
