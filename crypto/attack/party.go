package attack

import (
	"context"
	"fmt"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/zq"
)

// party is a protocol among the library's own devices.
type party struct {
	// gains are H_i, which the superposition of the patterns tells the server.
	gains   []int64
	ctx     *xmkckks.Context
	design  xmkckks.Design
	bench   *workbench
	server  *xmkckks.Server
	guard   *xmkckks.Ledger
	devices []*xmkckks.Device
	seeds   []keystream.Seed
	key     *xmkckks.AggregatedKey
	c1      *xmkckks.AggregatedC1
	// Superposed, in the last round.
	sumB, sumC0, sumC1, sumShare zq.Vector
}

// newParty makes the devices, over a channel whose gains are all 1; each key gives at
// most so many shares.
func newParty(p xmkckks.Params, form xmkckks.Form, devices, shares int, seed keystream.Seed) (*party, error) {
	link := xmkckks.Link{Alpha: 1, DeltaMax: 1, Shares: shares}
	for range devices {
		link.Mu, link.Omega = append(link.Mu, 1), append(link.Omega, 1)
	}
	return newPartyOver(link, p, form, seed)
}

// newPartyOver makes the devices of a link, one for each of its means.
func newPartyOver(link xmkckks.Link, p xmkckks.Params, form xmkckks.Form, seed keystream.Seed) (*party, error) {
	design, err := xmkckks.NewDesign(p, form, link)
	if err != nil {
		return nil, err
	}
	public := seed.Derive("public")
	ctx, err := xmkckks.NewContext(design.Params, form, 1, design.Witnesses, public)
	if err != nil {
		return nil, err
	}
	bench, err := newWorkbench(design.Params, public)
	if err != nil {
		return nil, err
	}
	q := &party{
		ctx: ctx, design: design, bench: bench, server: ctx.NewServer(design), guard: xmkckks.NewLedger(link.Shares),
		key: ctx.NewAggregatedKey(), c1: ctx.NewAggregatedC1(),
	}
	for i := range link.Mu {
		q.gains = append(q.gains, 1)
		q.seeds = append(q.seeds, seed.Derive("device", uint64(i)))
		d, err := q.newDevice(i)
		if err != nil {
			return nil, err
		}
		q.devices = append(q.devices, d)
	}
	q.sumB = ctx.Modulus().NewVector(p.N)
	q.aggregateKey()
	return q, nil
}

// aggregateKey carries phase 1.
func (q *party) aggregateKey() {
	q.sumB.Clear()
	for i, d := range q.devices {
		q.ctx.Modulus().AddScaled(q.sumB, q.gains[i], d.PublicKey())
	}
	q.ctx.SetKey(q.key, q.sumB)
}

// newDevice makes device i anew, as after a restart: with its seed, and the guard
// that remembers.
func (q *party) newDevice(i int) (*xmkckks.Device, error) {
	seed := q.seeds[i] // the device wipes its own
	return q.ctx.NewDevice(xmkckks.DeviceConfig{Index: i, Mu: 1, DeltaMax: 1, Seed: &seed, Guard: q.guard})
}

// encrypt has device i encrypt a scalar in a round.
func (q *party) encrypt(i int, round uint32, delta float64) (c0, c1 zq.Vector, err error) {
	return q.encryptAttempt(i, round, 0, delta)
}

func (q *party) encryptAttempt(i int, round, attempt uint32, delta float64) (c0, c1 zq.Vector, err error) {
	if err := q.devices[i].Prepare(round, attempt); err != nil {
		return nil, nil, err
	}
	if _, err := q.devices[i].Encrypt(q.key, []float64{delta}); err != nil {
		return nil, nil, err
	}
	c0, c1 = q.devices[i].Ciphertext()
	return c0, c1, nil
}

// superpose carries phase 2 of an attempt at a round, of the first devices. heard, if
// it is there, gets each device's ciphertext.
func (q *party) superpose(round, attempt uint32, delta []float64, heard ...func(i int, c0, c1 zq.Vector)) error {
	mod := q.ctx.Modulus()
	q.sumC0, q.sumC1 = mod.NewVector(q.ctx.Revealed()), mod.NewVector(q.ctx.Params.N)
	for i, x := range delta {
		c0, c1, err := q.encryptAttempt(i, round, attempt, x)
		if err != nil {
			return err
		}
		mod.AddScaled(q.sumC0, q.gains[i], c0)
		mod.AddScaled(q.sumC1, q.gains[i], c1)
		for _, hear := range heard {
			hear(i, c0, c1)
		}
	}
	return nil
}

// round carries a whole round and gives M. heard gets each device's ciphertext.
func (q *party) round(round uint32, delta []float64, heard ...func(i int, c0, c1 zq.Vector)) (float64, error) {
	if err := q.superpose(round, 0, delta, heard...); err != nil {
		return 0, err
	}
	q.ctx.SetC1(q.c1, q.sumC1)
	mod := q.ctx.Modulus()
	q.sumShare = mod.NewVector(q.ctx.Revealed())
	for i := range delta {
		share, err := q.devices[i].Share(q.c1)
		if err != nil {
			return 0, err
		}
		mod.AddScaled(q.sumShare, q.gains[i], share)
	}
	var m [1]float64
	err := q.server.Recover(m[:], q.sumC0, q.sumShare, q.design.Link.Alpha)
	return m[0], err
}

// close wipes the devices.
func (q *party) close() {
	for _, d := range q.devices {
		d.Close()
	}
}

// set returns a parameter set of the program by its name.
func set(name string) (xmkckks.Params, error) {
	p, ok := xmkckks.Lookup(name)
	if !ok {
		return p, fmt.Errorf("the program has no parameter set %s", name)
	}
	return p, nil
}

// scalars draws values uniform on [-1/2, 1/2].
func scalars(rnd *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rnd.Float64() - 0.5
	}
	return x
}

// describe names a parameter set as a target.
func describe(p xmkckks.Params) string {
	return fmt.Sprintf("xmk-ckks %s (%d, %.0f)", p.Name, p.N, p.LogQ())
}

// ended returns ctx's error every so many steps.
func ended(ctx context.Context, step int) error {
	if step%16 == 0 {
		return ctx.Err()
	}
	return nil
}
