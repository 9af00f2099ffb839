package xmkckks

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"ringwave/crypto/keystream"
	"ringwave/crypto/ntt"
	"ringwave/crypto/sampler"
	"ringwave/crypto/secret"
	"ringwave/phy/zq"
)

// ErrOrder says that a step of the protocol was asked for out of its order, or a
// second time with the same randomness.
var ErrOrder = errors.New("step out of order")

// AggregatedKey is b~ as the server broadcasts it, with what encryption needs of
// it. Who receives it computes that once; devices in one process may share it.
type AggregatedKey struct {
	coefficients zq.Vector
	transform    ntt.Transform // with transforms only
}

// Coefficients returns b~ as it is broadcast. The caller must not change it.
func (k *AggregatedKey) Coefficients() zq.Vector { return k.coefficients }

// NewAggregatedKey makes room for b~.
func (c *Context) NewAggregatedKey() *AggregatedKey {
	k := &AggregatedKey{coefficients: c.mod.NewVector(c.Params.N)}
	if c.transforms() {
		k.transform = c.ring.NewTransform()
	}
	return k
}

// SetKey takes the broadcast b~, n coefficients, into k, and transforms it where
// products are computed so.
func (c *Context) SetKey(k *AggregatedKey, b zq.Vector) {
	k.coefficients.Copy(b)
	if c.transforms() {
		c.ring.Forward(k.transform, b)
	}
}

// AggregatedC1 is c~1 as the server broadcasts it, with its transform, where products
// are computed so, and the digest by which a device knows it again.
type AggregatedC1 struct {
	coefficients zq.Vector
	transform    ntt.Transform
	digest       Digest
	digester     digester
}

// Coefficients returns c~1 as it is broadcast. The caller must not change it.
func (a *AggregatedC1) Coefficients() zq.Vector { return a.coefficients }

// NewAggregatedC1 makes room for c~1.
func (c *Context) NewAggregatedC1() *AggregatedC1 {
	a := &AggregatedC1{coefficients: c.mod.NewVector(c.Params.N), digester: c.newDigester()}
	if c.transforms() {
		a.transform = c.ring.NewTransform()
	}
	return a
}

// SetC1 takes the broadcast c~1, n coefficients, into a.
func (c *Context) SetC1(a *AggregatedC1, c1 zq.Vector) {
	a.coefficients.Copy(c1)
	a.digest = a.digester.vector(c1)
	if c.transforms() {
		c.ring.Forward(a.transform, c1)
	}
}

// stage is how far a Device is within an attempt.
type stage int

const (
	idle stage = iota
	prepared
	encrypted
	answered
	closed
)

// DeviceConfig is what one device knows besides the Context.
type DeviceConfig struct {
	// Index counts the devices from 0.
	Index int
	// Mu is the long-term mean mu_i of its own channel.
	Mu float64
	// DeltaMax bounds |Delta f_i / mu_i|; what exceeds it is clipped.
	DeltaMax float64
	// Seed is the root of all the device's secrets. It belongs to the device from
	// NewDevice on, if that returns no error, and Close wipes it.
	Seed *keystream.Seed
	// Guard refuses a second decryption share in a round, or for the same c~1.
	Guard Guard
}

// Device is one edge device: its secret key and the four steps it takes in a
// round, Prepare, Encrypt, Share and then the next round. It is for one
// goroutine. It allocates nothing after NewDevice but at a new key epoch.
type Device struct {
	ctx *Context
	cfg DeviceConfig

	epoch  uint32
	s      []int8
	sNTT   ntt.Transform // with transforms
	sInner []int8        // negacyclic(s), without
	b      zq.Vector

	stage          stage
	started        bool
	round, attempt uint32
	shared         bool   // in any epoch
	lastShare      uint32 // the round of the last share, if shared
	v, e0, e1      []int8
	vNTT           ntt.Transform
	vInner         []int8    // without transforms
	full           zq.Vector // all of a product of which c0 or share is a part
	c0, c1, share  zq.Vector
	small          []int8           // e*, small
	narrow         []int64          // e*, flooding in one word
	flood          []sampler.Int128 // e*, flooding in two

	vStream, e0Stream, e1Stream, shareStream *keystream.Stream
}

