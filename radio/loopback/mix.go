package loopback

import (
	"runtime"
	"sync"
	"sync/atomic"

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

// distort has all lines' samples pass their paths, which know nothing of each other.
func (m *Medium) distort(n int, first int64) {
	together(len(m.lines), len(m.lines)*n, func(i int) { m.lines[i].distort(n, first) })
}

// distort has samples pass the path, as many at a time as stay at hand.
func (l *line) distort(n int, first int64) {
	if l.path == nil {
		return
	}
	for at := 0; at < n; at += mixBlock {
		to := min(at+mixBlock, n)
		l.path.Apply(l.distorted[at:to], l.scratch[at:to], first+int64(at)-int64(l.delay))
	}
}

// arriving returns what comes from l before gain, once it was distorted.
func (l *line) arriving(n int) []complex64 {
	if l.path == nil {
		return l.scratch[:n]
	}
	return l.distorted[:n]
}

// sum adds the lines in their order, which fixes the rounding.
func (m *Medium) sum(dst []complex64, first int64) {
	m.distort(len(dst), first)
	blocks := (len(dst) + mixBlock - 1) / mixBlock
	together(blocks, len(m.lines)*len(dst), func(b int) {
		from, to := b*mixBlock, min((b+1)*mixBlock, len(dst))
		clear(dst[from:to])
		for _, l := range m.lines {
			src, at := l.arriving(len(dst)), 0
			for _, p := range l.pieces {
				if low, high := max(at, from), min(at+p.n, to); low < high {
					air.Add(dst[low:high], src[low:high], p.gain)
				}
				at += p.n
			}
		}
	})
}

// together calls do(0) to do(n-1), on all cores where there is so much to do, in samples,
// that it is worth the while. Each does the same wherever it is done.
func together(n, samples int, do func(i int)) {
	const worth = 1 << 14
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 || samples < worth {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(i)
		}
	}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

func (m *Medium) superpose(dst []complex64, first int64) {
	all := make([][]complex64, len(m.lines))
	m.distort(len(dst), first)
	for i, l := range m.lines {
		all[i] = l.arriving(len(dst))
		at := 0
		for _, p := range l.pieces {
			air.Scale(all[i][at:at+p.n], p.gain)
			at += p.n
		}
	}
	m.cfg.Superpose(dst, all, first)
}
