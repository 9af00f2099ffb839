package campaign

import (
	"fmt"
	"math"
	"math/cmplx"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
)

// fewestResponses is how many bursts tell of echoes at least.
const fewestResponses = 4

// echoes returns what each device's first path is followed by; nil for a device of which too
// little was heard to tell.
func (c *Config) echoes(blocks []sounder.Block) ([][]sounding.Echo, error) {
	out := make([][]sounding.Echo, c.Soundings.Devices)
	for i := range out {
		mean, variance := meanResponse(Estimates(blocks, AllSessions, i, len(out)))
		if mean == nil {
			continue
		}
		var err error
		if out[i], err = c.Soundings.Sounding.Echoes(mean, variance); err != nil {
			return nil, fmt.Errorf("the echoes of device %d: %w", i+1, err)
		}
	}
	return out, nil
}

// meanResponse returns the mean of responses against their bursts' gains, weighted by those'
// power, and from their scatter the variance of a lag.
func meanResponse(all []sounding.Estimate) (mean []complex128, variance float64) {
	mean = make([]complex128, sounding.Lags)
	weight, n := 0.0, 0
	for _, e := range all {
		if len(e.Response) != len(mean) {
			continue
		}
		n++
		weight += real(e.Gain)*real(e.Gain) + imag(e.Gain)*imag(e.Gain)
		for k, x := range e.Response {
			mean[k] += cmplx.Conj(e.Gain) * complex128(x)
		}
	}
	if n < fewestResponses || !(weight > 0) {
		return nil, 0
	}
	for k := range mean {
		mean[k] /= complex(weight, 0)
	}
	for _, e := range all {
		for k, x := range e.Response {
			d := cmplx.Conj(e.Gain) * (complex128(x) - e.Gain*mean[k])
			variance += (real(d)*real(d) + imag(d)*imag(d)) / (weight * weight * sounding.Lags)
		}
	}
	return mean, variance
}

// FirstPaths returns blocks with estimates of the devices' first paths alone, without what
// their echoes add to gains, delays, images and noise.
func FirstPaths(cfg *sounder.Config, blocks []sounder.Block, echoes [][]sounding.Echo) ([]sounder.Block, error) {
	shared := make([]*sounding.Estimate, cfg.Devices)
	for i, some := range echoes {
		if len(some) == 0 {
			continue
		}
		e, err := cfg.Sounding.Shared(some)
		if err != nil {
			return nil, fmt.Errorf("the first path of device %d: %w", i+1, err)
		}
		shared[i] = &e
	}
	return changed(blocks, cfg.Devices, func(i int, e sounding.Estimate) sounding.Estimate {
		if shared[i] == nil {
			return e
		}
		return e.Without(*shared[i], cfg.Amplitude)
	}), nil
}

// changed returns blocks whose estimates are those that change makes of them.
func changed(blocks []sounder.Block, devices int, change func(device int, e sounding.Estimate) sounding.Estimate) []sounder.Block {
	out := make([]sounder.Block, len(blocks))
	for n, b := range blocks {
		b.Records = append([]sounder.Record(nil), b.Records...)
		for k, r := range b.Records {
			if r.Estimate != nil {
				e := change(k%devices, *r.Estimate)
				b.Records[k].Estimate = &e
			}
		}
		out[n] = b
	}
	return out
}

// describeEchoes sets what was found of a device's echoes.
func describeEchoes(d *calibration.Device, echoes []sounding.Echo) {
	if echoes == nil {
		return
	}
	d.EchoDelaysSamples, d.EchoI, d.EchoQ, d.EchoErrors = []float64{}, []float64{}, []float64{}, []float64{}
	for _, e := range echoes {
		d.EchoDelaysSamples = append(d.EchoDelaysSamples, float64(e.Delay))
		d.EchoI, d.EchoQ = append(d.EchoI, real(e.Gain)), append(d.EchoQ, imag(e.Gain))
		d.EchoErrors = append(d.EchoErrors, math.Sqrt(e.GainVar))
	}
}

// EchoesOf returns the echoes that a file's device has.
func EchoesOf(d calibration.Device) (echoes []sounding.Echo) {
	for k, delay := range d.EchoDelaysSamples {
		echoes = append(echoes, sounding.Echo{
			Delay: modem.Samples(delay), Gain: complex(d.EchoI[k], d.EchoQ[k]), GainVar: d.EchoErrors[k] * d.EchoErrors[k],
		})
	}
	return echoes
}
