package campaign_test

import (
	"bytes"
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/radio"
)

// echoing calibrates three devices whose signals are followed by echoes, of phases of their own,
// and gives the file, as of blocks that were written down and read again.
func echoing(t *testing.T, echoes ...channel.Echo) calibration.File {
	t.Helper()
	const devices, blocks, noise = 3, 40, 0.01
	cfg := bench.Config{Rate: rate, NoiseStd: noise, Seed: keystream.FromInteger(3), Echoes: channel.Air{Echoes: echoes}, PerDevice: true}
	for i := range devices {
		cfg.Devices = append(cfg.Devices, channel.Impairments{DelaySamples: 0.4 * float64(i), PhaseRad: float64(i)})
	}
	air, err := bench.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer air.Close()
	s, err := sounding.New(sounding.Config{Kind: sounding.ZadoffChu, Length: 63, Repetitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	played := sounder.Config{Sounding: s, Devices: devices, Blocks: blocks, Looks: 1, Guard: 64, Search: sounding.Search{Delay: 20}, Amplitude: 0.8}
	rnd := rand.New(rand.NewPCG(3, 3))
	played.OnLook = func(_, _ int, at radio.SampleIndex) error {
		for i := range devices {
			if err := air.Medium.SetGain(i, at, complex(float32(1+0.02*rnd.NormFloat64()), 0)); err != nil {
				return err
			}
		}
		return nil
	}
	if played.Transmitters, played.Receiver, err = air.Streams(); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := sounder.WriteHeader(&table); err != nil {
		t.Fatal(err)
	}
	if err := campaign.Sound(context.Background(), played, &table, func(sounder.Block) {}); err != nil {
		t.Fatal(err)
	}
	heard, _, err := sounder.ReadTable(&table, blocks, 1, devices)
	if err != nil {
		t.Fatal(err)
	}
	r, err := campaign.Analyse(campaign.Config{Soundings: played, SampleRate: rate}, heard, calibration.Want{Transmitters: make([]calibration.Transmitter, devices)})
	if err != nil {
		t.Fatal(err)
	}
	return r.File
}

// Of devices whose echoes differ a calibration finds each one's, and gains, delays, phases,
// images and noise of the first paths, which are those of the same bench without echoes.
func TestEchoesOfDevices(t *testing.T) {
	clean := echoing(t)
	for _, echo := range []channel.Echo{{DelaySamples: 8, Gain: 0.1}, {DelaySamples: 3, Gain: 0.05}, {DelaySamples: 13.5, Gain: 0.178}} {
		f := echoing(t, echo)
		var gains []complex128
		for i, d := range f.Devices {
			if was := clean.Devices[i]; was.EchoDelaysSamples == nil || len(was.EchoDelaysSamples) != 0 {
				t.Errorf("device %d of a bench without echoes has some at %v", i+1, was.EchoDelaysSamples)
			}
			got := campaign.EchoesOf(d)
			if len(got) != 1 || math.Abs(float64(got[0].Delay)-echo.DelaySamples) > 0.05 || math.Abs(cmplx.Abs(got[0].Gain)-echo.Gain) > 0.001+4*math.Sqrt(got[0].GainVar) {
				t.Fatalf("%+v: device %d has %+v", echo, i+1, got)
			}
			gains = append(gains, got[0].Gain)
			was := clean.Devices[i]
			for name, k := range map[string][3]float64{
				"mu": {d.Mu.Value, was.Mu.Value, 0.001}, "sigma": {d.Sigma.Value, was.Sigma.Value, 0.001}, "phase": {d.PhaseRad.Value, was.PhaseRad.Value, 0.002},
				"delay": {d.DelaySamples.Value, was.DelaySamples.Value, 0.005}, "SNR": {d.SNRdB.Value, was.SNRdB.Value, 0.7},
			} {
				if !(math.Abs(k[0]-k[1]) < k[2]) {
					t.Errorf("%+v: %s of device %d is %v, and without the echo %v", echo, name, i+1, k[0], k[1])
				}
			}
			if d.ImageDB > -50 {
				t.Errorf("%+v: device %d has an image of %v dB", echo, i+1, d.ImageDB)
			}
		}
		if cmplx.Abs(gains[0]-gains[1]) < 0.01 || cmplx.Abs(gains[1]-gains[2]) < 0.01 {
			t.Errorf("devices have the same echoes %v", gains)
		}
	}
}
