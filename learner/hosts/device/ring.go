package device

import (
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Ring makes frames of a ring link.
type Ring struct {
	framer  *phy.RingFramer
	modulus *zq.Modulus
	index   int
	pattern []int8
}

// NewRing returns the framer of one device, counted from 0.
func NewRing(f *phy.RingFramer, m *zq.Modulus, index int) *Ring {
	return &Ring{f, m, index, f.Pattern(index)}
}

// Group and Repeats return 0: there is one time slot, and no frame is sent again.
func (r *Ring) Group() int   { return 0 }
func (r *Ring) Repeats() int { return 0 }

// Frame returns the device's frame of a transmission.
func (r *Ring) Frame(s slot.Slot, _ int, x zq.Vector) ([]byte, error) {
	n, err := r.framer.Open(s, x.Len())
	if err != nil {
		return nil, err
	}
	f := phy.RingFrame{Payload: x, Checks: r.modulus.NewVector(n), Pattern: r.pattern}
	r.framer.Checks(r.index, f.Checks, x)
	return wire.AppendRingFrame(nil, f), nil
}
