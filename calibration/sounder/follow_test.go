package sounder_test

import (
	"context"
	"errors"
	"math"
	"math/cmplx"
	"testing"

	"ringwave/calibration/sounding"
	"ringwave/radio"
	"ringwave/radio/radiotest"
)

// Soundings are followed where the receiver's sampling clock is off: they move by several
// times what they are searched within, and all are heard, with gains as they were set.
func TestClocksRunApart(t *testing.T) {
	const ppm = 200e-6
	r := newRig(t, 2, 60, 2)
	s, err := sounding.New(sounding.Config{Kind: sounding.MSequence, Length: 63, SamplesPerChip: 4, Repetitions: 2})
	ok(t, err)
	r.cfg.Sounding, r.cfg.Reach = s, 2000
	r.cfg.Search.Delay = 20
	r.cfg.Receiver = radiotest.NewDrifting(r.cfg.Receiver, 1-ppm)
	blocks := r.run()
	missed := 0
	worst := 0.0
	for k, b := range blocks {
		for i, rec := range b.Records {
			if rec.Estimate == nil {
				missed++
				continue
			}
			if d := math.Abs(cmplx.Abs(rec.Estimate.Gain) - math.Abs(r.gain(k, i/2, i%2))); d > worst {
				worst = d
			}
		}
	}
	moved := float64(blocks[len(blocks)-1].Moved)
	if want := ppm * float64(blocks[len(blocks)-1].At-blocks[0].At); want < 40 || math.Abs(moved-want) > 1 {
		t.Errorf("the clocks have run apart by %.1f samples, and %v are told", want, moved)
	}
	if missed > 0 || worst > 0.03 {
		t.Errorf("%d bursts were missed; the worst gain is off by %.3f", missed, worst)
	}
}

// starving is a transmitter whose board stops at one write, until streams begin anew.
type starving struct {
	radio.Transmitter
	left    int
	stopped bool
}

func (s *starving) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	if s.left--; s.left == 0 {
		s.stopped = true
	}
	if s.stopped {
		return 0, radio.ErrStarved
	}
	return s.Transmitter.Write(ctx, src, meta)
}

func (s *starving) Idle(ctx context.Context, until radio.SampleIndex) error {
	return s.Transmitter.(radio.Idler).Idle(ctx, until)
}

// A board that stops as the host was too slow costs the block that it was in, and a session
// of new streams follows.
func TestStarves(t *testing.T) {
	for _, anew := range []bool{true, false} {
		r := newRig(t, 2, 40, 1)
		board := &starving{Transmitter: r.cfg.Transmitters[1], left: 35}
		r.cfg.Transmitters = []radio.Transmitter{r.cfg.Transmitters[0], board}
		if anew {
			r.cfg.Restart = func() ([]radio.Transmitter, radio.Receiver, error) {
				fresh := newRig(t, 2, 40, 1)
				r.bench = fresh.bench
				return fresh.cfg.Transmitters, fresh.cfg.Receiver, nil
			}
		}
		blocks, err := r.tryRun()
		if !anew {
			if !errors.Is(err, radio.ErrStarved) {
				t.Error(err)
			}
			continue
		}
		ok(t, err)
		missed := 0
		for k, b := range blocks {
			if rec := b.Records[0]; rec.Missed != "" {
				missed++
			}
			if want := k / 35; b.Session != want {
				t.Errorf("block %d is of session %d", k, b.Session)
			}
		}
		if len(blocks) != 40 || missed != 1 || blocks[34].Records[0].Missed == "" {
			t.Errorf("%d blocks, %d missed", len(blocks), missed)
		}
	}
}
