// Package round carries one round of the paper's Algorithm 1 through its four
// phases: aggregated public key, ciphertext, decryption share, update.
//
// It takes in the participants, which are devices in this process or elsewhere, the
// server and the receiving half of an uplink, and gives M_k of each direction, or says
// which check found the round broken. A Policy says what comes of that. Of devices in this
// process it takes in the scalars Delta f_i, too, one or several a device. It knows nothing
// of waveforms, of gains, of what the scalars are for, or of how messages travel.
package round

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// Check is what found a round broken (phy/README.md, section 4).
type Check int

const (
	// LinearCheck: the payload is no integer superposition.
	LinearCheck Check = iota + 1
	// EqualGains: the gains are not those of phase 1.
	EqualGains
	// Witness: a coefficient without a message is no noise.
	Witness
	// NoSignal: every gain is 0, and the round carries nothing.
	NoSignal
	// GainsCheck: the gains are not what Config.Admit asks for.
	GainsCheck
	// Presence: a participant was lost, or fewer are there than Config.Minimum.
	Presence
)

// String names the check.
func (c Check) String() string {
	switch c {
	case LinearCheck:
		return "linear check"
	case EqualGains:
		return "equal-gains check"
	case Witness:
		return "witness check"
	case NoSignal:
		return "signal check"
	case GainsCheck:
		return "gains check"
	case Presence:
		return "presence check"
	}
	return "unknown check"
}

// Policy is what an Engine makes of a check that fails.
type Policy int

const (
	// Refuse declares the attempt void, and sends nothing more that depends on what
	// was refused.
	Refuse Policy = iota
	// Measure goes through all four phases once, whatever the checks say, decodes what
	// has arrived, and tells by which check Refuse would have declared the round void.
	// It is for measuring how decryption fails in systems that make no checks, and for
	// nothing else: a device that answers whatever c~1 it is sent is safe from nobody.
	Measure
)

// Failure is one attempt that a check declared void, or would have under Refuse.
type Failure struct {
	Attempt uint32
	// Again counts how often D was sent before in this attempt.
	Again uint8
	Check Check
	// Transmission is the one at which the check failed; D for the witnesses.
	Transmission slot.Transmission
	// Reason is what the link saw, if it saw anything.
	Reason string
}

