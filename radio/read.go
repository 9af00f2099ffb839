package radio

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// maxEmptyReads is the number of reads without samples or error after which
// ReadFull gives up on a receiver that breaks its contract.
const maxEmptyReads = 100

// ReadFull reads until dst is full, over as many blocks as it takes; the Meta
// tells of all of them with positions in dst. As with Read, the n samples are
// good and the Meta tells of them whatever the error.
//
// n < len(dst) comes with an error: that of Read, io.ErrUnexpectedEOF for an end
// after the first sample (io.EOF before it), ErrBurstEnd where a burst ends
// early, io.ErrNoProgress for a receiver that gives nothing.
func ReadFull(ctx context.Context, r Receiver, dst []complex64) (n int, meta Meta, err error) {
	return readFull(ctx, r, dst, Forever)
}

// ReadFullUntil is ReadFull that ends before index until: n < len(dst) without an
// error says that until was reached. A receiver that is not Bounded may step over
// until where it lost samples.
func ReadFullUntil(ctx context.Context, r Receiver, dst []complex64, until SampleIndex) (n int, meta Meta, err error) {
	return readFull(ctx, r, dst, until)
}

// ReadUntil is r's own if r is Bounded, and Read if it is not.
func ReadUntil(ctx context.Context, r Receiver, dst []complex64, until SampleIndex) (n int, meta Meta, err error) {
	if b, ok := r.(Bounded); ok {
		return b.ReadUntil(ctx, dst, until)
	}
	return r.Read(ctx, dst)
}

func readFull(ctx context.Context, r Receiver, dst []complex64, until SampleIndex) (n int, meta Meta, err error) {
	_, bounded := r.(Bounded)
	empty := 0
	for n < len(dst) {
		room := dst[n:]
		if n > 0 {
			left := until - meta.Index(n-1) - 1
			if left <= 0 {
				return n, meta, nil
			}
			room = room[:min(SampleIndex(len(room)), left)]
		}
		k, m, err := ReadUntil(ctx, r, room, until)
		if k > 0 {
			if broken := meta.Append(n, m); broken != nil {
				return n, meta, broken
			}
			n += k
		}
		switch {
		case err != nil:
			return n, meta, endOfFull(err, n, len(dst))
		case k > 0 && m.Flags&BurstEnded != 0 && n < len(dst):
			return n, meta, ErrBurstEnd
		case k == 0 && bounded && until != Forever:
			return n, meta, nil
		case k == 0:
			if empty++; empty == maxEmptyReads {
				return n, meta, io.ErrNoProgress
			}
		}
	}
	return n, meta, nil
}

// endOfFull returns the error of a ReadFull that got n of want samples and err.
func endOfFull(err error, n, want int) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case n == want:
		return nil // the next read will say it
	case n > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// Sink takes in blocks of samples with what is known of them. It must not keep
// samples or change them.
type Sink interface {
	Record(samples []complex64, meta Meta) error
}

// SinkError says that a Tee's sink failed; the samples of the same Read are good.
type SinkError struct{ Err error }

// Error returns one sentence.
func (e *SinkError) Error() string { return fmt.Sprintf("recording stopped: %v", e.Err) }

// Unwrap returns the sink's error.
func (e *SinkError) Unwrap() error { return e.Err }

// Tee returns a Receiver that reads from r and records into sink all that it reads.
// If the sink fails, that Read tells by a *SinkError beside its samples, and
// later ones go on without the sink: whether a recording matters is the caller's
// decision. Closing the Tee closes r and not the sink.
//
// As Wrap says, it has r's optional interfaces and no others.
func Tee(r Receiver, sink Sink) Receiver {
	t := &tee{from: r, sink: sink}
	return Wrap(r, Wrapping{ReadUntil: t.readUntil})
}

type tee struct {
	from Receiver
	sink Sink // nil once it has failed
}

func (t *tee) readUntil(ctx context.Context, dst []complex64, until SampleIndex) (int, Meta, error) {
	n, meta, err := ReadUntil(ctx, t.from, dst, until)
	return t.record(dst[:n], meta, err)
}

// record passes on what a read gave.
func (t *tee) record(samples []complex64, meta Meta, err error) (int, Meta, error) {
	if len(samples) == 0 || t.sink == nil {
		return len(samples), meta, err
	}
	if failed := t.sink.Record(samples, meta); failed != nil {
		t.sink = nil
		// Neither error may hide the other.
		return len(samples), meta, errors.Join(err, &SinkError{failed})
	}
	return len(samples), meta, err
}