// NewDevice makes a device with the keys of epoch 0.
func (c *Context) NewDevice(cfg DeviceConfig) (*Device, error) {
	if cfg.Mu == 0 || math.IsNaN(cfg.Mu) || math.IsInf(cfg.Mu, 0) {
		return nil, fmt.Errorf("device %d: the channel mean mu is %v: it must be finite and not zero", cfg.Index+1, cfg.Mu)
	}
	if !(cfg.DeltaMax > 0) || math.Ldexp(cfg.DeltaMax, c.Params.LogLambda) >= 0x1p126 {
		return nil, fmt.Errorf("device %d: the bound on |Delta f/mu| is %v: it must be positive, and below 2^%d at Lambda = 2^%d", cfg.Index+1, cfg.DeltaMax, 126-c.Params.LogLambda, c.Params.LogLambda)
	}
	if cfg.Seed == nil {
		return nil, fmt.Errorf("device %d: it has no seed", cfg.Index+1)
	}
	if cfg.Guard == nil {
		return nil, fmt.Errorf("device %d: DeviceConfig.Guard is nil: it must be a guard, such as a Ledger, for without one every round is answered again and again", cfg.Index+1)
	}
	n, r := c.Params.N, c.Revealed()
	d := &Device{
		ctx: c, cfg: cfg,
		s: make([]int8, n), b: c.mod.NewVector(n),
		v: make([]int8, n), e0: make([]int8, r), e1: make([]int8, n),
		vNTT: c.ring.NewTransform(),
		c0:   c.mod.NewVector(r), c1: c.mod.NewVector(n), share: c.mod.NewVector(r),
	}
	if c.transforms() {
		d.sNTT = c.ring.NewTransform()
		if r < n {
			d.full = c.mod.NewVector(n)
		}
	} else {
		d.sInner, d.vInner = make([]int8, 2*n), make([]int8, 2*n)
	}
	switch {
	case c.Params.LogFlood == 0:
		d.small = make([]int8, r)
	case c.flood.Narrow():
		d.narrow = make([]int64, r)
	default:
		d.flood = make([]sampler.Int128, r)
	}
	d.drawKeys(0)
	return d, nil
}

// NewEpoch takes a new secret s_i with its own e_i, and so a new b_i =
// -s_i a + e_i. Within an epoch b_i never changes: fresh errors on the same s_i
// would average away. The epoch must be later than the current one, whose
// randomness is spent.
func (d *Device) NewEpoch(epoch uint32) error {
	if d.stage == closed || epoch <= d.epoch {
		return fmt.Errorf("%w: device %d, in key epoch %d, is asked for epoch %d", ErrOrder, d.cfg.Index+1, d.epoch, epoch)
	}
	d.drawKeys(epoch)
	return nil
}

func (d *Device) drawKeys(epoch uint32) {
	d.wipeEpoch()
	d.epoch, d.stage, d.started = epoch, idle, false
	seed := d.cfg.Seed.DeriveSecret("key epoch", uint64(epoch))
	defer seed.Wipe()
	d.vStream = seed.DeriveStream("v")
	d.e0Stream = seed.DeriveStream("e0")
	d.e1Stream = seed.DeriveStream("e1")
	d.shareStream = seed.DeriveStream("e*")
	keys := seed.DeriveStream("s and e")
	defer keys.Wipe()

	c := d.ctx
	c.Params.Secret.Sample(d.s, keys)
	c.Params.KeyError.Sample(d.e1, keys)

	// The buffer of the next encryption serves for s.
	c.transformSmall(d.vNTT, d.s)
	c.ring.Multiply(d.b, d.vNTT, c.a)
	c.negate(d.b)
	c.addSmall(d.b, d.e1)
	if c.transforms() {
		d.sNTT.Memory().Copy(d.vNTT.Memory())
	} else {
		negacyclic(d.sInner, d.s)
	}
	d.vNTT.Memory().Clear()
	clear(d.e1)
}

// Epoch returns the current key epoch.
func (d *Device) Epoch() uint32 { return d.epoch }

// PublicKey returns b_i, what the device sends in phase 1. The caller must not
// change it.
func (d *Device) PublicKey() zq.Vector { return d.b }

