package experiment

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
)

// How often plan says that a round is read at once is how often a run reads one;
// and its misfits and dropped devices are the run's. The bound is three deviations
// of the difference of both counts, one trial added to either side of each.
// Longer, or of more branches, than most because it is a table of benches and one comparison.
func TestPlanPredictsWhatIsRead(t *testing.T) {
	experimenttest.NoData(t)
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
			g, err := planGroup(t.Context(), s, setup.GroupSize(s.Config), layout)
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
			n, m := float64(rounds), float64(g.Trials)
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

// quickConfig makes a waveform config a matter of moments.
func quickConfig(t *testing.T, name string, rounds int, more ...string) Config {
	t.Helper()
	set := []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", fmt.Sprintf("optimizer.rounds=%d", rounds)}
	c, err := config.Load("../../hw-configs/"+name, append(set, more...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rowsOf runs rounds of a quick config without a run folder.
func rowsOf(t *testing.T, name string, rounds int, more ...string) (*Experiment, []runfolder.Row) {
	t.Helper()
	c := quickConfig(t, name, rounds, more...)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.protocol.Close() })
	var rows []runfolder.Row
	for !s.Trainer.Done() {
		record, err := s.Trainer.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line := row(record)
		line.Link = s.protocol.waveform.Row()
		rows = append(rows, line)
	}
	return s, rows
}

// All the hardware of a configuration has its effect, and small faults are
// survived: with the coarsest of these converters 2 rounds in 100 are skipped.
func TestImpairedBench(t *testing.T) {
	experimenttest.NoData(t)
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
