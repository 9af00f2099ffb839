package uplink

import (
	"context"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
)

// paced is a receiver that takes as long over a transmission as its samples last.
// What is computed between transmissions comes on top, as on a bench where nobody
// sends meanwhile.
type paced struct {
	from  radio.Receiver
	clock loopback.Clock
	rate  radio.Hertz
	first radio.SampleIndex // of the transmission, sent at since
	since time.Duration
}

// receiver returns p as it takes the place of the receiver that it reads from.
func (p *paced) receiver() radio.Receiver {
	return radio.Wrap(p.from, radio.Wrapping{ReadUntil: p.readUntil})
}

// begin says that index at is now.
func (p *paced) begin(at radio.SampleIndex) { p.first, p.since = at, p.clock.Now() }

func (p *paced) readUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, p.from, dst, until)
	if n == 0 {
		return n, meta, err
	}
	due := p.since + p.rate.Duration(radio.SampleCount(max(0, meta.Index(n-1)+1-p.first)))
	for p.clock.Now() < due && ctx.Err() == nil {
		p.clock.Wait(ctx, due, nil)
	}
	return n, meta, err
}