// Prepare draws the fresh v, e0 and e1 of an attempt at a round and computes
// c1 = v a + e1, none of which depends on b~. Attempts must come in ascending
// order of round and attempt, and none after the round's decryption share, in
// whatever key epoch: it would carry the same Delta f under other gains.
func (d *Device) Prepare(round, attempt uint32) error {
	if d.stage == closed {
		return fmt.Errorf("%w: device %d has been closed", ErrOrder, d.cfg.Index+1)
	}
	if d.shared && round <= d.lastShare {
		return fmt.Errorf("%w: device %d has given its decryption share of round %d, and is asked to encrypt for round %d", ErrOrder, d.cfg.Index+1, d.lastShare, round)
	}
	if d.started && !later(round, attempt, d.round, d.attempt) {
		return fmt.Errorf("%w: device %d has already drawn the randomness of round %d, attempt %d, and is asked for round %d, attempt %d",
			ErrOrder, d.cfg.Index+1, d.round, d.attempt, round, attempt)
	}
	c := d.ctx
	d.started, d.round, d.attempt, d.stage = true, round, attempt, prepared
	d.vStream.Start(round, attempt)
	d.e0Stream.Start(round, attempt)
	d.e1Stream.Start(round, attempt)
	c.Params.Ephemeral.Sample(d.v, d.vStream)
	c.Params.Error0.Sample(d.e0, d.e0Stream)
	c.Params.Error1.Sample(d.e1, d.e1Stream)

	c.transformSmall(d.vNTT, d.v)
	c.ring.Multiply(d.c1, d.vNTT, c.a)
	c.addSmall(d.c1, d.e1)
	if !c.transforms() {
		negacyclic(d.vInner, d.v)
	}
	return nil
}

// later reports whether (round, attempt) comes after (r, a).
func later(round, attempt, r, a uint32) bool {
	return round > r || round == r && attempt > a
}

// Encrypt computes c0 = v b~ + m + e0 (Eq. 10) from what Prepare drew, with the context's
// P messages: m_p = round(Lambda deltas[p]/mu) is at coefficient p. They share v, as the
// coefficients of one encryption do. It tells how many of them were clipped to DeltaMax.
// Each Prepare serves one Encrypt: the same v for two of them would give away their
// difference.
func (d *Device) Encrypt(key *AggregatedKey, deltas []float64) (clipped int, err error) {
	if d.stage != prepared {
		return 0, fmt.Errorf("%w: device %d encrypts without fresh randomness", ErrOrder, d.cfg.Index+1)
	}
	if err := d.ctx.checkMessages(len(deltas)); err != nil {
		return 0, fmt.Errorf("device %d: %w", d.cfg.Index+1, err)
	}
	for _, delta := range deltas {
		if math.IsNaN(delta / d.cfg.Mu) {
			return 0, fmt.Errorf("device %d: Delta f is %v: it must be a number", d.cfg.Index+1, delta)
		}
	}
	d.stage = encrypted
	c := d.ctx
	if c.transforms() {
		d.product(d.c0, d.vNTT, key.transform)
	} else {
		c.smallProducts(d.c0, d.vInner, key.coefficients)
	}
	c.addSmall(d.c0, d.e0)
	secret.Do(func() { clipped = d.addMessages(deltas) })
	return clipped, nil
}

// addMessages adds the messages to c0 and returns how many it clipped, which is no
// secret.
func (d *Device) addMessages(deltas []float64) (clipped int) {
	for p, delta := range deltas {
		x := delta / d.cfg.Mu
		if math.Abs(x) > d.cfg.DeltaMax {
			x = math.Copysign(d.cfg.DeltaMax, x)
			clipped++
		}
		d.ctx.addInt128(d.c0, p, encode(x, d.ctx.Params.LogLambda))
	}
	return clipped
}

// product sets y to the revealed coefficients of the product of a and b.
func (d *Device) product(y zq.Vector, a, b ntt.Transform) {
	all := y
	if d.full != nil {
		all = d.full
	}
	d.ctx.ring.Multiply(all, a, b)
	if d.full != nil {
		for j := range y {
			copy(y[j], all[j])
		}
	}
}

// smallProducts sets y to the revealed coefficients of x b, w = negacyclic(x).
func (c *Context) smallProducts(y zq.Vector, w []int8, b zq.Vector) {
	for j := range y {
		for k := range y[j] {
			y[j][k] = c.smallProduct(w, b, j, k)
		}
	}
}

// encode returns round(2^logLambda x), halves away from zero, for |x| 2^logLambda <
// 2^126 and logLambda >= 0. It has no branch, no address and no division that depends
// on x, and shifts by an amount that does only within a word, which takes the same
// time whatever the amount.
func encode(x float64, logLambda int) sampler.Int128 {
	b := math.Float64bits(x)
	sign := -(b >> 63)
	mantissa := b&(1<<52-1) | 1<<52

	// |x| = mantissa 2^(exponent - 1075), so that |x| 2^logLambda = mantissa
	// 2^shift/2^54, with shift at most 127. Below shift = 0 it is less than 1/2, as it
	// is at 0: so are zero and the subnormal numbers, which have no 1 before their
	// mantissa's 52 bits and are taken to have one.
	shift := int64(b>>52&0x7ff) - 1021 + int64(logLambda)
	shift &^= shift >> 63
	w := shiftLeft(mantissa, uint64(shift))

	// Half of 2^54 is added and 2^54 divided by.
	var carry uint64
	w[0], carry = bits.Add64(w[0], 1<<53, 0)
	w[1], carry = bits.Add64(w[1], 0, carry)
	w[2] += carry
	lo, hi := w[0]>>54|w[1]<<10, w[1]>>54|w[2]<<10

	// ^m + 1 = -m where the sign says so.
	lo, carry = bits.Add64(lo^sign, sign&1, 0)
	return sampler.Int128{Hi: int64(hi ^ sign + carry), Lo: lo}
}

