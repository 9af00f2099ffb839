package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// quick makes a waveform config a matter of moments.
func quick(name, dir string, rounds int, more ...string) []string {
	args := append([]string{"run", "../../hw-configs/" + name, "--out", dir}, small...)
	args = append(args, "--set", fmt.Sprintf("optimizer.rounds=%d", rounds), "--set", "encryption.parameter_set=demo-1024",
		"--set", "encryption.delta_max=1", "--set", "link.max_alpha=16")
	for _, m := range more {
		args = append(args, "--set", m)
	}
	return args
}

func metricsOf(t *testing.T, dir string) []runfolder.Row {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// How often plan says that a round is read at once is how often a run reads one;
// and its misfits and dropped devices are the run's. The bound is three deviations
// of the difference of both counts, one trial added to either side of each.
func TestPlanPredictsWhatIsRead(t *testing.T) {
	noData(t)
	long := os.Getenv("RINGWAVE_LONG") != ""
	for _, c := range []struct {
		name, config string
		more         []string
		long         bool
	}{
		{"N=2, 8 bits, 40 dB", "waveform-8bit.toml", nil, false},
		{"N=3, 40 dB", "waveform-mnist.toml", nil, true},
		{"N=2, sigma 1, 40 dB", "waveform-mnist.toml", []string{"devices.count=2", "channel.std=1"}, true},
		{"N=2, sigma 1, one is enough", "waveform-mnist.toml", []string{"devices.count=2", "channel.std=1", "devices.minimum=1"}, true},
		{"N=3, 8 bits, 34 dB", "waveform-8bit.toml", []string{"devices.count=3", "link.snr_db=34"}, true},
		{"N=3, 8 bits, 28 dB", "waveform-8bit.toml", []string{"devices.count=3", "link.snr_db=28", "encryption.attempts_per_round=1"}, false},
	} {
		if c.long && !long {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			rounds := 40
			if long {
				rounds = 400
			}
			s, rows := rowsOf(t, c.config, rounds, c.more...)
			layout, err := roundLayout(s)
			if err != nil {
				t.Fatal(err)
			}
			g, err := planGroup(t.Context(), s, groupSize(s.cfg), layout)
			if err != nil {
				t.Fatal(err)
			}
			read, zeros := 0.0, 0.0
			var misfits []float64
			for _, r := range rows {
				if r.Attempts == 1 && !r.Skipped {
					read++
					zeros += r.Link.ZeroGains
					misfits = append(misfits, r.Link.Misfit)
				}
			}
			slices.Sort(misfits)
			n, m := float64(rounds), float64(g.trials)
			share := (read + g.Reads*m + 1) / (n + m + 2)
			bound := 3 * math.Sqrt(share*(1-share)*(1/n+1/m))
			t.Logf("read at once: %.3f of %d rounds, planned %.3f; misfit %.4f, planned %.4f; dropped %.3f, planned %.3f",
				read/n, rounds, g.Reads, misfits[len(misfits)/2], g.Misfit, zeros/read, g.ZeroGains)
			if math.Abs(read/n-g.Reads) > bound {
				t.Errorf("%.3f of rounds were read at once, planned are %.3f: allowed is %.3f either way", read/n, g.Reads, bound)
			}
			// The median of n values lies within 1.25 s/sqrt(n) of its own, s their
			// deviation: about as large as the median here.
			if d := 4 * g.Misfit * math.Sqrt(1/n+1/m); math.Abs(misfits[len(misfits)/2]-g.Misfit) > d+0.003 {
				t.Errorf("the median misfit is %.4f, planned %.4f", misfits[len(misfits)/2], g.Misfit)
			}
			if d := 4 * math.Sqrt((g.ZeroGains+0.02)*(1/n+1/m)); math.Abs(zeros/read-g.ZeroGains) > d {
				t.Errorf("%.3f devices a round are dropped, planned %.3f", zeros/read, g.ZeroGains)
			}
		})
	}
}

// rowsOf runs rounds of a quick config without a run folder.
func rowsOf(t *testing.T, name string, rounds int, more ...string) (*session, []runfolder.Row) {
	t.Helper()
	set := []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", fmt.Sprintf("optimizer.rounds=%d", rounds)}
	c, err := config.Load("../../hw-configs/"+name, append(set, more...))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.assemble(xmkckks.NewLedger(sharesPerKey(c)), 0, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.protocol.close() })
	var rows []runfolder.Row
	for !s.trainer.Done() {
		record, err := s.trainer.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line := row(record)
		line.Link = s.protocol.link.report()
		rows = append(rows, line)
	}
	return s, rows
}

