package learner

import (
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/model"
)

// A point has a serial that none before it had: after a draw, a step, and a theta that is
// set, and along each direction.
func TestPointSerials(t *testing.T) {
	cfg := paperConfig()
	cfg.Packed = 2
	m, err := model.NewLogistic(3)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReplica(cfg, m, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	var seen []uint64
	look := func(after string) {
		t.Helper()
		for p := range r.phi {
			serial := r.point(p).Serial
			if serial == 0 || slices.Contains(seen, serial) {
				t.Errorf("after %s, direction %d: serial %d, and before %v", after, p, serial, seen)
			}
			seen = append(seen, serial)
		}
	}
	look("the start")
	r.draw(1)
	look("a draw")
	if err := r.Apply(1, []float64{1, 2}); err != nil {
		t.Fatal(err)
	}
	look("a step")
	if err := r.Restore(0, make([]float64, len(r.theta))); err != nil {
		t.Fatal(err)
	}
	look("a theta that was set")
}
