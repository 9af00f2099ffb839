package xmkckks

import (
	"errors"
	"fmt"
	"math"

	"ringwave/phy/zq"
)

// ErrWitness says that a coefficient without a message did not decode to noise:
// the identity b~ + S~ a = E~ or c~1 = V a + E1~ is broken, and M is void.
var ErrWitness = errors.New("a witness coefficient is no noise")

// Server recovers M from what it received. It holds no secret and never sees a
// gain.
type Server struct {
	ctx      *Context
	design   Design
	unitRare float64 // largeSum at alpha = 1
	sum      zq.Vector
}

// NewServer makes the server of a design. The context must be the design's.
func (c *Context) NewServer(d Design) *Server {
	return &Server{
		ctx: c, design: d,
		unitRare: largeSum(squareLaws(d.Link.Mu, d.Link.Omega, d.Link.K), 1, rareGains),
		sum:      c.mod.NewVector(c.Revealed()),
	}
}

// Recover writes M of each of the context's P messages to dst, M of message p being
// (c~0 + D~)[p] / (alpha Lambda), centred mod q (Eq. 17), and checks that the witnesses,
// coefficients P to P+W-1, are noise within the budget. On an error dst is as it was.
func (s *Server) Recover(dst []float64, c0, share zq.Vector, alpha float64) error {
	c := s.ctx
	if err := c.checkMessages(len(dst)); err != nil {
		return fmt.Errorf("recovering M: %w", err)
	}
	c.mod.Add(s.sum, c0, share)
	limit := s.design.tolerance(c, alpha, s.unitRare)
	for k := c.Messages; k < c.Messages+c.Witnesses; k++ {
		// A limit that is no number, from an alpha that is none, allows nothing.
		if x := c.mod.Centred(s.sum, k).Float64(); !(math.Abs(x) <= limit) {
			return fmt.Errorf("%w: coefficient %d is %.3g, allowed is %.3g", ErrWitness, k, x, limit)
		}
	}
	for p := range dst {
		dst[p] = c.mod.Centred(s.sum, p).Float64() / (alpha * c.Params.Lambda())
	}
	return nil
}

// checkMessages refuses any other number of messages than P.
func (c *Context) checkMessages(n int) error {
	if n != c.Messages {
		return fmt.Errorf("%d messages where a ciphertext has %d", n, c.Messages)
	}
	return nil
}

// Coefficients writes the centred coefficients of c~0 + D~ to dst, as integers
// of the ring: message and noise, undecoded. It is for measuring the noise.
func (s *Server) Coefficients(dst []float64, c0, share zq.Vector) {
	s.ctx.mod.Add(s.sum, c0, share)
	for k := range dst {
		dst[k] = s.ctx.mod.Centred(s.sum, k).Float64()
	}
}
