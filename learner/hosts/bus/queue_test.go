package bus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
)

// names returns job-0 and so on.
func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("job-", i))
	}
	return list
}

// queues returns both ends of a bus's queue.
func queues(t *testing.T, b *bustest.Bench) (puts, takes *bus.Queue) {
	t.Helper()
	puts, err := bus.NewQueue(t.Context(), b.Dial(identity.Sweep, 0, bus.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	takes, err = bus.OpenQueue(t.Context(), b.Dial(identity.Worker, 0, bus.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return puts, takes
}

// take returns the next job; nil for none.
func take(t *testing.T, q *bus.Queue) *bus.Taken {
	t.Helper()
	taken, err := q.Take(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// A job is in the queue once, however often it is put; it is one worker's at a time, until
// it says that it is done; and what is given back, dropped or left is known.
func TestQueueHasEachJobOnce(t *testing.T) {
	b := bustest.NewSweeps(t, "")
	puts, takes := queues(t, b)
	for range 2 {
		if err := puts.Put(t.Context(), "s", names(1000)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := puts.Put(t.Context(), "other", "job-0"); err != nil {
		t.Fatal(err)
	}
	if err := puts.Drop(t.Context(), "s", "job-1"); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for taken := take(t, takes); taken != nil; taken = take(t, takes) {
		got[taken.Sweep+"/"+taken.Job]++
		if got[taken.Sweep+"/"+taken.Job] == 1 && taken.Job == "job-2" {
			if err := taken.Return(0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if taken.Job == "job-3" {
			continue // kept
		}
		if err := taken.Done(); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"other/job-0": 1}
	for _, name := range names(1000) {
		want["s/"+name] = 1
	}
	delete(want, "s/job-1")
	want["s/job-2"] = 2
	if !maps.Equal(got, want) {
		t.Errorf("%d jobs were taken in place of %d", len(got), len(want))
	}
	// That a job is done is said on another connection: the last may still be on their way.
	left, err := puts.Left(t.Context(), "s")
	for asked := 0; err == nil && len(left) > 1 && asked < 10_000; asked++ {
		left, err = puts.Left(t.Context(), "s")
	}
	if keys := slices.Collect(maps.Keys(left)); err != nil || !slices.Equal(keys, []string{"job-3"}) {
		t.Errorf("left are %v, %v", keys, err)
	}
	if err := puts.DropAll(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if left, err := puts.Left(t.Context(), "s"); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// The queue outlives its server, and a worker's connection.
func TestQueueOutlivesItsServer(t *testing.T) {
	b := bustest.NewSweeps(t, "")
	puts, _ := queues(t, b)
	if err := puts.Put(t.Context(), "s", names(10)...); err != nil {
		t.Fatal(err)
	}
	b.Server.Close()
	b.Start("")
	puts, takes := queues(t, b)
	left, err := puts.Left(t.Context(), "s")
	if err != nil || len(left) != 10 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	if taken := take(t, takes); taken == nil {
		t.Error("nothing to take")
	}
}

// Workers take jobs, and neither put them nor hear what other workers say; a bus without a
// store, and one whose queue nobody has made, are told apart from one that is lost.
func TestQueueIsNotForAll(t *testing.T) {
	b := bustest.NewSweeps(t, "")
	worker := b.Dial(identity.Worker, 0, bus.Options{})
	if _, err := bus.OpenQueue(t.Context(), worker); !errors.Is(err, bus.ErrNoQueue) {
		t.Errorf("a queue that nobody has made: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := bus.NewQueue(ctx, worker); err == nil {
		t.Error("a worker has made a queue")
	}
	if _, err := worker.Subscribe("rw.*.worker.>", func(bus.Message) {}); !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("a worker hears others: %v", err)
	}
	plain := bustest.New(t, 1, "")
	if _, err := bus.NewQueue(t.Context(), plain.Dial(identity.Server, 0, bus.Options{})); err == nil {
		t.Error("a queue without a store")
	}
}
