package sounding

import (
	"errors"
	"math"
	"math/cmplx"
	"testing"
)

// wide is as wide as the data of a link, so that a burst is long and its carrier turns.
func wide(t testing.TB) *Sounding {
	return newSounding(t, Config{Kind: MSequence, Length: 63, SamplesPerChip: 8, Repetitions: 3})
}

// leaking returns a window with what leaks at the carrier's offset.
func leaking(b *bench, l link, leak complex128) []complex64 {
	w := append([]complex64(nil), b.receive(l)...)
	centre := float64(b.start) + l.delay + float64(b.s.Burst()-1)/2
	for n := range w {
		w[n] += complex64(leak * cmplx.Rect(1, 2*math.Pi*l.offset*(float64(n)-centre)))
	}
	return w
}

// What leaks of the carrier, beside the receiver's DC, moves no burst's offset or delay by
// more than their errors are told to be, and is told itself.
func TestLeakBesideDC(t *testing.T) {
	s := wide(t)
	const offset, leak = -4.34e-3, 0.02
	b := newBench(s, 100, s.Burst()+200, 3)
	var all []Estimate
	for k := range 64 {
		l := link{gain: cmplx.Rect(0.4, float64(k)), delay: 1.3, offset: offset, dc: 0.04, noise: 1e-5}
		at := complex(leak, 0) * cmplx.Rect(1, float64(k)+0.5)
		e, err := s.Fit(leaking(b, l, at), 100, 1.3, offset)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmplx.Abs(e.Leak - at); d > 6*math.Sqrt(e.LeakVar) {
			t.Fatalf("what leaks is %v, not %v: %v off, deviation %v", e.Leak, at, d, math.Sqrt(e.LeakVar))
		}
		if d := cmplx.Abs(e.DC - 0.04); d > 6*math.Sqrt(e.DCVar) {
			t.Fatalf("DC is %v, deviation %v", e.DC, math.Sqrt(e.DCVar))
		}
		all = append(all, e)
	}
	p := Pool(all)
	if d := math.Abs(float64(p.Offset) - offset); d > 4*math.Sqrt(p.OffsetVar) {
		t.Errorf("64 bursts are off by %v cycles a sample, %.1f deviations", d, d/math.Sqrt(p.OffsetVar))
	}
	if d := math.Abs(float64(p.Delay) - 1.3); d > 4*math.Sqrt(p.DelayVar) {
		t.Errorf("64 bursts are late by %v, %.1f deviations", d, d/math.Sqrt(p.DelayVar))
	}
}

// A burst whose carrier lies outside of the search is not heard, however strong it is: not
// its sidelobes either.
func TestElsewhere(t *testing.T) {
	s := wide(t)
	b := newBench(s, 100, s.Burst()+200, 5)
	var windows [][]complex64
	for k := range 16 {
		windows = append(windows, leaking(b, link{gain: cmplx.Rect(0.3, float64(k)), delay: 2, offset: -4.34e-3, dc: 0.03, noise: 1e-5}, 0.005))
	}
	if got, err := s.Acquire(windows, 100, Search{Delay: 80, Offset: 1e-3}); !errors.Is(err, ErrNoSounding) {
		t.Errorf("found %+v (%v)", got, err)
	}
	got, err := s.Acquire(windows, 100, Search{Delay: 80, Offset: 5e-3})
	if err != nil || math.Abs(float64(got.Delay)-2) > 0.05 {
		t.Errorf("within the search: %+v (%v)", got, err)
	}
	got, err = s.Acquire(windows, 100, Search{Delay: 80, Near: -4.3e-3, Offset: 1e-3})
	if err != nil || math.Abs(float64(got.Offset)+4.34e-3) > 1e-5 {
		t.Errorf("near by: %+v (%v)", got, err)
	}
}

// Noise that a filter has left is not taken for soundings.
func TestFilteredNoise(t *testing.T) {
	s := wide(t)
	b := newBench(s, 100, s.Burst()+200, 7)
	var windows [][]complex64
	for range 32 {
		w := append([]complex64(nil), b.receive(link{noise: 1e-4})...)
		for n := 3; n < len(w); n++ {
			w[n] = 0.7*w[n-1] + 0.3*w[n]
		}
		windows = append(windows, w)
	}
	if got, err := s.Acquire(windows, 100, Search{Delay: 80, Offset: 5e-3}); !errors.Is(err, ErrNoSounding) {
		t.Errorf("found %+v (%v)", got, err)
	}
}

// A search is decided by as few windows as it takes: the others' transforms are spared.
func TestDecidedEarly(t *testing.T) {
	s := wide(t)
	b := newBench(s, 100, s.Burst()+200, 9)
	w := append([]complex64(nil), b.receive(link{gain: 0.3, delay: 2, offset: 2e-3, noise: 1e-5})...)
	search := Search{Delay: 80, Offset: 5e-3, FalseAlarm: DefaultFalseAlarm}
	one := s.coarse([][]complex64{w}, 100, search)
	if many := s.coarse([][]complex64{w, w, w, w, w, w, w, w}, 100, search); many != one {
		t.Errorf("eight windows were searched: %+v of one, %+v", one, many)
	}
}
