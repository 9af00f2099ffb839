package experiment

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/calibration/advice"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
)

// advised is a bench, and how the protocol is run on it.
type advised struct {
	name string
	// plain tells that the plain test looks at it, too.
	plain bool
	set   []string
}

func benches() []advised {
	aligned := func(n int, more ...string) []string {
		return append([]string{"link.regime=mean-aligned", fmt.Sprintf("devices.count=%d", n), "link.phase_spread_rad=3"}, more...)
	}
	blindly := func(n int, more ...string) []string {
		return append([]string{"link.regime=blind", fmt.Sprintf("devices.count=%d", n)}, more...)
	}
	const lean = "encryption.parameter_set=lean-2048"
	return []advised{
		{"aligned, N=10, sigma 0.045, 31 dB", true, aligned(10, "channel.std=0.045", "link.snr_db=31")},
		{"aligned, N=6, means 0.6 to 1.4, 8 bits", false, aligned(6, "channel.std=0.03", "link.snr_db=25", "channel.mean_per_device=[1.0, 0.8, 1.4, 0.9, 1.2, 0.7]", "devices.converter_bits=8", "link.receiver_converter_bits=8")},
		{"aligned, N=4, base 5", false, aligned(4, "channel.std=0.04", "link.snr_db=27", "link.base=5")},
		{"blind, N=1, 8 bits", false, blindly(1, "channel.std=0.5", "link.snr_db=24", "devices.converter_bits=8", "link.receiver_converter_bits=8")},
		{"blind, N=2, Rician, repeats", true, blindly(2, "channel.model=rician", "channel.k_factor=3", "link.snr_db=24", "link.frame_repeats=1")},
		{"blind, N=2, sigma 1", false, blindly(2, "channel.std=1", "link.snr_db=40")},
		{"blind, N=2, sigma 1, one is enough", false, blindly(2, "channel.std=1", "link.snr_db=40", "devices.minimum=1")},
		{"blind, N=6 in groups of 2, 8 bits", false, blindly(6, "channel.std=0.3", lean, "link.snr_db=31", "link.group_size=2", "devices.converter_bits=8", "link.receiver_converter_bits=8")},
		{"blind, N=4, root-raised-cosine", false, blindly(4, "channel.std=0.3", "link.snr_db=38", "link.pulse=root-raised-cosine", "link.delay_spread_samples=2")},
		{"blind, N=3, lean-2048, delays of 3 samples", false, blindly(3, lean, "channel.std=0.3", "link.snr_db=33", "link.delay_spread_samples=3")},
		{"aligned, N=10, sigma 0.02, 35 dB", false, aligned(10, lean, "channel.std=0.02", "link.snr_db=35")},
	}
}

// calibratedIn calibrates the bench of a configuration in memory and gives the outlook of
// the configuration's own way, and the file.
func calibratedIn(t *testing.T, c config.Config, rounds int) (advice.Advice, string) {
	t.Helper()
	k, err := Lab{}.NewCalibration(c, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.create(filepath.Join(t.TempDir(), "calibration")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.close() })
	if err := k.measure(t.Context(), unseen); err != nil {
		t.Fatal(err)
	}
	r, err := k.analyse(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(k.folder.Path(), runfolder.CalibrationName)
	if err := k.folder.WriteAtomic(runfolder.CalibrationName, r.File.Text()); err != nil {
		t.Fatal(err)
	}
	use, err := usedAs(c, k.root)
	if err != nil {
		t.Fatal(err)
	}
	use.Regimes, use.NoSuggestions, use.Fresh = []advice.Regime{}, true, rounds
	bench, err := r.Bench(use)
	if err != nil {
		t.Fatal(err)
	}
	a, err := advice.Give(t.Context(), bench, use.Options)
	if err != nil {
		t.Fatal(err)
	}
	return a, path
}

// readAtOnce runs rounds and counts those that the first attempt was enough for. No
// device may be said to disagree with what is known of it.
func readAtOnce(t *testing.T, c config.Config) int {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1); err != nil {
		t.Fatal(err)
	}
	defer s.protocol.Close()
	read := 0
	for !s.Trainer.Done() {
		r, err := s.Trainer.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Attempts == 1 && !r.Skipped {
			read++
		}
	}
	if _, notes := s.gains().Devices(); len(notes) > 0 {
		t.Errorf("devices disagree with their calibration: %s", strings.Join(notes, "; "))
	}
	return read
}

// What calibrate says of a configuration is what a run of it does that knows its links
// by that calibration: the share of rounds read at once differs by no more than 3
// points and one deviation of the count over 400 rounds, and by what chance allows over
// fewer.
func TestAdviceAgainstRuns(t *testing.T) {
	experimenttest.NoData(t)
	rounds, simulated := 40, 200
	long := os.Getenv("RINGWAVE_LONG") != ""
	if long {
		rounds, simulated = 400, 2000
	}
	for _, b := range benches() {
		if !long && !b.plain {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			load := func(more ...string) config.Config {
				set := []string{"task.dataset=strokes", "task.strokes_train=300", "task.strokes_test=100", "optimizer.batch_size=4", "optimizer.evaluate_every_rounds=1000000",
					"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "encryption.attempts_per_round=1", fmt.Sprintf("optimizer.rounds=%d", rounds)}
				c, err := config.Load(experimenttest.AlignedConfig, append(append(set, b.set...), more...))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			began := time.Now()
			a, path := calibratedIn(t, load(), simulated)
			if a.Own == nil {
				t.Fatal(a.OwnRefusal)
			}
			between := time.Now()
			read := readAtOnce(t, load("calibration.file="+path))
			got, want := float64(read)/float64(rounds), a.Own.AtOnce
			share := (float64(read) + want*float64(simulated) + 1) / float64(rounds+simulated+2)
			bound := 3 * math.Sqrt(share*(1-share)*(1/float64(rounds)+1/float64(simulated)))
			if long {
				bound = 0.03 + math.Sqrt(share*(1-share)/float64(rounds))
			}
			t.Logf("%-45s predicted %.3f, read at once %.3f of %d, allowed are %.3f (%v, %v)", b.name, want, got, rounds, bound, between.Sub(began).Round(time.Millisecond), time.Since(between).Round(time.Millisecond))
			if math.Abs(got-want) > bound {
				t.Errorf("predicted are %.3f, and %.3f of %d rounds were read at once: allowed is a difference of %.3f", want, got, rounds, bound)
			}
		})
	}
}