// String says in a few words what failed.
func (f Failure) String() string {
	text := fmt.Sprintf("attempt %d: %v failed at %v", f.Attempt, f.Check, f.Transmission)
	if f.Again > 0 {
		text += fmt.Sprintf(", sent again (%d)", f.Again)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// Outcome is what became of a round.
type Outcome struct {
	// M holds M_k of every message of the ciphertext. It is nil if the round was
	// skipped, and the next round writes over it.
	M []float64
	// Alpha is the lattice scale by which M was decoded.
	Alpha float64
	// Attempt is the attempt that succeeded, counted from 0.
	Attempt uint32
	// Attempts counts the attempts made, and the times that D was sent again.
	Attempts int
	// Skipped tells that every attempt failed: there is no M.
	Skipped bool
	// Present counts the participants of the last attempt.
	Present int
	// Clipped counts the messages, over all devices, that exceeded DeltaMax.
	Clipped int
	// Failures says why attempts failed, in their order; under Measure, by which check
	// the round would have, if by any, though there is an M.
	Failures []Failure
}

// Config is what an Engine drives.
type Config struct {
	Context      *xmkckks.Context
	Participants []Participant
	Server       *xmkckks.Server
	Receiver     phy.Receiver
	Policy       Policy
	// Minimum is how many participants must be there; 0 for all.
	Minimum int
	// KeyRound is the round in whose block the keys are aggregated, once for all rounds
	// of a key epoch; 0 for new ones in every attempt's own block. Gains are then not
	// those of the keys, so that it needs Measure.
	KeyRound uint32
	// Attempts is the most attempts at a round before it is skipped; sending D again
	// counts as one.
	Attempts int
	// Workers is the number of goroutines that the participants are spread over; 0 for one
	// a core, as is best for devices of this process.
	Workers int
	// Admit, if not nil, judges the gains of an attempt once b has passed its checks and
	// before anything else is sent. A reason makes the attempt void.
	Admit func(s slot.Slot, rx *phy.Reception) (reason string)
}

// Engine runs rounds. It is for one goroutine, and allocates nothing in a round
// whose first attempt succeeds.
type Engine struct {
	cfg  Config
	pool *pool
	key  *xmkckks.AggregatedKey
	c1   *xmkckks.AggregatedC1
	rx   [slot.Transmissions]phy.Reception

	keyEpoch uint32 // of the aggregated key
	hasKey   bool

	// The current attempt, for the tasks below.
	slot    slot.Slot
	shared  bool        // the devices were asked for their shares of this round
	step    Step        // what all participants are asked for, but for their scalars
	delta   [][]float64 // the caller's, nil between rounds
	present []bool
	clipped []int // messages of each device
	errs    []error
	m       []float64 // M of each message

	prepare, send func(ctx context.Context, i int)
}

// New makes an engine.
func New(cfg Config) (*Engine, error) {
	n := len(cfg.Participants)
	if n == 0 {
		return nil, errors.New("a round needs at least one device")
	}
	if cfg.Minimum < 0 || cfg.Minimum > n {
		return nil, fmt.Errorf("a round of %d devices needs %d of them: it must be 1 to %d, or 0 for all", n, cfg.Minimum, n)
	}
	if cfg.Attempts < 1 {
		return nil, fmt.Errorf("a round has %d attempts: at least 1 is needed", cfg.Attempts)
	}
	if cfg.Workers < 0 {
		return nil, fmt.Errorf("a round on %d goroutines: it must be 1 or more, or 0 for one a core", cfg.Workers)
	}
	if cfg.KeyRound != 0 && cfg.Policy != Measure {
		return nil, fmt.Errorf("the keys of round %d are to be used in every round: no other round passes its checks, and the engine is to refuse what does not", cfg.KeyRound)
	}
	if cfg.Workers == 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Minimum == 0 {
		cfg.Minimum = n
	}
	e := &Engine{
		cfg: cfg, pool: newPool(min(cfg.Workers, n)),
		key: cfg.Context.NewAggregatedKey(), c1: cfg.Context.NewAggregatedC1(),
		present: make([]bool, n), clipped: make([]int, n), errs: make([]error, n),
		m: make([]float64, cfg.Context.Messages),
	}
	m, symbols := cfg.Context.Modulus(), cfg.Receiver.PatternSymbols()
	for t := range e.rx {
		e.rx[t] = phy.Reception{Y: m.NewVector(e.length(slot.Transmission(t))), Pattern: make([]int64, symbols)}
	}
	e.prepare, e.send = e.prepareOne, e.sendOne
	return e, nil
}

// Close stops the engine's goroutines. It leaves the devices as they are.
func (e *Engine) Close() { e.pool.close() }

// length returns the number of coefficients of a transmission.
func (e *Engine) length(t slot.Transmission) int {
	return e.cfg.Context.PayloadLength(t)
}

// Run carries round k. What fails its checks before any device has given its
// decryption share is repeated from fresh randomness, up to the configured number of
// attempts. Afterwards there is one set of shares and no other: it is sent again bit
// for bit as long as D is not received, and what then fails is skipped. A fresh
// encryption of the same Delta f under other gains would tell it to the server.
// delta[i] is Delta f_{i,k} along each of the context's P directions, one a message of
// the ciphertext: all of them go through the same attempts, and fail together. The engine
// keeps no copy. It is nil where the participants have scalars of their own. An error means that the run cannot go on. It is ctx's where that ends
// between two transmissions or while the uplink waits: the round is then lost, as devices
// draw the randomness of an attempt once.
func (e *Engine) Run(ctx context.Context, k uint32, delta [][]float64) (Outcome, error) {
	if delta != nil {
		if err := CheckScalars(e.cfg.Context, len(e.cfg.Participants), delta); err != nil {
			return Outcome{}, fmt.Errorf("round %d: %w", k, err)
		}
	}
	e.delta = delta
	defer func() { e.delta = nil }()
	var out Outcome
	e.slot, e.shared = slot.Slot{Round: k}, false
	for number := range uint32(e.cfg.Attempts) {
		failure, err := e.attempt(ctx, number)
		if err != nil {
			return Outcome{}, fmt.Errorf("round %d, attempt %d: %w", k, e.slot.Attempt, err)
		}
		out.Attempts++
		out.Present = e.countPresent()
		if failure.Check != 0 {
			out.Failures = append(out.Failures, failure)
		}
		if failure.Check == 0 || e.cfg.Policy == Measure {
			out.M, out.Attempt, out.Alpha = e.m, e.slot.Attempt, e.rx[slot.TxC0].Alpha
			out.Clipped = e.countClipped()
			return out, nil
		}
		if failure.Check == Witness || e.slot.Again == slot.MaxAgain {
			break // D was received, and there is no other for this round
		}
		if failure.Check == Presence && e.shared {
			break // M without a device that has answered would tell its value
		}
	}
	out.Skipped = true
	return out, nil
}

// CheckScalars reports what is wrong with the scalars of a round of so many devices:
// each has one a message of the context's ciphertexts.
func CheckScalars(c *xmkckks.Context, devices int, delta [][]float64) error {
	if len(delta) != devices {
		return fmt.Errorf("scalars of %d devices where there are %d", len(delta), devices)
	}
	for i, own := range delta {
		if len(own) != c.Messages {
			return fmt.Errorf("device %d has scalars along %d directions where a ciphertext carries %d", i+1, len(own), c.Messages)
		}
	}
	return nil
}

// attempt makes the next attempt at a round, counted from 0, or sends D again if the
// shares are given. It leaves M in e.m. A zero Failure means success.
func (e *Engine) attempt(ctx context.Context, number uint32) (Failure, error) {
	if e.shared {
		e.slot.Again++
		return e.finish(ctx)
	}
	e.slot.Attempt = number
	if f, err := e.encrypt(ctx); err != nil || f.Check != 0 {
		return f, err
	}
	e.shared = true
	return e.finish(ctx)
}

// encrypt goes through phases 1 and 2. What failed its checks is not broadcast: no
// device answers a damaged c~1.
func (e *Engine) encrypt(ctx context.Context) (f Failure, err error) {
	for i := range e.present {
		e.present[i] = true
	}
	// v a + e1 does not depend on b~: the devices compute it ahead.
	if _, err := e.each(ctx, e.prepare); err != nil {
		return f, err
	}
	if n := e.countPresent(); n < e.cfg.Minimum {
		return e.missing(slot.TxKey, fmt.Sprintf("%d of %d devices are there, and %d are needed", n, len(e.present), e.cfg.Minimum)), nil
	}
	// Phase 1: b~ = sum H_i b_i + w_b (Eq. 9).
	if s, due := e.keySlot(); due {
		if f, err = e.transmit(ctx, Step{Slot: s}); err != nil || f.Check != 0 {
			return f, err
		}
		e.cfg.Context.SetKey(e.key, e.rx[slot.TxKey].Y)
		e.hasKey, e.keyEpoch = true, e.cfg.Participants[0].Epoch()
	}
	// Phase 2: c~0 and c~1 (Eqs. 11 and 12).
	if f, err = e.transmit(ctx, Step{Slot: e.at(slot.TxC0), Key: e.key}); err != nil || f.Check != 0 {
		return f, err
	}
	if f, err = e.transmit(ctx, Step{Slot: e.at(slot.TxC1)}); err != nil || f.Check != 0 {
		return f, err
	}
	e.cfg.Context.SetC1(e.c1, e.rx[slot.TxC1].Y)
	return f, nil
}

// keySlot returns the slot of phase 1, and whether it is due: not where there is a b~ to
// use again. A new key epoch makes every b_i another.
func (e *Engine) keySlot() (s slot.Slot, due bool) {
	s = e.at(slot.TxKey)
	if e.cfg.KeyRound == 0 {
		return s, true
	}
	s.Round = e.cfg.KeyRound
	return s, !e.hasKey || e.cfg.Participants[0].Epoch() != e.keyEpoch
}

// finish goes through phases 3 and 4.
func (e *Engine) finish(ctx context.Context) (f Failure, err error) {
	// Phase 3: D~ = sum H_j D_j + w_D (Eq. 13).
	if f, err = e.transmit(ctx, Step{Slot: e.at(slot.TxShare), C1: e.c1}); err != nil || f.Check != 0 {
		return f, err
	}
	// Phase 4: M_k (Eq. 17).
	c0, share := &e.rx[slot.TxC0], &e.rx[slot.TxShare]
	err = e.cfg.Server.Recover(e.m, c0.Y, share.Y, c0.Alpha)
	if errors.Is(err, xmkckks.ErrWitness) {
		f, err = e.failure(slot.TxShare), nil
		f.Check = Witness
	}
	if err != nil || e.cfg.Policy != Measure {
		return f, err
	}
	return e.measure(f), nil
}

// measure decodes what the witnesses, if f says so, did not let pass, and returns the
// first check that failed.
func (e *Engine) measure(f Failure) Failure {
	if f.Check == Witness {
		c0, share := &e.rx[slot.TxC0], &e.rx[slot.TxShare]
		e.cfg.Server.Coefficients(e.m, c0.Y, share.Y)
		for p := range e.m {
			e.m[p] /= c0.Alpha * e.cfg.Context.Params.Lambda()
		}
	}
	for t := range slot.Transmission(slot.Transmissions) {
		if first := e.judge(t); first.Check != 0 {
			return first
		}
	}
	return f
}

// at returns the slot of a transmission in the current attempt.
func (e *Engine) at(t slot.Transmission) slot.Slot {
	s := e.slot
	s.Transmission = t
	return s
}

// transmit carries one transmission, and judges it unless all are measured together.
func (e *Engine) transmit(ctx context.Context, step Step) (Failure, error) {
	if err := ctx.Err(); err != nil {
		return Failure{}, err
	}
	t := step.Slot.Transmission
	if err := e.cfg.Receiver.Open(ctx, step.Slot, e.length(t)); err != nil {
		return Failure{}, fmt.Errorf("transmission of %v: %w", t, err)
	}
	e.step = step
	lost, err := e.each(ctx, e.send)
	if err != nil {
		return Failure{}, err
	}
	if lost != nil {
		return e.missing(t, lost.Error()), nil
	}
	if err := e.cfg.Receiver.Receive(ctx, &e.rx[t]); err != nil {
		return Failure{}, fmt.Errorf("transmission of %v: %w", t, err)
	}
	if e.cfg.Policy == Measure {
		return Failure{}, nil
	}
	return e.judge(t), nil
}

// missing returns the failure of an attempt that a participant is missing from.
func (e *Engine) missing(t slot.Transmission, reason string) Failure {
	f := e.failure(t)
	f.Check, f.Reason = Presence, reason
	return f
}

// failure returns what a check that fails at a transmission is reported with.
func (e *Engine) failure(t slot.Transmission) Failure {
	return Failure{Attempt: e.slot.Attempt, Again: e.slot.Again, Transmission: t}
}

// judge checks what was received in a transmission against that of b.
func (e *Engine) judge(t slot.Transmission) Failure {
	f, rx, key := e.failure(t), &e.rx[t], &e.rx[slot.TxKey]
	if !rx.CheckPassed {
		f.Check, f.Reason = LinearCheck, rx.Reason
	} else if !slices.Equal(rx.Pattern, key.Pattern) || rx.Alpha != key.Alpha {
		f.Check = EqualGains
	} else if !slices.ContainsFunc(rx.Pattern, func(x int64) bool { return x != 0 }) {
		// The patterns are independent: their sum is 0 only if every H_i is. All
		// the checks hold then, and c~1 = 0 would be answered again and again.
		f.Check = NoSignal
	} else if reason := e.admit(t); reason != "" {
		f.Check, f.Reason = GainsCheck, reason
	}
	return f
}

// admit asks Config.Admit about an attempt's gains, which b has shown. Nothing was
// answered yet, so that an attempt that is not admitted costs a device nothing.
func (e *Engine) admit(t slot.Transmission) (reason string) {
	if e.cfg.Admit == nil || t != slot.TxKey {
		return ""
	}
	return e.cfg.Admit(e.at(t), &e.rx[t])
}

// each runs a task for every participant of the attempt. Who is absent is none any more:
// lost is then why the first of them is. An error is the first one of any other kind.
func (e *Engine) each(ctx context.Context, task func(ctx context.Context, i int)) (lost, err error) {
	e.pool.run(ctx, len(e.cfg.Participants), task)
	for i, failed := range e.errs {
		switch {
		case failed == nil || !e.present[i]:
		case !errors.Is(failed, ErrAbsent):
			return nil, failed
		default:
			e.present[i] = false
			lost = cmp.Or(lost, failed)
		}
	}
	return lost, nil
}

func (e *Engine) countPresent() int {
	n := 0
	for _, there := range e.present {
		if there {
			n++
		}
	}
	return n
}

func (e *Engine) countClipped() int {
	n := 0
	for i, c := range e.clipped {
		if e.present[i] {
			n += c
		}
	}
	return n
}

func (e *Engine) prepareOne(ctx context.Context, i int) {
	e.errs[i] = e.cfg.Participants[i].Prepare(ctx, e.slot.Round, e.slot.Attempt)
}

// sendOne asks a participant for what is due.
func (e *Engine) sendOne(ctx context.Context, i int) {
	if !e.present[i] {
		return
	}
	step := e.step
	if e.delta != nil {
		step.Deltas = e.delta[i]
	}
	clipped, err := e.cfg.Participants[i].Send(ctx, step)
	if step.Slot.Transmission == slot.TxC0 {
		e.clipped[i] = clipped
	}
	e.errs[i] = err
}

// Received returns what the server received in the transmission of the last
// attempt. The caller must not change it.
func (e *Engine) Received(t slot.Transmission) *phy.Reception { return &e.rx[t] }
