package main

import (
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/calibration"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/gains"
	"ringwave/radio"
)

// turning has carriers that turn the devices' gains against each other, by a twelfth of
// a turn and more from round to round.
const turning = "devices.carrier_offset_per_device_hz=[0, 0.1, -0.1]"

// turningRun is a run under turning carriers. The short one has rounds a quarter as
// long, at a quarter of the rate.
func turningRun(dir string, more ...string) []string {
	if os.Getenv("RINGWAVE_LONG") == "" {
		return quick("waveform-mnist.toml", dir, 30, append([]string{turning, "link.sample_rate_hz=2.5e6"}, more...)...)
	}
	args := append([]string{"run", "../../hw-configs/waveform-mnist.toml", "--out", dir}, small...)
	for _, m := range append([]string{"optimizer.rounds=30", turning}, more...) {
		args = append(args, "--set", m)
	}
	return args
}

// named returns the lines of a run's log that name a device whose gain disagrees.
func named(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(string(readFile(t, dir, runfolder.LogName)), "\n") {
		if strings.Contains(line, `"a gain disagrees"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Three devices whose carriers are a tenth of a hertz apart weigh each other's messages
// with gains that are not the channel's. Nothing that was checked before shows it: their
// running means do, of gains that fluctuate much, and their signs of others. Devices are
// named once each in the log, in the summary and in what is printed.
func TestTurningCarriersAreNamed(t *testing.T) {
	noData(t)
	for name, c := range map[string]struct {
		set    string
		column func(*runfolder.LinkRow) float64
		what   string
	}{
		"mu/sigma 3.3": {"channel.std=0.3", func(l *runfolder.LinkRow) float64 { return l.MeansLeft }, "the running mean of H_i/alpha is "},
		"mu/sigma 20":  {"channel.std=0.05", func(l *runfolder.LinkRow) float64 { return l.WrongSigns }, "the sign of its gain is not that of mu_i"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			stdout, _ := mustRun(t, turningRun(dir, c.set)...)
			sum, read, misfit := 0.0, 0, 0.0
			for _, r := range metricsOf(t, dir) {
				if r.Skipped {
					continue
				}
				read++
				sum += c.column(r.Link)
				misfit = max(misfit, r.Link.Misfit)
			}
			summary := summaryOf(t, dir)
			log := named(t, dir)
			t.Logf("%d of 30 rounds read, misfit up to %.2f, %v of the verdicts; %v disagree\n%s", read, misfit, sum, summary.DisagreeingDevices, strings.Join(log, "\n"))
			if misfit < 1 {
				t.Fatalf("the misfit is at most %v: nothing turned", misfit)
			}
			if sum == 0 || len(log) == 0 || len(log) != len(summary.DisagreeingDevices) {
				t.Fatalf("%v verdicts in metrics.csv, %d warnings, devices %v", sum, len(log), summary.DisagreeingDevices)
			}
			for i, d := range summary.DisagreeingDevices {
				sentence := fmt.Sprintf("device %d: %s", d, c.what)
				if !strings.Contains(strings.Join(log, "\n"), sentence) || !strings.Contains(stdout, "note: "+sentence) {
					t.Errorf("device %d (%d) is not named: %s", d, i, stdout)
				}
			}
			if wrong := float64(summary.WrongSigns); name == "mu/sigma 20" && wrong != sum {
				t.Errorf("the summary has %v wrong signs, metrics.csv %v", wrong, sum)
			}
		})
	}
}

// With refuse the attempts of such rounds are void.
func TestTurningCarriersAreRefused(t *testing.T) {
	noData(t)
	for _, std := range []string{"channel.std=0.3", "channel.std=0.05"} {
		dir := filepath.Join(t.TempDir(), std)
		mustRun(t, turningRun(dir, std, "devices.disagreement=refuse")...)
		read, worst := 0, 0.0
		for _, r := range metricsOf(t, dir) {
			if r.Skipped {
				continue
			}
			read++
			worst = max(worst, r.Link.WrongSigns+r.Link.MeansLeft)
		}
		log := string(readFile(t, dir, runfolder.LogName))
		void := strings.Count(log, `"check":"gains check","transmission":"b","reason":"device `)
		t.Logf("%s: %d of 30 rounds read, %d attempts void", std, read, void)
		if void == 0 || read > 24 || worst != 0 {
			t.Errorf("%s: %d of 30 rounds read, up to %v devices disagree in them, and %d attempts are void for it", std, read, worst, void)
		}
	}
}

// Where all is as it is known, no device is named, whatever the law of the gains and the
// bench.
func TestNobodyIsNamed(t *testing.T) {
	noData(t)
	rounds := 15
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	for _, c := range []struct {
		config string
		more   []string
	}{
		{"waveform-mnist.toml", nil},
		{"waveform-mnist.toml", []string{"channel.std=1"}},
		{"waveform-mnist.toml", []string{"devices.count=2", "channel.model=rician", "channel.k_factor=1"}},
		{"waveform-mnist.toml", []string{"devices.count=4", "link.group_size=2", "encryption.parameter_set=lean-2048"}},
		{"waveform-8bit.toml", nil},
		{"waveform-aligned.toml", nil},
		{"waveform-mnist.toml", []string{"channel.gains=lattice", "channel.gain_lattice_bits=2", "link.snr_db=50", "channel.std=1"}},
	} {
		s, rows := rowsOf(t, c.config, rounds, c.more...)
		read := 0
		for _, r := range rows {
			if !r.Skipped {
				read++
			}
		}
		devices, notes := s.protocol.gains().devices()
		t.Logf("%s %v: %d of %d rounds read", c.config, c.more, read, rounds)
		if len(devices) > 0 || read < rounds/2 {
			t.Errorf("%s %v: %d of %d rounds read; %s", c.config, c.more, read, rounds, strings.Join(notes, "; "))
		}
	}
}

// At sigma = 1 a blind receiver finds scales at which one of two devices is 0 now and
// then: M is then the other's value. No such round is accepted, unless one device is
// enough; then it is counted.
func TestMinimumOfDevices(t *testing.T) {
	noData(t)
	rounds := 60
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 200
	}
	counts := func(more ...string) (read int, zeros float64, s *session) {
		s, rows := rowsOf(t, "waveform-mnist.toml", rounds, append([]string{"channel.std=1", "devices.count=2"}, more...)...)
		for _, r := range rows {
			if !r.Skipped {
				read++
				zeros += r.Link.ZeroGains
			}
		}
		var summary runfolder.Summary
		s.summariseGains(&summary, rows)
		if float64(summary.ZeroGains) != zeros {
			t.Errorf("the summary counts %v gains of 0, metrics.csv %v", summary.ZeroGains, zeros)
		}
		if said := slices.ContainsFunc(summary.Notes, func(n string) bool { return strings.Contains(n, "gains H_i of 0") }); said != (zeros > 0) {
			t.Errorf("%v gains of 0, and the notes are %q", zeros, summary.Notes)
		}
		return read, zeros, s
	}
	one, zeros, _ := counts("devices.minimum=1")
	all, none, _ := counts()
	t.Logf("%d rounds: %d read with one device, %v gains of 0; %d with all", rounds, one, zeros, all)
	if zeros == 0 || none != 0 {
		t.Errorf("%v gains of 0 where one device is enough, %v where all must take part", zeros, none)
	}
	if all >= one || all < one-2*int(zeros) {
		t.Errorf("%d rounds are read with all devices, %d with one of them", all, one)
	}
}