// Aligned devices: ten of quite different means are read at the first attempt, and
// M means what it does without encryption: sum (h_i/mu_i) Delta f_i, as the plain
// aggregator of the same seed has it, but for the fluctuations of 2 % that rounding
// takes away.
func TestAlignedRun(t *testing.T) {
	noData(t)
	rounds := 15
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	means := "channel.mean_per_device=[1.0, 0.6, 1.4, -0.8, 1.0, 0.9, 1.2, 0.7, 1.1, 1.3]"
	stds := "channel.std_per_device=[0.02, 0.012, 0.028, 0.016, 0.02, 0.018, 0.024, 0.014, 0.022, 0.026]"
	// The weakest arrives 4.4 dB below a device of gain 1.
	dir, plain := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "plain")
	mustRun(t, quick("waveform-aligned.toml", dir, rounds, means, stds, "link.snr_db=39.4")...)
	mustRun(t, quick("waveform-aligned.toml", plain, 1, means, stds, "experiment.aggregator=none", "channel.analog_noise_std=0")...)
	checkNoise(t, dir)
	rows := metricsOf(t, dir)
	first := 0
	for _, r := range rows {
		if r.Attempts == 1 && !r.Skipped {
			first++
		}
		if r.Link.ZeroGains > 0 || r.Link.Misfit > 0.12 || math.Abs(r.Link.Alpha-1) > 0.06 {
			t.Errorf("round %d: alpha %v, misfit %v, %v gains of 0", r.Round, r.Link.Alpha, r.Link.Misfit, r.Link.ZeroGains)
		}
	}
	t.Logf("%d of %d rounds read at once", first, rounds)
	if first*100 < rounds*99 {
		t.Errorf("%d of %d rounds were read at once: wanted are 99 %%", first, rounds)
	}
	got, want := rows[0].M, metricsOf(t, plain)[0].M
	if math.Abs(got-want) > 0.1*math.Abs(want) {
		t.Errorf("M of round 1 is %v, without encryption %v", got, want)
	}
}

// The flat tops of the largest digit take the largest code, of either sign, and no
// sample is clipped: a converter that had no opposite of a code would add an even
// distortion that no averaging removes.
func TestTransmitConverterIsDrivenEvenly(t *testing.T) {
	for _, base := range []int{3, 5} {
		c := config.Default()
		c.Devices.Count, c.Devices.ConverterBits, c.Link.Base = 1, 8, base
		m := modemConfig(c.Link)
		peak := float32(base-1) / 2
		modulator, err := modem.NewModulator(m, modem.Drive{Peak: peak, Amplitude: transmitAmplitude(c)})
		if err != nil {
			t.Fatal(err)
		}
		digits := []float32{peak, -peak, 0, peak, -peak, 0, 0, 0, 0, 0}
		samples := make([]complex64, len(digits)*m.SamplesPerSymbol)
		modulator.Modulate(samples, digits)
		path, err := channel.NewPath(impairments(c, 0), keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		path.Apply(samples, samples)
		least, most := float32(0), float32(0)
		for _, x := range samples {
			least, most = min(least, real(x)), max(most, real(x))
		}
		if most != 127.0/128 || least != -most {
			t.Errorf("base %d: samples from %v to %v", base, least, most)
		}
	}
}

// A recording of 16 bits holds the codes of an 8-bit converter and rounds nothing
// more: the run is, to the byte, the one that is not recorded, and replays.
func TestRecordingBehindAConverter(t *testing.T) {
	noData(t)
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	mustRun(t, quick("waveform-8bit.toml", with, 3, "link.record=ci16_le")...)
	mustRun(t, quick("waveform-8bit.toml", without, 3)...)
	if !bytes.Equal(readFile(t, with, runfolder.MetricsName), readFile(t, without, runfolder.MetricsName)) {
		t.Error("recording changed the run")
	}
	if stdout, _ := mustRun(t, "replay", with); !strings.Contains(stdout, "agree") {
		t.Errorf("replay says\n%s", stdout)
	}
}

// A receiver that clips says so in the log.
func TestClippingIsLogged(t *testing.T) {
	noData(t)
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := run(t, quick("waveform-8bit.toml", dir, 2, "link.receiver_full_scale=0.8", "encryption.attempts_per_round=1")...)
	if status != exitUnusable {
		t.Errorf("of a run of which no round is read the status is %d\n%s", status, stderr)
	}
	if log := string(readFile(t, dir, runfolder.LogName)); !strings.Contains(log, "the receiver clipped") {
		t.Errorf("no word of clipping in\n%s", log)
	}
}

// All the hardware of a configuration has its effect, and small faults are
// survived: with the coarsest of these converters 2 rounds in 100 are skipped.
func TestImpairedBench(t *testing.T) {
	noData(t)
	_, ideal := rowsOf(t, "waveform-mnist.toml", 3)
	for _, fault := range []string{
		"devices.carrier_offset_hz=0.01", "devices.carrier_offset_per_device_hz=[0.01, 0.0, -0.01]",
		// Not iq_gain_db: symbols are real, and a quadrature of 0 has no gain.
		"devices.linewidth_hz=1e-4", "devices.iq_phase_rad=0.01",
		"devices.dc_offset=1e-4", "devices.converter_bits=10", "devices.converter_bits_per_device=[10, 12, 8]",
		"link.receiver_converter_bits=12", "link.receiver_iq_gain_db=0.1", "link.receiver_iq_phase_rad=0.01", "link.receiver_dc_offset=1e-4",
	} {
		_, rows := rowsOf(t, "waveform-mnist.toml", 3, fault)
		if rows[0].Link.Quality == ideal[0].Link.Quality {
			t.Errorf("%s changes nothing", fault)
		}
		skipped := 0
		for _, r := range rows {
			if r.Skipped {
				skipped++
			}
		}
		if skipped > 1 {
			t.Errorf("%s: %d of 3 rounds were skipped", fault, skipped)
		}
	}
}

// jumpClock is a clock that reaches what is waited for at once.
type jumpClock struct{ now time.Duration }

func (c *jumpClock) Now() time.Duration { return c.now }
func (c *jumpClock) Wait(_ context.Context, t time.Duration, _ <-chan struct{}) {
	c.now = t
}

// silence is a receiver of zeros.
type silence struct {
	radio.Receiver
	at radio.SampleIndex
}

func (s *silence) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	meta := radio.Meta{First: s.at}
	s.at += radio.SampleIndex(len(dst))
	return len(dst), meta, nil
}

