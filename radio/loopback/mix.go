package loopback

import (
	"ringwave/radio"
	"ringwave/radio/air"
)

// mix makes the samples from m.next on and moves it behind them. It is called by
// the one reader, with the lock held, and gives the lock up while it computes:
// only a reader touches paths, noise and scratch.
func (m *Medium) mix(dst []complex64, turn complex64) (clipped int) {
	first := m.next
	for _, l := range m.lines {
		l.load(m.cursor(l), len(dst))
	}
	m.next += radio.SampleIndex(len(dst))
	m.mixing = true
	m.wake()
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.mixing = false
		m.wake()
	}()

	if m.cfg.Superpose != nil {
		m.superpose(dst, int64(first))
	} else {
		m.sum(dst, int64(first))
	}
	if turn != 1 {
		air.Scale(dst, turn)
	}
	if m.cfg.Noise != nil {
		m.cfg.Noise.Add(dst, int64(first))
	}
	if m.cfg.Converter != nil {
		clipped = m.cfg.Converter.Convert(dst, int64(first))
	}
	return clipped
}

// arriving returns what comes from l before gain.
func (l *line) arriving(n int, first int64) []complex64 {
	if l.path == nil {
		return l.scratch[:n]
	}
	l.path.Apply(l.distorted[:n], l.scratch[:n], first-int64(l.delay))
	return l.distorted[:n]
}

// sum adds the lines in their order, which fixes the rounding.
func (m *Medium) sum(dst []complex64, first int64) {
	clear(dst)
	for _, l := range m.lines {
		src, at := l.arriving(len(dst), first), 0
		for _, p := range l.pieces {
			air.Add(dst[at:at+p.n], src[at:at+p.n], p.gain)
			at += p.n
		}
	}
}

func (m *Medium) superpose(dst []complex64, first int64) {
	all := make([][]complex64, len(m.lines))
	for i, l := range m.lines {
		all[i] = l.arriving(len(dst), first)
		at := 0
		for _, p := range l.pieces {
			air.Scale(all[i][at:at+p.n], p.gain)
			at += p.n
		}
	}
	m.cfg.Superpose(dst, all, first)
}
