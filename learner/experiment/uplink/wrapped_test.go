package uplink

import (
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// claimants are receivers with all combinations of optional interfaces; none can be read.
func claimants() []radio.Receiver {
	type (
		receiver = radio.Receiver
		bounded  = radio.Bounded
		asked    = radio.LossChecker
		ranged   = experimenttest.ReceivingBoard
	)
	return []radio.Receiver{
		struct{ receiver }{},
		struct{ bounded }{},
		struct {
			receiver
			ranged
		}{},
		struct {
			bounded
			ranged
		}{},
		struct {
			receiver
			asked
		}{},
		struct {
			bounded
			asked
		}{},
		struct {
			receiver
			ranged
			asked
		}{},
		struct {
			bounded
			ranged
			asked
		}{},
	}
}

// What records a receiver, converts its samples or has them take their time claims what
// the receiver does; but a converter has a clip level whatever it converts.
func TestWrappedReceiversClaimTheSame(t *testing.T) {
	seen := map[experimenttest.Claims]bool{}
	for _, rx := range claimants() {
		want := experimenttest.ClaimsOf(rx)
		seen[want] = true
		if got := experimenttest.ClaimsOf((&Recorder{Cfg: sigmf.Config{Datatype: sigmf.CF32}}).Tape(rx)); got != want {
			t.Errorf("%+v is %+v when it is recorded", want, got)
		}
		if got := experimenttest.ClaimsOf((&paced{from: rx}).receiver()); got != want {
			t.Errorf("%+v is %+v in real time", want, got)
		}
		converted := want
		converted.Ranged = true
		if got := experimenttest.ClaimsOf((&Recorder{Cfg: sigmf.Config{Datatype: sigmf.CI8, FullScale: 1}}).Tape(rx)); got != converted {
			t.Errorf("%+v is %+v when it is recorded in integers, want %+v", want, got, converted)
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d of 8 combinations were tried", len(seen))
	}
}
