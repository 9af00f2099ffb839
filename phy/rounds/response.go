package rounds

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// reach is how many symbols to either side interference may come from, flatReach those
// that it does come from with flat-top pulses.
//
// Of the interference of a root-raised-cosine pulse out of time by a little, a share
// 1/l^2 comes from l symbols away: two to either side hold three quarters of it, and
// eight, with all of the pulse's sidelobes that a filter of 16 symbols cuts off, 93 %.
const (
	reach     = 8
	flatReach = 2
)

// response is what the way through pulses, delay and timing makes of the symbols of
// a device of gain 1: y_k = sum_l response[reach+l] d_{k-l}.
type response [2*reach + 1]float64

// probe is a modem through which responses are measured.
type probe struct {
	modem       modem.Config
	detector    *modem.Detector
	demodulator *modem.Demodulator
	near        int // reach of the pulse
}

func newProbe(m modem.Config) (*probe, error) {
	detector, err := modem.NewDetector(m, modem.Search{})
	if err != nil {
		return nil, err
	}
	demodulator, err := modem.NewDemodulator(m, modem.Receive{})
	near := reach
	if _, flat := m.Pulse.(modem.FlatTop); flat {
		near = flatReach
	}
	return &probe{m, detector, demodulator, near}, err
}

// responses measures those of a group, through the modem itself: all devices together
// put the receiver in time, at gains and with delays drawn as in a round; each is
// then received alone.
func (p *probe) responses(group []placed, noise float64, rnd *rand.Rand) ([]response, error) {
	const symbols = 512 // as many as the receiver settles by
	m := p.modem
	half := int(m.Preamble.Level)
	var err error
	preamble := m.PreambleSymbols()
	digits := make([][]float32, len(group))
	alone := make([][]complex64, len(group))
	var sum []complex64
	for i, d := range group {
		digits[i] = append(digits[i], preamble...)
		for range symbols {
			digits[i] = append(digits[i], float32(rnd.IntN(2*half+1)-half))
		}
		if alone[i], err = passed(m, digits[i], d); err != nil {
			return nil, err
		}
		if more := len(alone[i]) - len(sum); more > 0 { // a later device
			sum = append(sum, make([]complex64, more)...)
		}
		turn := complex64(d.gain)
		for k, x := range alone[i] {
			sum[k] += turn * x
		}
	}
	for k := range sum {
		sum[k] += complex(float32(noise*rnd.NormFloat64()), float32(noise*rnd.NormFloat64()))
	}
	sync, err := p.detector.First(sum)
	if err != nil {
		return nil, err
	}
	sync = p.detector.Settle(sum, sync, symbols)
	sync.Theta, sync.Offset = 0, 0
	soft, erased := make([]float32, symbols), make([]bool, symbols)
	out := make([]response, len(group))
	for i, d := range group {
		p.demodulator.Demodulate(soft, erased, modem.Frame{Samples: alone[i], Sync: sync})
		if out[i], err = regress(soft, digits[i][len(preamble):], d.scale, p.near); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// placed is a device as it is in one round.
type placed struct {
	gain           complex128
	delay, advance modem.Samples
	scale          float64 // amplitude of the digit 1 at full drive
}

// passed returns a device's samples as they arrive at gain 1.
func passed(m modem.Config, digits []float32, d placed) ([]complex64, error) {
	modulator, err := modem.NewModulator(m, modem.Drive{Peak: m.Preamble.Level, Advance: d.advance})
	if err != nil {
		return nil, err
	}
	path, err := channel.NewPath(channel.Impairments{DelaySamples: float64(d.delay)}, keystream.Seed{})
	if err != nil {
		return nil, err
	}
	const guard = 24
	sps := m.SamplesPerSymbol
	tail := modulator.Tail() + guard + modem.Symbols(math.Ceil(float64(d.delay)/float64(sps)))
	out := make([]complex64, (guard+len(digits)+int(tail))*sps)
	frame := out[guard*sps:]
	modulator.Modulate(frame, digits)
	modulator.Idle(frame[len(digits)*sps:], tail)
	path.Apply(out, out)
	return out, nil
}

// regress finds the response by least squares over the symbols that have all their
// neighbours, near symbols to either side.
func regress(soft, digits []float32, scale float64, near int) (response, error) {
	taps, rows := 2*near+1, len(soft)-2*near
	a, y := mat.NewDense(rows, taps, nil), mat.NewVecDense(rows, nil)
	for r := range rows {
		k := r + near
		y.SetVec(r, float64(soft[k])/scale)
		for l := range taps {
			a.Set(r, l, float64(digits[k+near-l]))
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(a, y); err != nil {
		return response{}, fmt.Errorf("measuring a pulse's interference: %w", err)
	}
	var out response
	for l := range taps {
		out[reach-near+l] = x.AtVec(l)
	}
	return out, nil
}
