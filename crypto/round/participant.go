package round

import (
	"context"
	"errors"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// ErrAbsent says that a participant did not answer, or refused to: the round goes on
// without it where that may be.
var ErrAbsent = errors.New("device absent")

// Step is what a participant is asked for: to send a transmission, with the broadcast that
// it needs.
type Step struct {
	Slot slot.Slot
	// Deltas are the scalars of a device in this process, for c0; nil for one that has
	// its own.
	Deltas []float64
	// Key is b~, for c0.
	Key *xmkckks.AggregatedKey
	// C1 is c~1, for D.
	C1 *xmkckks.AggregatedC1
}

// Participant is one device as an Engine asks it, be it a Local or on another host. An
// Engine calls one method of it at a time, and those of several side by side.
type Participant interface {
	// Epoch returns its key epoch.
	Epoch() uint32
	// Prepare has it draw the fresh randomness of an attempt. With ErrAbsent it takes no
	// part in the attempt; another error ends the run.
	Prepare(ctx context.Context, round, attempt uint32) error
	// Send has it send what the step names, and returns when the uplink has it; of c0 it
	// tells how many messages were clipped, if that is known here. With ErrAbsent the
	// attempt is void; another error ends the run.
	Send(ctx context.Context, step Step) (clipped int, err error)
}

// Local is a device in this process.
type Local struct {
	device   *xmkckks.Device
	index    int
	transmit func(i int, x zq.Vector) error
	share    zq.Vector // of the round, once it has given it
}

// Locals returns devices in this process, of which number i sends as device i of an uplink.
func Locals(devices []*xmkckks.Device, u phy.Uplink) []Participant {
	all := make([]Participant, len(devices))
	for i, d := range devices {
		all[i] = NewLocal(d, i, u.Transmit)
	}
	return all
}

// NewLocal returns a device in this process. What it sends goes to transmit, with its
// index.
func NewLocal(d *xmkckks.Device, index int, transmit func(i int, x zq.Vector) error) *Local {
	return &Local{device: d, index: index, transmit: transmit}
}

// Epoch returns the device's key epoch.
func (l *Local) Epoch() uint32 { return l.device.Epoch() }

// Prepare draws the randomness of an attempt.
func (l *Local) Prepare(_ context.Context, round, attempt uint32) error {
	return l.device.Prepare(round, attempt)
}

// Send sends b, c0, c1 or D. A share that was given is sent again as it stands.
func (l *Local) Send(_ context.Context, step Step) (clipped int, err error) {
	switch step.Slot.Transmission {
	case slot.TxKey:
		return 0, l.transmit(l.index, l.device.PublicKey())
	case slot.TxC0:
		if clipped, err = l.device.Encrypt(step.Key, step.Deltas); err != nil {
			return 0, err
		}
		c0, _ := l.device.Ciphertext()
		return clipped, l.transmit(l.index, c0)
	case slot.TxC1:
		_, c1 := l.device.Ciphertext()
		return 0, l.transmit(l.index, c1)
	}
	if step.Slot.Again == 0 {
		if l.share, err = l.device.Share(step.C1); err != nil {
			return 0, err
		}
	}
	return 0, l.transmit(l.index, l.share)
}
