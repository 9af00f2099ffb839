// Package bench is the simulated bench: transmitters and a receiver that memory joins
// sample by sample, over the gains of a fading channel.
//
// It takes in what each radio's hardware and place do to its samples, the receiver's
// noise and converter, and the channel's gains, and gives running streams. Beside them
// it says what follows for symbols of such a bench: how strong they arrive in which
// regime, how noisy they are, and where the receiver clips. It knows nothing of how an
// experiment is configured, of rounds, or of what is sent.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

// Config describes a bench.
type Config struct {
	Rate radio.Hertz
	// Devices are the transmitters' impairments, their delays and phases among them.
	Devices []channel.Impairments
	// Receiver is what the receiver's hardware does, and FullScale the amplitude at which
	// its converter clips, that of a device of gain 1 being 1; 0 stands for 1. NoiseStd is
	// the deviation of its noise a branch and sample, at the antenna.
	Receiver            channel.Impairments
	FullScale, NoiseStd float64
	// Echoes are what all devices' signals are followed by; with PerDevice each draws
	// phases of its own, and parts that fade. Of their Air the seed and the gains' law are
	// filled in.
	Echoes    channel.Air
	PerDevice bool
	// Channel has the gains that Draw and Fade draw; nil where gains are set alone.
	Channel *channel.Channel
	// Seed is that of phase noise and receiver noise, and Places that of what stays the same
	// on another day: phases of the devices' own echoes. Zero stands for Seed.
	Seed, Places keystream.Seed
}

// Bench is a bench in memory. Its methods are for one goroutine.
type Bench struct {
	// Medium joins the streams: for what a test does to them.
	Medium *loopback.Medium
	// H are the gains that were drawn last; of those that fade within a round, as the
	// attempt began.
	H []float64
	// RoundSamples is how long after a round the next one begins, and after an attempt the
	// next one: nominal times, by which carriers' phases go on.
	// The nominal time of round 0 is RoundStart.
	RoundSamples, RoundStart float64
	// Again is how often the transmission that comes was sent before in its attempt: what is
	// sent again meets other bursts.
	Again uint8
	// ClocksRun has sample clocks run on over the transmissions of an attempt.
	ClocksRun bool

	channel  *channel.Channel
	receiver *receiver
	paths    []*path
}

// roundSeconds is the nominal length of a round: about what one of a few devices takes,
// and no simple multiple of the period of any carrier offset that one would write down.
const roundSeconds = math.Phi - 1

// clockSpan is for how many samples of a transmission clocks may run apart. One that goes
// on for longer meets clocks that do so no further.
const clockSpan = 1 << 22

// schedule has transmissions that are to begin.
type schedule []scheduled

type scheduled struct {
	at int64
	m  channel.Moment
}

// next returns how many of n samples from index first on lie before the next beginning,
// and calls begin for those that are due.
func (s *schedule) next(first int64, n int, begin func(channel.Moment)) int {
	for len(*s) > 0 && (*s)[0].at <= first {
		begin((*s)[0].m)
		*s = (*s)[1:]
	}
	if len(*s) > 0 {
		n = int(min(int64(n), (*s)[0].at-first))
	}
	return n
}

// path is what lies between a transmitter and the receiver.
type path struct {
	imp  channel.Impairments
	air  channel.Air
	seed keystream.Seed
	now  *channel.Path
	due  schedule
}

// Apply implements loopback.Path.
func (p *path) Apply(dst, src []complex64, first int64) {
	for len(src) > 0 {
		n := p.due.next(first, len(src), p.now.Begin)
		p.now.Apply(dst[:n], src[:n])
		dst, src, first = dst[n:], src[n:], first+int64(n)
	}
}

// renew makes the path anew.
func (p *path) renew() (err error) {
	p.now, err = channel.NewPathThrough(p.imp, p.air, p.seed)
	return err
}

// receiver lets a channel.Front, whose full scale is 1, be the receiver's noise and
// converter.
type receiver struct {
	*channel.Front
	full float64
	bits int // 0 for none
	due  schedule
}

// Convert implements loopback.Converter.
func (r *receiver) Convert(dst []complex64, first int64) (clipped int) {
	for all := dst; len(all) > 0; {
		n := r.due.next(first, len(all), r.Begin)
		clipped += r.Apply(all[:n])
		all, first = all[n:], first+int64(n)
	}
	if r.full != 1 {
		for k, x := range dst {
			// In double precision, as a recording's codes are scaled: both are then equal.
			dst[k] = complex(float32(r.full*float64(real(x))), float32(r.full*float64(imag(x))))
		}
	}
	return clipped
}

// ClipLevel is what no step of the converter but the last reaches, 0 where there is none
// that clips: a board knows it of its own.
func (r receiver) ClipLevel() radio.Amplitude { return clipLevel(r.full, r.bits) }

func clipLevel(full float64, bits int) radio.Amplitude {
	return radio.Amplitude(full * max(0, 1-1.5*math.Ldexp(1, 1-bits)))
}

// ClipLevel returns the clip level of the receiver of such a bench (radio.Ranged).
func (cfg Config) ClipLevel() radio.Amplitude {
	return clipLevel(cmp.Or(cfg.FullScale, 1), cfg.Receiver.ConverterBits)
}

