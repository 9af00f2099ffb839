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

// securityLimits: "standard" is Table 1 of the HomomorphicEncryption.org standard of
// 2018; "newer" Table 5.2 of "Security Guidelines for Implementing Homomorphic
// Encryption" (IACR Communications in Cryptology, 2025; eprint 2024/463), category
// 128, classical, errors of deviation 3.19, made with the lattice estimator.
func securityLimits() []securityLimit {
	return []securityLimit{
		{1024, 27, 26},
		{2048, 54, 53},
		{4096, 109, 106},
		{8192, 218, 214},
		{16384, 438, 430},
	}
}

// Security is what is known of a parameter set's resistance.
type Security struct {
	// LogQ is log2 q; Standard and Newer are the largest that the tables of 2018
	// and of 2024 allow for 128 bits; 0 where n is not in the tables.
	LogQ, Standard, Newer float64
	// Bits estimates the classical security after the newer tables: 128 scaled by
	// Newer/LogQ, as the cost exponent of lattice reduction is nearly inverse to
	// log q at fixed n. It is no run of the lattice estimator.
	Bits float64
	// Secret is the distribution of s.
	Secret sampler.Distribution
}

// Security returns the estimate of a set.
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

// MeetsStandard reports whether the 2018 table grants 128 bits.
func (s Security) MeetsStandard() bool { return s.LogQ <= s.Standard+limitSlack }

// MeetsNewer reports whether the 2024 tables grant 128 bits.
func (s Security) MeetsNewer() bool { return s.LogQ <= s.Newer+limitSlack }

// ByStandard returns what the 2018 table says of the set.
func (s Security) ByStandard() string { return s.verdict(s.Standard, s.MeetsStandard()) }

// ByNewer returns what the 2024 tables say of the set, and about how many bits that
// is.
func (s Security) ByNewer() string {
	if s.Newer == 0 {
		return s.verdict(0, false)
	}
	return fmt.Sprintf("%s: about %.0f bits", s.verdict(s.Newer, s.MeetsNewer()), s.Bits)
}

func (s Security) verdict(limit float64, met bool) string {
	if limit == 0 {
		return fmt.Sprintf("unknown: log2 q = %.1f at an n that the table does not have", s.LogQ)
	}
	if met {
		return fmt.Sprintf("log2 q = %.1f meets the limit of %.0f for 128 bits", s.LogQ, limit)
	}
	return fmt.Sprintf("log2 q = %.1f exceeds the limit of %.0f for 128 bits", s.LogQ, limit)
}

// Caveat says what the tables leave out for the set's secrets; it is empty where they
// cover them.
func (s Security) Caveat() string {
	if s.Secret != sampler.Signs {
		return ""
	}
	return "{-1,+1} secrets are binary ones in disguise, which the tables do not cover: about half a bit to four bits less"
}

// String returns the verdict of either table.
func (s Security) String() string {
	text := fmt.Sprintf("classical, ternary secrets: HomomorphicEncryption.org 2018: %s; eprint 2024/463: %s", s.ByStandard(), s.ByNewer())
	if c := s.Caveat(); c != "" {
		text += "; " + c
	}
	return text
}
