package heairfed

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// Fading is how the server's antennas hear a device.
type Fading int

const (
	// LineOfSight: the gain h_{i,k}, with a phase at each antenna that is fixed for
	// the run.
	LineOfSight Fading = iota
	// Rayleigh: the gain h_{i,k} times an independent CN(0, 1) at each antenna.
	Rayleigh
)

// ParseFading returns the fading named los or rayleigh.
func ParseFading(name string) (Fading, error) {
	switch name {
	case "los":
		return LineOfSight, nil
	case "rayleigh":
		return Rayleigh, nil
	}
	return 0, fmt.Errorf("heairfed: the fading is %q; allowed is los or rayleigh", name)
}

// String returns the name that ParseFading takes.
func (f Fading) String() string {
	if f == Rayleigh {
		return "rayleigh"
	}
	return "los"
}

// MaxAntennas bounds Config.Antennas.
const MaxAntennas = 1024

// Config is what an Aggregator is made for.
type Config struct {
	// Devices is N of the federated run, Dim is d.
	Devices, Dim int
	// Antennas is the number of the server's receive antennas, 1 to MaxAntennas.
	Antennas int
	// Fading is how they hear the devices.
	Fading Fading
	// PilotStd is sigma_pilot, the deviation of the complex error with which each
	// coefficient is known, in units of gain.
	PilotStd float64
	// NoiseStd is the deviation of the complex receiver noise at an antenna, against
	// a device at full amplitude and gain 1: 1e-4 is a signal 80 dB over the noise.
	NoiseStd float64
	// Clip bounds the absolute value of a component of a gradient; what exceeds it
	// is cut.
	Clip float64
}

func (c Config) check() error {
	if c.Devices < 1 {
		return fmt.Errorf("heairfed: the number of devices is %d; allowed is 1 or more", c.Devices)
	}
	if c.Dim < 1 {
		return fmt.Errorf("heairfed: the gradient has %d components; allowed is 1 or more", c.Dim)
	}
	if c.Antennas < 1 || c.Antennas > MaxAntennas {
		return fmt.Errorf("heairfed: the number of antennas is %d; allowed is 1 to %d", c.Antennas, MaxAntennas)
	}
	if c.Fading != LineOfSight && c.Fading != Rayleigh {
		return fmt.Errorf("heairfed: the fading is %d; allowed is los or rayleigh", int(c.Fading))
	}
	if !(c.PilotStd >= 0) || math.IsInf(c.PilotStd, 0) {
		return fmt.Errorf("heairfed: the deviation of the pilot error is %v; allowed is finite and 0 or more", c.PilotStd)
	}
	if !(c.NoiseStd >= 0) || math.IsInf(c.NoiseStd, 0) {
		return fmt.Errorf("heairfed: the deviation of the receiver noise is %v; allowed is finite and 0 or more", c.NoiseStd)
	}
	if !(c.Clip > 0) || math.IsInf(c.Clip, 0) {
		return fmt.Errorf("heairfed: the bound on a gradient's component is %v; allowed is finite and above 0", c.Clip)
	}
	return nil
}

// Aggregator is the uplink of HEAirFed, with devices and server in one process. A round's
// outcome depends on the seed, the round and the gradients alone. It is for one
// goroutine.
type Aggregator struct {
	cfg    Config
	gains  aggregate.Gains
	scheme *Scheme
	secret *SecretKey
	delta  float64

	devices []*Encryptor
	phases  array // of LineOfSight
	channel *rand.Rand
	noise   *rand.Rand
	// The streams that channel and noise read.
	channelStream, noiseStream *keystream.Stream

	truth, known array
	message      []int64
	ct           *Ciphertext
	y0, y1       []float64
	sum, ideal   []float64
	std          float64 // predicted for a component of the last round
}

// New returns the aggregator. All that it draws comes from seed: keys, each
// device's encryption, phases, fading, pilot errors and receiver noise.
func New(cfg Config, gains aggregate.Gains, seed keystream.Seed) (*Aggregator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	delta, err := scale(cfg.Devices, cfg.Clip)
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	secret, public := scheme.NewKeys(seed.Derive("keys"))
	a := &Aggregator{
		cfg: cfg, gains: gains, scheme: scheme, secret: secret, delta: delta,
		channelStream: seed.Derive("channel").Stream(), noiseStream: seed.Derive("receiver noise").Stream(),
		truth: newArray(cfg.Devices, cfg.Antennas), known: newArray(cfg.Devices, cfg.Antennas),
		phases:  newArray(cfg.Devices, cfg.Antennas),
		message: make([]int64, N), ct: NewCiphertext(),
		y0: make([]float64, N), y1: make([]float64, N),
		sum: make([]float64, cfg.Dim), ideal: make([]float64, cfg.Dim),
	}
	a.channel, a.noise = rand.New(a.channelStream), rand.New(a.noiseStream)
	phases := rand.New(seed.Derive("phases").Stream())
	for i := range cfg.Devices {
		a.devices = append(a.devices, scheme.NewEncryptor(public, seed.Derive("device", uint64(i))))
		for m := range a.phases[i] {
			sin, cos := math.Sincos(2 * math.Pi * phases.Float64())
			a.phases[i][m] = complex(cos, sin)
		}
	}
	return a, nil
}

