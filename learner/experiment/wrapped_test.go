package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/setup"
	"ringwave/radio"
)

// unsettled is a medium's receiver that is, like one behind rtl_tcp, in a newer epoch
// than the samples on their way: those from index at on have it.
type unsettled struct {
	mediumReceiver
	at radio.SampleIndex
}

type mediumReceiver interface {
	radio.Bounded
	radio.Ranged
}

func (u *unsettled) Epoch() radio.Epoch { return u.mediumReceiver.Epoch() + 1 }

func (u *unsettled) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return u.ReadUntil(ctx, dst, radio.Forever)
}

func (u *unsettled) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := u.mediumReceiver.ReadUntil(ctx, dst, until)
	switch before := int(u.at - meta.First); {
	case before <= 0:
		meta.Epoch++
	case before < n:
		meta.Changes = append(meta.Changes, radio.EpochChange{At: before, Epoch: meta.Epoch + 1})
	}
	return n, meta, err
}

// unsettledAsked can be asked for losses.
type unsettledAsked struct{ *unsettled }

func (unsettledAsked) CheckLoss(context.Context) error { return nil }

// unsettledEnds opens a medium whose receiver is unsettled.
type unsettledEnds struct {
	radio.Opener
	asked bool
}

func (o unsettledEnds) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := o.Opener.Open(ctx, u)
	if end, ok := d.(tunedReceivingEnd); ok {
		return &unsettledEnd{end, o.asked}, err
	}
	return d, err
}

type tunedReceivingEnd interface {
	receivingEnd
	radio.FrequencyControl
}

type unsettledEnd struct {
	tunedReceivingEnd
	asked bool
}

// unsettledSamples is within the second round of overEnds.
const unsettledSamples = 3_000_000

func (d *unsettledEnd) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	rx, err := d.tunedReceivingEnd.OpenReceiver(ctx)
	if err != nil {
		return nil, err
	}
	u := &unsettled{rx.(mediumReceiver), unsettledSamples}
	if d.asked {
		return unsettledAsked{u}, nil
	}
	return u, nil
}

// Recording a session changes nothing of what is void in it, whether or not its receiver
// can be asked for losses; and that makes a difference here.
func TestRecordingChangesNoVerdict(t *testing.T) {
	const rounds = 3
	heard := func(asked bool, record string) []string {
		r := overEnds(t, 2, rounds, func(ends radio.Opener) radio.Opener { return unsettledEnds{ends, asked} }, "link.record="+record)
		for range rounds {
			r.step(t)
		}
		return r.elements
	}
	void := map[bool]int{}
	for _, asked := range []bool{false, true} {
		plain, recorded := heard(asked, setup.RecordNone), heard(asked, "cf32_le")
		if !slices.Equal(plain, recorded) {
			t.Errorf("asked for losses %v: received was\n%s\nand recorded\n%s", asked, strings.Join(plain, "\n"), strings.Join(recorded, "\n"))
		}
		for _, e := range plain {
			if strings.HasSuffix(e, ": void") {
				void[asked]++
			}
		}
	}
	if void[true] <= void[false] {
		t.Errorf("%d transmissions are void, and %d where the receiver can be asked for losses", void[false], void[true])
	}
	t.Logf("%d transmissions are void, and %d where the receiver can be asked for losses", void[false], void[true])
}
