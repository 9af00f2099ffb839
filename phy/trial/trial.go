// Package trial sends random rounds through the whole link, again and again, and tells
// what became of each.
//
// It takes in what makes the bench and the link of a round, and the lengths of a round's
// payloads, and gives for each round the attempt at which it was read, why others were
// not, whether what was read is the truth, and how well the integer gains weigh the
// devices. It has no model of its own: digits become frames, frames pulses, the pulses
// meet whatever the bench does to them, and the receiver of a run reads them
// (phy.Waveform over phy/bench). So what it says and what a run does cannot disagree. The
// package knows nothing of keys, of learning, or of who asks.
package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/digit"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// Config describes trials.
type Config struct {
	// Setup gives the bench and the link of the round of a number, the link without
	// streams and observers. All that it gives out is that round's own: it is called by
	// several goroutines at once.
	Setup func(number uint32) (bench.Config, phy.WaveformConfig, error)
	// Lengths are the coefficients of a payload of each transmission. An attempt ends
	// before the first of 0: with one alone it is a single frame.
	Lengths [slot.Transmissions]int
	// Attempts is how often a round is tried. Once D was asked for it alone is sent again,
	// as in a run.
	Attempts int
	// Least is how many devices must not have H_i = 0 for an attempt to go on behind b; 0
	// asks for none, as a receiver does by itself.
	Least int
	// Spare has a round whose frames were repeated go on until an attempt takes no
	// repeat: what fewer repeats would have given can then be told of each attempt.
	Spare bool
	// Number gives the number of the round that a trial is of; nil for the trial's own. What
	// is random in a bench goes by the number of a round, so that a bench of a run's seed
	// does to a trial what it will do to that round.
	Number func(trial uint32) uint32
	// Seed is that of the payloads, which are random but for Key: what each device sends in
	// the first transmission of every attempt, as long as Lengths has it. A run's keys are the
	// same in all its rounds, and whether a round is read depends on them more than on
	// anything else that is sent. nil is random, too.
	Seed keystream.Seed
	Key  []zq.Vector
}

func (c Config) validate() error {
	switch {
	case c.Setup == nil:
		return errors.New("trials without a bench")
	case c.Attempts < 1 || c.Attempts > slot.MaxAttempt:
		return fmt.Errorf("trials of %d attempts: allowed are 1 to %d", c.Attempts, slot.MaxAttempt)
	case c.Lengths[0] < 1:
		return fmt.Errorf("trials of %d coefficients: at least 1 is needed", c.Lengths[0])
	}
	return nil
}