// An attempt that drops a device ends after b, says why, and is answered by nobody.
func TestDroppedDeviceIsNamed(t *testing.T) {
	noData(t)
	c, err := config.Load("../../hw-configs/waveform-mnist.toml", []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=2", "optimizer.rounds=3",
		"devices.count=2", "channel.mean_per_device=[1, 0.01]", "channel.std=0", "link.phase_spread_rad=0"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ledger := xmkckks.NewLedger(sharesPerKey(c))
	if err := s.assemble(ledger, 0, 1); err != nil {
		t.Fatal(err)
	}
	defer s.protocol.close()
	var failures []round.Failure
	s.protocol.failed = func(_ int, f round.Failure) { failures = append(failures, f) }
	for !s.trainer.Done() {
		if _, err := s.trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(failures) != 3*c.Encryption.AttemptsPerRound || ledger.Answered(0) != 0 {
		t.Fatalf("%d attempts are void and %d were answered: %v", len(failures), ledger.Answered(0), failures)
	}
	for _, f := range failures {
		if f.Check != round.GainsCheck || f.Transmission != phy.TxKey || f.Reason != "1 of 2 devices have a gain H_i other than 0, and 2 must (devices.minimum)" {
			t.Errorf("%v", f)
		}
	}
}

// The ring link meets gains of 0 and below as its channel draws them: they are counted
// in the summary, and metrics.csv has nothing of them.
func TestRingCountsZeroGains(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, append(append([]string{"run", loopbackConfig, "--out", dir}, small...), "--set", "channel.gain_lattice_bits=0", "--set", "channel.fresh_block_on_retry=true",
		"--set", "channel.drift=after-key", "--set", "channel.drift_std=1", "--set", "channel.drift_probability=0.3")...)
	c, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := newChannel(c, keystream.FromInteger(uint64(c.Experiment.Seed)))
	if err != nil {
		t.Fatal(err)
	}
	want, repeated := 0.0, 0
	h := make([]float64, c.Devices.Count)
	for _, r := range metricsOf(t, dir) {
		if r.Link != nil {
			t.Fatalf("round %d has link columns: %+v", r.Round, *r.Link)
		}
		if r.Skipped {
			continue
		}
		repeated += r.Attempts - 1
		ch.Scaled(h, uint32(r.Round), uint32(r.Attempts-1), int(phy.TxC0))
		for _, x := range h {
			if x == 0 {
				want++
			}
		}
	}
	s := summaryOf(t, dir)
	t.Logf("%v gains of 0 in 60 rounds of 10 devices, %d attempts void", s.ZeroGains, repeated)
	if float64(s.ZeroGains) != want || want == 0 || repeated == 0 {
		t.Errorf("%v gains of 0, want %v; %d attempts void", s.ZeroGains, want, repeated)
	}
	if !math.IsNaN(float64(s.WrongSigns)) || len(s.DisagreeingDevices) != 0 {
		t.Errorf("wrong signs %v, devices %v: the ring link knows of none", s.WrongSigns, s.DisagreeingDevices)
	}
}

// Over radios nothing is known of the channel, and the patterns tell all the same: how
// many gains are 0, and that a device's phase has turned over.
func TestGainsOverRadios(t *testing.T) {
	noData(t)
	r := overLoopback(t, 2, 8, "channel.std=0.05", "channel.mean_per_device=[1, 0.7]")
	set, over := r.setGain, false
	r.setGain = func(i int, at radio.SampleIndex, gain complex64) error {
		if over && i == 1 {
			gain = -gain
		}
		return set(i, at, gain)
	}
	var said []string
	r.s.protocol.gains().disagrees = func(_, _ int, what string) { said = append(said, what) }
	for k := range 8 {
		over = k >= 4
		r.step(t)
		row := *r.link.report()
		if r.records[k].Skipped {
			continue
		}
		if wrong := map[bool]float64{true: 1}[over]; row.ZeroGains != 0 || row.WrongSigns != wrong || row.MeansLeft != 0 {
			t.Errorf("round %d: %v gains of 0, %v wrong signs, %v means left: want 0, %v and 0", k+1, row.ZeroGains, row.WrongSigns, row.MeansLeft, wrong)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "device 2: the sign of its gain") {
		t.Errorf("said of the devices was %q", said)
	}
}

// A run that goes on goes on with what the patterns have shown, however often: where no
// round is sent twice a resumed run writes a checkpoint before anything else.
func TestGainsAreKept(t *testing.T) {
	noData(t)
	for _, randomness := range []string{"seed", "system"} {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, append(quick("waveform-8bit.toml", dir, 9), "--set", "encryption.randomness="+randomness)...)
		for range 2 {
			s, err := resumeSession(t.Context(), Lab{}, dir)
			if err != nil {
				t.Fatal(err)
			}
			state := s.protocol.gains().State()
			if state.Draws != 9 || state.Looks < 7 || state.Devices[0].Sum == 0 {
				t.Errorf("keys from the %s: after 9 rounds the patterns have shown %+v", randomness, state)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What a run goes by of the links: exactly what a simulated bench is, but for what its
// static phases take, and the intervals of a calibration, in the run's units. Delays
// leave 2 % either way.
func TestKnownGains(t *testing.T) {
	noData(t)
	link := func(set ...string) (config.Config, *waveLink) {
		c, err := config.Load("../../hw-configs/waveform-mnist.toml", append([]string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
			"devices.count=2", "link.phase_spread_rad=0", "channel.mean_per_device=[1, 0.5]", "channel.std=0.2"}, set...))
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
		return c, s.protocol.link.(*waveLink)
	}
	check := func(name string, got, want gains.Link) {
		t.Helper()
		for k, x := range [][2]float64{{got.Mean, want.Mean}, {got.Std, want.Std}, {got.Low, want.Low}, {got.High, want.High}} {
			if math.Abs(x[0]-x[1]) > 1e-9 {
				t.Errorf("%s: %+v, want %+v (%d)", name, got, want, k)
			}
		}
	}
	c, l := link()
	check("exactly", l.knownGains(c)[1], gains.Link{Mean: 0.5, Std: 0.2, Low: 0.49, High: 0.51})

	c, l = link("link.phase_spread_rad=3", "experiment.seed=3")
	sum := cmplx.Rect(1, l.phases[0]) + cmplx.Rect(0.5, l.phases[1])
	low := 0.5 * math.Max(0, math.Cos(l.phases[1]-cmplx.Phase(sum)))
	check("phases", l.knownGains(c)[1], gains.Link{Mean: 0.5, Std: 0.2, Low: low - 0.01, High: 0.51})
	if low > 0.49 {
		t.Errorf("phases of %v show nothing", l.phases)
	}

	c, l = link("calibration.assumed_mean=[1, 0.8]")
	check("assumed", l.knownGains(c)[1], gains.Link{Mean: 0.8, Std: 0.2, Low: 0.784, High: 0.816})

	// As a calibration has it, in units of which a gain of 1 is 2.
	nan := math.NaN()
	l.known.file = &calibration.File{Devices: []calibration.Device{
		{Mu: calibration.Value{Value: 2, Low: nan, High: nan}, Sigma: calibration.Value{Value: 0.4, Low: nan, High: nan}},
		{Mu: calibration.Value{Value: 1.6, Low: 1.4, High: 1.8}, Sigma: calibration.Value{Value: 0.4, Low: 0.3, High: 0.6}},
	}}
	check("calibrated", l.knownGains(c)[1], gains.Link{Mean: 0.8, Std: 0.3, Low: 0.7 - 0.016, High: 0.9 + 0.016})
	check("calibrated, no interval", l.knownGains(c)[0], gains.Link{Mean: 1, Std: 0.2, Low: 0.98, High: 1.02})
	// A mean that nobody turns may be negative.
	l.known.fading[1] = channel.Gaussian{Mu: -0.8, Sigma: 0.2}
	if err := l.known.draw(c, keystream.FromInteger(1)); err != nil {
		t.Fatal(err)
	}
	check("negative", l.knownGains(c)[1], gains.Link{Mean: -0.8, Std: 0.3, Low: -0.9 - 0.016, High: -0.7 + 0.016})
}

// A mean that the user assumes and the links do not have is named with where it is from.
func TestWrongMeanIsNamed(t *testing.T) {
	noData(t)
	s, _ := rowsOf(t, "waveform-8bit.toml", 60, "channel.std=0.6", "calibration.assumed_mean=[1, 2]")
	devices, notes := s.protocol.gains().devices()
	if !slices.Equal(devices, []int{2}) || !strings.Contains(strings.Join(notes, ""), "device 2: the running mean of H_i/alpha is 1") || !strings.Contains(notes[0], "by calibration.assumed_mean it is from ") {
		t.Errorf("named are %v: %q", devices, notes)
	}
}
