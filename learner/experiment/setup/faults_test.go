package setup

import (
	"math"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/phy/bench"
)

func loaded(t *testing.T, path string, overrides ...string) config.Config {
	t.Helper()
	c, err := config.Load("../"+path, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A bench without faults is the one that it was before there were any, so that its
// calibrations hold; each fault makes it another.
func TestBenchIdentity(t *testing.T) {
	root := keystream.FromInteger(1)
	of := func(overrides ...string) string {
		return SimulatedBench(loaded(t, experimenttest.WaveformConfig, overrides...), root).Bench.Identity
	}
	ideal := of()
	if ideal != "b89a6fdaa93e5e21" {
		t.Errorf("a bench without faults is %s", ideal)
	}
	if again := of("channel.echo_delays_samples=[]", "link.burst_db=0"); again != ideal {
		t.Errorf("with faults that are none it is %s", again)
	}
	for _, set := range [][]string{
		{"devices.sample_clock_ppm=1"}, {"devices.sample_clock_per_device_ppm=[1, 0, 0]"}, {"devices.clock_jitter_samples=0.1"}, {"devices.filter_hz=1e6"},
		{"devices.amplifier_saturation=2"}, {"devices.amplifier_am_pm_rad=0.1"}, {"devices.preset=pluto"}, {"link.receiver_carrier_offset_hz=1"},
		{"link.receiver_linewidth_hz=1"}, {"link.receiver_sample_clock_ppm=1"}, {"link.receiver_filter_hz=1e6"}, {"link.receiver_dc_block_hz=1"},
		{"link.receiver_gain_control_hz=1"}, {"link.burst_every_samples=10"}, {"link.tone_hz=1"}, {"channel.echo_k_factor=1"}, {"channel.echoes=per-device"},
		{"channel.echo_delays_samples=[1]", "channel.echo_gains_db=[-20]"}, {"channel.doppler_hz=1"}, {"link.snr_db=39"},
	} {
		if of(set...) == ideal {
			t.Errorf("%v makes no other bench", set)
		}
	}
}

// Faults reach the bench in its units: cycles a sample, samples, and amplitudes against
// that of a device of gain 1.
func TestFaultsInSamples(t *testing.T) {
	c := loaded(t, experimenttest.WaveformConfig, "link.receiver_carrier_offset_hz=100", "link.receiver_linewidth_hz=2", "devices.sample_clock_per_device_ppm=[1, 2, 3]",
		"devices.filter_hz=1e6", "devices.amplifier_saturation=2", "link.receiver_dc_block_hz=1000", "link.receiver_gain_control_hz=10", "link.receiver_sample_clock_ppm=-2",
		"link.receiver_filter_hz=2e6", "link.burst_every_samples=100", "link.burst_samples=10", "link.burst_db=6", "link.tone_hz=-1e6", "link.tone_db=-20",
		"channel.echo_delays_samples=[8, 9.5]", "channel.echo_gains_db=[-20, -40]", "channel.echo_phases_rad=[0, 1]", "channel.echo_k_factor=3", "channel.doppler_hz=10")
	const scale = 0.5
	rx, tx, air := receiverImpairments(c.Link, scale), impairments(c, 1), echoesOf(c)
	power := bench.DigitPower(3) * scale * scale
	for name, values := range map[string][2]float64{
		"the receiver's carrier":       {rx.CarrierOffset, 1e-5},
		"the receiver's phase noise":   {rx.PhaseNoiseStd * rx.PhaseNoiseStd, 2 * math.Pi * 2e-7},
		"the receiver's clock":         {rx.SampleClock, -2e-6},
		"the receiver's filter":        {rx.Filter, 0.2},
		"the receiver's DC block":      {rx.HighPass, 1e-4},
		"the receiver's gain control":  {rx.GainControl, 1e-6},
		"a burst's power":              {2 * rx.Interference.BurstStd * rx.Interference.BurstStd, power * math.Pow(10, 0.6)},
		"bursts' distance":             {float64(rx.Interference.BurstEvery), 100},
		"bursts' length":               {float64(rx.Interference.BurstLength), 10},
		"the tone":                     {rx.Interference.Tone, -0.1},
		"the tone's power":             {rx.Interference.ToneAmplitude * rx.Interference.ToneAmplitude, power / 100},
		"device 2's clock":             {tx.SampleClock, 2e-6},
		"device 2's filter":            {tx.Filter, 0.1},
		"device 2's amplifier":         {tx.Amplifier.Saturation, 2},
		"the second echo's delay":      {air.Echoes[1].DelaySamples, 9.5},
		"the second echo's gain":       {air.Echoes[1].Gain, 0.01},
		"the second echo's phase":      {air.Echoes[1].PhaseRad, 1},
		"the echoes' K-factor":         {air.KFactor, 3},
		"the gains' largest frequency": {air.Doppler, 1e-6},
	} {
		if math.Abs(values[0]-values[1]) > 1e-12+1e-9*math.Abs(values[1]) {
			t.Errorf("%s is %v, want %v", name, values[0], values[1])
		}
	}
}

// A terahertz waveform has the SNR of its link budget in a symbol's bandwidth: that which
// the ring's link has in link.bandwidth_hz, by what the bandwidths are apart, and the half
// of the noise that is in the real part.
func TestTerahertzSNR(t *testing.T) {
	c := loaded(t, "../../hw-configs/thz-los.toml", "link.kind=waveform", "channel.gains=continuous")
	reference := LineOfSight(c, 2) // 10 m
	reference.MisalignmentDeg = 0
	b, err := reference.Budget()
	if err != nil {
		t.Fatal(err)
	}
	// Symbols are means of 3 of 8 samples.
	if want := b.SNRdB + 10*math.Log10(2*1e9/(10e6/3.0)); math.Abs(SNR(c)-want) > 1e-6 || math.Abs(want-49.7) > 0.05 {
		t.Errorf("the SNR is %v, want %v", SNR(c), want)
	}
	c.Channel.TransmitPowerDBm -= 10
	if low := SNR(c); math.Abs(low-39.7) > 0.05 {
		t.Errorf("with 10 dB less power the SNR is %v", low)
	}
	c.Channel.Model = "gaussian"
	if SNR(c) != c.Link.SNRdB {
		t.Errorf("the SNR of another channel is %v", SNR(c))
	}
}
