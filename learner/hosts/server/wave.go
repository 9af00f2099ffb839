package server

import (
	"slices"

	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/zq"
)

// wave is what a server has of a waveform link, whatever its devices send over.
type wave struct {
	// Gains writes H_i of the devices in the last b.
	Gains  func(h []float64) bool
	server *Server
	group  int // devices a time slot
}

// members counts the devices of a group that take part in the attempt, and names one of them
// that was lost since, 0 if there is none.
func (w *wave) members(group int) (there, gone int) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	first := min(group*w.group, len(s.devices))
	for i := first; i < min(first+w.group, len(s.devices)); i++ {
		if !s.present[i] {
			continue
		}
		there++
		if s.devices[i].gone == nil {
			gone = i + 1
		}
	}
	return there, gone
}

// askRepeat asks a group for a frame once more. mu is held.
func (w *wave) askRepeat(d phy.Due) error {
	s := w.server
	r := wire.Request{Due: wire.Due{Group: d.Group, Repeat: d.Repeat}, Present: s.present}
	b, err := wire.Seal(s.cfg.Identity, wire.Message{Kind: wire.Send, Run: s.cfg.Run, Slot: d.Slot, Body: r.Bytes()})
	if err != nil {
		return err
	}
	_ = s.cfg.Bus.Publish(s.cfg.Run.ToAll(), b) // and again
	return nil
}

// gains returns H_i of the devices in the last b.
func (w *wave) gains(*audit) []int64 {
	n := len(w.server.devices)
	h, out := make([]float64, n), make([]int64, n)
	if w.Gains == nil || !w.Gains(h) {
		return out
	}
	for i, x := range h {
		out[i] = roundInt(x)
	}
	return out
}

// near reports whether coefficients are the same: what is read of a waveform is exact.
func (w *wave) near(x, y zq.Vector) bool {
	return slices.EqualFunc(x, y, slices.Equal[[]uint64])
}
