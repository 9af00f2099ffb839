// Package mismatch runs xMK-CKKS over the air in the ways of which the paper says that
// they fail, and predicts by how much: keys aggregated once and used again under other
// gains ("Why Naive OTA xMK-CKKS Fails"), and gains that are no integers, as
// pre-equalisation leaves them (Fig. 4).
//
// It takes in what crypto/round takes, devices, a server and a phy.Uplink, and gives
// the M_k that is decoded all the same. It makes none of the checks by which
// crypto/round declares such rounds void, because these systems as the paper has them
// make none, and tells what the checks would have said. A device that answers whatever
// c~1 it is sent is safe from nobody: this is for measuring how decryption fails. It
// knows nothing of where gains come from.
package mismatch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
)

// Config is what an Engine drives.
type Config struct {
	Context *xmkckks.Context
	Devices []*xmkckks.Device
	Server  *xmkckks.Server
	Uplink  phy.Uplink
	// KeyRound is the round in whose block the keys are aggregated, once, for all
	// rounds; 0 for new ones in every round's own block.
	KeyRound uint32
}

// Outcome is what became of a round.
type Outcome struct {
	// M holds what was decoded of every message of the ciphertext, and Alpha is the scale
	// by which. The next round writes over M.
	M     []float64
	Alpha float64
	// Clipped counts the messages, over all devices, that exceeded DeltaMax.
	Clipped int
	// Refusal is the first check by which crypto/round would have declared the round
	// void; nil if it would not have.
	Refusal *round.Failure
}

// Engine runs rounds. It is for one goroutine, and starts others that end within the
// call that started them.
type Engine struct {
	cfg     Config
	key     *xmkckks.AggregatedKey
	c1      *xmkckks.AggregatedC1
	rx      [phy.Transmissions]phy.Reception
	clipped []int
	m       []float64 // M of each message
	checked []float64 // the same, as crypto/round would have it

	keyEpoch uint32 // of the aggregated key
	hasKey   bool
}

// New makes an engine.
func New(cfg Config) (*Engine, error) {
	if len(cfg.Devices) == 0 {
		return nil, errors.New("a round needs at least one device")
	}
	e := &Engine{
		cfg: cfg, key: cfg.Context.NewAggregatedKey(), c1: cfg.Context.NewAggregatedC1(),
		clipped: make([]int, len(cfg.Devices)),
		m:       make([]float64, cfg.Context.Messages), checked: make([]float64, cfg.Context.Messages),
	}
	for t := range e.rx {
		n := cfg.Context.Params.N
		if t := phy.Transmission(t); t == phy.TxC0 || t == phy.TxShare {
			n = cfg.Context.Revealed()
		}
		e.rx[t] = phy.Reception{Y: cfg.Context.Modulus().NewVector(n), Pattern: make([]int64, cfg.Uplink.PatternSymbols())}
	}
	return e, nil
}

// Run carries round k through its four phases, once and whatever comes of it. delta[i]
// is Delta f_{i,k} along each of the context's P directions, one a message of the
// ciphertext. An error, ctx's among them, means that the run cannot go on.
func (e *Engine) Run(ctx context.Context, k uint32, delta [][]float64) (Outcome, error) {
	if err := round.CheckScalars(e.cfg.Context, len(e.cfg.Devices), delta); err != nil {
		return Outcome{}, fmt.Errorf("round %d: %w", k, err)
	}
	out, err := e.run(ctx, k, delta)
	if err != nil {
		return Outcome{}, fmt.Errorf("round %d: %w", k, err)
	}
	return out, nil
}

