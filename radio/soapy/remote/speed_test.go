package remote

import (
	"fmt"
	"io"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// BenchmarkRead receives as fast as a server on the same host sends.
func BenchmarkRead(b *testing.B) {
	for _, params := range []string{"", "?stream=udp", "?stream=udp&mtu=4144"} {
		b.Run(params, func(b *testing.B) {
			f := newFake(b)
			_, s, flow := f.stream(params, radio.Receive, "CS8")
			buf := make([]byte, 2*s.MTU())
			block := make([]byte, frameHead+len(buf))
			ended := make(chan struct{})
			first, _ := flow.hear(b)
			room, taken := uint32(first.elems), uint32(0)
			go func() {
				defer close(ended)
				for i := uint32(0); ; i++ {
					for i-taken >= room {
						h, ok := heard(flow)
						if !ok {
							return
						}
						taken = h.sequence
					}
					frame{bytes: uint32(len(block)), sequence: i, elems: int32(s.MTU())}.put(block)
					if _, err := flow.data.Write(block); err != nil {
						return
					}
				}
			}()
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			lost := 0
			for b.Loop() {
				_, _, err := s.Read(b.Context(), buf, time.Second)
				switch err {
				case nil:
				case soapy.ErrOverflow:
					lost++
				default:
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(lost), "lost")
			flow.close()
			<-ended
		})
	}
}

// heard takes an acknowledgement.
func heard(flow fakeFlow) (frame, bool) {
	b := make([]byte, frameHead)
	_, err := io.ReadFull(flow.data, b)
	return parseFrame(b), err == nil
}

// BenchmarkWrite sends as fast as a server on the same host takes.
func BenchmarkWrite(b *testing.B) {
	for _, params := range []string{"", "?stream=udp", "?stream=udp&mtu=4144"} {
		b.Run(params, func(b *testing.B) {
			f := newFake(b)
			_, s, flow := f.stream(params, radio.Transmit, "CS8")
			buf := make([]byte, 2*s.MTU())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				block := make([]byte, frameHead+len(buf))
				for i := uint32(0); ; i++ {
					h := frame{bytes: frameHead, sequence: i, elems: 6}
					head := make([]byte, frameHead)
					h.put(head)
					if _, err := flow.data.Write(head); err != nil {
						return
					}
					if _, err := io.ReadFull(flow.data, block); err != nil {
						return
					}
				}
			}()
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if n, err := s.Write(b.Context(), buf, soapy.BlockInfo{}, time.Second); n != len(buf) || err != nil {
					b.Fatal(fmt.Errorf("%d: %w", n, err))
				}
			}
			flow.close()
			<-ended
		})
	}
}
