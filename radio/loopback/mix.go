package loopback

import "ringwave/radio"

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
		scale(dst, turn)
	}
	if m.cfg.Noise != nil {
		m.cfg.Noise.Add(dst, int64(first))
	}
	if m.cfg.Converter != nil {
		clipped = m.cfg.Converter.Convert(dst, int64(first))
	}
	return clipped
}

// arriving gives what comes from l before gain.
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
			accumulate(dst[at:at+p.n], src[at:at+p.n], p.gain)
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
			scale(all[i][at:at+p.n], p.gain)
			at += p.n
		}
	}
	m.cfg.Superpose(dst, all, first)
}

// accumulate adds gain times src to dst. It is written out because the compiler
// multiplies complex64 in double precision; each product is rounded by itself,
// so that no machine fuses it with the sum and all give the same samples.
func accumulate(dst, src []complex64, gain complex64) {
	src = src[:len(dst)]
	if gain == 1 {
		for k, x := range src {
			dst[k] += x
		}
		return
	}
	re, im := real(gain), imag(gain)
	if im == 0 {
		for k, x := range src {
			y := dst[k]
			dst[k] = complex(real(y)+float32(re*real(x)), imag(y)+float32(re*imag(x)))
		}
		return
	}
	for k, x := range src {
		y := dst[k]
		a := float32(re*real(x)) - float32(im*imag(x))
		b := float32(re*imag(x)) + float32(im*real(x))
		dst[k] = complex(real(y)+a, imag(y)+b)
	}
}

// scale multiplies in place, rounding as accumulate does.
func scale(x []complex64, gain complex64) {
	re, im := real(gain), imag(gain)
	for k, v := range x {
		x[k] = complex(float32(re*real(v))-float32(im*imag(v)), float32(re*imag(v))+float32(im*real(v)))
	}
}
