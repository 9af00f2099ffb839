package soapytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// Bench is a board of the module behind a back end.
type Bench struct {
	Backend soapy.Backend
	Opener  radio.Opener // of a session that may send at 435 MHz
	// URI opens the board Serial, with parameters added to it.
	URI    func(serial, params string) radio.URI
	Args   func(serial string) soapy.Args
	States string // folder of RINGTEST_STATE
}

// On reports whether a board's carrier is on.
func (b *Bench) On(t testing.TB, serial string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.States, serial))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(text), "on")
}

// Serial returns the serial number of a schedule's board.
func Serial(seed uint64) string { return fmt.Sprintf("S%d", seed) }

// faults are what a schedule has happen, with the most of what they take.
var faults = []struct {
	name string
	most int
}{
	{"unlocked", 0}, {"no_status", 0}, {"late", 0}, {"short", 0}, {"gone", 0}, {"throw", 0}, {"overflow", 0},
	{"lose", 5000}, {"stream", 0}, {"corrupt", 0}, {"deaf", 400}, {"hang", 2500}, {"none", 0},
}

// patience bounds every call of a schedule: more than a call and a deadline may take, several
// times over.
const patience = 30 * time.Second

// Schedule has a board receive and transmit while faults happen to it, in an order that a seed
// gives, and wants every call to return and the carrier to be off at the end, or its user told that
// it may be on, as where a server has crashed.
func (b *Bench) Schedule(t testing.TB, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	serial := Serial(seed)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := b.Opener.Open(ctx, b.URI(serial, "freq_hz=435e6&rate_hz=1e6&call_ms=1500&deadline_ms=200&settle_ms=10"))
	if err != nil {
		t.Fatalf("schedule %d: %v", seed, err)
	}
	// The same board by another handle, for what happens to it.
	other, err := b.Backend.Make(ctx, b.URI(serial, ""), b.Args(serial))
	if err != nil {
		t.Fatalf("schedule %d: %v", seed, err)
	}
	r := run{b: b, d: d, random: random, fault: func() string {
		f := faults[random.IntN(len(faults))]
		name := f.name
		if f.most > 0 {
			name = fmt.Sprintf("%s=%d", f.name, 1+random.IntN(f.most))
		}
		// A board that fails or hangs may not take it.
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = other.WriteSetting(limited, "fault", name)
		return name
	}}
	for range 8 {
		r.step(ctx)
	}
	if ctx.Err() != nil {
		t.Errorf("schedule %d: calls took longer than %v: %v", seed, patience, r.log)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case err = <-closed:
	case <-time.After(patience):
		t.Fatalf("schedule %d: Close did not return: %v", seed, r.log)
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = other.WriteSetting(limited, "fault", "none")
	if b.On(t, serial) && !r.told && !errors.Is(err, soapy.ErrCarrier) {
		t.Errorf("schedule %d: its carrier is on, and Close gave %v: %v", seed, err, r.log)
	}
	_ = other.Close()
}

// run is a schedule at work.
type run struct {
	b      *Bench
	d      radio.Device
	random *rand.Rand
	fault  func() string
	rx     radio.Receiver
	tx     radio.Transmitter
	told   bool // that the carrier may be on
	log    []string
}

func (r *run) note(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	r.log = append(r.log, what)
}

// step does something, which may fail.
func (r *run) step(ctx context.Context) {
	switch r.random.IntN(7) {
	case 0:
		if r.rx != nil {
			r.note("closing the receiver", r.rx.Close())
			r.rx = nil
			return
		}
		rx, err := r.d.(radio.ReceiveOpener).OpenReceiver(ctx)
		if err == nil {
			r.rx, err = rx, rx.Start(ctx)
		}
		r.note("receiving", err)
	case 1:
		if r.tx != nil {
			err := r.tx.Close()
			r.note("closing the transmitter", err)
			r.told, r.tx = r.told || errors.Is(err, soapy.ErrCarrier), nil
			return
		}
		tx, err := r.d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err == nil {
			r.tx, err = tx, tx.Start(ctx)
		}
		r.note("transmitting", err)
	case 2, 3:
		if r.rx != nil {
			_, _, err := radio.ReadFull(ctx, r.rx, make([]complex64, 1+r.random.IntN(20_000)))
			r.note("reading", err)
		}
		if r.tx != nil {
			_, err := r.tx.Write(ctx, make([]complex64, 1+r.random.IntN(20_000)), radio.TxMeta{BurstEnd: r.random.IntN(2) == 0})
			r.note("writing", err)
		}
	case 4:
		_, err := r.d.(radio.FrequencyControl).SetFrequency(ctx, radio.Direction(r.random.IntN(2)), radio.Hertz(434e6+1e6*r.random.Float64()))
		r.note("tuning", err)
	default:
		r.note("fault "+r.fault(), nil)
	}
}
