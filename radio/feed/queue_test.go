package feed

import (
	"testing"

	"ringwave/radio"
	"ringwave/radio/iq"
)

const fullScale, sampleBytes, packet, block = 127, 2, 256, 8192

func newQueue(window int, strict bool) *Queue {
	return NewQueue(Config{
		Codec: iq.New(iq.Config{Format: iq.CI8, Step: 1.0 / fullScale, Single: true}), SampleBytes: sampleBytes,
		Window: window, Strict: strict, Packet: packet, Block: block,
	})
}

// What the queue gives is what was put, at its index, however both are cut.
func TestQueue(t *testing.T) {
	for _, strict := range []bool{false, true} {
		q := newQueue(1<<12, strict)
		model := map[radio.SampleIndex]byte{}
		put := func(at radio.SampleIndex, n int) {
			src := make([]complex64, n)
			for k := range src {
				src[k] = complex(float32(k%100+1)/fullScale, 0)
			}
			if end, _, late := q.Put(src, at, true); !late {
				for k := range n {
					model[end-radio.SampleIndex(n-k)] = byte(k%100 + 1)
				}
			}
		}
		next := radio.SampleIndex(0)
		take := func(n int) {
			dst := make([]byte, sampleBytes*n)
			got := q.Take(dst)
			for k := range got.Bytes / sampleBytes {
				if dst[sampleBytes*k] != model[next] || dst[sampleBytes*k+1] != 0 {
					t.Fatalf("strict %v: index %d is %d, want %d", strict, next, dst[sampleBytes*k], model[next])
				}
				delete(model, next)
				next++
			}
		}
		for k := range 4000 {
			switch free, _ := q.Free(); {
			case k%7 == 0:
				put(next+radio.SampleIndex(k%977), min(free, k%1500))
			case k%3 == 0:
				put(-1, min(free, 700))
			case k%11 == 0:
				q.Idle(next + 500)
			default:
				take(packet * (1 + k%9))
			}
		}
		q.End(100)
		for left := true; left; {
			before := next
			take(8 * packet)
			left = next > before
		}
		if len(model) > 0 || next%block != 0 {
			t.Errorf("strict %v: %d samples left behind, ended at %d", strict, len(model), next)
		}
	}
}