// scale returns Delta: the largest power of two for which the sum of N components of
// absolute value clip, and six deviations of the noise of N encryptions, stay
// below q/2.
func scale(devices int, clip float64) (float64, error) {
	room := float64(Q)/2 - 6*math.Sqrt(float64(devices)*EncryptionVariance())
	delta := math.Exp2(math.Floor(math.Log2(room / (float64(devices) * clip))))
	if !(room > 0) || !(delta >= 0x1p-1000) || math.IsInf(delta, 0) {
		return 0, fmt.Errorf("heairfed: %d devices with components up to %v leave no room in q = %d", devices, clip, Q)
	}
	return delta, nil
}

// Delta returns the scaling factor of the encoding.
func (a *Aggregator) Delta() float64 { return a.delta }

// Ciphertexts returns the number of ciphertexts of a gradient, ceil(d/n).
func (a *Aggregator) Ciphertexts() int { return (a.cfg.Dim + N - 1) / N }

// Symbols returns the complex symbols that the uplink of a round takes, pilots not
// counted: n a ciphertext, from all devices at once.
func (a *Aggregator) Symbols() int { return N * a.Ciphertexts() }

// Aggregate runs round k, gradients[i] being that of device i.
func (a *Aggregator) Aggregate(ctx context.Context, k int, gradients [][]float64) (aggregate.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return aggregate.Outcome{}, err
	}
	h := a.gains.Gains(k)
	if len(gradients) != a.cfg.Devices || len(h) != a.cfg.Devices {
		return aggregate.Outcome{}, fmt.Errorf("heairfed: round %d has %d gradients and %d gains; allowed is %d of each",
			k, len(gradients), len(h), a.cfg.Devices)
	}
	for i, g := range gradients {
		if len(g) != a.cfg.Dim {
			return aggregate.Outcome{}, fmt.Errorf("heairfed: in round %d the gradient of device %d has %d components; allowed is %d",
				k, i+1, len(g), a.cfg.Dim)
		}
	}
	a.drawChannel(uint32(k), h)
	w, least := beamform(a.known)
	weights := a.weights(w)
	out := aggregate.Outcome{M: a.sum, Attempts: 1}
	clear(a.ideal)
	for part := range a.Ciphertexts() {
		out.Clipped += a.carry(uint32(k), uint32(part), gradients, weights, least)
	}
	a.std = math.Sqrt(a.predicted(weights, least))
	return out, nil
}

// Truth returns the sum of the last round's gradients, and the root of the squared error
// of a component that the round's channel makes expect.
func (a *Aggregator) Truth() aggregate.Truth { return aggregate.Truth{Ideal: a.ideal, EpsStd: a.std} }

// drawChannel sets the channel of a round and what pilots tell of it.
func (a *Aggregator) drawChannel(k uint32, h []float64) {
	a.channelStream.Start(k, 0)
	for i := range a.truth {
		for m := range a.truth[i] {
			u := a.phases[i][m]
			if a.cfg.Fading == Rayleigh {
				u = complexNormal(a.channel, 1)
			}
			a.truth[i][m] = complex(h[i], 0) * u
			a.known[i][m] = a.truth[i][m] + complexNormal(a.channel, a.cfg.PilotStd)
		}
	}
}

// complexNormal draws CN(0, std^2).
func complexNormal(rnd *rand.Rand, std float64) complex128 {
	std /= math.Sqrt2
	return complex(std*rnd.NormFloat64(), std*rnd.NormFloat64())
}

// weights returns g_i = w^H h_i / w^H h^_i, what is left of device i's channel after
// it has inverted what it was told: 1 but for the pilot error. A device that was
// told 0 stays silent.
func (a *Aggregator) weights(w []complex128) []complex128 {
	g := make([]complex128, len(a.truth))
	for i := range g {
		if told := dot(w, a.known[i]); told != 0 {
			g[i] = dot(w, a.truth[i]) / told
		}
	}
	return g
}

