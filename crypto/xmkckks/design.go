package xmkckks

import (
	"fmt"
	"math"

	"ringwave/phy/slot"
)

// Link is what a run's design must know of the channel and of the messages.
type Link struct {
	// Mu and Omega are the gains' means and second moments, one a device, as a
	// calibration returns them.
	Mu, Omega []float64
	// K holds the K-factors of Rician envelopes; nil for Gaussian gains.
	K []float64
	// Alpha is the lattice scale; where a receiver finds one each round, the
	// finest that it may find.
	Alpha float64
	// NoiseStd is sigma_w of each transmission, before rounding.
	NoiseStd [slot.Transmissions]float64
	// DeltaMax bounds |Delta f_i / mu_i|: a device clips what exceeds it.
	DeltaMax float64
	// Messages is P, the number of messages of one ciphertext; 0 stands for 1.
	Messages int
	// Shares is tau, the number of decryption shares that one key gives: one a
	// round, whatever the attempts.
	Shares int
}

// validate refuses moments, scales and noise of which no budget can be made: a
// comparison with NaN would let everything pass.
func (l Link) validate() error {
	if len(l.Mu) == 0 || len(l.Mu) != len(l.Omega) {
		return fmt.Errorf("the link has %d means and %d second moments of gains: it needs one of each a device", len(l.Mu), len(l.Omega))
	}
	if l.K != nil && len(l.K) != len(l.Mu) {
		return fmt.Errorf("the link has %d K-factors for %d devices: it needs one of each a device, or none", len(l.K), len(l.Mu))
	}
	for i, k := range l.K {
		if !(k >= 0) || math.IsInf(k, 0) {
			return fmt.Errorf("device %d: the K-factor is %v: it must be 0 or more, and finite", i+1, k)
		}
	}
	for i, mu := range l.Mu {
		// Estimated moments of a constant gain may be off by their rounding.
		if omega := l.Omega[i]; !(omega >= mu*mu*(1-1e-9)) || math.IsInf(omega, 0) {
			return fmt.Errorf("device %d: the gain's mean is %v and its second moment %v: it must be finite and at least the mean's square", i+1, mu, omega)
		}
	}
	if !(l.Alpha > 0) || math.IsInf(l.Alpha, 0) {
		return fmt.Errorf("the lattice scale alpha is %v: it must be positive and finite", l.Alpha)
	}
	for t, std := range l.NoiseStd {
		if !(std >= 0) {
			return fmt.Errorf("the ring noise of %v has standard deviation %v: it must be 0 or more", slot.Transmission(t), std)
		}
	}
	return nil
}

// noiseVar returns the variances of the rounded ring noise.
func (l Link) noiseVar() (v [slot.Transmissions]float64) {
	for t, s := range l.NoiseStd {
		v[t] = RoundedVariance(s)
	}
	return v
}

// rareGains is the probability with which the gains of a round may exceed what
// the witnesses' tolerance allows for.
const rareGains = 1e-9

// soundnessBits is how surely the witnesses detect a broken identity: 2^-40.
const soundnessBits = 40

// Design is a parameter set fitted to a link: the number of witnesses, the
// flooding, and what the noise budget says of them.
type Design struct {
	Params    Params
	Form      Form
	Witnesses int
	Link      Link

	// FloodingBits is the statistical security of Link.Shares decryption shares
	// of one key, in the sense of FloodStd: bits of advantage; 0 for none.
	FloodingBits float64
	// FloodingDistance bounds how far these shares are, in statistical distance,
	// from shares without the decryption noise: 1 where nothing hides it.
	FloodingDistance float64
	// Expected is the budget over the gains' distribution; Rare the one at gains
	// that a round exceeds with probability 1e-9.
	Expected, Rare Budget
	// Tolerance is what a witness may reach: six deviations at the rare gains.
	Tolerance float64
	// MessageBound is the largest alpha Lambda |M| at the rare gains.
	MessageBound float64
}

// NewDesign fits a parameter set to a link, or says why it does not fit: the
// message and six deviations of the noise must stay below q/2, the flooding must
// reach the set's bits, and the messages must leave room for the witnesses.
func NewDesign(p Params, form Form, l Link) (Design, error) {
	if err := p.Validate(); err != nil {
		return Design{}, fmt.Errorf("parameter set %s: %w", p.Name, err)
	}
	if l.Shares < 1 {
		return Design{}, fmt.Errorf("a key that gives %d decryption shares: at least 1 is needed", l.Shares)
	}
	if !(l.DeltaMax > 0) {
		return Design{}, fmt.Errorf("the bound on |Delta f/mu| is %v: it must be positive", l.DeltaMax)
	}
	if l.Messages < 0 {
		return Design{}, fmt.Errorf("a ciphertext of %d messages: at least 1 is needed", l.Messages)
	}
	l.Messages = max(l.Messages, 1)
	if err := l.validate(); err != nil {
		return Design{}, err
	}
	d := Design{Params: p, Form: form, Witnesses: 1, Link: l}
	// W depends on the noise, the noise on the flooding, the flooding on W.
	for range 64 {
		if err := d.fit(); err != nil {
			return Design{}, err
		}
		w := int(math.Ceil(soundnessBits / math.Log2(math.Exp2(p.LogQ())/(2*d.Tolerance))))
		if w <= d.Witnesses {
			if l.Messages > p.N-d.Witnesses {
				return Design{}, noRoom(d.Params, l.Messages, d.Witnesses)
			}
			return d, nil
		}
		d.Witnesses = w
		if w >= p.N/2 {
			break
		}
	}
	return Design{}, fmt.Errorf("parameter set %s: no number of witnesses below n/2 tells a broken round from noise: lower alpha = %v, the ring noise or the flooding", p.Name, l.Alpha)
}

