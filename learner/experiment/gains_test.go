package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// Where all is as it is known, no device is named, whatever the law of the gains and the
// bench.
func TestNobodyIsNamed(t *testing.T) {
	experimenttest.NoData(t)
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
		devices, notes := s.gains().Devices()
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
	experimenttest.NoData(t)
	rounds := 60
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 200
	}
	counts := func(more ...string) (read int, zeros float64, s *Experiment) {
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
	experimenttest.NoData(t)
	c, err := config.Load(experimenttest.WaveformConfig, []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=2", "optimizer.rounds=3",
		"devices.count=2", "channel.mean_per_device=[1, 0.01]", "channel.std=0", "link.phase_spread_rad=0"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ledger := xmkckks.NewLedger(setup.SharesPerKey(c))
	if err := s.assemble(ledger, 0, 1); err != nil {
		t.Fatal(err)
	}
	defer s.protocol.Close()
	var failures []round.Failure
	s.protocol.failed = func(_ int, f round.Failure) { failures = append(failures, f) }
	for !s.Trainer.Done() {
		if _, err := s.Trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(failures) != 3*c.Encryption.AttemptsPerRound || ledger.Answered(0) != 0 {
		t.Fatalf("%d attempts are void and %d were answered: %v", len(failures), ledger.Answered(0), failures)
	}
	for _, f := range failures {
		if f.Check != round.GainsCheck || f.Transmission != slot.TxKey || f.Reason != "1 of 2 devices have a gain H_i other than 0, and 2 must (devices.minimum)" {
			t.Errorf("%v", f)
		}
	}
}

// Over radios nothing is known of the channel, and the patterns tell all the same: how
// many gains are 0, and that a device's phase has turned over.
func TestGainsOverRadios(t *testing.T) {
	experimenttest.NoData(t)
	r := overLoopback(t, 2, 8, "channel.std=0.05", "channel.mean_per_device=[1, 0.7]")
	set, over := r.setGain, false
	r.setGain = func(i int, at radio.SampleIndex, gain complex64) error {
		if over && i == 1 {
			gain = -gain
		}
		return set(i, at, gain)
	}
	var said []string
	r.s.gains().Disagrees = func(_, _ int, what string) { said = append(said, what) }
	for k := range 8 {
		over = k >= 4
		r.step(t)
		row := *r.link.Row()
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

// A mean that the user assumes and the links do not have is named with where it is from.
func TestWrongMeanIsNamed(t *testing.T) {
	experimenttest.NoData(t)
	s, _ := rowsOf(t, "waveform-8bit.toml", 60, "channel.std=0.6", "calibration.assumed_mean=[1, 2]")
	devices, notes := s.gains().Devices()
	if !slices.Equal(devices, []int{2}) || !strings.Contains(strings.Join(notes, ""), "device 2: the running mean of H_i/alpha is 1") || !strings.Contains(notes[0], "by calibration.assumed_mean it is from ") {
		t.Errorf("named are %v: %q", devices, notes)
	}
}

// A run that goes on goes on with what the patterns have shown, however often: where no
// round is sent twice a resumed run writes a checkpoint before anything else.
func TestGainsAreKept(t *testing.T) {
	experimenttest.NoData(t)
	for _, randomness := range []string{"seed", "system"} {
		dir := filepath.Join(t.TempDir(), "run")
		s, err := New(quickConfig(t, "waveform-8bit.toml", 9, "encryption.randomness="+randomness))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), dir, Observer{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s, err := resumeSession(t.Context(), Lab{}, dir, 0, Observer{})
			if err != nil {
				t.Fatal(err)
			}
			state := s.gains().State()
			if state.Draws != 9 || state.Looks < 7 || state.Devices[0].Sum == 0 {
				t.Errorf("keys from the %s: after 9 rounds the patterns have shown %+v", randomness, state)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
