package pluto

import "ringwave/radio"

// Break leaves samples that make the feeding goroutine panic.
func Break(x radio.Transmitter) {
	t := x.(paced).transmitter
	t.mu.Lock()
	defer t.mu.Unlock()
	t.segments = []segment{{start: -1, data: make([]byte, sampleBytes)}}
}
