package model

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/vector"
	"ringwave/learner/dataset"
	"ringwave/learner/model/kernel"
)

// LeNet is the convolutional network of the paper's CIFAR-10 experiment, for images
// of 3 x 32 x 32 and two classes: two convolutions of 5 x 5, with 6 and 16 filters,
// each followed by ReLU and 2 x 2 max-pooling, then 400 -> 120 -> 84 -> 1 with ReLU
// between, and binary cross-entropy on the one logit. d = 456 + 2416 + 48120 + 10164
// + 85 = 61241. Of C > 2 classes it has C outputs and categorical cross-entropy on their
// softmax, and 85 (C - 1) parameters more.
//
// Theta has the layers in this order, of each its weights, filters x channels x rows x
// columns or units x inputs, and then its biases.
//
// Theta and phi are float64. theta +- gamma*phi is computed in float64, the product and
// the sum each rounded, packed as package kernel describes, and rounded to float32, as are
// samples. All until the logit is float32, each product and each sum rounded, in the order
// that package kernel describes; the loss of a sample, and sums of losses in the order of
// the batch, are float64. Given its arguments a Worker gives the same bits on all processors.
type LeNet struct {
	path   vector.Path
	layers []*kernel.Layer
	// classes are two, of one output, or as many as outputs.
	classes int
	// parameters are those of theta, and packed are as the layers take them.
	parameters, packed int
}

// The images that LeNet takes.
const (
	lenetChannels = 3
	lenetSide     = 32
)

// lenetOutputStd is the deviation of the output layer's first weights: the logits
// then begin near 0, where the loss is log 2.
const lenetOutputStd = 0.01

// NewLeNet returns the network for so many classes, two at least, computed on the given path,
// which must lack nothing that the processor has not.
func NewLeNet(path vector.Path, classes int) *LeNet {
	outputs := max(classes, 2)
	if outputs == 2 {
		outputs = 1
	}
	m := &LeNet{path: path, classes: max(classes, 2), layers: []*kernel.Layer{
		kernel.Convolution(path, lenetChannels, lenetSide, lenetSide, 6),
		kernel.Convolution(path, 6, 14, 14, 16),
		kernel.Hidden(path, 16*5*5, 120),
		kernel.Hidden(path, 120, 84),
		kernel.Output(path, 84, outputs),
	}}
	for _, l := range m.layers {
		m.parameters += l.Parameters()
		m.packed += l.Packed()
	}
	return m
}

// Classes returns the number of classes.
func (m *LeNet) Classes() int { return m.classes }

// Dim returns 61241 for two classes.
func (m *LeNet) Dim() int { return m.parameters }

// Features returns 3 * 32 * 32.
func (m *LeNet) Features() int { return lenetChannels * lenetSide * lenetSide }

// MultiplyAdds returns the number of multiplications of a sample's forward pass.
func (m *LeNet) MultiplyAdds() int {
	n := 0
	for _, l := range m.layers {
		n += l.MultiplyAdds()
	}
	return n
}

// Init draws the weights of the hidden layers from N(0, 2/n), n being the number of a
// unit's inputs (Kaiming He et al. 2015, for ReLU), those of the output layer from
// N(0, 0.01^2), and sets all biases to zero. The paper gives neither the distribution
// nor the output layer's deviation.
func (m *LeNet) Init(theta []float64, rnd *rand.Rand) {
	clear(theta)
	for i, l := range m.layers {
		std := math.Sqrt(2 / float64(l.Fan()))
		if i == len(m.layers)-1 {
			std = lenetOutputStd
		}
		weights := theta[:l.Rows()*l.Fan()]
		for j := range weights {
			weights[j] = std * rnd.NormFloat64()
		}
		theta = theta[l.Parameters():]
	}
}

// NewWorker returns a Worker with some megabytes of memory of its own.
func (m *LeNet) NewWorker() Worker { return m.newWorker() }