func (e *Engine) run(ctx context.Context, k uint32, delta [][]float64) (out Outcome, err error) {
	devices := e.cfg.Devices
	if err := e.each(func(i int) error { return devices[i].Prepare(k, 0) }); err != nil {
		return out, err
	}
	// Phase 1, if it is this round's turn: b~ = sum g_i b_i (Eq. 9).
	if err := e.aggregateKey(ctx, k); err != nil {
		return out, err
	}
	// Phase 2: c~0 and c~1 (Eqs. 11 and 12).
	err = e.transmit(ctx, k, phy.TxC0, func(i int) error {
		var err error
		if e.clipped[i], err = devices[i].Encrypt(e.key, delta[i]); err != nil {
			return err
		}
		c0, _ := devices[i].Ciphertext()
		return e.cfg.Uplink.Transmit(i, c0)
	})
	if err != nil {
		return out, err
	}
	err = e.transmit(ctx, k, phy.TxC1, func(i int) error {
		_, c1 := devices[i].Ciphertext()
		return e.cfg.Uplink.Transmit(i, c1)
	})
	if err != nil {
		return out, err
	}
	e.cfg.Context.SetC1(e.c1, e.rx[phy.TxC1].Y)
	// Phase 3: D~ (Eq. 13).
	err = e.transmit(ctx, k, phy.TxShare, func(i int) error {
		share, err := devices[i].Share(e.c1)
		if err != nil {
			return err
		}
		return e.cfg.Uplink.Transmit(i, share)
	})
	if err != nil {
		return out, err
	}
	return e.decode(), nil
}

// aggregateKey makes b~, unless there is one to use again. A new key epoch makes every
// b_i another.
func (e *Engine) aggregateKey(ctx context.Context, k uint32) error {
	epoch := e.cfg.Devices[0].Epoch()
	if e.cfg.KeyRound != 0 {
		if e.hasKey && epoch == e.keyEpoch {
			return nil
		}
		k = e.cfg.KeyRound
	}
	err := e.transmit(ctx, k, phy.TxKey, func(i int) error {
		return e.cfg.Uplink.Transmit(i, e.cfg.Devices[i].PublicKey())
	})
	if err != nil {
		return err
	}
	e.cfg.Context.SetKey(e.key, e.rx[phy.TxKey].Y)
	e.hasKey, e.keyEpoch = true, epoch
	return nil
}

// transmit carries one transmission.
func (e *Engine) transmit(ctx context.Context, k uint32, t phy.Transmission, send func(i int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rx := &e.rx[t]
	if err := e.cfg.Uplink.Open(ctx, phy.Slot{Round: k, Transmission: t}, rx.Y.Len()); err != nil {
		return fmt.Errorf("transmission of %v: %w", t, err)
	}
	if err := e.each(send); err != nil {
		return err
	}
	if err := e.cfg.Uplink.Receive(ctx, rx); err != nil {
		return fmt.Errorf("transmission of %v: %w", t, err)
	}
	return nil
}

// decode forms M_k (Eq. 17) of whatever was received.
func (e *Engine) decode() Outcome {
	c0, share := &e.rx[phy.TxC0], &e.rx[phy.TxShare]
	e.cfg.Server.Coefficients(e.m, c0.Y, share.Y)
	for p := range e.m {
		e.m[p] /= c0.Alpha * e.cfg.Context.Params.Lambda()
	}
	out := Outcome{M: e.m, Alpha: c0.Alpha}
	for _, c := range e.clipped {
		out.Clipped += c
	}
	out.Refusal = e.refusal()
	return out
}

// refusal gives the first check of crypto/round that does not hold.
func (e *Engine) refusal() *round.Failure {
	key := &e.rx[phy.TxKey]
	for t := range phy.Transmission(phy.Transmissions) {
		rx := &e.rx[t]
		if !rx.CheckPassed {
			return &round.Failure{Check: round.LinearCheck, Transmission: t, Reason: rx.Reason}
		}
		if rx.Alpha != key.Alpha || !slices.Equal(rx.Pattern, key.Pattern) {
			return &round.Failure{Check: round.EqualGains, Transmission: t}
		}
	}
	if !slices.ContainsFunc(key.Pattern, func(x int64) bool { return x != 0 }) {
		return &round.Failure{Check: round.NoSignal}
	}
	if err := e.cfg.Server.Recover(e.checked, e.rx[phy.TxC0].Y, e.rx[phy.TxShare].Y, key.Alpha); err != nil {
		return &round.Failure{Check: round.Witness, Transmission: phy.TxShare}
	}
	return nil
}

// each runs a task for every device, side by side, and returns the error of one that
// fails.
func (e *Engine) each(task func(i int) error) error {
	var devices errgroup.Group
	devices.SetLimit(runtime.GOMAXPROCS(0))
	for i := range e.cfg.Devices {
		devices.Go(func() error { return task(i) })
	}
	return devices.Wait()
}
