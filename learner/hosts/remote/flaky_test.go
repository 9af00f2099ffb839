package remote_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
)

// flaky is a carrier over a bus that loses, repeats, delays and reorders. It sends again
// until it has the answer, as carriers do.
type flaky struct {
	t    testing.TB
	host *remote.Host
	rng  *rand.Rand
	late [][]byte // requests that are still on their way

	lost, repeated, delayed int
}

// Call implements remote.Caller.
func (c *flaky) Call(ctx context.Context, b []byte) ([]byte, error) {
	id, _ := remote.ID(b)
	for ctx.Err() == nil {
		if c.rng.IntN(3) == 0 && len(c.late) > 0 {
			k := c.rng.IntN(len(c.late))
			old := c.late[k]
			c.late = append(c.late[:k], c.late[k+1:]...)
			if a := c.host.Handle(ctx, old); c.mine(a, id) {
				return a, nil // it was the same after all
			}
		}
		switch c.rng.IntN(4) {
		case 0:
			c.lost++
			continue
		case 1:
			c.delayed++
			c.late = append(c.late, bytes.Clone(b))
			continue
		}
		a := c.host.Handle(ctx, b)
		if c.rng.IntN(2) == 0 {
			c.repeated++
			if again := c.host.Handle(ctx, bytes.Clone(b)); !bytes.Equal(again, a) {
				c.t.Errorf("request %d was answered in two ways", id)
			}
		}
		if c.rng.IntN(4) == 0 {
			c.lost++ // the answer
			continue
		}
		if !c.mine(a, id) {
			c.t.Fatalf("request %d has no answer", id)
		}
		return a, nil
	}
	return nil, ctx.Err()
}

func (c *flaky) mine(a []byte, id uint64) bool {
	got, ok := remote.ID(a)
	return ok && got == id
}

// Over a bus that loses, repeats, delays and reorders, each burst is sent once, and in order.
func TestOnce(t *testing.T) {
	m := medium(t)
	rx := receive(t, m)
	c := &flaky{t: t, host: hosted(t, m, nil), rng: rand.New(rand.NewPCG(1, 2))}
	tx := running(t, opened(t, c))
	ctx := limited(t)
	var want []complex64
	for k := range 300 {
		x := noise(uint64(k%7), 200+k%7)
		n, err := tx.Write(ctx, x, radio.TxMeta{BurstEnd: k%5 == 4})
		ok(t, err)
		if n != len(x) {
			t.Fatalf("%d of %d samples were taken", n, len(x))
		}
		want = append(want, x...)
	}
	ok(t, tx.(radio.Idler).Idle(ctx, radio.SampleIndex(len(want)+3000)))
	got := read(t, rx, len(want)+3000)
	same(t, got, append(want, make([]complex64, 3000)...))
	ok(t, tx.Close())
	sent := 0
	for _, e := range events(tx) {
		if e.Kind == radio.BurstSent {
			sent++
		}
	}
	if sent != 60 {
		t.Errorf("%d bursts were told to be sent; expected is 60", sent)
	}
	if c.lost < 50 || c.delayed < 50 || c.repeated < 50 {
		t.Errorf("only %d lost, %d delayed, %d repeated", c.lost, c.delayed, c.repeated)
	}
}

// taped notes what is asked.
type taped struct {
	direct
	asked [][]byte
}

// Call implements remote.Caller.
func (c *taped) Call(ctx context.Context, b []byte) ([]byte, error) {
	c.asked = append(c.asked, bytes.Clone(b))
	return c.direct.Call(ctx, b)
}

// The same request from many sides at once is done once.
func TestOnceAtATime(t *testing.T) {
	f := newFake()
	h := hostOf(t, f, nil)
	c := &taped{direct: direct{host: h}}
	tx := running(t, opened(t, c))
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	again := bytes.Clone(c.asked[len(c.asked)-1])
	again[6]++ // the ID
	var done sync.WaitGroup
	for range 16 {
		done.Add(1)
		go func() {
			defer done.Done()
			h.Handle(context.Background(), again)
		}()
	}
	done.Wait()
	if n := len(f.written); n != 2 {
		t.Errorf("%d bursts were written; expected are 2", n)
	}
}

// A new proxy takes the radio over: the stream of the one before is closed, and what still
// comes from it is not done.
func TestTakeover(t *testing.T) {
	f := newFake()
	h := hostOf(t, f, nil)
	first := &taped{direct: direct{host: h}}
	old := opened(t, first)
	tx := running(t, old)
	later := running(t, opened(t, &direct{host: h}))
	if f.closed != 1 || f.opened != 2 {
		t.Errorf("closed %d times, opened %d times", f.closed, f.opened)
	}
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	if !errors.Is(err, radio.ErrClosed) || !strings.Contains(err.Error(), "another has taken over the radio") {
		t.Error(err)
	}
	if tx.State() != radio.Closed {
		t.Errorf("the first stream is %v", tx.State())
	}
	if _, err := old.(radio.TransmitOpener).OpenTransmitter(limited(t)); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	for _, b := range first.asked { // they come late
		if id, _ := remote.ID(b); h.Handle(limited(t), b) != nil {
			// What was refused is refused again.
			if f.closed != 1 || f.opened != 2 {
				t.Errorf("request %d was done", id)
			}
		}
	}
	ok(t, tx.Close(), old.Close())
	_, err = later.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	if len(f.written) != 1 || f.opened != 2 || f.closed != 1 {
		t.Errorf("%d bursts, opened %d times, closed %d times", len(f.written), f.opened, f.closed)
	}
}

