package uplink

import (
	"context"
	"errors"
	"testing"

	"ringwave/phy"
	"ringwave/radio"
	"ringwave/radio/array"
)

// others are devices on other hosts, of whom one has begun anew the first time.
type others struct{ asked int }

func (o *others) Await(context.Context) (bool, error) {
	o.asked++
	return o.asked == 1, nil
}
func (o *others) Align(context.Context, *array.Array, []phy.MakeUp) error { return nil }
func (o *others) Call(context.Context, *array.Array, phy.Due) error       { return nil }

// An array of which a device was begun anew is opened anew, also where that fails at first
// because another is lost, and once.
func TestOpenedAnew(t *testing.T) {
	old, opened := &array.Array{}, 0
	l := &Receiving{Elsewhere: &others{}, Radios: old}
	l.open = func() (*array.Array, error) {
		if opened++; opened == 1 {
			return nil, radio.ErrStarved
		}
		return &array.Array{}, nil
	}
	if a, err := l.again(t.Context(), old); a != nil || !errors.Is(err, radio.ErrStarved) || l.Radios != old {
		t.Fatalf("%v, %v", a, err)
	}
	next, err := l.again(t.Context(), old)
	if err != nil || next == nil || next == old || l.Radios != next {
		t.Fatalf("%v, %v", next, err)
	}
	if a, err := l.again(t.Context(), next); a != next || err != nil || opened != 2 {
		t.Errorf("%v, %v, opened %d times", a, err, opened)
	}
}