// New makes a bench whose gains are 1.
func New(cfg Config) (*Bench, error) {
	if cfg.Channel != nil && cfg.Channel.Devices() != len(cfg.Devices) {
		return nil, fmt.Errorf("a bench of %d devices over a channel of %d: they must be as many", len(cfg.Devices), cfg.Channel.Devices())
	}
	full := cfg.FullScale
	if full == 0 {
		full = 1
	}
	b := &Bench{channel: cfg.Channel, H: make([]float64, len(cfg.Devices)), RoundSamples: math.Round(roundSeconds * float64(cfg.Rate))}
	room := clockRoom(cfg)
	// A frame is written before it is read, however long it is.
	medium := loopback.Config{Rate: cfg.Rate, Window: math.MaxInt32}
	for i, imp := range cfg.Devices {
		imp.ClockRoom = room
		p := &path{imp: imp, air: airOf(cfg, i), seed: cfg.Seed.Derive("path", uint64(i))}
		if err := p.renew(); err != nil {
			return nil, fmt.Errorf("device %d: %w", i+1, err)
		}
		b.paths = append(b.paths, p)
		medium.Devices = append(medium.Devices, loopback.Device{Gain: 1, Path: p})
	}
	cfg.Receiver.ClockRoom = clockRoom(Config{Devices: []channel.Impairments{cfg.Receiver}})
	front, err := channel.NewFront(cfg.Receiver, cfg.NoiseStd, 1/full, cfg.Seed.Derive("front"))
	if err != nil {
		return nil, fmt.Errorf("the receiver's front end: %w", err)
	}
	b.receiver = &receiver{Front: front, full: full, bits: cfg.Receiver.ConverterBits}
	medium.Converter = b.receiver
	if b.Medium, err = loopback.New(medium); err != nil {
		return nil, err
	}
	return b, nil
}

// clockRoom returns by how many samples the devices' clocks may run apart.
func clockRoom(cfg Config) int {
	room := 0.0
	for _, imp := range cfg.Devices {
		room = max(room, math.Abs(imp.SampleClock)*clockSpan+6*imp.ClockJitter)
	}
	return int(math.Ceil(room))
}

// airOf returns what device i's signals meet between the antennas.
func airOf(cfg Config, i int) channel.Air {
	air := cfg.Echoes
	air.Seed, air.DrawPhases = cfg.Seed.Derive("echoes"), cfg.PerDevice
	if cfg.PerDevice {
		air.Seed = cfg.Seed.Derive("echoes of a device", uint64(i))
		if cfg.Places != (keystream.Seed{}) {
			air.Phases = cfg.Places.Derive("echoes of a device", uint64(i))
		}
	}
	if cfg.Channel != nil {
		air.Gain = cfg.Channel.Law(i)
	}
	return air
}

// Streams opens and starts all streams. They live until the bench is closed.
func (b *Bench) Streams() (tx []radio.Transmitter, rx radio.Receiver, err error) {
	ctx := context.Background() // they live as long as the bench
	for i := range b.paths {
		d, err := b.Medium.Transmitter(i)
		if err != nil {
			return nil, nil, err
		}
		s, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := s.Start(ctx); err != nil {
			return nil, nil, err
		}
		tx = append(tx, s)
	}
	d, err := b.Medium.Receiver(0)
	if err != nil {
		return nil, nil, err
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		return nil, nil, err
	}
	return tx, rx, rx.Start(ctx)
}

// Close lets go of the streams.
func (b *Bench) Close() error { return b.Medium.Close() }

// Latency returns the constant delay of all paths and of the receiver, in samples.
func (b *Bench) Latency() int { return b.paths[0].now.Latency() + b.receiver.Latency() }

// Move gives a device another delay, in the silence between frames: its samples before
// are forgotten.
func (b *Bench) Move(device int, delaySamples float64) error {
	p := b.paths[device]
	p.imp.DelaySamples = delaySamples
	if err := p.renew(); err != nil {
		return fmt.Errorf("device %d: %w", device+1, err)
	}
	return nil
}

// Begin begins the noise of a part of a round, by name: a resumed run meets the same.
func (b *Bench) Begin(round, part uint32) { b.receiver.Start(round, part) }

// Draw draws the gains of transmission t of an attempt at a round into H, and begins
// that transmission's noise and all else that is random in it with the next sample, by
// name.
func (b *Bench) Draw(round, attempt uint32, t int) { b.draw(round, attempt, t, math.MinInt64) }

func (b *Bench) draw(round, attempt uint32, t int, at int64) {
	part := attempt*slot.Transmissions + uint32(t)
	b.Begin(round, part)
	b.channel.Scaled(b.H, round, attempt, t)
	m := channel.Moment{
		Round: round, Attempt: attempt, Part: part + uint32(b.Again)*(slot.MaxAttempt+1)*slot.Transmissions, Block: b.channel.Block(attempt),
		Time: b.Nominal(round, attempt), Every: b.RoundSamples, Running: b.ClocksRun,
	}
	for i, p := range b.paths {
		b.H[i] /= b.channel.Alpha()
		if h, fades := p.now.Fades(m); fades {
			b.H[i] = h
		}
		p.due = append(p.due, scheduled{at, m})
	}
	b.receiver.due = append(b.receiver.due, scheduled{at, m})
}

// Nominal returns the time at which an attempt begins, in samples, by which carriers'
// phases go.
func (b *Bench) Nominal(round, attempt uint32) float64 {
	return b.RoundStart + (float64(round)+float64(attempt))*b.RoundSamples
}

// Fade draws the gains of a transmission and sets them from index at on, where the
// transmission begins.
func (b *Bench) Fade(round, attempt uint32, t int, at radio.SampleIndex) error {
	b.draw(round, attempt, t, int64(at))
	for i, h := range b.H {
		if err := b.Medium.SetGain(i, at, complex(float32(h), 0)); err != nil {
			return err
		}
	}
	return nil
}
