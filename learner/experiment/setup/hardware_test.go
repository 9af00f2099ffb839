package setup

import (
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// The flat tops of the largest digit take the largest code, of either sign, and no
// sample is clipped: a converter that had no opposite of a code would add an even
// distortion that no averaging removes.
func TestTransmitConverterIsDrivenEvenly(t *testing.T) {
	for _, base := range []int{3, 5} {
		c := config.Default()
		c.Devices.Count, c.Devices.ConverterBits, c.Link.Base = 1, 8, base
		m := ModemConfig(c.Link)
		peak := float32(base-1) / 2
		modulator, err := modem.NewModulator(m, modem.Drive{Peak: peak, Amplitude: TransmitAmplitude(c)})
		if err != nil {
			t.Fatal(err)
		}
		digits := []float32{peak, -peak, 0, peak, -peak, 0, 0, 0, 0, 0}
		samples := make([]complex64, len(digits)*m.SamplesPerSymbol)
		modulator.Modulate(samples, digits)
		path, err := channel.NewPath(impairments(c, 0), keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		path.Apply(samples, samples)
		least, most := float32(0), float32(0)
		for _, x := range samples {
			least, most = min(least, real(x)), max(most, real(x))
		}
		if most != 127.0/128 || least != -most {
			t.Errorf("base %d: samples from %v to %v", base, least, most)
		}
	}
}
