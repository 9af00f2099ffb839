package server_test

import (
	"math"
	"slices"
	"testing"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/wire"
)

// A device that lacks more rounds than it should replay takes theta from a checkpoint, and the
// rest from records; a checkpoint that is not what the signed record says it refuses, and has the
// same model by replaying. One that lacks fewer does not ask for any.
// Longer than most because it is a table of checkpoints.
func TestCheckpoints(t *testing.T) {
	const rounds, at = 14, 8
	type offer struct {
		sealed []byte // the record behind it
		theta  float64
	}
	for name, c := range map[string]struct {
		replay int
		body   func(b *bench, o offer) []byte // nil for none
		says   string
	}{
		"genuine":    {5, func(_ *bench, o offer) []byte { return wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta}) }, "device 3: caught up to round 11: took theta after round 8 from 144 bytes, and replayed 3 rounds from"},
		"not needed": {11, func(_ *bench, o offer) []byte { return wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta}) }, "device 3: caught up to round 11: replayed 11 rounds"},
		"not wanted": {0, func(_ *bench, o offer) []byte { return wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta}) }, "device 3: caught up to round 11: replayed 11 rounds"},
		"none there": {5, nil, "device 3: caught up to round 11: replayed 11 rounds"},
		"another theta": {5, func(_ *bench, o offer) []byte {
			return wire.AppendCheckpoint(nil, o.sealed, []float64{math.Nextafter(o.theta, 1)})
		}, "device 3 takes no checkpoint, and replays in its place: theta after round 8 has the digest "},
		"truncated": {5, func(_ *bench, o offer) []byte {
			body := wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta})
			return body[:len(body)-3]
		}, "device 3 takes no checkpoint, and replays in its place: not a message of Ringwave's hosts: 9 bytes of theta"},
		"another's signature": {5, func(_ *bench, o offer) []byte {
			sealed := slices.Clone(o.sealed)
			sealed[len(sealed)-1] ^= 1
			return wire.AppendCheckpoint(nil, sealed, []float64{o.theta})
		}, "device 3 takes no checkpoint, and replays in its place: record of round 9: the signature"},
		"another round": {5, func(b *bench, o offer) []byte {
			return wire.AppendCheckpoint(nil, b.records[at-2], []float64{o.theta})
		}, "device 3 takes no checkpoint, and replays in its place: theta after round 6 has the digest "},
		"too much theta": {5, func(_ *bench, o offer) []byte {
			return wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta, 0})
		}, "device 3 takes no checkpoint, and replays in its place: theta after round 8 has the digest "},
		"lost": {5, func(_ *bench, o offer) []byte { return wire.AppendCheckpoint(nil, o.sealed, []float64{o.theta}) }, "device 3: caught up to round 11: replayed 11 rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3, rounds)
			b.minimum = 2
			b.air()
			b.serve()
			var ends []chan error
			for i := 1; i <= 2; i++ {
				ends = append(ends, b.device(t.Context(), i, nil))
			}
			theta := 0.0
			for k := 1; k <= 11; k++ {
				_, err := b.step(t.Context(), k)
				b.must(err)
				if k == at {
					theta = b.model.theta
				}
			}
			if c.body != nil {
				b.server.Offer(at, c.body(b, offer{b.records[at], theta}))
			}
			late := &member{index: 3}
			ends = append(ends, b.device(t.Context(), 3, func(cfg *device.Config, p *device.Part) {
				if cfg != nil {
					cfg.ReplayRounds, cfg.Say = c.replay, func(text string) { b.said.say("device 3: " + text); b.said.say(text) }
					if name == "lost" {
						cfg.Bus = deaf{cfg.Bus}
					}
				}
				if p != nil {
					p.Member = late
				}
			}))
			b.minimum = 3
			for k := 12; k <= rounds; k++ {
				_, err := b.step(t.Context(), k)
				b.must(err)
			}
			_, err := b.server.End(t.Context(), b.model.Digest())
			b.must(err)
			for i, ended := range ends {
				if err := endOf(t, ended); err != nil {
					t.Errorf("device %d: %v", i+1, err)
				}
			}
			if late.Digest() != b.model.Digest() || late.round != rounds {
				t.Errorf("the late device is after round %d with %v, the server after %d with %v", late.round, late.theta, b.model.round, b.model.theta)
			}
			if !b.said.has(c.says) {
				t.Errorf("nobody says %q, but %.3000q", c.says, b.said.lines)
			}
		})
	}
}

// deaf is a connection that loses all checkpoints.
type deaf struct{ bus.Conn }

func (c deaf) Subscribe(subject string, handle func(bus.Message)) (func(), error) {
	return c.Conn.Subscribe(subject, func(m bus.Message) {
		if x, err := wire.Parse(m.Payload); err == nil && x.Kind == wire.Checkpoint {
			return
		}
		handle(m)
	})
}
