package config

import "testing"

// The title of plots says what ran, and nothing of what does not count.
func TestHeading(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{nil, "x: xmk-ckks, ringwave-4096-100, ring link, N = 10, σ = 0.5, seed 7"},
		{[]string{"experiment.aggregator=none", "optimizer.packed_directions=16"}, "x: none, 16 packed directions, ring link, N = 10, σ = 0.5, seed 7"},
		{[]string{"optimizer.packed_directions=4", "optimizer.estimator=one-sided", "optimizer.step=fzoo", "optimizer.momentum=0.9"}, "x: xmk-ckks, ringwave-4096-100, 4 packed directions, one-sided differences, FZOO steps, momentum 0.9, ring link, N = 10, σ = 0.5, seed 7"},
		{[]string{"optimizer.estimate=gradient"}, "x: xmk-ckks, ringwave-4096-100, steps in units of the gradient, ring link, N = 10, σ = 0.5, seed 7"},
		{[]string{"experiment.aggregator=digital"}, "x: digital, ringwave-4096-100, N = 10, seed 7"},
		{[]string{"devices.count=2", "channel.std_per_device=[0.25, 2.0]", "encryption.parameter_set=lean-2048"}, "x: xmk-ckks, lean-2048, ring link, N = 2, σ = 0.25 to 2, seed 7"},
		{[]string{"devices.count=2", "channel.std_per_device=[2.0, 2.0]"}, "x: xmk-ckks, ringwave-4096-100, ring link, N = 2, σ = 2, seed 7"},
		{[]string{"channel.model=rician", "channel.k_factor=4"}, "x: xmk-ckks, ringwave-4096-100, ring link, N = 10, Rician gains, K = 4, seed 7"},
		{[]string{"channel.model=thz-los"}, "x: xmk-ckks, ringwave-4096-100, ring link, N = 10, thz-los gains, seed 7"},
	} {
		cfg, err := Parse("test", []byte("[experiment]\nname = \"x\"\nseed = 7\n[channel]\nstd = 0.5\n[devices]\ncount = 10\n"), c.set)
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
			continue
		}
		if got := cfg.Heading(); got != c.want {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
	cfg, err := Parse("test", []byte("[experiment]\nname = \"x\"\n[channel]\nstd = 1.0\n[devices]\ncount = 100\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cfg.CalibrationHeading(), "x: calibration, ring link, N = 100, σ = 1, seed 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
