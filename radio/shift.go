package radio

import (
	"context"
	"fmt"
)

// Shift returns a Transmitter that is t but for its indices: what t calls index n it calls
// n + by. It is a Pacer as t must be, since by an index that stands still nothing can be
// found, an Idler, and a LossChecker and a ClipCounter just where t is. What else t is can
// be had by its method Unwrap.
func Shift(t Transmitter, by SampleIndex) (Transmitter, error) {
	pacer, ok := t.(Pacer)
	if !ok {
		return nil, fmt.Errorf("the indices of a transmitter that does not go on by itself cannot be shifted")
	}
	s := &shifted{Transmitter: t, pacer: pacer, by: by}
	losses, asked := t.(LossChecker)
	clipped, counts := t.(ClipCounter)
	switch {
	case asked && counts:
		return struct {
			*shifted
			LossChecker
			ClipCounter
		}{s, losses, clipped}, nil
	case asked:
		return struct {
			*shifted
			LossChecker
		}{s, losses}, nil
	case counts:
		return struct {
			*shifted
			ClipCounter
		}{s, clipped}, nil
	}
	return s, nil
}

// shifted is a transmitter whose indices are others than those of the one within.
type shifted struct {
	Transmitter
	pacer Pacer
	by    SampleIndex
}

// Unwrap returns the transmitter within.
func (s *shifted) Unwrap() Transmitter { return s.Transmitter }

// Write implements Transmitter.
func (s *shifted) Write(ctx context.Context, src []complex64, meta TxMeta) (int, error) {
	if meta.Timed {
		meta.Start -= s.by
	}
	return s.Transmitter.Write(ctx, src, meta)
}

// Event implements Transmitter.
func (s *shifted) Event(ctx context.Context) (Event, error) {
	e, err := s.Transmitter.Event(ctx)
	if err == nil {
		e.Index += s.by
	}
	return e, err
}

// Earliest implements Pacer.
func (s *shifted) Earliest() SampleIndex { return s.pacer.Earliest() + s.by }

// Idle implements Idler: zeros go in any case where nothing is written.
func (s *shifted) Idle(ctx context.Context, until SampleIndex) error {
	if t, ok := s.Transmitter.(Idler); ok {
		return t.Idle(ctx, until-s.by)
	}
	return ctx.Err()
}
