package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/keystream"
)

const (
	strokeSide    = 28
	strokeClasses = 4
	strokeNoise   = 0.08 // deviation of the noise added to each pixel
)

// Strokes draws a training and a test set of 28 x 28 grey images, with no file
// needed. Class 0 is a ring (the outline of an ellipse), 1 a bar (a stroke that
// is nearly vertical), 2 a cross, 3 a zigzag; each with random position, size,
// slant, width and brightness, smoothed edges, and Gaussian noise.
//
// The counts are over all four classes, which take turns, and must be in
// 1..2^31-1. Image i of either set depends on the seed and on i alone, so that a
// larger set begins with the smaller one. Those of the given classes are drawn, or all
// where none is given.
func Strokes(seed keystream.Seed, train, test int, classes ...int) (trainSet, testSet *Set, err error) {
	trainSet, err = drawStrokes(seed.Derive("strokes train"), train, classes)
	if err != nil {
		return nil, nil, fmt.Errorf("drawing the training set: %w", err)
	}
	testSet, err = drawStrokes(seed.Derive("strokes test"), test, classes)
	if err != nil {
		return nil, nil, fmt.Errorf("drawing the test set: %w", err)
	}
	return trainSet, testSet, nil
}

func drawStrokes(seed keystream.Seed, count int, classes []int) (*Set, error) {
	if count < 1 || count > math.MaxInt32 {
		return nil, fmt.Errorf("the number of images is %d; allowed is 1 to %d", count, math.MaxInt32)
	}
	var wanted [strokeClasses]bool
	drawn := 0
	for class := range wanted {
		if wanted[class] = len(classes) == 0 || slices.Contains(classes, class); wanted[class] {
			drawn += (count + strokeClasses - 1 - class) / strokeClasses
		}
	}
	const dim = strokeSide * strokeSide
	set := &Set{
		X:       make([]float64, drawn*dim),
		Y:       make([]uint8, 0, drawn),
		Dim:     dim,
		Shape:   []int{strokeSide, strokeSide},
		Classes: []string{"ring", "bar", "cross", "zigzag"},
	}
	stream := seed.Stream()
	rnd := rand.New(stream)
	for i := range count {
		class := i % strokeClasses
		if !wanted[class] {
			continue
		}
		stream.Start(uint32(i), 0)
		drawStroke(set.Row(len(set.Y)), newFigure(class, rnd), rnd)
		set.Y = append(set.Y, uint8(class))
	}
	return set, nil
}

// figure is one drawing before it becomes pixels. Lengths are in pixels, with
// the origin at the figure's centre.
type figure struct {
	row, column float64      // centre
	slant       float64      // columns per row
	halfWidth   float64      // of the stroke
	brightness  float64      // of the stroke's middle, in (0, 1]
	ellipse     [2]float64   // half axes along the rows and the columns, or zero
	points      [][2]float64 // corners (row, column) of lines, joined in pairs
}

func newFigure(class int, rnd *rand.Rand) figure {
	within := func(low, high float64) float64 { return low + (high-low)*rnd.Float64() }
	f := figure{
		row:        within(11.25, 15.75),
		column:     within(11.25, 15.75),
		slant:      within(-0.25, 0.25),
		halfWidth:  within(0.8, 1.6),
		brightness: within(0.7, 1),
	}
	tall, wide := within(6, 9.5), within(5, 8.5)
	switch class {
	case 0:
		f.ellipse = [2]float64{tall, wide}
	case 1:
		f.points = [][2]float64{{-tall, 0}, {tall, 0}}
	case 2:
		f.points = [][2]float64{{-tall, -wide}, {tall, wide}, {-tall, wide}, {tall, -wide}}
	default:
		third := tall / 3
		corners := [][2]float64{{-tall, -wide}, {-third, wide}, {third, -wide}, {tall, wide}}
		for i := range len(corners) - 1 {
			f.points = append(f.points, corners[i], corners[i+1])
		}
	}
	return f
}

// drawStroke writes the figure's pixels, row by row, to dst.
func drawStroke(dst []float64, f figure, rnd *rand.Rand) {
	for i := range dst {
		row := float64(i/strokeSide) - f.row
		column := float64(i%strokeSide) - f.column - f.slant*row
		// A pixel is one unit wide: the edge fades over that distance.
		cover := min(max(f.halfWidth+0.5-f.distance(row, column), 0), 1)
		grey := f.brightness*cover + strokeNoise*rnd.NormFloat64()
		dst[i] = min(max(grey, 0), 1)
	}
}

// distance returns the distance of a point from the figure's middle line.
func (f figure) distance(row, column float64) float64 {
	if f.ellipse[0] > 0 {
		return ellipseDistance(row, column, f.ellipse)
	}
	nearest := math.Inf(1)
	for i := 0; i+1 < len(f.points); i += 2 {
		nearest = min(nearest, segmentDistance(row, column, f.points[i], f.points[i+1]))
	}
	return nearest
}

// ellipseDistance is exact to first order: |F| / |grad F| with F = r - 1, where
// r is the point's radius in units of the ellipse's.
func ellipseDistance(row, column float64, axes [2]float64) float64 {
	u, v := row/axes[0], column/axes[1]
	r := math.Hypot(u, v)
	if r == 0 {
		return min(axes[0], axes[1])
	}
	gradient := math.Hypot(u/axes[0], v/axes[1]) / r
	return math.Abs(r-1) / gradient
}

func segmentDistance(row, column float64, a, b [2]float64) float64 {
	dr, dc := b[0]-a[0], b[1]-a[1]
	along := ((row-a[0])*dr + (column-a[1])*dc) / (dr*dr + dc*dc)
	along = min(max(along, 0), 1)
	return math.Hypot(row-a[0]-along*dr, column-a[1]-along*dc)
}
