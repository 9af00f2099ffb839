package xmkckks

import (
	"fmt"

	"ringwave/crypto/sampler"
)

// securityLimit is the largest log2 q for 128 bits of classical security at a
// ring dimension, with uniform ternary secrets.
type securityLimit struct {
	n               int
	standard, newer float64
}

// securityLimits: "standard" is Table 1 of the HomomorphicEncryption.org
// standard of 2018; "newer" the tables of 2024 (IACR eprint 2024/463).
func securityLimits() []securityLimit {
	return []securityLimit{
		{1024, 27, 26},
		{2048, 54, 53},
		{4096, 109, 106},
		{8192, 218, 214},
	}
}

// Security is what is known of a parameter set's resistance.
type Security struct {
	// LogQ is log2 q; Standard and Newer are the largest that the tables of 2018
	// and of 2024 allow for 128 bits; 0 where n is not in the tables.
	LogQ, Standard, Newer float64
	// Bits estimates the classical security: 128 scaled by Newer/LogQ, as the
	// cost exponent of lattice reduction is nearly inverse to log q at fixed n.
	Bits float64
	// Secret is the distribution of s.
	Secret sampler.Distribution
}

// Security gives the estimate of a set.
func (p *Params) Security() Security {
	s := Security{LogQ: p.LogQ(), Secret: p.Secret}
	for _, l := range securityLimits() {
		if l.n == p.N {
			s.Standard, s.Newer = l.standard, l.newer
			s.Bits = 128 * l.newer / s.LogQ
		}
	}
	return s
}

// limitSlack is how far log2 q may exceed a table's entry, which is rounded to
// whole bits.
const limitSlack = 0.5

// MeetsStandard tells whether the 2018 table grants 128 bits.
func (s Security) MeetsStandard() bool { return s.LogQ <= s.Standard+limitSlack }

// MeetsNewer tells whether the 2024 tables grant 128 bits.
func (s Security) MeetsNewer() bool { return s.LogQ <= s.Newer+limitSlack }

// String gives both verdicts in a sentence each.
func (s Security) String() string {
	if s.Standard == 0 {
		return fmt.Sprintf("unknown: log2 q = %.1f at an n that the tables do not have", s.LogQ)
	}
	verdict := func(met bool) string {
		if met {
			return "meets"
		}
		return "exceeds"
	}
	text := fmt.Sprintf("about %.0f bits classical; log2 q = %.1f %s the limit of %.0f for 128 bits (HomomorphicEncryption.org 2018) and %s %.0f (eprint 2024/463), for ternary secrets",
		s.Bits, s.LogQ, verdict(s.MeetsStandard()), s.Standard, verdict(s.MeetsNewer()), s.Newer)
	if s.Secret == sampler.Signs {
		text += "; {-1,+1} secrets are binary ones in disguise, which the tables do not cover: about half a bit to four bits less"
	}
	return text
}