// carry encrypts one part of the gradients, adds the ciphertexts over the air,
// decrypts the sum into a.sum, and gives the number of clipped components.
func (a *Aggregator) carry(k, part uint32, gradients [][]float64, weights []complex128, least float64) (clipped int) {
	from := int(part) * N
	to := min(from+N, a.cfg.Dim)
	clear(a.y0)
	clear(a.y1)
	for i, gradient := range gradients {
		message := a.message[:to-from]
		clipped += a.encode(message, gradient[from:to])
		for j, x := range gradient[from:to] {
			a.ideal[from+j] += x
		}
		a.devices[i].Encrypt(a.ct, message, k, part)
		superpose(a.y0, a.y1, a.ct, weights[i])
	}
	a.receive(k, part, least)
	a.scheme.Decrypt(a.message[:to-from], a.ct, a.secret)
	for j, m := range a.message[:to-from] {
		a.sum[from+j] = float64(m) / a.delta
	}
	return clipped
}

// encode writes round(Delta x), with x cut to the clipping bound.
func (a *Aggregator) encode(message []int64, x []float64) (clipped int) {
	for j, v := range x {
		if math.Abs(v) > a.cfg.Clip {
			v = math.Copysign(a.cfg.Clip, v)
			clipped++
		}
		message[j] = int64(math.Round(a.delta * v))
	}
	return clipped
}

// superpose adds g (c0 + j c1), in units of ciphertext coefficients.
func superpose(y0, y1 []float64, ct *Ciphertext, g complex128) {
	re, im := real(g), imag(g)
	for k := range y0 {
		c0, c1 := float64(Centred(ct.C0[k])), float64(Centred(ct.C1[k]))
		y0[k] += re*c0 - im*c1
		y1[k] += re*c1 + im*c0
	}
}

// receive adds the receiver noise, rounds, and reduces modulo q into a.ct.
func (a *Aggregator) receive(k, part uint32, least float64) {
	std := a.coefficientNoise(least)
	a.noiseStream.Start(k, part)
	for i := range a.y0 {
		a.ct.C0[i] = reduce(a.y0[i] + std*a.noise.NormFloat64())
		a.ct.C1[i] = reduce(a.y1[i] + std*a.noise.NormFloat64())
	}
}

// coefficientNoise returns the deviation of the receiver noise in a received
// coefficient. The amplitude of a symbol is at most 1 where c0 + j c1 has q/sqrt 2,
// and each of its two parts has half of the noise's power: q/2 NoiseStd, over the
// gain to which all devices are levelled.
func (a *Aggregator) coefficientNoise(least float64) float64 {
	if a.cfg.NoiseStd == 0 {
		return 0
	}
	return float64(Q) / 2 * a.cfg.NoiseStd / least
}

// reduce returns the integer nearest to x modulo q. What is no number, from a channel
// without any gain, is 0.
func reduce(x float64) uint64 {
	r := math.Mod(math.Round(x), Q)
	if r < 0 {
		r += Q
	}
	if !(r >= 0 && r < Q) {
		return 0
	}
	return uint64(r)
}

// predicted returns the expected squared error of a component, given the channel.
// The error of c0 + c1 s before it is reduced has the variance
//
//	N (V_enc + 1/12) + (1 + |s|^2) (sum_i |g_i - 1|^2 q^2/12 + noise^2 + 1/12)
//
// with the expected |s|^2 = 2n/3, uniform coefficients c0 and c1, and two times
// 1/12 for rounding the message and the superposition.
func (a *Aggregator) predicted(weights []complex128, least float64) float64 {
	misfit := 0.0
	for _, g := range weights {
		misfit += real(g-1)*real(g-1) + imag(g-1)*imag(g-1)
	}
	noise := a.coefficientNoise(least)
	received := misfit*Q*Q/12 + noise*noise + 1./12
	v := float64(a.cfg.Devices)*(EncryptionVariance()+1./12) + (1+N*secretLaw.Variance())*received
	return wrappedVariance(v/(Q*Q)) * Q * Q / (a.delta * a.delta)
}

// wrappedVariance returns the variance of a Gaussian of variance v after it is
// centred modulo 1: the second moment of its Fourier series on [-1/2, 1/2].
func wrappedVariance(v float64) float64 {
	if v < 1e-3 { // half a period is 15 deviations or more away
		return v
	}
	sum, sign := 1./12, -1.
	for m := 1.; m < 200; m++ {
		term := math.Exp(-2*math.Pi*math.Pi*m*m*v) / (math.Pi * math.Pi * m * m)
		if term < 1e-18 {
			break
		}
		sum += sign * term
		sign = -sign
	}
	return sum
}
