package bustest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
)

const deadline = 20 * time.Second

func wait[T any](t *testing.T, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(deadline):
		t.Fatalf("%s has not come within %v", what, deadline)
	}
	return value
}

// through publishes numbers through an interposer, and returns what came, until the last of
// all, which goes past it.
func through(t *testing.T, out, in bustest.Schedule, count int) (got []int, counts bustest.Counts) {
	t.Helper()
	b := bustest.New(t, 1, "")
	server, device := b.Dial(identity.Server, 0, bus.Options{}), b.Dial(identity.Device, 1, bus.Options{})
	i := bustest.Interpose(device, out, in)
	done := make(chan bool)
	if _, err := server.Subscribe("rw.r.device.>", func(m bus.Message) {
		if m.Subject == "rw.r.device.1.last" {
			close(done)
			return
		}
		got = append(got, int(binary.BigEndian.Uint32(m.Payload)))
	}); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 4) // is the publisher's again when Publish returns
	for n := range count {
		binary.BigEndian.PutUint32(payload, uint32(n))
		if err := i.Publish("rw.r.device.1.x", payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := device.Publish("rw.r.device.1.last", nil); err != nil {
		t.Fatal(err)
	}
	wait(t, done, "the last message")
	return got, i.Counts()
}

// An interposer loses, repeats and reorders the share that it is told to, the same for the
// same seed, and without a schedule nothing.
func TestInterposer(t *testing.T) {
	const count = 2000
	late := time.Hour // so that only others release what is delayed
	s := bustest.Schedule{Seed: 7, Drop: 0.1, Repeat: 0.1, Delay: 0.2, Others: 5, After: late}
	got, counts := through(t, s, bustest.Schedule{}, count)
	times := make([]int, count)
	for _, n := range got {
		times[n]++
	}
	lost, twice := 0, 0
	for _, n := range times {
		lost += max(0, 1-n)
		twice += max(0, n-1)
	}
	if lost != counts.Dropped || twice != counts.Repeated || len(got) != count-lost+twice {
		t.Errorf("%d lost, %d came twice: %+v", lost, twice, counts)
	}
	// Five standard deviations of a binomial distribution are 67, 65 and 86.
	if abs(lost-200) > 67 || abs(twice-180) > 65 || abs(counts.Delayed-360) > 86 {
		t.Errorf("%+v", counts)
	}
	if slices.IsSorted(got) {
		t.Error("nothing was reordered")
	}
	for at, n := range got {
		if abs(at-n) > 100 {
			t.Fatalf("message %d came at place %d", n, at)
		}
	}
	if again, _ := through(t, s, bustest.Schedule{}, count); !slices.Equal(got, again) {
		t.Error("the same seed does something else")
	}
	s.Seed++
	if other, _ := through(t, s, bustest.Schedule{}, count); slices.Equal(got, other) {
		t.Error("another seed does the same")
	}
	if plain, counts := through(t, bustest.Schedule{}, bustest.Schedule{}, 100); len(plain) != 100 || !slices.IsSorted(plain) || counts.Passed != 100 {
		t.Errorf("%v, %+v", plain, counts)
	}
}

func abs(n int) int { return max(n, -n) }

// What comes is treated, too; what is delayed goes on when its time has come, if no other
// message does; and through a cut nothing goes.
func TestInterposerIncoming(t *testing.T) {
	b := bustest.New(t, 1, "")
	server, device := b.Dial(identity.Server, 0, bus.Options{}), b.Dial(identity.Device, 1, bus.Options{})
	i := bustest.Interpose(device, bustest.Schedule{Delay: 1, Others: 1000}, bustest.Schedule{Delay: 1, Repeat: 1, Others: 1000})
	got := make(chan string, 10)
	if _, err := i.Subscribe("rw.r.server.all.>", func(m bus.Message) { got <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	sent := make(chan string, 10)
	if _, err := server.Subscribe("rw.r.device.>", func(m bus.Message) { sent <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	publish := func(c bus.Conn, subject string) {
		t.Helper()
		if err := c.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	publish(server, "rw.r.server.all.a")
	wait(t, got, "a delayed message")
	wait(t, got, "its repetition")
	publish(i, "rw.r.device.1.a")
	wait(t, sent, "a delayed message")
	i.Part(true)
	publish(i, "rw.r.device.1.b")
	i.Part(false)
	publish(i, "rw.r.device.1.c")
	if subject := wait(t, sent, "the message after the cut"); subject != "rw.r.device.1.c" {
		t.Errorf("%s came", subject)
	}
	i.Part(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Ask(ctx, "rw.r.ask.x", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Through a proxy connections are cut and come back, stalled bytes arrive later, and what is
// refused is not connected.
func TestProxy(t *testing.T) {
	b := bustest.New(t, 1, "127.0.0.1:0")
	p := bustest.NewProxy(t, b.Server.URL())
	lost, connected := make(chan error, 100), make(chan bool, 100)
	device := b.DialURL(identity.Device, 1, p.URL(), bus.Options{Lost: func(err error) { lost <- err }, Connected: func() { connected <- true }})
	got := make(chan string, 100)
	if _, err := b.Dial(identity.Server, 0, bus.Options{}).Subscribe("rw.r.device.>", func(m bus.Message) { got <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	publish := func(word string) {
		t.Helper()
		if err := device.Publish("rw.r.device.1."+word, nil); err != nil {
			t.Fatal(err)
		}
		if err := device.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if subject := wait(t, got, word); subject != "rw.r.device.1."+word {
			t.Errorf("%s came for %s", subject, word)
		}
	}
	publish("a")
	p.Refuse(true)
	p.Cut()
	wait(t, lost, "the loss")
	if err := device.Publish("rw.r.device.1.b", nil); !errors.Is(err, bus.ErrLost) {
		t.Errorf("through a cut: %v", err)
	}
	if _, err := bus.Dial(t.Context(), b.Identity(identity.Device, 1), p.URL(), bus.Options{}); err == nil {
		t.Error("a connection was made that was to be refused")
	}
	p.Refuse(false)
	wait(t, connected, "the connection")
	publish("c")
	p.Delay(time.Millisecond)
	publish("d")
	p.Delay(0)

	p.Stall(true)
	if err := device.Publish("rw.r.device.1.e", nil); err != nil {
		t.Fatal(err)
	}
	flushed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		flushed <- device.Flush(ctx)
	}()
	// What goes past the proxy comes; what is stalled does not.
	past := b.DialURL(identity.Device, 1, b.Server.URL(), bus.Options{})
	for n := range 3 {
		if err := past.Publish(fmt.Sprintf("rw.r.device.1.past%d", n), nil); err != nil {
			t.Fatal(err)
		}
		if subject := wait(t, got, "what goes past"); subject != fmt.Sprintf("rw.r.device.1.past%d", n) || len(flushed) > 0 {
			t.Errorf("%s came through a stall", subject)
		}
	}
	p.Stall(false)
	if err := wait(t, flushed, "the end of the stall"); err != nil {
		t.Error(err)
	}
	if subject := wait(t, got, "what was stalled"); subject != "rw.r.device.1.e" {
		t.Errorf("%s came", subject)
	}
}