// When nothing is asked for too long the stream is closed, and the proxy hears why.
func TestSilence(t *testing.T) {
	now := newClock()
	f := newFake()
	var said []string
	h := hostOf(t, f, func(c *remote.HostConfig) {
		c.Now, c.Say = now.Now, func(text string) { said = append(said, text) }
	})
	d := opened(t, &direct{host: h})
	tx := running(t, d)
	for range 3 {
		now.Add(9 * time.Second)
		h.Expire()
		_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
		ok(t, err)
	}
	now.Add(10 * time.Second)
	h.Expire()
	h.Expire()
	if f.closed != 1 || len(said) != 1 {
		t.Errorf("closed %d times, said %q", f.closed, said)
	}
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	if !errors.Is(err, radio.ErrClosed) || !strings.Contains(err.Error(), "nothing was asked of the radio for 10s") {
		t.Error(err)
	}
	if _, err := tx.Event(limited(t)); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	ok(t, tx.Close())
	tx = running(t, d) // the radio is still open
	_, err = tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	ok(t, d.Close())
	if f.opened != 2 || f.closed != 2 || len(f.written) != 4 {
		t.Errorf("opened %d times, closed %d times, %d bursts", f.opened, f.closed, len(f.written))
	}
}

// last is a caller that keeps the last request.
type last struct {
	remote.Caller
	request []byte
}

func (c *last) Call(ctx context.Context, request []byte) ([]byte, error) {
	c.request = request
	return c.Caller.Call(ctx, request)
}

// A request that is repeated shows that somebody is there, but not for ever: a bus may repeat
// what somebody has said who is gone.
func TestSilenceUnderRepetitions(t *testing.T) {
	now := newClock()
	f := newFake()
	h := hostOf(t, f, func(c *remote.HostConfig) { c.Now = now.Now })
	c := &last{Caller: &direct{host: h}}
	tx := running(t, opened(t, c))
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	seconds := 0
	for ; f.closed == 0 && seconds < 1000; seconds += 5 {
		now.Add(5 * time.Second)
		if h.Handle(t.Context(), c.request) == nil {
			t.Fatal("a request that was done has no answer")
		}
		h.Expire()
	}
	if seconds < 60 || seconds > 200 {
		t.Errorf("the stream is closed after %d s of repetitions", seconds)
	}
}

// A burst travels once, as long as its host keeps it, and again when it does not.
func TestBurstsTravelOnce(t *testing.T) {
	f := newFake()
	h := hostOf(t, f, nil)
	c := &direct{host: h}
	tx := running(t, opened(t, c))
	write := func(seed uint64, n int) (bytes int) {
		t.Helper()
		c.carried()
		_, err := tx.Write(limited(t), noise(seed, n), radio.TxMeta{})
		ok(t, err)
		same(t, f.written[len(f.written)-1], noise(seed, n))
		return c.carried()
	}
	if n := write(1, 4096); n < 4096*8 {
		t.Errorf("a burst that is not there is %d bytes", n)
	}
	for range 3 {
		if n := write(1, 4096); n > 1000 {
			t.Errorf("a burst that is there is %d bytes", n)
		}
	}
	for k := range uint64(remote.KeptBursts - 1) {
		write(20+k, 100)
	}
	write(1, 4096) // it is now the last one used
	write(30, 100)
	if n := write(1, 4096); n > 1000 {
		t.Errorf("a burst that was just used is %d bytes", n)
	}
	for k := range uint64(remote.KeptBursts) { // the first goes, as it was used last longest ago
		write(10+k, 100)
	}
	if n := h.Kept(); n != remote.KeptBursts {
		t.Errorf("%d bursts are kept; expected is %d", n, remote.KeptBursts)
	}
	if n := write(1, 4096); n < 4096*8 {
		t.Errorf("a burst that was let go of is %d bytes", n)
	}
	write(2, remote.MaxSamples)
	write(3, remote.MaxSamples) // with it there is room for no other
	if n := h.Kept(); n != 2 {
		t.Errorf("%d bursts are kept; expected is 2", n)
	}
	// The host may have lost what it had, and the proxy does not know.
	h.Forget()
	if n := write(3, remote.MaxSamples); n < 8*remote.MaxSamples {
		t.Errorf("a burst that was lost is %d bytes", n)
	}
}
