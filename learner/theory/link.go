package theory

import (
	"ringwave/crypto/keystream"
	"ringwave/learner"
)

// Uplink is the encryption and the channel of a setting.
type Uplink struct {
	// ParameterSet names the parameters of the encryption.
	ParameterSet string
	// Mu and Sigma are the mean and the deviation of every gain, h ~ N(mu,
	// sigma^2), rounded to multiples of 2^-LatticeBits.
	Mu, Sigma   float64
	LatticeBits int
}

// Run is one run of training, as its link sees it.
type Run struct {
	Uplink  Uplink
	Devices int
	// DeltaMax bounds |Delta f/mu| of every device and round.
	DeltaMax float64
	// Rounds is the number of rounds at most.
	Rounds int
	// Ring asks for the protocol's own rounds. Without it the link has the same gains,
	// and noise of the deviation that is predicted given these gains.
	Ring bool
	// Seed is the root of the run's gains, keys and noise.
	Seed keystream.Seed
}

// Link carries the rounds of one Run, each with one value a device.
type Link interface {
	learner.Simulated
	// Moments returns mu_i and Omega_i of the gains, one a device, and sigma_eps^2, the
	// variance of epsilon_k that is predicted.
	Moments() (mu, omega []float64, decodedVariance float64)
	// Close gives up what the link holds.
	Close()
}

// OpenLink opens the link of one run. Verify calls it from several goroutines.
type OpenLink func(Run) (Link, error)