// Spread returns a Config.Number whose trials are of a run's rounds, counted from 1: each of
// another one and, however few they are, spread evenly over the run. Trials beyond are of
// the rounds that would follow.
func Spread(rounds int) func(trial uint32) uint32 {
	// Multiples of the golden section are spread evenly, and so are those of what is next to
	// it and has no factor in common with the rounds.
	n := uint64(rounds)
	step := max(1, uint64(float64(n)*(math.Phi-1)))
	for gcd(step, n) > 1 {
		step++
	}
	return func(trial uint32) uint32 {
		if uint64(trial) < n {
			trial = uint32(uint64(trial) * step % n)
		}
		return trial + 1
	}
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Outcome is what became of one round.
type Outcome struct {
	// Number is that of the round.
	Number uint32
	// Attempt is the attempt, counted from 1, at which the round was read; 0 if none was.
	Attempt int
	// Alpha is the scale at which it was read, Misfit the largest
	// |H_i/alpha - h_i|/|h_i| with h_i as the receiver met it, and ZeroGains the
	// number of H_i = 0. They are 0 if it was not read.
	Alpha, Misfit float64
	ZeroGains     int
	// Wrong says what was accepted and is not the truth: a transmission that is no
	// sum_i H_i x_i with H_i = round(alpha h_i), not all 0. Empty, as it must be,
	// if there was none.
	Wrong string
	// Misread tells that a transmission was accepted, and rightly, whose pattern was
	// not read as what those H_i give: no check covers the pattern of a single
	// block. A whole round with such a pattern is void.
	Misread bool
	// Tries are the attempts, one by one.
	Tries []Try
}

// Try is what became of one attempt.
type Try struct {
	// Frames counts for each transmission the frames that each group needed; Unread for
	// one that was not read. Later groups and transmissions are not there.
	Frames [slot.Transmissions][]int
	// Failure says why it was not read; empty if it was.
	Failure string
	// Samples is how many each transmitter sent.
	Samples int

	Alpha, Misfit float64
	ZeroGains     int
}

// Unread is more frames than are sent.
const Unread = math.MaxInt32

// Read reports whether the attempt is read where a frame may be repeated so often.
func (t Try) Read(repeats int) bool {
	for _, groups := range t.Frames {
		for _, n := range groups {
			if n > repeats+1 {
				return false
			}
		}
	}
	return t.Failure == ""
}

// round carries out one round. It is for one goroutine.
type round struct {
	cfg    Config
	number uint32
	air    *bench.Bench
	link   phy.WaveformConfig
	wave   *phy.Waveform
	truth  *truth

	data    *keystream.Stream
	draws   *rand.Rand
	x       [slot.Transmissions][]zq.Vector
	rx      [slot.Transmissions]phy.Reception
	solved  []float64 // H_i by the received pattern
	slot    slot.Slot
	shared  bool // D was asked for
	current *Try
	ahead   radio.SampleIndex // of the bench's nominal time, by which carriers turn
}

// newRound makes the bench and the link of a round, and nothing but what its number says.
func newRound(cfg Config, number uint32) (*round, error) {
	air, link, err := cfg.Setup(number)
	if err != nil {
		return nil, err
	}
	r := &round{
		cfg: cfg, number: number, link: link, solved: make([]float64, link.Devices),
		data: cfg.Seed.Derive("payloads").Stream(),
	}
	r.draws = rand.New(r.data)
	if r.air, err = bench.New(air); err != nil {
		return nil, err
	}
	if err := r.connect(); err != nil {
		return nil, errors.Join(err, r.air.Close())
	}
	if cfg.Key != nil {
		r.x[slot.TxKey] = cfg.Key
	}
	return r, nil
}

// connect makes the link over the bench.
func (r *round) connect() (err error) {
	r.link.OnTransmission, r.link.OnFrame = r.begin, r.hear
	r.link.CarrierTime = func(at radio.SampleIndex) radio.SampleIndex { return at + r.ahead }
	if r.link.Transmitters, r.link.Receiver, err = r.air.Streams(); err != nil {
		return err
	}
	if r.wave, err = phy.NewWaveform(r.link); err != nil {
		return err
	}
	codec, err := digit.New(r.link.Modulus, r.link.Base)
	if err != nil {
		return err
	}
	r.truth = newTruth(codec, r.link)
	for t, n := range r.cfg.Lengths {
		for range r.link.Devices {
			r.x[t] = append(r.x[t], r.link.Modulus.NewVector(n))
		}
		r.rx[t] = phy.Reception{Y: r.link.Modulus.NewVector(n), Pattern: make([]int64, r.wave.PatternSymbols())}
	}
	return nil
}

// begin sets the gains of a transmission from sample at on.
func (r *round) begin(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
	if s.Transmission == slot.TxKey {
		r.ahead = radio.SampleIndex(r.air.Nominal(s.Round, s.Attempt)) - at
	}
	r.air.Again = s.Again
	return r.air.Fade(s.Round, s.Attempt, int(s.Transmission), at)
}

// hear hears of each frame.
func (r *round) hear(o phy.Observation) error {
	groups := &r.current.Frames[o.Slot.Transmission]
	if o.Repeat == 0 {
		*groups = append(*groups, 0)
	}
	r.current.Samples += len(o.Samples)
	last := &(*groups)[len(*groups)-1]
	if *last++; o.Failure != "" {
		return nil
	}
	return r.truth.hear(o, r.cfg.Lengths[o.Slot.Transmission])
}

// Round carries out the trial of that number, whose outcome depends on nothing else. An error
// is one of the bench and not of the round, which may well fail.
func Round(ctx context.Context, cfg Config, trial uint32) (out Outcome, err error) {
	if err := cfg.validate(); err != nil {
		return out, err
	}
	number := trial
	if cfg.Number != nil {
		number = cfg.Number(trial)
	}
	r, err := newRound(cfg, number)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.air.Close()) }()
	out.Number = number
	r.slot = slot.Slot{Round: number}
	for attempt := range cfg.Attempts {
		try, err := r.try(ctx, uint32(attempt), &out)
		if err != nil {
			return out, fmt.Errorf("round %d, attempt %d: %w", number, attempt+1, err)
		}
		out.Tries = append(out.Tries, try)
		if try.Failure == "" && out.Attempt == 0 {
			out.Attempt, out.Alpha, out.Misfit, out.ZeroGains = attempt+1, try.Alpha, try.Misfit, try.ZeroGains
		}
		if out.Attempt > 0 && (!cfg.Spare || try.Read(0)) || r.slot.Again == slot.MaxAgain {
			break
		}
	}
	return out, nil
}

