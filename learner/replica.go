package learner

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/keystream"
	"ringwave/learner/model"
)

// Replica is a copy of the model that M_k alone moves: theta, and the round that it is
// after. All that have the same config, model and seed, and hear the same M_k, have the
// same theta, to the bit on one kind of processor. A Replica is for one goroutine.
type Replica struct {
	cfg Config

	round int // the last that theta is after, 0..K
	theta []float64

	directions *keystream.Stream
	rnd        *rand.Rand  // reads directions
	phi        [][]float64 // of each direction, of round drawn
	keys       []uint64    // that they are made of, if they are
	drawn      int
	serial     uint64  // of theta and phi as they are: goes up with each change
	gamma      float64 // gamma_k of it

	window  int         // of how many rounds' scalars a step is made
	past    [][]float64 // those of up to window-1 rounds, the last of round; nil of those that made none
	weights []float64   // scratch of steps

	follower model.Follower // the model, if it is one
	moved    []float64      // scratch of its steps

	sum   hash.Hash // of Digest, which allocates nothing thereby
	bytes []byte
}

// NewReplica returns the initial model. The seed is that of Task.
func NewReplica(cfg Config, m model.Model, seed keystream.Seed) (*Replica, error) {
	err := cfg.check()
	if m == nil {
		err = errors.New("the task lacks its model")
	}
	if err != nil {
		return nil, fmt.Errorf("setting up training: %w", err)
	}
	cfg.Packed = max(cfg.Packed, 1)
	directions := seed.Derive("directions").Stream()
	r := &Replica{
		cfg: cfg, theta: make([]float64, m.Dim()),
		directions: directions, rnd: rand.New(directions), sum: sha256.New(),
		keys: make([]uint64, cfg.Packed), window: cfg.Window(), weights: make([]float64, cfg.Packed),
	}
	if follower, ok := m.(model.Follower); ok {
		if cfg.Directions != Philox {
			return nil, fmt.Errorf("setting up training: a model of another program's with %s directions; allowed is philox", cfg.Directions)
		}
		r.follower, r.moved = follower, make([]float64, m.Dim())
	}
	for range cfg.Packed {
		r.phi = append(r.phi, make([]float64, m.Dim()))
	}
	m.Init(r.theta, rand.New(seed.Derive("initial model").Stream()))
	return r, nil
}

// Round returns the last round that theta is after, 0..K.
func (r *Replica) Round() int { return r.round }

// Done says whether all K rounds have been run.
func (r *Replica) Done() bool { return r.round >= r.cfg.Rounds }

// draw makes phi that of round k, which depends on the seed and k alone.
func (r *Replica) draw(k int) {
	if r.drawn == k {
		return
	}
	for p, phi := range r.phi {
		r.directions.Start(uint32(k), uint32(p))
		r.keys[p] = r.cfg.Directions.Draw(phi, r.rnd)
	}
	r.serial++
	r.drawn, r.gamma = k, r.cfg.Gamma.At(k)
}

// point returns theta and what lies on either side of it along a direction.
func (r *Replica) point(direction int) model.Point {
	return model.Point{
		Theta: r.theta, Phi: r.phi[direction], Key: r.keys[direction], Round: r.drawn, Gamma: r.gamma,
		Serial: r.serial*uint64(len(r.phi)) + uint64(direction) + 1, At: r.serial + 1,
	}
}

// next refuses every round but the one after theta's: what was heard twice, or out of
// order, must not move theta.
func (r *Replica) next(k int) error {
	if r.Done() {
		return fmt.Errorf("round %d: %w", k, ErrDone)
	}
	if k != r.round+1 {
		return fmt.Errorf("round %d of a model that is after round %d; allowed is round %d", k, r.round, r.round+1)
	}
	return nil
}

// Apply makes the step of round k, theta_{k+1} = theta_k - eta_k g_k with g_k = Phi_k M_k
// (Eq. 18), of packed directions their mean: m has a value for each. The config's Step, MeanOf
// and Momentum may have it another. It must be the round after Round's. After an error the replica is as it was before the call; where a value
// is no finite number the error wraps ErrDiverged.
func (r *Replica) Apply(k int, m []float64) error {
	if err := r.next(k); err != nil {
		return err
	}
	if len(m) != len(r.phi) {
		return fmt.Errorf("aggregating: %d values of M for %d directions", len(m), len(r.phi))
	}
	for _, x := range m {
		if !isFinite(x) {
			return fmt.Errorf("the aggregated M is %v: %w", x, ErrDiverged)
		}
	}
	if r.cfg.weights(r.weights, k, m) == nil {
		return r.Skip(k)
	}
	if r.follower != nil {
		if err := r.lead(k, m); err != nil {
			return err
		}
	} else {
		r.steps(k, m, func(p int, size float64) { floats.AddScaled(r.theta, -size, r.phi[p]) })
	}
	r.remember(m)
	r.serial++
	r.round = k
	return nil
}

