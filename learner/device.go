package learner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// device is one device's part of a round: its samples, its draw of a batch, and
// its losses.
type device struct {
	stream *keystream.Stream
	rnd    *rand.Rand // reads stream
	shard  []int      // indices into the training set
	batch  []int      // of the round that is run
	swaps  []int      // scratch of draw

	directions []model.Batch // scratch of along, of each direction

	// Of the last round: the mean loss, the loss at theta in the units of the others, and
	// the losses on either side along each direction, as far as they are wanted.
	loss, base  float64
	plus, minus []float64
}

// newDevice returns the device of an index from 0. The seed is that of Task.
func newDevice(c Config, seed keystream.Seed, index int, shard []int) *device {
	stream := seed.Derive("batches", uint64(index)).Stream()
	d := &device{
		stream: stream, rnd: rand.New(stream), shard: slices.Clone(shard),
		plus: make([]float64, c.Packed), minus: make([]float64, c.Packed),
		directions: make([]model.Batch, c.Packed),
	}
	if len(shard) <= c.BatchSize {
		d.batch = d.shard
		return d
	}
	d.batch = make([]int, c.BatchSize)
	d.swaps = make([]int, c.BatchSize)
	return d
}

// draw makes d.batch the batch xi_{i,k} of round k, and of a step of the device's own, from
// 0: a uniform draw without replacement. A device with no more samples than the batch size takes them all,
// every round: that estimates its F_i with no variance, which drawing with
// replacement would add.
//
// The batch depends on the stream, the round and the step alone, so the shuffle of the
// shard is undone for the next round.
func (d *device) draw(round, step uint32) {
	if d.swaps == nil {
		return
	}
	d.stream.Start(round, step)
	for j := range d.batch {
		r := j + d.rnd.IntN(len(d.shard)-j)
		d.shard[j], d.shard[r] = d.shard[r], d.shard[j]
		d.batch[j], d.swaps[j] = d.shard[j], r
	}
	for j, r := range slices.Backward(d.swaps) {
		d.shard[j], d.shard[r] = d.shard[r], d.shard[j]
	}
}

// group is devices whose losses are computed together, by one worker.
type group struct {
	devices []*device
	batches []model.Batch
}

// groups shares devices out one by one, or as many together as their batches leave room
// in what a worker computes at once.
func groups(devices []*device, w model.Worker) (all []*group) {
	each := 1
	if many, ok := w.(model.BatchesWorker); ok && len(devices) > 0 {
		each = max(1, many.Together()/max(1, len(devices[0].batch)))
	}
	for some := range slices.Chunk(devices, each) {
		all = append(all, &group{some, make([]model.Batch, len(some))})
	}
	return all
}

// compute draws the devices' batches of the round that the replica has drawn, and gets the
// losses on them that Config.want names along each direction.
func (g *group) compute(w model.Worker, r *Replica, set *dataset.Set) {
	for i, d := range g.devices {
		d.draw(uint32(r.drawn), 0)
		g.batches[i].Samples = d.batch
	}
	for p := range r.phi {
		want := r.cfg.want(p)
		model.Batches(w, r.point(p), set, g.batches, want)
		for i, d := range g.devices {
			d.take(p, &g.batches[i], want)
		}
	}
	for _, d := range g.devices {
		d.settle(r)
	}
}

// along gets the losses that Config.want names along a direction.
func (d *device) along(p int, w model.Worker, r *Replica, set *dataset.Set) {
	want := r.cfg.want(p)
	b := d.directions[p : p+1]
	b[0].Samples = d.batch
	model.Batches(w, r.point(p), set, b, want)
	d.take(p, &b[0], want)
}

// take takes in the losses along a direction.
func (d *device) take(p int, b *model.Batch, want model.Want) {
	d.plus[p], d.minus[p] = b.Plus, b.Minus
	if want.F {
		d.loss, d.base = b.F, b.Base()
	}
}

// want returns which losses are wanted along a direction beside the one at theta + gamma Phi:
// the one at theta is that of all.
func (c *Config) want(direction int) model.Want {
	return model.Want{F: direction == 0 && !c.PairLoss, Minus: c.Estimator == TwoPoint || c.PairLoss}
}

// Passes returns how many losses of its batch a device computes in a round: forward passes.
func (c Config) Passes() int {
	n := max(c.Packed, 1)
	if c.want(0).Minus {
		n *= 2
	}
	if c.want(0).F {
		n++
	}
	return n
}

// settle makes loss the mean of those on the sides, with Config.PairLoss.
func (d *device) settle(r *Replica) {
	if !r.cfg.PairLoss {
		return
	}
	d.loss = 0
	for p := range d.plus {
		d.loss += (d.plus[p] + d.minus[p]) / float64(2*len(d.plus))
	}
}

// scalars writes what the device sends along each direction, of the losses that it has,
// and counts the values that were cut to Config.Clip and those that were no finite number.
func (d *device) scalars(dst []float64, c *Config) (clipped, overflows int, err error) {
	for p := range dst {
		x := c.Estimator.scalar(d.plus[p], d.minus[p], d.base)
		if !isFinite(x) {
			if !c.Overflow {
				return clipped, overflows, fmt.Errorf("%s is %v: %w", c.Estimator.symbol(), x, ErrDiverged)
			}
			x = overflowed(x, 0)
			overflows++
		}
		if c.Clip > 0 && math.Abs(x) > c.Clip {
			x = math.Copysign(c.Clip, x)
			clipped++
		}
		dst[p] = x
	}
	return clipped, overflows, nil
}
