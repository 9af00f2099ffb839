package virtual

// skewed returns how many of the board's samples the bench takes for one of its own. 1
// while the board follows the reference.
func (m *member) skewed() float64 {
	if m.clock == nil || m.locked {
		return 1
	}
	return 1 + m.skew
}

// room returns for how many samples of the bench the board has room, or something to send.
func (m *member) room() int {
	if m.clock == nil {
		return m.now.Room
	}
	return max(0, int(float64(m.now.Room-1)/m.skewed())-1)
}

// transmit puts the next n samples that the board sends into its buffer, as its hardware
// makes them.
func (m *member) transmit(n int) {
	if m.clock == nil {
		m.radio.Send(m.buf[:n])
		m.pass(m.buf[:n])
		return
	}
	step := m.skewed()
	own := m.clock.put(m.clock.need(n, step))
	m.radio.Send(own)
	m.pass(own)
	m.clock.take(m.buf[:n], step)
}

// receive gives the board what it hears, as its hardware makes it.
func (m *member) receive(heard []complex64) {
	if m.clock != nil {
		copy(m.clock.put(len(heard)), heard)
		heard = m.buf[:m.clock.take(m.buf[:], 1/m.skewed())]
	}
	m.pass(heard)
	m.radio.Receive(heard)
}

// pass takes samples through the chain of the stream.
func (m *member) pass(x []complex64) {
	if m.chain != nil {
		m.chain(x)
	}
}