func (m *LeNet) newWorker() *lenetWorker {
	lanes := kernel.Lanes(m.path)
	w := &lenetWorker{net: m, logits: make([]float32, m.layers[len(m.layers)-1].Units()), index: make([]int, lanes), rows: make([][]uint8, lanes), panel: make([]lane, 0, lanes), point: make([]float64, m.Dim())}
	const points = 3
	// One piece of memory, which is large enough to begin at a page, with all its
	// parts at multiples of 64 bytes: no register's load then crosses a cache line.
	const line = 16
	sizes := []int{m.Features() * lanes}
	for _, l := range m.layers[1:] {
		sizes = append(sizes, l.Units()*lanes)
	}
	for range points {
		sizes = append(sizes, m.packed, m.layers[0].Units()*lanes)
	}
	scratch := 0
	for _, l := range m.layers {
		scratch = max(scratch, l.Scratch())
	}
	sizes = append(sizes, scratch)
	total := 0
	for i, n := range sizes {
		sizes[i] = (n + line - 1) / line * line
		total += sizes[i]
	}
	memory := make([]float32, total)
	take := func() []float32 {
		part := memory[:sizes[0]:sizes[0]]
		memory, sizes = memory[sizes[0]:], sizes[1:]
		return part
	}
	for range m.layers {
		w.units = append(w.units, take())
	}
	for range points {
		w.weights, w.first = append(w.weights, take()), append(w.first, take())
	}
	w.scratch = take()
	return w
}

type lenetWorker struct {
	net *LeNet
	// weights are those of theta, theta + gamma*phi and theta - gamma*phi, packed.
	weights [][]float32
	// serial is that of the point they are of, and packed says which of them there are.
	serial uint64
	packed Want
	// point is one of them, unpacked.
	point []float64
	// units are the panel of samples, and what each layer but the first makes of it.
	units   [][]float32
	first   [][]float32 // what the first layer makes, at each point
	scratch []float32
	// index are the samples of the panel, rows their features, and panel whose they are.
	index []int
	rows  [][]uint8
	panel []lane
	one   [1]Batch
	// logits are those of a sample.
	logits []float32
}

// lane is a sample of a panel, and the number of its batch.
type lane struct{ batch, sample int }

func (w *lenetWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return w.Partial(Want{F: true, Minus: true}, theta, phi, gamma, set, batch)
}

// Partial leaves out forward passes.
func (w *lenetWorker) Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	w.one[0] = Batch{Samples: batch}
	w.Batches(Point{Theta: theta, Phi: phi, Gamma: gamma}, set, w.one[:], want)
	return w.one[0].F, w.one[0].Plus, w.one[0].Minus
}

// Together returns the number of samples of a panel.
func (w *lenetWorker) Together() int { return len(w.index) }

// Batches packs a point once, and fills panels with samples of several batches.
func (w *lenetWorker) Batches(at Point, set *dataset.Set, batches []Batch, want Want) {
	if at.Serial == 0 || at.Serial != w.serial || want.F && !w.packed.F || want.Minus && !w.packed.Minus {
		w.pack(at.Theta, at.Phi, at.Gamma, want)
		w.serial, w.packed = at.Serial, want
	}
	for b := range batches {
		batches[b].F, batches[b].Plus, batches[b].Minus = 0, 0, 0
	}
	panel := w.panel[:0]
	for b := range batches {
		for _, sample := range batches[b].Samples {
			if panel = append(panel, lane{b, sample}); len(panel) == cap(panel) {
				w.losses(set, batches, panel, want)
				panel = panel[:0]
			}
		}
	}
	if len(panel) > 0 {
		w.losses(set, batches, panel, want)
	}
	for b := range batches {
		n := float64(len(batches[b].Samples))
		batches[b].F /= n
		batches[b].Plus /= n
		batches[b].Minus /= n
	}
}

// losses adds the losses of a panel's samples to those of their batches.
func (w *lenetWorker) losses(set *dataset.Set, batches []Batch, panel []lane, want Want) {
	for i, l := range panel {
		w.index[i] = l.sample
	}
	w.gather(set, w.index[:len(panel)])
	from, to := 1, 2
	if want.F {
		from = 0
	}
	if want.Minus {
		to = 3
	}
	points := w.weights[from:to]
	// All points have the same inputs to the first layer.
	first := w.first[:len(points)]
	w.net.layers[0].RunAll(first, w.units[0], points, w.scratch)
	for p, weights := range points {
		logits := w.behind(first[p], weights)
		for i, l := range panel {
			b := &batches[l.batch]
			sum := [...]*float64{&b.F, &b.Plus, &b.Minus}[from+p]
			loss, _ := w.decide(logits, i, set.Y[l.sample])
			*sum += loss
		}
	}
}