// In real time a transmission takes as long as its samples, and the time between
// transmissions comes on top.
func TestPaced(t *testing.T) {
	clock := &jumpClock{}
	from := &silence{}
	p := &paced{from: from, clock: clock, rate: 1000}
	rx := p.receiver()
	buffer := make([]complex64, 250)
	for range 2 {
		began := clock.now
		p.begin(from.at)
		for range 4 {
			if _, _, err := rx.Read(t.Context(), buffer); err != nil {
				t.Fatal(err)
			}
		}
		if took := clock.now - began; took != time.Second {
			t.Errorf("1000 samples at 1 kHz took %v", took)
		}
		clock.now += time.Minute
	}
}

// Real time changes nothing but the time.
func TestRealTimeGivesTheSameBytes(t *testing.T) {
	noData(t)
	paced, free := filepath.Join(t.TempDir(), "paced"), filepath.Join(t.TempDir(), "free")
	mustRun(t, quick("waveform-8bit.toml", paced, 1, "link.real_time=true")...)
	mustRun(t, quick("waveform-8bit.toml", free, 1)...)
	if !bytes.Equal(readFile(t, paced, runfolder.MetricsName), readFile(t, free, runfolder.MetricsName)) {
		t.Error("metrics.csv differs")
	}
}

func TestWaveformRefusals(t *testing.T) {
	noData(t)
	for _, c := range []struct {
		name, config string
		more         []string
		want         []string
	}{
		{"fluctuations", "waveform-aligned.toml", []string{"channel.std=0.3"}, []string{"mean-aligned", "channel.std", "0.5"}},
		{"noise", "waveform-aligned.toml", []string{"link.snr_db=5"}, []string{"link.snr_db is 5", "aligned"}},
		{"emulated, few bits", "paper-waveform-4096.toml", []string{"link.receiver_converter_bits=4"}, []string{"converters", "gain_lattice_bits"}},
		{"regime", "waveform-aligned.toml", []string{"link.regime=emulated"}, []string{"link.regime", "lattice"}},
	} {
		args := []string{"plan", "../../hw-configs/" + c.config}
		for _, m := range append(c.more, "task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300") {
			args = append(args, "--set", m)
		}
		status, _, stderr := run(t, args...)
		if status != 2 {
			t.Errorf("%s: status %d", c.name, status)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %q does not say %q", c.name, stderr, w)
			}
		}
	}
}

// The coherence time of a terahertz bench is held against the waveform's own
// airtime, all slots and guard times, and not against bits over a bandwidth.
func TestCoherenceAgainstTheWaveform(t *testing.T) {
	args := []string{"plan", "../../hw-configs/thz-los.toml", "--json"}
	for _, set := range []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "channel.gains=continuous", "link.kind=waveform"} {
		args = append(args, "--set", set)
	}
	stdout, _ := mustRun(t, args...)
	var p plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil {
		t.Fatal(err)
	}
	if p.Waveform == nil || p.CoherenceSeconds == 0 {
		t.Fatalf("no waveform or coherence time in\n%s", stdout)
	}
	want := float64(p.Waveform.SymbolsPerRound) * 8 / p.Waveform.SampleRateHz
	if math.Abs(p.AirtimeSeconds/want-1) > 1e-3 || want < p.CoherenceSeconds {
		t.Fatalf("%v s of airtime, %v s of samples, coherent for %v s", p.AirtimeSeconds, want, p.CoherenceSeconds)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("take %.3g s", want)) {
		t.Errorf("no warning in %s", notes)
	}
}