// shiftLeft returns x 2^k as words, the lowest first, for k < 128, without a branch on
// either.
func shiftLeft(x, k uint64) [3]uint64 {
	within, across := k&63, -(k >> 6)
	lo, hi := x<<within, x>>1>>(within^63)
	return [3]uint64{lo &^ across, lo&across | hi&^across, hi & across}
}

// Ciphertext returns (c0, c1) of the last Encrypt. The caller must not change
// them. In the short form c0 has its first P+W coefficients only.
func (d *Device) Ciphertext() (c0, c1 zq.Vector) { return d.c0, d.c1 }

// Share computes the decryption share D = s c~1 + e* of the current attempt
// (Eq. 13), of which the short form keeps the first P+W coefficients. The guard
// is asked first, and remembers the answer before it is given. There is one share
// a round: one that was not received is sent again bit for bit, as it stays until
// the next round's.
//
// The device cannot tell an honest c~1 from one that was made to read s out of
// D: the server is trusted to follow the protocol.
func (d *Device) Share(c1 *AggregatedC1) (zq.Vector, error) {
	if d.stage != encrypted {
		return nil, fmt.Errorf("%w: device %d gives a decryption share before it has encrypted, or twice", ErrOrder, d.cfg.Index+1)
	}
	err := d.cfg.Guard.Answer(ShareRecord{
		Device: uint32(d.cfg.Index), Epoch: d.epoch, Round: d.round, Attempt: d.attempt, Digest: c1.digest,
	})
	if err != nil {
		return nil, err
	}
	d.stage, d.shared, d.lastShare = answered, true, d.round
	c := d.ctx
	if c.transforms() {
		d.product(d.share, c1.transform, d.sNTT)
	} else {
		c.smallProducts(d.share, d.sInner, c1.coefficients)
	}
	d.shareStream.Start(d.round, d.attempt)
	d.addShareError()
	return d.share, nil
}

// addShareError draws e* and adds it to the share.
func (d *Device) addShareError() {
	c := d.ctx
	switch {
	case d.small != nil:
		c.Params.ShareError.Sample(d.small, d.shareStream)
		c.addSmall(d.share, d.small)
	case d.narrow != nil:
		c.flood.SampleNarrow(d.narrow, d.shareStream)
		c.addWords(d.share, d.narrow)
	default:
		c.flood.Sample(d.flood, d.shareStream)
		for k, e := range d.flood {
			c.addInt128(d.share, k, e)
		}
	}
}

// negate sets x = -x.
func (c *Context) negate(x zq.Vector) {
	for j, p := range c.Params.Primes {
		for k, r := range x[j] {
			nonzero := int64(r|-r) >> 63 // all ones unless r is 0
			x[j][k] = (p - r) & uint64(nonzero)
		}
	}
}

// wipeEpoch overwrites what the current key epoch made secret: its keys and streams,
// and what is left of its last attempt. What was or may be sent stays.
func (d *Device) wipeEpoch() {
	for _, s := range []*keystream.Stream{d.vStream, d.e0Stream, d.e1Stream, d.shareStream} {
		if s != nil {
			s.Wipe()
		}
	}
	for _, x := range [][]int8{d.s, d.sInner, d.v, d.vInner, d.e0, d.e1, d.small} {
		clear(x)
	}
	clear(d.narrow)
	clear(d.flood)
	for _, x := range []zq.Vector{d.sNTT.Memory(), d.vNTT.Memory(), d.full} {
		x.Clear()
	}
}

// Close overwrites every secret that the device holds: its seed, the key and the
// streams of the epoch, and what is left of the last attempt. The device is of no use
// afterwards.
//
// What Go copies by itself is out of its reach. Single coefficients may be left on the
// stacks of the goroutines on which the device worked, and keys where registers were
// saved: see package secret. What a caller was given, or gave, is the caller's.
func (d *Device) Close() {
	d.wipeEpoch()
	d.cfg.Seed.Wipe()
	for _, x := range []zq.Vector{d.c0, d.c1, d.share} {
		x.Clear()
	}
	d.stage = closed
}