// decide returns the loss of the sample of a lane, of class y, and the class that it is taken
// for, as logistic and softmax regression do.
func (w *lenetWorker) decide(logits []float32, lane int, y uint8) (loss float64, class uint8) {
	if len(w.logits) == 1 {
		u := float64(logits[lane])
		return crossEntropy(u, y), ofLogit(u)
	}
	for c := range w.logits {
		w.logits[c] = logits[c*len(w.index)+lane]
	}
	return categorical(w.logits, y), largest(w.logits)
}

// Evaluate counts a sample as correct that is taken for its class.
func (w *lenetWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	w.each(theta, set, from, to, func(i int, one float64, class uint8) {
		loss += one
		if class == set.Y[i] {
			correct++
		}
	})
	return loss, correct
}

// Classify takes a sample for the class that Evaluate does.
func (w *lenetWorker) Classify(classes []uint8, theta []float64, set *dataset.Set, from, to int) {
	w.each(theta, set, from, to, func(i int, _ float64, class uint8) { classes[i-from] = class })
}

// each tells of the samples from..to-1, of each its loss and the class that it is taken for.
func (w *lenetWorker) each(theta []float64, set *dataset.Set, from, to int, tell func(i int, loss float64, class uint8)) {
	w.packOne(w.weights[0], theta)
	w.packed.F = false
	lanes := len(w.index)
	for ; from < to; from += lanes {
		samples := w.index[:min(lanes, to-from)]
		for i := range samples {
			samples[i] = from + i
		}
		w.gather(set, samples)
		logits := w.forward(w.weights[0])
		for lane := range samples {
			loss, class := w.decide(logits, lane, set.Y[from+lane])
			tell(from+lane, loss, class)
		}
	}
}

// pack packs the points that are wanted.
func (w *lenetWorker) pack(theta, phi []float64, gamma float64, want Want) {
	phi = phi[:len(theta)]
	for side, gamma := range []float64{gamma, -gamma} {
		if side == 1 && !want.Minus {
			break
		}
		for i, t := range theta {
			w.point[i] = t + float64(gamma*phi[i])
		}
		w.packOne(w.weights[1+side], w.point)
	}
	if want.F {
		w.packOne(w.weights[0], theta)
	}
}

// packOne packs a point.
func (w *lenetWorker) packOne(dst []float32, point []float64) {
	for _, l := range w.net.layers {
		l.Pack(dst, point)
		dst, point = dst[l.Packed():], point[l.Parameters():]
	}
}

// gather writes samples into the panel: feature j of sample i to panel[j*lanes+i]. What
// is left over of the panel gets the last sample once more.
func (w *lenetWorker) gather(set *dataset.Set, samples []int) {
	values, channels := set.Bytes()
	if values == nil {
		w.gatherWide(set, samples)
		return
	}
	for i := range w.rows {
		w.rows[i] = values[samples[min(i, len(samples)-1)]*set.Dim:][:set.Dim]
	}
	columns := kernel.Columns{Count: set.Dim / len(channels)}
	for _, c := range channels {
		columns.Factor, columns.Addend = c.Factor, c.Offset
		kernel.Gather(w.net.path, w.units[0], w.rows, columns)
		columns.From += columns.Count
	}
}

// gatherWide is gather for a set without bytes.
func (w *lenetWorker) gatherWide(set *dataset.Set, samples []int) {
	const side = 4 // rows that are read side by side: all paths have a multiple of lanes
	lanes := len(w.index)
	row := func(i int) []float64 { return set.Row(samples[min(i, len(samples)-1)]) }
	for first := 0; first < lanes; first += side {
		a, b, c, d := row(first), row(first+1), row(first+2), row(first+3)
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		to := w.units[0][first:]
		for j := range a {
			p := (*[side]float32)(to[j*lanes:])
			p[0], p[1], p[2], p[3] = float32(a[j]), float32(b[j]), float32(c[j]), float32(d[j])
		}
	}
}

// forward returns the logits of the panel, output by output.
func (w *lenetWorker) forward(weights []float32) []float32 {
	w.net.layers[0].RunAll(w.first[:1], w.units[0], [][]float32{weights}, w.scratch)
	return w.behind(w.first[0], weights)
}

// behind returns the logits of the panel, of which the first layer has made units.
func (w *lenetWorker) behind(units, weights []float32) []float32 {
	for i, l := range w.net.layers {
		if i > 0 {
			l.Run(w.units[i], units, weights, w.scratch)
			units = w.units[i]
		}
		weights = weights[l.Packed():]
	}
	return units
}
