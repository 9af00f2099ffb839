package blocks_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/blocks"
	"ringwave/radio/usb"
)

// tape is a source that gives blocks as they are written down and then err.
type tape struct {
	blocks []blocks.Block
	err    error
	closed chan struct{}
	once   sync.Once
}

func newTape(err error, blocks ...blocks.Block) *tape {
	return &tape{blocks: blocks, err: err, closed: make(chan struct{})}
}

func (p *tape) Next(ctx context.Context) (blocks.Block, error) {
	if len(p.blocks) > 0 {
		b := p.blocks[0]
		p.blocks = p.blocks[1:]
		return b, nil
	}
	if p.err != nil {
		return blocks.Block{}, p.err
	}
	select {
	case <-ctx.Done():
		return blocks.Block{}, ctx.Err()
	case <-p.closed:
		return blocks.Block{}, usb.ErrClosed
	}
}

func (p *tape) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// device counts epochs and closings.
type device struct {
	mu     sync.Mutex
	epoch  radio.Epoch
	closed int
}

func (d *device) next() radio.Epoch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch++
	return d.epoch
}

func (d *device) forget() { d.closed++ }

func receiver(t *testing.T, p *tape, silence time.Duration) (*blocks.Receiver, *device) {
	t.Helper()
	d := &device{}
	r := blocks.NewReceiver(blocks.Config{
		Format: blocks.CU8(),
		Name:   "a tape", Epoch: d.next, Closed: d.forget, Silence: silence,
		Start: func(context.Context) (blocks.Source, error) { return p, nil },
	})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, d
}

func bytesOf(n int) []byte { return make([]byte, 2*n) }

// Losses move indices on; what nobody can count does not, and begins an epoch.
func TestLosses(t *testing.T) {
	r, _ := receiver(t, newTape(io.ErrUnexpectedEOF,
		blocks.Block{Data: bytesOf(10)},
		blocks.Block{Data: bytesOf(10), Lost: 14},
		blocks.Block{Data: bytesOf(10), Lost: 6, Restarted: true},
		blocks.Block{Data: bytesOf(10)},
	), 0)
	x := make([]complex64, 40)
	n, meta, err := radio.ReadFull(t.Context(), r, x)
	want := radio.Meta{
		First: 0, Epoch: 1, Changes: []radio.EpochChange{{At: 20, Epoch: 2}},
		Gaps:  []radio.Gap{{At: 10, Length: 7, Exact: true}, {At: 20}, {At: 20, Length: 3, Exact: true}},
		Flags: radio.HostCounted | radio.Overrun | radio.Clipped, Clipped: 40,
	}
	if n != 40 || err != nil || !reflect.DeepEqual(meta, want) {
		t.Errorf("%d, %v\n%+v instead of\n%+v", n, err, meta, want)
	}
	if meta.Index(39) != 49 {
		t.Errorf("the last index is %d", meta.Index(39))
	}
	if _, _, err := r.Read(t.Context(), x); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "receiving from a tape") {
		t.Error(err)
	}
	for _, odd := range []blocks.Block{{Data: make([]byte, 3)}, {Data: bytesOf(1), Lost: 1}} {
		r, _ := receiver(t, newTape(nil, odd), 0)
		if _, _, err := r.Read(t.Context(), x); err == nil || !strings.Contains(err.Error(), "allowed are multiples of 2") {
			t.Error(err)
		}
	}
}

// A loss across the end of a bounded read is told after it.
func TestReadUntil(t *testing.T) {
	r, _ := receiver(t, newTape(io.EOF, blocks.Block{Data: bytesOf(10)}, blocks.Block{Data: bytesOf(10), Lost: 20}), 0)
	x := make([]complex64, 40)
	for _, c := range []struct {
		until radio.SampleIndex
		n     int
		first radio.SampleIndex
		gaps  int
	}{{4, 4, 0, 0}, {4, 0, 0, 0}, {15, 6, 4, 0}, {15, 0, 0, 0}, {20, 0, 0, 0}, {25, 5, 20, 1}, {25, 0, 0, 0}, {99, 5, 25, 0}} {
		n, meta, err := r.ReadUntil(t.Context(), x, c.until)
		if n != c.n || err != nil || meta.First != c.first || len(meta.Gaps) != c.gaps {
			t.Errorf("until %d: %d, %v, %+v", c.until, n, err, meta)
		}
	}
	if n, _, err := r.Read(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("%d: %v", n, err)
	}
}

