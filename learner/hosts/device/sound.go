package device

import (
	"context"
	"errors"
	"sync"

	"ringwave/learner/hosts/wire"
)

// tuned is the radio of the present part.
type tuned struct {
	run   wire.RunID
	radio Radio
}

// asksAtOnce is how many requests to the radio are handled side by side: one is done, and
// those that come meanwhile wait for it or end it.
const asksAtOnce = 8

// sound does what the server asks of the device's radio, whatever the device computes
// meanwhile.
func (d *Device) sound(ctx context.Context) {
	var all sync.WaitGroup
	for range asksAtOnce {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case b := <-d.asked:
					d.soundOne(ctx, b)
				}
			}
		})
	}
	all.Wait()
}

// soundOne handles one request, and answers it.
func (d *Device) soundOne(ctx context.Context, b []byte) {
	m, err := d.open(b)
	own := d.tuned.Load()
	if err != nil || own == nil || m.Run != own.run || m.Device != uint32(d.index) {
		return // what is of no part of the device's: it is not answered
	}
	answer := own.radio.Handle(ctx, m.Body)
	if answer == nil {
		return
	}
	m = wire.Message{Kind: wire.Radioed, Run: own.run, Device: uint32(d.index), Body: answer}
	_ = d.cfg.Bus.Publish(own.run.FromDevice(d.index), m.Bytes()) // it is asked again
}

// sounded follows a calibration, of which there is nothing to hear but its end.
func (d *Device) sounded(m wire.Message) error {
	if m.Kind != wire.End {
		return nil
	}
	d.cfg.Say("the calibration has ended")
	return errors.Join(ErrEnded, d.leave())
}
