package uplink

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/phy/trial"
)

// fault is what a board or the air does, as a configuration has it.
type fault struct {
	name string
	set  []string
	// slow says that it is one in transmissions that last: it is tried in those of the
	// configuration's own ring, others in those of the smallest, a quarter as long.
	slow bool
}

// ordinaryFaults are small, ordinary faults of real boards.
var ordinaryFaults = []fault{
	{"carrier offset 0.5 Hz", []string{"devices.carrier_offset_hz=0.5"}, true},
	{"carrier offset 100 Hz", []string{"devices.carrier_offset_hz=100"}, false},
	{"receiver's offset 20 ppm", []string{"link.receiver_carrier_offset_hz=48000"}, false},
	{"receiver's linewidth 1 Hz", []string{"link.receiver_linewidth_hz=1"}, true},
	{"DC offset 0.05", []string{"devices.dc_offset=0.05"}, false},
	{"receiver's DC 0.02, 12 bits", []string{"link.receiver_dc_offset=0.02", "link.receiver_converter_bits=12"}, false},
	{"receiver's image, 100 Hz", []string{"link.receiver_iq_gain_db=0.5", "link.receiver_iq_phase_rad=0.02", "devices.carrier_offset_hz=100"}, false},
	{"root-raised-cosine 0.1", []string{"link.pulse=root-raised-cosine", "link.roll_off=0.1", "link.span_symbols=16"}, false},
	{"4 samples a symbol", []string{"link.samples_per_symbol=4", "link.edge_samples=1"}, false},
	{"delays of 8 samples", []string{"link.delay_spread_samples=8"}, false},
	{"full scale 3.0", []string{"link.receiver_converter_bits=12", "link.receiver_full_scale=3"}, false},
	{"full scale 2.5", []string{"link.receiver_converter_bits=12", "link.receiver_full_scale=2.5"}, false},
	{"bursts", []string{"link.burst_every_samples=200000", "link.burst_samples=80", "link.burst_db=20"}, false},
	{"echo of -20 dB", []string{"channel.echo_delays_samples=[8.0]", "channel.echo_gains_db=[-20.0]"}, false},
	{"sample clock 2 ppm", []string{"devices.sample_clock_ppm=2"}, true},
	{"sample clock 20 ppm", []string{"devices.sample_clock_ppm=20"}, false},
	{"sample clocks apart 2 ppm", []string{"devices.sample_clock_per_device_ppm=[1,-1,0,1,-1,0]"}, true},
	{"DC block of 100 Hz", []string{"link.receiver_dc_block_hz=100"}, true},
	{"DC block of 1 kHz", []string{"link.receiver_dc_block_hz=1000"}, false},
	{"tone of -20 dB", []string{"link.tone_hz=300000", "link.tone_db=-20"}, false},
	{"all, half as strong", []string{
		"devices.carrier_offset_hz=50", "link.receiver_linewidth_hz=0.5", "devices.dc_offset=0.025", "link.receiver_dc_offset=0.01",
		"link.receiver_converter_bits=12", "link.delay_spread_samples=4", "link.burst_every_samples=400000", "link.burst_samples=40", "link.burst_db=20",
		"channel.echo_delays_samples=[8.0]", "channel.echo_gains_db=[-26.0]", "devices.sample_clock_ppm=10", "link.receiver_dc_block_hz=50",
	}, false},
}

// read returns the outcomes of so many rounds of N devices with a configuration's settings.
func read(t *testing.T, devices, rounds int, set ...string) *trial.Tally {
	t.Helper()
	set = append([]string{fmt.Sprintf("devices.count=%d", devices)}, set...)
	for i, s := range set {
		if key, list, ok := strings.Cut(s, "=["); ok && strings.Contains(key, "per_device") {
			parts := strings.Split(strings.TrimSuffix(list, "]"), ",")
			set[i] = key + "=[" + strings.Join(parts[:devices], ",") + "]"
		}
	}
	setting := settingOf(t, set...)
	outcomes, err := trial.Simulate(t.Context(), Trials(setting, setting.Seed.Derive("faults")), trial.Effort{Most: rounds})
	if err != nil {
		t.Fatal(err)
	}
	tally := new(trial.Tally)
	for _, o := range outcomes {
		tally.Add(o)
		if why := o.Tries[0].Failure; why != "" && os.Getenv("RINGWAVE_FAULT_REASONS") != "" {
			t.Log(why)
		}
	}
	return tally
}

// environment returns a number from the environment, or the usual one.
func environment(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return usual
}

// ring returns the settings of the ring that rounds are of, the configuration's own or the
// smallest.
func ring(own bool) []string {
	if own {
		return nil
	}
	return []string{"encryption.parameter_set=demo-1024", "encryption.delta_max=1"}
}

// With each of the ordinary faults as many rounds are read as without it, within two
// points, of the same benches and seeds: at once and within four attempts. Whatever is
// read is right.
func TestOrdinaryFaults(t *testing.T) {
	rounds, most := 12, 3
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds, most = 400, 4
	} else if testing.Short() {
		t.Skip("some minutes: not with -short")
	}
	whole := os.Getenv("RINGWAVE_LONG") != ""
	rounds, most = environment("RINGWAVE_FAULT_ROUNDS", rounds), environment("RINGWAVE_FAULT_DEVICES", most)
	least := environment("RINGWAVE_FAULT_FROM", most)
	if os.Getenv("RINGWAVE_LONG") != "" {
		least = environment("RINGWAVE_FAULT_FROM", 1)
	}
	for n := least; n <= most; n++ {
		plain := map[bool]*trial.Tally{}
		for _, own := range slices.Compact([]bool{whole, true}) {
			plain[own] = read(t, n, rounds, ring(own)...)
			t.Logf("N = %d, no fault: %d of %d at once, %d within four attempts", n, plain[own].Within(1), rounds, plain[own].Within(4))
		}
		for _, f := range ordinaryFaults {
			t.Run(fmt.Sprintf("N=%d/%s", n, f.name), func(t *testing.T) {
				plain, of := plain[f.slow || whole], ring(f.slow || whole)
				got := read(t, n, rounds, append(of, f.set...)...)
				t.Logf("%d of %d at once (%d without), %d within four attempts (%d)", got.Within(1), rounds, plain.Within(1), got.Within(4), plain.Within(4))
				slack := max(2, rounds/50)
				if got.Within(1) < plain.Within(1)-slack || got.Within(4) < plain.Within(4)-slack || got.Wrong > 0 {
					t.Errorf("%d at once, %d within four attempts, %d wrong: %s", got.Within(1), got.Within(4), got.Wrong, got.FirstWrong)
				}
			})
		}
	}
}
