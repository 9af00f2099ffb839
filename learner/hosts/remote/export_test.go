package remote

import (
	"context"
	"encoding/binary"
	"time"

	"ringwave/radio"
)

// What tests ask for in place of Open, and of a host.

// OpenTimed is Open with another clock, that asks a stream how it does so often.
func OpenTimed(ctx context.Context, c Caller, index int, now func() time.Time, every time.Duration) (radio.Device, error) {
	return open(ctx, c, index, timing{now: now, every: every})
}

// Expire looks once whether too long nothing was asked.
func (h *Host) Expire() { h.expire() }

// Kept returns how many bursts the host has.
func (h *Host) Kept() int { return len(h.bursts.all) }

// KeptBursts is what a host keeps at most.
const KeptBursts = keptBursts

// Look asks once how a stream does, as is done every so often.
func Look(tx radio.Transmitter) {
	t := tx.(interface{ self() *Transmitter }).self()
	if t.d.tryTake() {
		t.look()
		t.d.give()
	}
}

// Watched reports whether a stream is still asked how it does.
func Watched(tx radio.Transmitter) bool {
	select {
	case <-tx.(interface{ self() *Transmitter }).self().watched:
		return false
	default:
		return true
	}
}

func (t *Transmitter) self() *Transmitter { return t }

// Streams returns a stream that has these capabilities and no others.
func Streams(paces, idles, checks, counts bool) radio.Transmitter {
	return new(Transmitter).capable(&status{Paces: paces, Idles: idles, Checks: checks, Counts: counts})
}

// Devices returns a device that has these capabilities and no others.
func Devices(clocked, triggered, timed bool) radio.Device {
	return (&Device{settings: settings{Clocked: clocked, Triggered: triggered, Timed: timed}}).capable()
}

// Forget lets go of all bursts.
func (h *Host) Forget() { h.bursts = kept{} }

// InSession returns a request with its session changed, as far as it is one.
func InSession(b []byte, session uint64) []byte {
	r, err := parseRequest(b)
	if err != nil {
		return b
	}
	r.Session = session
	out, err := encode(asks, r.id, r, r.payload)
	if err != nil {
		return b
	}
	return out
}

// Answer returns the answer to a request whose JSON is text.
func Answer(asked []byte, text string) []byte {
	id, _ := ID(asked)
	return message(answers, id, text, nil)
}

// Request returns a request whose JSON is text.
func Request(id uint64, text string, payload []byte) []byte { return message(asks, id, text, payload) }

func message(what byte, id uint64, text string, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint64(append([]byte(magic), version, what), id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(append(b, text...), payload...)
}
