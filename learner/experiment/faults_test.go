package experiment

import (
	"fmt"
	"math"
	"os"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// calibratedFaults are benches whose devices have references and echoes of their own, leak
// and have images; the carrier that they have in common is the receiver's, whose business that is.
var calibratedFaults = []struct {
	name          string
	plain         bool
	bench, faults []string
}{
	{"blind", true, []string{"link.regime=blind", "devices.count=3", "channel.std=0.3", "link.snr_db=40", "link.phase_spread_rad=0.2"},
		[]string{"devices.carrier_offset_per_device_hz=[0, 0.3, -0.4]", "devices.dc_offset=0.02", "devices.iq_gain_db=0.3", "devices.iq_phase_rad=0.02"}},
	{"blind, 20 Hz apart", false, []string{"link.regime=blind", "devices.count=2", "channel.std=0.3", "link.snr_db=40", "link.phase_spread_rad=3"},
		[]string{"devices.carrier_offset_per_device_hz=[0, 20]", "devices.iq_gain_db=0.3"}},
	{"aligned", true, []string{"link.regime=mean-aligned", "devices.count=4", "channel.std=0.02", "link.snr_db=35", "link.phase_spread_rad=3"},
		[]string{"devices.carrier_offset_per_device_hz=[0.2, -0.3, 0, 0.1]", "devices.iq_gain_db=0.3", "devices.dc_offset_per_device=[0.01, 0.02, 0, 0.01]"}},
	{"aligned, echoes", true, []string{"link.regime=mean-aligned", "devices.count=5", "channel.std=0.02", "link.snr_db=35", "link.phase_spread_rad=3"},
		[]string{"channel.echoes=per-device", "channel.echo_delays_samples=[8]", "channel.echo_gains_db=[-14]"}},
	{"blind, two echoes and other faults", false, []string{"link.regime=blind", "devices.count=3", "channel.std=0.3", "link.snr_db=40", "link.phase_spread_rad=3"},
		[]string{"channel.echoes=per-device", "channel.echo_delays_samples=[3, 13.5]", "channel.echo_gains_db=[-20, -26]", "devices.carrier_offset_per_device_hz=[0, 0.3, -0.4]", "devices.dc_offset=0.02", "devices.iq_gain_db=0.3"}},
	{"sample clocks 5 ppm apart", false, []string{"link.regime=blind", "devices.count=3", "channel.std=0.3", "link.snr_db=40"},
		[]string{"devices.sample_clock_per_device_ppm=[2, -2, 3]"}},
}

// A bench whose devices' carriers and clocks run apart, which leak and have images and echoes, is read, by
// a run that knows it by its calibration, as the same bench without faults is: within 2
// points over 400 rounds, and within what chance allows over fewer.
func TestCalibratedFaults(t *testing.T) {
	experimenttest.NoData(t)
	rounds := 30
	long := os.Getenv("RINGWAVE_LONG") != ""
	if long {
		rounds = 400
	}
	for _, b := range calibratedFaults {
		if !long && !b.plain {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			load := func(more ...string) config.Config {
				set := []string{"task.dataset=strokes", "task.strokes_train=300", "task.strokes_test=100", "optimizer.batch_size=4", "optimizer.evaluate_every_rounds=1000000",
					"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "encryption.attempts_per_round=1", fmt.Sprintf("optimizer.rounds=%d", rounds)}
				c, err := config.Load(experimenttest.AlignedConfig, append(append(set, b.bench...), more...))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			_, clean := calibratedIn(t, load(), 1)
			_, faulty := calibratedIn(t, load(b.faults...), 1)
			without := readAtOnce(t, load("calibration.file="+clean))
			with := readAtOnce(t, load(append(b.faults, "calibration.file="+faulty)...))
			share := (float64(with+without) + 1) / float64(2*rounds+2)
			bound := 3 * math.Sqrt(2*share*(1-share)/float64(rounds))
			if long {
				bound = 0.02
			}
			t.Logf("read at once are %d of %d with faults, %d without", with, rounds, without)
			if float64(without-with)/float64(rounds) > bound {
				t.Errorf("read at once are %d of %d with faults and %d without: allowed is a difference of %.3f", with, rounds, without, bound)
			}
		})
	}
}
