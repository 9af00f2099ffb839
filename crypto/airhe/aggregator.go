package airhe

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// Config is what an Aggregator is made for.
type Config struct {
	// Devices is N of the federated run.
	Devices int
	// DeltaMax bounds |Delta f|; what exceeds it is cut.
	DeltaMax float64
	// PilotStd is sigma_pilot, the deviation of the error with which a device knows
	// its gain.
	PilotStd float64
	// NoiseStd is the deviation of the receiver noise, in units of one digit.
	NoiseStd float64
}

func (c Config) check() error {
	if c.Devices < 1 {
		return fmt.Errorf("airhe: the number of devices is %d; allowed is 1 or more", c.Devices)
	}
	if !(c.DeltaMax > 0) || math.IsInf(c.DeltaMax, 0) {
		return fmt.Errorf("airhe: the bound on |Delta f| is %v; allowed is finite and above 0", c.DeltaMax)
	}
	if !(c.PilotStd >= 0) || math.IsInf(c.PilotStd, 0) {
		return fmt.Errorf("airhe: the deviation of the pilot error is %v; allowed is finite and 0 or more", c.PilotStd)
	}
	if !(c.NoiseStd >= 0) || math.IsInf(c.NoiseStd, 0) {
		return fmt.Errorf("airhe: the deviation of the receiver noise is %v; allowed is finite and 0 or more", c.NoiseStd)
	}
	if s := scale(c.Devices, c.DeltaMax); !(s*c.DeltaMax >= 1) || math.IsInf(s, 0) {
		return fmt.Errorf("airhe: q = %d leaves each of %d devices less than one bit for its scalar; allowed are fewer devices", Q, c.Devices)
	}
	return nil
}

// Aggregator is the uplink of AirHE, with devices and server in one process. A round's
// outcome depends on the seed, the round and the scalars alone. It is for one goroutine.
type Aggregator struct {
	cfg   Config
	gains aggregate.Gains
	key   *SecretKey
	scale float64

	devices       []*Encryptor
	pilots, noise *rand.Rand
	// The streams that pilots and noise read.
	pilotStream, noiseStream *keystream.Stream

	weights []float64
	m       []float64 // of the last round
	truth   aggregate.Truth
	y       [Elements][Digits]float64
	law     law
}

// New returns the aggregator. All that it draws comes from seed: the common key,
// each device's encryption, pilot errors and receiver noise.
func New(cfg Config, gains aggregate.Gains, seed keystream.Seed) (*Aggregator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	a := &Aggregator{
		cfg: cfg, gains: gains, key: NewSecretKey(seed.Derive("key")), scale: scale(cfg.Devices, cfg.DeltaMax),
		pilotStream: seed.Derive("pilots").Stream(), noiseStream: seed.Derive("receiver noise").Stream(),
		weights: make([]float64, cfg.Devices),
	}
	a.pilots, a.noise = rand.New(a.pilotStream), rand.New(a.noiseStream)
	for i := range cfg.Devices {
		a.devices = append(a.devices, NewEncryptor(a.key, seed.Derive("device", uint64(i))))
	}
	return a, nil
}

// Scale returns S, the integers of Z_q to one unit of Delta f.
func (a *Aggregator) Scale() float64 { return a.scale }

// Symbols returns the real symbols that the uplink of a round takes for each scalar of a
// device, pilots not counted, from all devices at once.
func (a *Aggregator) Symbols() int { return Elements * Digits }

// Aggregate runs round k. Each of a device's values has a ciphertext, one after another
// over the same gains, with the same pilots, and with encryption randomness and receiver
// noise of its own.
func (a *Aggregator) Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return aggregate.Outcome{}, err
	}
	h := a.gains.Gains(k)
	if len(values) != a.cfg.Devices || len(h) != a.cfg.Devices {
		return aggregate.Outcome{}, fmt.Errorf("airhe: round %d has values of %d devices and %d gains; allowed is %d of each",
			k, len(values), len(h), a.cfg.Devices)
	}
	width, err := aggregate.Width(values)
	if err != nil {
		return aggregate.Outcome{}, fmt.Errorf("airhe: round %d: %w", k, err)
	}
	a.equalise(uint32(k), h)
	out := aggregate.Outcome{M: a.m[:0], Attempts: 1}
	a.truth = aggregate.Truth{Ideal: a.truth.Ideal[:0], EpsStd: a.predicted()}
	for p := range uint32(width) {
		m, ideal, clipped, err := a.carry(uint32(k), p, values)
		if err != nil {
			return aggregate.Outcome{}, err
		}
		out.M, out.Clipped = append(out.M, m), out.Clipped+clipped
		a.truth.Ideal = append(a.truth.Ideal, ideal)
	}
	a.m = out.M
	return out, nil
}