// lead makes the steps of a round, and has the follower make them.
func (r *Replica) lead(k int, m []float64) error {
	copy(r.moved, r.theta)
	var steps []model.Step
	r.steps(k, m, func(p int, size float64) {
		if r.follower.Single() {
			size = float64(float32(size))
		}
		steps = append(steps, model.Step{Key: r.keys[p], Size: size})
		for j, sign := range r.phi[p] {
			r.moved[j] -= size * sign // exact but for the difference
			if r.follower.Single() {
				r.moved[j] = float64(float32(r.moved[j]))
			}
		}
	})
	if err := r.follower.Follow(k, r.theta, r.moved, steps); err != nil {
		return fmt.Errorf("updating the model: %w", err)
	}
	r.theta, r.moved = r.moved, r.theta
	return nil
}

// Skip leaves theta as it is in round k, which gave nothing, with momentum too: it has no part
// in later steps, and earlier rounds have as much less in them. It must be the round after
// Round's.
func (r *Replica) Skip(k int) error {
	if err := r.next(k); err != nil {
		return err
	}
	r.remember(nil)
	r.round = k
	return nil
}

// Replay goes through a history: rounds k, from the one after Round's on and with none
// left out, each with its M_k, or nil where it was skipped. After an error the replica is
// where the rounds before the one at fault have taken it.
func (r *Replica) Replay(history iter.Seq2[int, []float64]) error {
	for k, m := range history {
		step := r.Skip
		if m != nil {
			step = func(k int) error { return r.Apply(k, m) }
		}
		if err := step(k); err != nil {
			return fmt.Errorf("replaying round %d: %w", k, err)
		}
	}
	return nil
}

// digestChunk is the number of values of theta that are hashed at a time.
const digestChunk = 512

// Digest returns the SHA-256 of the round and the bits of theta: 8 bytes each, the round
// first, big-endian. Two replicas have the same digest if they are after the same round
// with the same theta, to the bit.
func (r *Replica) Digest() (digest [sha256.Size]byte) {
	r.sum.Reset()
	digest, r.bytes = digestOf(r.sum, r.bytes, r.round, r.theta)
	return digest
}

// DigestOf returns the Digest of a replica that is after a round with this theta.
func DigestOf(round int, theta []float64) [sha256.Size]byte {
	digest, _ := digestOf(sha256.New(), nil, round, theta)
	return digest
}

// digestOf hashes a model. It returns its buffer.
func digestOf(sum hash.Hash, b []byte, round int, theta []float64) (digest [sha256.Size]byte, buffer []byte) {
	b = binary.BigEndian.AppendUint64(b[:0], uint64(round))
	for values := range slices.Chunk(theta, digestChunk) {
		for _, x := range values {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
		}
		sum.Write(b)
		b = b[:0]
	}
	b = sum.Sum(b)
	return [sha256.Size]byte(b), b
}

// State returns Round, and a copy of theta.
func (r *Replica) State() (round int, theta []float64) { return r.round, slices.Clone(r.theta) }

// Restore puts the replica where another of the same config, model and seed was. It takes
// a copy of theta. With momentum theta is not all that there is, and rounds must be replayed.
// After an error the replica is as it was.
func (r *Replica) Restore(round int, theta []float64) error {
	if round > 0 && r.window > 1 {
		return errTheta
	}
	return r.restore(round, theta, nil)
}

// checkState refuses a round and a theta that no replica has.
func (r *Replica) checkState(round int, theta []float64) error {
	if round < 0 || round > r.cfg.Rounds {
		return fmt.Errorf("restoring training: the round is %d; allowed is 0 to %d", round, r.cfg.Rounds)
	}
	if len(theta) != len(r.theta) {
		return fmt.Errorf("restoring training: theta has %d values; allowed is %d, the model's", len(theta), len(r.theta))
	}
	for j, x := range theta {
		if !isFinite(x) {
			return fmt.Errorf("restoring training: theta[%d] is %v; allowed is finite", j, x)
		}
	}
	return nil
}