// try makes an attempt, as crypto/round does: everything anew, or D alone once it was
// asked for.
func (r *round) try(ctx context.Context, number uint32, out *Outcome) (try Try, err error) {
	r.current = &try
	first := slot.TxKey
	if r.shared && out.Attempt == 0 {
		r.slot.Again++
		first = slot.TxShare
		try.Alpha, try.Misfit, try.ZeroGains = r.truth.alpha(), r.truth.misfit, r.truth.zeros
	} else {
		r.slot.Attempt, r.slot.Again, r.shared = number, 0, false
	}
	for t := first; t < slot.Transmissions && r.cfg.Lengths[t] > 0; t++ {
		r.slot.Transmission = t
		r.shared = r.shared || t == slot.TxShare
		if try.Failure, err = r.transmit(ctx, out); err != nil {
			return try, err
		}
		if try.Failure != "" {
			try.Failure = fmt.Sprintf("%v: %s", t, try.Failure)
			break
		}
	}
	if try.Failure != "" {
		try.Alpha, try.Misfit, try.ZeroGains = 0, 0, 0
	}
	return try, nil
}

// transmit carries one transmission of fresh random payloads, or of those of before where
// it is sent again, and says why the attempt ends with it.
func (r *round) transmit(ctx context.Context, out *Outcome) (failure string, err error) {
	t := r.slot.Transmission
	if err := r.send(ctx); err != nil {
		return "", err
	}
	rx, key := &r.rx[t], &r.rx[slot.TxKey]
	if !rx.CheckPassed {
		groups := r.current.Frames[t]
		groups[len(groups)-1] = Unread
		return rx.Reason, nil
	}
	if err := r.judge(out); err != nil {
		return "", err
	}
	switch {
	case t == slot.TxKey && r.link.Devices-r.truth.zeros < r.cfg.Least:
		return fmt.Sprintf("%d of %d devices are heard", r.link.Devices-r.truth.zeros, r.link.Devices), nil
	case !slices.Equal(rx.Pattern, key.Pattern) || rx.Alpha != key.Alpha:
		return "other gains than in b", nil // the attempt is void
	case !slices.ContainsFunc(rx.Pattern, func(p int64) bool { return p != 0 }):
		return "no signal", nil
	}
	return "", nil
}

// send carries the payloads of the slot.
func (r *round) send(ctx context.Context) error {
	s := r.slot
	if s.Again == 0 {
		r.data.Start(s.Round, s.Attempt*slot.Transmissions+uint32(s.Transmission))
	}
	if err := r.wave.Open(ctx, s, r.cfg.Lengths[s.Transmission]); err != nil {
		return err
	}
	for i, x := range r.x[s.Transmission] {
		if s.Again == 0 && (s.Transmission != slot.TxKey || r.cfg.Key == nil) {
			r.draw(x)
		}
		if err := r.wave.Transmit(i, x); err != nil {
			return err
		}
	}
	return r.wave.Receive(ctx, &r.rx[s.Transmission])
}

func (r *round) draw(x zq.Vector) {
	for j, p := range r.link.Modulus.Primes() {
		for k := range x[j] {
			x[j][k] = r.draws.Uint64N(p)
		}
	}
}

// judge compares what was accepted with the truth.
func (r *round) judge(out *Outcome) error {
	solved := r.solved
	if !r.wave.Gains(solved) {
		solved = nil
	}
	r.truth.factors = r.wave.Factors()
	t := r.slot.Transmission
	if r.slot.Again == 0 { // else the digits are not those of x
		if err := r.truth.measure(r.x[t]); err != nil {
			return err
		}
	}
	wrong, misread := r.truth.judge(r.link.Modulus, solved, r.x[t], r.rx[t].Y)
	out.Misread = out.Misread || misread
	if wrong != "" && out.Wrong == "" {
		out.Wrong = fmt.Sprintf("trial %d, attempt %d, %v: %s", r.number, r.slot.Attempt+1, t, wrong)
	}
	if t == slot.TxKey {
		r.current.Alpha, r.current.Misfit, r.current.ZeroGains = r.truth.alpha(), r.truth.misfit, r.truth.zeros
	}
	return nil
}
