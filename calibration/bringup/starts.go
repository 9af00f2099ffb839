package bringup

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/calibration/sounder"
	"ringwave/radio"
	"ringwave/radio/array"
)

// The bench is started startTimes, and in each start every device is heard perStart times.
const (
	startTimes = 3
	perStart   = 4
	// mostChange is by how many samples a device may begin elsewhere at another start.
	mostChange = 1.0
)

// starts lets the bench begin several times as runs do, and measures by how many samples its
// devices are apart.
func (b *bench) starts(ctx context.Context, r *Result) (err error) {
	a := b.cfg.Array
	if err := b.ask(ctx, "the bench begins %d times as for a run, and each transmitter sends %d soundings each time, %v wide around %v; %s", startTimes, perStart, a.Rate, a.Frequency, b.loudness()); err != nil {
		return err
	}
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	radios, err := array.Open(ctx, s.devices, a)
	if err != nil {
		return s.close(err)
	}
	defer func() {
		if ended := radios.Close(); err == nil {
			err = ended
		}
		err = s.close(err)
	}()
	for range startTimes {
		delays, err := b.startHeard(ctx, radios)
		if err != nil {
			return err
		}
		r.Delays = append(r.Delays, delays)
	}
	b.judgeStarts(r)
	return nil
}

// startHeard is start, again where soundings came too late or were lost meanwhile: that a
// device is not heard at all has shown before.
func (b *bench) startHeard(ctx context.Context, radios *array.Array) (delays []float64, err error) {
	for range tries {
		var unheard *sounder.NotHeardError
		if delays, err = b.start(ctx, radios); !errors.As(err, &unheard) {
			break
		}
	}
	return delays, err
}

// start lets the bench begin once, and returns the devices' delays against the first.
func (b *bench) start(ctx context.Context, radios *array.Array) ([]float64, error) {
	if err := radios.Start(ctx); err != nil {
		return nil, err
	}
	cfg := b.cfg.Soundings
	cfg.Devices, cfg.Blocks, cfg.Looks, cfg.Sessions = len(b.cfg.Array.Transmitters), perStart, 1, 1
	cfg.LookEvery, cfg.BlockEvery = 0, 0
	cfg.Transmitters, cfg.Receiver, cfg.Flush = radios.Transmitters(), radios.Receiver(), radios.Flush()
	cfg.Restart = func() ([]radio.Transmitter, radio.Receiver, error) {
		err := radios.Start(ctx)
		return radios.Transmitters(), radios.Receiver(), err
	}
	sounds, err := sounder.New(cfg)
	if err != nil {
		return nil, err
	}
	delays, weights := make([]float64, cfg.Devices), make([]float64, cfg.Devices)
	err = sounds.Run(ctx, func(block sounder.Block) error {
		for k, rec := range block.Records {
			if rec.Estimate != nil {
				i := k % cfg.Devices
				delays[i] += float64(rec.Estimate.Delay + rec.Estimate.DDelay)
				weights[i]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range delays {
		if weights[i] == 0 {
			return nil, &sounder.NotHeardError{Device: i, Bursts: perStart, Err: fmt.Errorf("all of its soundings were missed, as samples were lost")}
		}
		delays[i] /= weights[i]
	}
	first := delays[0]
	for i := range delays {
		delays[i] -= first
	}
	return delays, nil
}

// judgeStarts judges the delays of all starts.
func (b *bench) judgeStarts(r *Result) {
	tolerance := float64(b.cfg.Tolerance)
	for i := 1; i < len(b.cfg.Array.Transmitters); i++ {
		low, high := math.Inf(1), math.Inf(-1)
		for _, delays := range r.Delays {
			low, high = min(low, delays[i]), max(high, delays[i])
		}
		middle := (low + high) / 2
		r.measured(transmitterRole(i)+" after the first", middle, "samples", -tolerance, tolerance)
		r.measured(transmitterRole(i)+" changes by", high-low, "samples", none(), mostChange)
		switch {
		case high-low > mostChange:
			r.find(Fail, fmt.Sprintf("%s begins %.2f to %.2f samples after the first, another time at each start", b.named(i), low, high), "look at the trigger wires and their ground, and that no board but the first is started by itself")
		case math.Abs(middle) > tolerance:
			r.find(Fail, fmt.Sprintf("%s is %.2f samples behind the first at each start, and allowed is link.tolerance_samples = %.3g", b.named(i), middle, tolerance), "make the cables of all boards alike, raise link.tolerance_samples, or give runs a calibration (ringwave calibrate), which takes such delays off")
		}
	}
}