// A retune is an epoch that nobody uses and then one that all samples have which
// come after those on their way.
func TestSettle(t *testing.T) {
	var all []blocks.Block
	for range 20 {
		all = append(all, blocks.Block{Data: bytesOf(10)})
	}
	r, _ := receiver(t, newTape(nil, all...), 0)
	x := make([]complex64, 15)
	expect := func(epochs ...radio.Epoch) {
		t.Helper()
		n, meta, err := radio.ReadFull(t.Context(), r, x)
		if n != 15 || err != nil {
			t.Fatal(err)
		}
		for k, want := range epochs {
			if got := meta.EpochAt(5 * k); got != want {
				t.Errorf("at %d the epoch is %d instead of %d: %+v", 5*k, got, want, meta)
			}
		}
	}
	expect(1, 1, 1)
	r.Unsettle() // within the second block
	expect(1, 2, 2)
	r.Settle(2)
	if r.Epoch() != 3 {
		t.Errorf("the epoch is %d", r.Epoch())
	}
	expect(2, 2, 2) // blocks 3 and 4
	expect(2, 2, 2) // 5, 6
	expect(3, 3, 3)
	r.Unsettle()
	r.Settle(5)
	r.Unsettle() // before it has settled: epoch 5 never comes
	r.Settle(0)
	expect(3, 6, 6)
	expect(7, 7, 7)
}

func TestSilence(t *testing.T) {
	r, _ := receiver(t, newTape(nil), time.Millisecond)
	_, _, err := r.Read(t.Context(), make([]complex64, 1))
	if !errors.Is(err, blocks.ErrSilent) || !errors.Is(err, usb.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Read(ctx, make([]complex64, 1)); !errors.Is(err, context.Canceled) || errors.Is(err, blocks.ErrSilent) {
		t.Error(err)
	}
}

// A stream that is closed while it starts closes what it started, and tells its
// device once.
func TestCloseWhileStarting(t *testing.T) {
	d := &device{}
	p := newTape(nil)
	starting, goOn := make(chan struct{}), make(chan struct{})
	r := blocks.NewReceiver(blocks.Config{
		Format: blocks.CU8(),
		Name:   "a tape", Epoch: d.next, Closed: d.forget,
		Start: func(context.Context) (blocks.Source, error) {
			close(starting)
			<-goOn
			return p, nil
		},
	})
	started, closed := make(chan error), make(chan error)
	go func() { started <- r.Start(t.Context()) }()
	<-starting
	if err := r.Start(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	go func() { closed <- r.Close() }()
	for r.State() != radio.Closed {
		// The other goroutine is about to.
	}
	close(goOn)
	if err := <-started; !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-p.closed
	if err := r.Close(); err != nil || d.closed != 1 {
		t.Errorf("%v, closed %d times", err, d.closed)
	}
}

// A start that fails can be tried again.
func TestStartFails(t *testing.T) {
	d := &device{}
	fails := errors.New("not yet")
	r := blocks.NewReceiver(blocks.Config{
		Format: blocks.CU8(),
		Name:   "a tape", Epoch: d.next, Closed: d.forget,
		Start: func(context.Context) (blocks.Source, error) {
			if fails != nil {
				return nil, fails
			}
			return newTape(nil), nil
		},
	})
	if err := r.Start(t.Context()); !errors.Is(err, fails) || r.State() != radio.Ready {
		t.Errorf("%v, %v", err, r.State())
	}
	fails = nil
	if err := r.Start(t.Context()); err != nil || r.State() != radio.Running {
		t.Errorf("%v, %v", err, r.State())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
