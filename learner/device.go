package learner

import (
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

	// Of the last round: the mean loss, and the losses on either side along each
	// direction.
	loss        float64
	plus, minus []float64
}

func newDevice(seed keystream.Seed, shard []int, batchSize, directions int) *device {
	stream := seed.Stream()
	d := &device{
		stream: stream, rnd: rand.New(stream), shard: slices.Clone(shard),
		plus: make([]float64, directions), minus: make([]float64, directions),
	}
	if len(shard) <= batchSize {
		d.batch = d.shard
		return d
	}
	d.batch = make([]int, batchSize)
	d.swaps = make([]int, batchSize)
	return d
}

// draw makes d.batch the batch xi_{i,k} of round k: a uniform draw without
// replacement. A device with no more samples than the batch size takes them all,
// every round: that estimates its F_i with no variance, which drawing with
// replacement would add.
//
// The batch depends on the stream and the round alone, so the shuffle of the
// shard is undone for the next round.
func (d *device) draw(round uint32) {
	if d.swaps == nil {
		return
	}
	d.stream.Start(round, 0)
	for j := range d.batch {
		r := j + d.rnd.IntN(len(d.shard)-j)
		d.shard[j], d.shard[r] = d.shard[r], d.shard[j]
		d.batch[j], d.swaps[j] = d.shard[j], r
	}
	for j, r := range slices.Backward(d.swaps) {
		d.shard[j], d.shard[r] = d.shard[r], d.shard[j]
	}
}

// compute draws the batch of the round and gets the losses on it, on either side along
// each direction. Where exact, it gets the loss at theta too; otherwise loss is the mean
// of those on the sides.
func (d *device) compute(w model.Worker, round uint32, theta []float64, phi [][]float64, gamma float64, set *dataset.Set, exact bool) {
	d.draw(round)
	if exact {
		d.loss, d.plus[0], d.minus[0] = w.Losses(theta, phi[0], gamma, set, d.batch)
		phi = phi[1:]
	}
	done := len(d.plus) - len(phi)
	for p, direction := range phi {
		d.plus[done+p], d.minus[done+p] = model.Pair(w, theta, direction, gamma, set, d.batch)
	}
	if exact {
		return
	}
	d.loss = 0
	for p := range d.plus {
		d.loss += (d.plus[p] + d.minus[p]) / float64(2*len(d.plus))
	}
}
