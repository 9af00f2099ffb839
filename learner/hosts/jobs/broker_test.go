package jobs

import (
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
)

// What a worker has said before it gave a job back, and is heard later, does not make the job
// its own again: nobody would do it. Long after, as from a worker that was stopped, it does.
func TestLateBeat(t *testing.T) {
	const sweep, worker = "0123456789abcdef", "lab-1"
	id := strings.Repeat("0a", 16)
	e := &entry{job: Job{ID: id}, state: running, worker: worker}
	b := &Broker{o: BrokerOptions{Sweep: sweep, Program: "p", Attempts: 3, Say: func(string) {}}, entries: map[string]*entry{id: e}, workers: map[string]*WorkerStatus{}, told: map[string]bool{}}
	said, err := encode(beat{Worker: worker, Slots: 1, Jobs: []held{{Sweep: sweep, Job: id, Of: 1}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := b.answer(request{Verb: failed, Worker: worker, Program: "p", Job: id, Class: data, Why: "other data"}); a.Verdict != again {
		t.Fatalf("%+v", a)
	}
	b.heard(bus.Message{Payload: said})
	if e.state != waiting {
		t.Error("a job that was given back is the worker's again")
	}
	e.at = e.at.Add(-time.Minute)
	b.heard(bus.Message{Payload: said})
	if e.state != running || e.worker != worker {
		t.Errorf("the job is %v, of %q", e.state, e.worker)
	}
}

// A worker that one sweep refuses, or that hears of one's end, stays where another sweep that
// wants it speaks, and goes where there is none.
func TestWorkerOfTwoSweeps(t *testing.T) {
	const mine, theirs = "0123456789abcdef", "fedcba9876543210"
	say := func(w *Worker, sweep string, o order) {
		t.Helper()
		text, err := encode(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.ordered(bus.Message{Subject: orderSubject(sweep), Payload: text})
	}
	for _, shared := range []bool{true, false} {
		w := &Worker{heard: map[string]time.Time{}, refused: map[string]bool{}}
		say(w, theirs, order{})
		if shared {
			say(w, mine, order{})
		}
		w.refuse(theirs, "another program")
		if w.ending() == shared || shared && w.silent(theirs) != absentAfter {
			t.Errorf("shared %v: refused by one, it ends: %v", shared, w.ending())
		}
		w = &Worker{heard: map[string]time.Time{}, refused: map[string]bool{}}
		if shared {
			say(w, mine, order{})
		}
		say(w, theirs, order{})
		say(w, theirs, order{Over: true})
		if !w.over || w.others("") != shared {
			t.Errorf("shared %v: at the end of one, another speaks: %v", shared, w.others(""))
		}
	}
}
