package replay

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// anyFaults draws the overrides of a bench of 1 to 3 devices with faults of all kinds.
func anyFaults(rnd *rand.Rand) []string {
	within := func(low, high float64) float64 { return low + (high-low)*rnd.Float64() }
	sets := []string{fmt.Sprintf("devices.count=%d", 1+rnd.IntN(3)), fmt.Sprintf("link.snr_db=%v", within(28, 50))}
	for _, f := range []struct {
		probability float64
		sets        []string
	}{
		{0.35, []string{fmt.Sprint("link.receiver_carrier_offset_hz=", within(-400, 400))}},
		{0.2, []string{fmt.Sprint("link.receiver_linewidth_hz=", within(0, 3))}},
		{0.35, []string{fmt.Sprint("devices.dc_offset=", within(0, 0.1))}},
		{0.35, []string{fmt.Sprint("link.receiver_dc_offset=", within(-0.03, 0.03))}},
		{0.2, []string{fmt.Sprint("link.receiver_converter_bits=", 6+rnd.IntN(7))}},
		{0.1, []string{fmt.Sprint("link.receiver_full_scale=", within(2, 4))}},
		{0.35, []string{fmt.Sprint("link.receiver_iq_gain_db=", within(-0.5, 0.5)), fmt.Sprint("link.receiver_iq_phase_rad=", within(-0.05, 0.05))}},
		{0.35, []string{fmt.Sprint("link.receiver_sample_clock_ppm=", within(-30, 30))}},
		{0.2, []string{fmt.Sprint("devices.sample_clock_ppm=", within(-10, 10))}},
		{0.2, []string{fmt.Sprint("link.receiver_filter_hz=", within(1e6, 4e6))}},
		{0.1, []string{fmt.Sprint("link.receiver_dc_block_hz=", within(10, 1500))}},
		{0.35, []string{fmt.Sprint("link.burst_every_samples=", 20_000+rnd.IntN(300_000)), fmt.Sprint("link.burst_samples=", 10+rnd.IntN(200)), fmt.Sprint("link.burst_db=", within(-15, 30))}},
		{0.2, []string{fmt.Sprint("link.tone_hz=", within(-4e6, 4e6)), fmt.Sprint("link.tone_db=", within(-50, -10))}},
		{0.2, []string{fmt.Sprintf("channel.echo_delays_samples=[%v, %v]", within(1, 12), within(1, 12)), fmt.Sprintf("channel.echo_gains_db=[%v, %v]", within(-40, -14), within(-40, -14))}},
		{0.2, []string{fmt.Sprintf("channel.echo_delays_samples=[%v]", within(1, 12)), fmt.Sprintf("channel.echo_gains_db=[%v]", within(-40, -14)), "channel.echoes=per-device"}},
		{0.1, []string{fmt.Sprint("channel.doppler_hz=", within(0.1, 5))}},
		{0.1, []string{fmt.Sprint("devices.amplifier_saturation=", within(2, 5))}},
	} {
		if rnd.Float64() < f.probability {
			sets = append(sets, f.sets...)
		}
	}
	return sets
}

// gainsOf returns the integers of at most 60 with which y is the sum of x, not all 0; nil
// if there are none. The modulus is a prime of 27 bits, and each x begins with a unit.
func gainsOf(mod *zq.Modulus, x []zq.Vector, y zq.Vector) []int64 {
	const most = 60 // link.max_alpha is 16, and a gain beyond 3.75 is not drawn
	q := int64(mod.Primes()[0])
	inverse := new(big.Int).ModInverse(big.NewInt(int64(x[0][0][0])), big.NewInt(q)).Int64()
	h, sum := make([]int64, len(x)), mod.NewVector(y.Len())
	var rest func(i int, left int64) bool // of what is left of the first coefficient
	rest = func(i int, left int64) bool {
		for h[i] = -most; i > 0 && h[i] <= most; h[i]++ {
			if rest(i-1, ((left-h[i]*int64(x[i][0][0]))%q+q)%q) {
				return true
			}
		}
		if i > 0 {
			return false
		}
		if h[0] = left * inverse % q; h[0] > q/2 {
			h[0] -= q
		}
		sum.Clear()
		for j := range x {
			mod.AddScaled(sum, h[j], x[j])
		}
		return max(h[0], -h[0]) <= most && slices.ContainsFunc(h, func(h int64) bool { return h != 0 }) && sum.Equal(y)
	}
	if rest(len(x)-1, int64(y[0][0])) {
		return h
	}
	return nil
}

// soundness counts rounds, those of which all was read, and sums that were read of other
// gains than b's.
type soundness struct{ rounds, read, others int }

// bench has random payloads sent over the bench of a number.
func (c *soundness) bench(t *testing.T, number, rounds int) {
	sets := append(anyFaults(rand.New(rand.NewPCG(99, uint64(number)))), fmt.Sprint("experiment.seed=", number+1), "link.record=none")
	b := newReplayBench(t, sets...)
	var x []zq.Vector
	b.sent = func(_ slot.Slot, v zq.Vector) {
		if len(x) == len(b.link.H) {
			x = nil
		}
		x = append(x, v)
	}
	var gains, pattern []int64 // of the first that was read in the attempt
	b.heard = func(s slot.Slot, rx *phy.Reception) {
		if s.Transmission == slot.TxKey {
			gains, pattern = nil, nil
		}
		if !rx.CheckPassed {
			return
		}
		h := gainsOf(b.mod, x, rx.Y)
		switch same := slices.Equal(rx.Pattern, pattern); {
		case h == nil:
			t.Errorf("%v, at scale %v: no sum of what was sent: %q", s, rx.Alpha, sets)
		case gains == nil:
			gains, pattern = h, slices.Clone(rx.Pattern)
		case same && !slices.Equal(h, gains):
			t.Errorf("%v: gains %v, and of the first %v, with the same pattern: %q", s, h, gains, sets)
		case !same:
			c.others++
		}
	}
	for k := range rounds {
		b.read = 0
		b.round(t, uint32(k+1), nil)
		if c.rounds++; b.read == slot.Transmissions {
			c.read++
		}
	}
}

// Whatever a bench does to signals, what passes its checks is a sum of what was sent with
// integer gains, and sums with the same pattern have the same gains.
func TestNoWrongRound(t *testing.T) {
	benches, rounds := 3, 10
	if os.Getenv("RINGWAVE_LONG") != "" {
		benches, rounds = 200, 50
	}
	var all soundness
	for k := range benches {
		t.Run(fmt.Sprint(k), func(t *testing.T) { all.bench(t, k, rounds) })
	}
	t.Logf("%d rounds, %d read whole, %d sums of other gains, which their patterns tell", all.rounds, all.read, all.others)
	if 2*all.read < all.rounds {
		t.Errorf("only %d of %d rounds were read: that shows little", all.read, all.rounds)
	}
}

// Frames of a carrier that is far off are found.
func TestFarCarrier(t *testing.T) {
	b := newReplayBench(t, "link.record=none", "link.receiver_carrier_offset_hz=-5500")
	if b.round(t, 1, nil); b.read != slot.Transmissions {
		t.Errorf("%d transmissions read: %q", b.read, b.why)
	}
}