// Truth returns sum_i Delta f_i of the last round, as the channel is meant to be gone,
// and the deviation of M from it that the round's gains make expect: see predicted.
func (a *Aggregator) Truth() aggregate.Truth { return a.truth }

// carry carries value p of all devices, and tells their sum and how many were cut.
func (a *Aggregator) carry(k, p uint32, values [][]float64) (m, ideal float64, clipped int, err error) {
	a.y = [Elements][Digits]float64{}
	for i := range values {
		d := values[i][p]
		if math.IsNaN(d) {
			return 0, 0, 0, fmt.Errorf("airhe: in round %d the scalar of device %d is no number", k, i+1)
		}
		ideal += d
		if math.Abs(d) > a.cfg.DeltaMax {
			d = math.Copysign(a.cfg.DeltaMax, d)
			clipped++
		}
		ct := a.devices[i].Encrypt(int64(math.Round(a.scale*d)), k, p)
		a.transmit(&ct, a.weights[i])
	}
	sum := a.receive(k, p)
	return float64(Decrypt(&sum, a.key)) / a.scale, ideal, clipped, nil
}

// equalise sets the weight h_i/h^_i that a device's channel has left after it has
// divided by what its pilot told. A device that was told 0 stays silent.
func (a *Aggregator) equalise(k uint32, h []float64) {
	a.pilotStream.Start(k, 0)
	for i := range h {
		told := h[i] + a.cfg.PilotStd*a.pilots.NormFloat64()
		a.weights[i] = 0
		if told != 0 {
			a.weights[i] = h[i] / told
		}
	}
}

func (a *Aggregator) transmit(ct *Ciphertext, weight float64) {
	var digits [Digits]int8
	for j, x := range ct {
		Split(&digits, x)
		for l, d := range digits {
			a.y[j][l] += weight * float64(d)
		}
	}
}

// receive adds the receiver noise, rounds every symbol to a sum that N trits can
// have, and puts the digits together.
func (a *Aggregator) receive(k, direction uint32) (ct Ciphertext) {
	a.noiseStream.Start(k, direction)
	most := float64(a.cfg.Devices)
	for j := range a.y {
		var digits [Digits]int64
		for l, y := range a.y[j] {
			y = math.Round(y + a.cfg.NoiseStd*a.noise.NormFloat64())
			digits[l] = int64(math.Max(-most, math.Min(most, y)))
		}
		ct[j] = Join(&digits)
	}
	return ct
}

// predicted returns the expected deviation of M from the ideal sum, given the
// weights. If all symbols are read right, what is left are the errors of LWE and
// of rounding, (sigma^2 + 1/12) N; a wrong symbol of a meets a uniform s and leaves
// a sum that is uniform modulo q, which is taken for wrong symbols of b, too.
func (a *Aggregator) predicted() float64 {
	right := math.Pow(a.law.right(a.weights, a.cfg.NoiseStd), Elements*Digits)
	own := float64(a.cfg.Devices) * (errorLaw.Variance() + 1./12)
	return math.Sqrt(right*own+(1-right)*Q*Q/12) / a.scale
}

// law computes the distribution of sum_i (g_i - 1) d_i over uniform trits d_i, on
// a grid.
type law struct{ now, next []float64 }

// The grid: half a step of 1/256 is far below the 1/2 at which a symbol is read
// wrong; what leaves the grid stays at its ends, far beyond it.
const (
	gridSteps = 256 // a unit
	gridReach = 8   // units either way
)

// right returns the probability that a symbol is read right: |sum (g_i - 1) d_i +
// noise| < 1/2.
func (l *law) right(weights []float64, noiseStd float64) float64 {
	const size = 2*gridSteps*gridReach + 1
	if l.now == nil {
		l.now, l.next = make([]float64, size), make([]float64, size)
	}
	clear(l.now)
	l.now[size/2] = 1
	for _, g := range weights {
		shift := int(math.Round(gridSteps * math.Max(-2*gridReach, math.Min(2*gridReach, g-1))))
		clear(l.next)
		for k, p := range l.now {
			if p == 0 {
				continue
			}
			l.next[k] += p / 3
			l.next[max(0, min(size-1, k+shift))] += p / 3
			l.next[max(0, min(size-1, k-shift))] += p / 3
		}
		l.now, l.next = l.next, l.now
	}
	sum := 0.0
	for k, p := range l.now {
		if p != 0 {
			x := float64(k-size/2) / gridSteps
			sum += p * within(x, noiseStd)
		}
	}
	return math.Min(1, sum)
}

// within returns the probability that x plus noise lies within 1/2 of zero.
func within(x, std float64) float64 {
	if std == 0 {
		if math.Abs(x) < 0.5 {
			return 1
		}
		return 0
	}
	return (math.Erf((0.5-x)/(std*math.Sqrt2)) + math.Erf((0.5+x)/(std*math.Sqrt2))) / 2
}
