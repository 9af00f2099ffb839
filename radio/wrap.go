package radio

import "context"

// Wrapping is what a receiver does that is wrapped around another.
type Wrapping struct {
	// ReadUntil reads in place of the other's Read and ReadUntil; until is Forever for
	// the former.
	ReadUntil func(ctx context.Context, dst []complex64, until SampleIndex) (n int, meta Meta, err error)
	// ClipLevel makes the receiver Ranged even where the other is not. If it is nil the
	// other's level holds.
	ClipLevel func() Amplitude
}

// Wrap returns a Receiver that reads as w says and is r in all else. It is Bounded,
// Ranged and a LossChecker just where r is: claiming more, or less, would change what
// is made of its samples.
func Wrap(r Receiver, w Wrapping) Receiver {
	read := &wrapped{r, w}
	level, ranged := r.(Ranged)
	if w.ClipLevel != nil {
		level, ranged = clipLevel(w.ClipLevel), true
	}
	losses, asked := r.(LossChecker)
	if _, ok := r.(Bounded); ok {
		bounded := &wrappedBounded{read}
		switch {
		case ranged && asked:
			return struct {
				Bounded
				Ranged
				LossChecker
			}{bounded, level, losses}
		case ranged:
			return struct {
				Bounded
				Ranged
			}{bounded, level}
		case asked:
			return struct {
				Bounded
				LossChecker
			}{bounded, losses}
		}
		return bounded
	}
	switch {
	case ranged && asked:
		return struct {
			Receiver
			Ranged
			LossChecker
		}{read, level, losses}
	case ranged:
		return struct {
			Receiver
			Ranged
		}{read, level}
	case asked:
		return struct {
			Receiver
			LossChecker
		}{read, losses}
	}
	return read
}

// wrapped is a receiver without anything optional.
type wrapped struct {
	Receiver
	w Wrapping
}

// Read implements Receiver.
func (r *wrapped) Read(ctx context.Context, dst []complex64) (int, Meta, error) {
	return r.w.ReadUntil(ctx, dst, Forever)
}

// wrappedBounded is wrapped around a receiver that is Bounded.
type wrappedBounded struct{ *wrapped }

// ReadUntil implements Bounded.
func (r *wrappedBounded) ReadUntil(ctx context.Context, dst []complex64, until SampleIndex) (int, Meta, error) {
	return r.w.ReadUntil(ctx, dst, until)
}

// clipLevel is a level that is Ranged.
type clipLevel func() Amplitude

// ClipLevel implements Ranged.
func (level clipLevel) ClipLevel() Amplitude { return level() }
