package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/zq"
)

// audited is how many coefficients of b~ are kept of each round: those that a device does
// not know it must not change.
const audited = 64

// audit checks that each accepted b~ was sum_i H_i b_i of the b_i that devices had
// committed to before they sent any, once they open them. Over the air nobody sees a
// single b_i.
type audit struct {
	commitments map[keyOf]wire.Digest
	opened      map[keyOf]zq.Vector // the coefficients kept
	sums        []sum
	at          []int    // which coefficients
	gains       *mat.QR  // of the patterns
	cheats      []string // who opened another b than the one committed to
}

// ear is the receiver, as the audit needs it.
type ear interface {
	// gains returns H_i of the devices in the last b.
	gains(a *audit) []int64
	// near reports whether kept coefficients of two b~ differ by no more than the link's noise.
	near(x, y zq.Vector) bool
}

// keyOf names a device's b. A device that is begun anew has others.
type keyOf struct {
	device, visit int
	epoch         uint32
}

// sum is one accepted b~.
type sum struct {
	round uint32
	h     []int64   // H_i of each device
	keys  []keyOf   // of each device
	b     zq.Vector // the coefficients kept
}

func newAudit() audit {
	return audit{commitments: map[keyOf]wire.Digest{}, opened: map[keyOf]zq.Vector{}}
}

// choose draws the coefficients that are kept, which devices must not foresee.
func (a *audit) choose(n int) error {
	seed, err := keystream.FromSystem()
	if err != nil {
		return err
	}
	a.at = rand.New(seed.Stream()).Perm(n)[:min(n, audited)]
	return nil
}

// commit notes what a device binds itself to. It returns why that is refused, "" if not.
func (s *Server) commit(d *remote, m wire.Message) (refusal string) {
	if len(m.Body) != len(wire.Digest{}) {
		return "it sent no commitment to its b"
	}
	key := keyOf{d.index, d.visit, m.Epoch}
	if before, ok := s.audit.commitments[key]; ok && before != wire.Digest(m.Body) {
		return fmt.Sprintf("it committed to another b of key epoch %d before", m.Epoch)
	}
	s.audit.commitments[key] = wire.Digest(m.Body)
	return ""
}

// accepted keeps what is needed of a b~ that has passed its checks. mu is held.
func (s *Server) accepted(step round.Step) {
	a := &s.audit
	if s.radio == nil || s.asking == nil || a.at == nil {
		return
	}
	kept := sum{round: step.Slot.Round, h: s.radio.gains(a), b: a.keep(s.cfg.Context.Modulus(), step.Key.Coefficients())}
	for i, there := range s.present {
		kept.keys = append(kept.keys, keyOf{i + 1, s.devices[i].visit, s.asking.epochs[i]})
		if !there {
			kept.h[i] = 0
		}
	}
	a.sums = append(a.sums, kept)
}

// keep copies the coefficients that are kept.
func (a *audit) keep(m *zq.Modulus, v zq.Vector) zq.Vector {
	out := m.NewVector(len(a.at))
	for j := range v {
		for k, at := range a.at {
			out[j][k] = v[j][at]
		}
	}
	return out
}

// openedKey takes a device's b of an epoch that is over. mu is held.
func (s *Server) openedKey(d *remote, m wire.Message) {
	const digest = len(wire.Digest{})
	if len(m.Body) < digest {
		return
	}
	if m.Slot.Again > 0 { // the last that there is
		s.left[d.index] = wire.Digest(m.Body)
		defer s.signal()
	}
	key := keyOf{d.index, d.visit, m.Epoch}
	if _, known := s.audit.opened[key]; known || s.audit.at == nil {
		return
	}
	b := m.Body[digest:]
	modulus := s.cfg.Context.Modulus()
	v := modulus.NewVector(s.cfg.Context.Params.N)
	commitment, committed := s.audit.commitments[key]
	if !committed {
		return
	}
	if err := wire.ParseVector(b, modulus, v); err != nil || wire.Commitment(s.cfg.Run, d.index, m.Epoch, b) != commitment {
		s.audit.cheats = append(s.audit.cheats, fmt.Sprintf("device %d opened another b of key epoch %d than the one it had committed to", d.index, m.Epoch))
		return
	}
	s.audit.opened[key] = s.audit.keep(modulus, v)
}

// Verdict is what opening the keys has shown.
type Verdict struct {
	// Checked counts the accepted b~ that were the sum of what devices committed to, and
	// Unchecked those of which a device has not opened its b.
	Checked, Unchecked int
	// Wrong says which were not, and who opened another b than it had committed to.
	Wrong []string
}

// String says it in a sentence.
func (v Verdict) String() string {
	text := fmt.Sprintf("%d aggregated keys were the sums of the keys that devices had committed to", v.Checked)
	if v.Unchecked > 0 {
		text += fmt.Sprintf(", %d could not be checked, for a device has not opened its key", v.Unchecked)
	}
	if len(v.Wrong) > 0 {
		text += "; WRONG: " + strings.Join(v.Wrong, "; ")
	}
	return text
}

// verdict checks all sums. mu is held.
func (s *Server) verdict() (v Verdict) {
	v.Wrong = slices.Clone(s.audit.cheats)
	modulus := s.cfg.Context.Modulus()
	for _, kept := range s.audit.sums {
		y, whole := modulus.NewVector(len(s.audit.at)), true
		for i, h := range kept.h {
			b, opened := s.audit.opened[kept.keys[i]]
			if h == 0 {
				continue
			}
			if whole = whole && opened; opened {
				modulus.AddScaled(y, h, b)
			}
		}
		switch {
		case !whole:
			v.Unchecked++
		case s.radio.near(y, kept.b):
			v.Checked++
		default:
			v.Wrong = append(v.Wrong, fmt.Sprintf("b~ of round %d is not the sum of the keys that devices opened", kept.round))
		}
	}
	return v
}

// gains returns H_i of the devices in the last b, by the superposition of their patterns,
// which are linearly independent.
func (r *RingReceiver) gains(a *audit) []int64 {
	n, symbols := r.devices, r.PatternSymbols()
	if a.gains == nil {
		p := mat.NewDense(symbols, n, nil)
		for i := range n {
			for t, x := range r.Pattern(i) {
				p.Set(t, i, float64(x))
			}
		}
		a.gains = &mat.QR{}
		a.gains.Factorize(p)
	}
	y := mat.NewVecDense(symbols, nil)
	for t, x := range r.key {
		y.SetVec(t, float64(x))
	}
	var h mat.VecDense
	out := make([]int64, n)
	if err := a.gains.SolveVecTo(&h, false, y); err != nil {
		return out
	}
	for i := range out {
		out[i] = roundInt(h.AtVec(i))
	}
	return out
}

// near reports whether coefficients differ by no more than the ring noise of b.
func (r *RingReceiver) near(a, b zq.Vector) bool {
	d := r.modulus.NewVector(a.Len())
	d.Copy(a)
	r.modulus.AddScaled(d, -1, b)
	for k := range d.Len() {
		if x := r.modulus.Centred(d, k).Float64(); x > r.tolerance || x < -r.tolerance {
			return false
		}
	}
	return true
}
