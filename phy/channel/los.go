package channel

import (
	"fmt"
	"math"

	"ringwave/phy/channel/p676"
)

// lightSpeed is in metres a second, boltzmann in joules a kelvin.
const (
	lightSpeed = 299792458.0
	boltzmann  = 1.380649e-23
	// noiseTemperature is the reference temperature of a noise figure, in kelvin.
	noiseTemperature = 290.0
)

// LineOfSight describes a directional line-of-sight link, such as an indoor
// terahertz link with fixed or slowly moving devices (Section III-A of the
// paper). Budget turns it into what the protocol needs.
type LineOfSight struct {
	CarrierHz float64
	DistanceM float64
	// Gains of the antennas on their axes, in dBi.
	TransmitGainDBi, ReceiveGainDBi float64
	// MisalignmentDeg is the angle by which each beam misses the other antenna.
	MisalignmentDeg  float64
	TransmitPowerDBm float64
	BandwidthHz      float64
	NoiseFigureDB    float64
	// Air absorbs; see p676 for its range.
	Air p676.Air
	// KFactor is the power of the direct path against all scattered ones.
	KFactor float64
	// SpeedMps is the speed of whatever moves: device or scatterers.
	SpeedMps float64
}

// LinkBudget is what a LineOfSight link gives. Losses and powers are in dB and
// dBm.
type LinkBudget struct {
	FreeSpaceLossDB, GasLossDB, PointingLossDB float64
	ReceivedDBm, NoiseDBm, SNRdB               float64
	// CoherenceSeconds is Clarke's 0.423 c/(v f), infinite where nothing moves.
	CoherenceSeconds float64
}

// Budget computes the link budget. It is an error if a quantity is out of its
// range.
func (l LineOfSight) Budget() (LinkBudget, error) {
	if err := l.validate(); err != nil {
		return LinkBudget{}, err
	}
	gas, err := p676.Specific(l.CarrierHz/1e9, l.Air)
	if err != nil {
		return LinkBudget{}, fmt.Errorf("line-of-sight link: %w", err)
	}
	b := LinkBudget{
		FreeSpaceLossDB:  20 * math.Log10(4*math.Pi*l.DistanceM*l.CarrierHz/lightSpeed), // Friis
		GasLossDB:        gas.Total() * l.DistanceM / 1e3,
		PointingLossDB:   pointingLoss(l.TransmitGainDBi, l.MisalignmentDeg) + pointingLoss(l.ReceiveGainDBi, l.MisalignmentDeg),
		NoiseDBm:         10*math.Log10(boltzmann*noiseTemperature*l.BandwidthHz*1e3) + l.NoiseFigureDB,
		CoherenceSeconds: math.Inf(1),
	}
	b.ReceivedDBm = l.TransmitPowerDBm + l.TransmitGainDBi + l.ReceiveGainDBi - b.FreeSpaceLossDB - b.GasLossDB - b.PointingLossDB
	b.SNRdB = b.ReceivedDBm - b.NoiseDBm
	if l.SpeedMps > 0 {
		b.CoherenceSeconds = 0.423 * lightSpeed / (l.SpeedMps * l.CarrierHz)
	}
	return b, nil
}

// pointingLoss returns the loss in dB of a Gaussian main lobe at an angle off its
// axis: 12 (angle/width)^2, the half-power width in degrees from Kraus's
// estimate, gain = 41253/width^2.
func pointingLoss(gainDBi, angleDeg float64) float64 {
	width := math.Sqrt(41253 / math.Pow(10, gainDBi/10))
	return 12 * angleDeg * angleDeg / (width * width)
}

func (l LineOfSight) validate() error {
	for _, q := range []struct {
		name               string
		value, least, most float64
		unit               string
		exclusive          bool
	}{
		{"carrier", l.CarrierHz, 1e9, 1e12, "Hz", false},
		{"distance", l.DistanceM, 0, 1e6, "m", true},
		{"transmit antenna gain", l.TransmitGainDBi, -20, 80, "dBi", false},
		{"receive antenna gain", l.ReceiveGainDBi, -20, 80, "dBi", false},
		{"misalignment", l.MisalignmentDeg, 0, 90, "degrees", false},
		{"transmit power", l.TransmitPowerDBm, -100, 100, "dBm", false},
		{"bandwidth", l.BandwidthHz, 0, 1e13, "Hz", true},
		{"noise figure", l.NoiseFigureDB, 0, 60, "dB", false},
		{"K-factor", l.KFactor, 0, 1e9, "", true},
		{"speed", l.SpeedMps, 0, 1e4, "m/s", false},
	} {
		if !(q.value >= q.least && q.value <= q.most) || q.exclusive && q.value == q.least {
			return fmt.Errorf("line-of-sight link: the %s is %v %s: allowed are %v to %v", q.name, q.value, q.unit, q.least, q.most)
		}
	}
	return nil
}

// Fading returns the distribution of the link's real effective gain, as an
// amplitude against that of a link that receives referenceDBm. The receiver keeps
// the direct path's phase, so that of the scattered power mu^2/K half falls into
// the real part, as a Gaussian: mu = 10^((received - reference)/20) and
// sigma = mu/sqrt(2 K).
func (l LineOfSight) Fading(referenceDBm float64) (Gaussian, error) {
	b, err := l.Budget()
	if err != nil {
		return Gaussian{}, err
	}
	mu := math.Pow(10, (b.ReceivedDBm-referenceDBm)/20)
	return Gaussian{Mu: mu, Sigma: mu / math.Sqrt(2*l.KFactor)}, nil
}