// fit computes all but the number of witnesses.
func (d *Design) fit() error {
	l, noise := d.Link, d.Link.noiseVar()
	c := &Context{Params: d.Params}
	laws := squareLaws(l.Mu, l.Omega, l.K)
	expected := expectedSums(laws, l.Alpha)
	t := c.sensitivity(d.Form, l.Messages, d.Witnesses, expected, noise)
	if d.Params.FloodingBits > 0 {
		need := math.Ceil(math.Log2(FloodStd(d.Params.FloodingBits, l.Shares, t)))
		d.Params.LogFlood = math.Max(d.Params.LogFlood, need)
	}
	var err error
	if c.shareVar, err = d.Params.ShareVariance(); err != nil {
		return fmt.Errorf("parameter set %s: %d decryption shares of one key at alpha = %v need more flooding than can be sampled: %w", d.Params.Name, l.Shares, l.Alpha, err)
	}
	c.Params = d.Params
	std := math.Sqrt(c.shareVar)
	d.FloodingBits, d.FloodingDistance = floodingBits(std, l.Shares, t), floodingDistance(std, l.Shares, t)

	rare := largeSum(laws, l.Alpha, rareGains)
	d.Expected = c.Budget(expected, noise)
	d.Rare = c.Budget(GainSums{S: rare, Q: rare * rare}, noise)
	d.Tolerance = 6 * math.Sqrt(d.Rare.Noise())
	// By Cauchy and Schwarz, sum |H_i| <= sqrt(N sum H_i^2).
	d.MessageBound = d.Params.Lambda() * l.DeltaMax * math.Sqrt(float64(len(l.Mu))*rare)
	return d.checkFits()
}

func (d *Design) checkFits() error {
	half := d.Params.LogQ() - 1
	log := math.Log2
	if log(d.MessageBound) >= half {
		return fmt.Errorf("parameter set %s: alpha Lambda |M| may reach 2^%.1f, beyond q/2 = 2^%.1f (alpha = %v, Lambda = 2^%d, |Delta f/mu| <= %v, %d devices): lower one of them",
			d.Params.Name, log(d.MessageBound), half, d.Link.Alpha, d.Params.LogLambda, d.Link.DeltaMax, len(d.Link.Mu))
	}
	if log(d.Tolerance) >= half-1 {
		return fmt.Errorf("parameter set %s: six deviations of the noise may reach 2^%.1f, too near to q/2 = 2^%.1f (alpha = %v, %d devices): lower alpha, the ring noise or the flooding",
			d.Params.Name, log(d.Tolerance), half, d.Link.Alpha, len(d.Link.Mu))
	}
	if log(d.MessageBound+d.Tolerance) >= half {
		return fmt.Errorf("parameter set %s: message and noise together may reach 2^%.1f, beyond q/2 = 2^%.1f: lower alpha = %v or |Delta f/mu| <= %v",
			d.Params.Name, log(d.MessageBound+d.Tolerance), half, d.Link.Alpha, d.Link.DeltaMax)
	}
	return nil
}

// Revealed returns the number of coefficients of c0 and D that a round sends.
func (d *Design) Revealed() int {
	return d.Params.revealed(d.Form, d.Link.Messages, d.Witnesses)
}

// PayloadLength returns the number of coefficients of a transmission.
func (d *Design) PayloadLength(t slot.Transmission) int {
	return d.Params.payloadLength(d.Form, d.Link.Messages, d.Witnesses, t)
}

// UplinkBits returns the payload that a device sends in one attempt at a round.
func (d *Design) UplinkBits() int {
	return d.Params.UplinkBits(d.Form, d.Link.Messages, d.Witnesses)
}

// DecodedStd returns the expected standard deviation of eps_k, the same for every
// message.
func (d *Design) DecodedStd() float64 {
	return math.Sqrt(d.Expected.Total()) / (d.Link.Alpha * d.Params.Lambda())
}

// ConditionalStd returns the standard deviation of eps_k given the scaled gains
// H_i of a round, at the link's scale. It is the same for every message:
// any coefficient of a product in R_q is a sum of n products of one coefficient of
// each factor, with signs, and the coefficients of each factor are independent, of
// mean 0 and alike. For the same reason eps of two messages are uncorrelated.
func (d *Design) ConditionalStd(c *Context, scaled []float64) float64 {
	return d.ConditionalStdAt(c, scaled, d.Link.Alpha)
}

// ConditionalStdAt is ConditionalStd at a scale that a receiver found.
func (d *Design) ConditionalStdAt(c *Context, scaled []float64, alpha float64) float64 {
	return c.DecodedStd(c.Budget(SumsOf(scaled), d.Link.noiseVar()), alpha)
}

// tolerance returns the witness tolerance at a scale that a receiver found.
func (d *Design) tolerance(c *Context, alpha float64, unitRare float64) float64 {
	s := alpha * alpha * unitRare
	return 6 * math.Sqrt(c.Budget(GainSums{S: s, Q: s * s}, d.Link.noiseVar()).Noise())
}
