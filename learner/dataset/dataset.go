// Package dataset gives labelled samples and their split among devices.
//
// It takes in idx files (MNIST's format), those of CIFAR-10's binary version, or a
// seed for the built-in strokes, and gives sets of samples, the checksums of the
// files that they came from, and partitions of their indices. It downloads the files
// of the data sets that it knows by name. It knows nothing of models, of losses
// or of what a device is beyond its number.
package dataset

import (
	"fmt"
	"strconv"
)

// Set is a list of labelled samples. It is read by many goroutines at once and
// is not to be changed once made.
type Set struct {
	// X holds the features of sample i in X[i*Dim : (i+1)*Dim], each in [0, 1]. It is nil
	// in a set that OfBytes made.
	X []float64
	// Y holds the class of each sample, in 0..len(Classes)-1.
	Y []uint8
	// Dim is the number of features of a sample, at least 1.
	Dim int
	// Shape is the layout of a sample's features, slowest index first, such as
	// {28, 28}. Its product is Dim.
	Shape []int
	// Classes names each class.
	Classes []string

	octets *octets // in place of X
}

// Len returns the number of samples.
func (s *Set) Len() int { return len(s.Y) }

// Row returns the Dim features of sample i, 0 <= i < Len. It shares the set's memory.
func (s *Set) Row(i int) []float64 {
	x := s.X
	if s.octets != nil {
		x = s.octets.features(s.Dim)
	}
	return x[i*s.Dim : (i+1)*s.Dim : (i+1)*s.Dim]
}

// Subset returns a copy of the samples of the given indices, in their order, each in
// 0..Len-1.
func (s *Set) Subset(indices []int) *Set {
	out := &Set{Y: make([]uint8, 0, len(indices)), Dim: s.Dim, Shape: s.Shape, Classes: s.Classes}
	for _, i := range indices {
		out.Y = append(out.Y, s.Y[i])
	}
	if s.octets != nil {
		out.octets = &octets{values: rowsOf(s.octets.values, s.Dim, indices), channels: s.octets.channels}
	} else {
		out.X = rowsOf(s.X, s.Dim, indices)
	}
	return out
}

// rowsOf returns a copy of some rows.
func rowsOf[T any](x []T, dim int, indices []int) []T {
	out := make([]T, 0, len(indices)*dim)
	for _, i := range indices {
		out = append(out, x[i*dim:(i+1)*dim]...)
	}
	return out
}

// Binary returns the samples of two classes, in their order, as a new set whose
// class 0 is classes[0] and whose class 1 is classes[1]. The two must differ and
// must each have a sample.
func (s *Set) Binary(classes [2]int) (*Set, error) {
	if err := checkClasses(classes, len(s.Classes)); err != nil {
		return nil, err
	}
	chosen, count := choose(s.Y, classes)
	for c, n := range count {
		if n == 0 {
			return nil, fmt.Errorf("the set has no sample of class %d (%s)", classes[c], s.Classes[classes[c]])
		}
	}
	out := s.Subset(chosen)
	out.Classes = []string{s.Classes[classes[0]], s.Classes[classes[1]]}
	for i, y := range out.Y {
		out.Y[i] = relabel(y, classes)
	}
	return out, nil
}

// checkClasses says whether the two classes differ and are in 0..limit-1.
func checkClasses(classes [2]int, limit int) error {
	for _, c := range classes {
		if c < 0 || c >= limit {
			return fmt.Errorf("classes: %d is no class of this set; allowed is 0 to %d", c, limit-1)
		}
	}
	if classes[0] == classes[1] {
		return fmt.Errorf("classes: %d is given twice; a binary task needs two different classes", classes[0])
	}
	return nil
}

// choose returns the indices of the labels that are one of the two classes, in
// ascending order, and how many there are of each.
func choose(labels []uint8, classes [2]int) (chosen []int, count [2]int) {
	for _, y := range labels {
		for c, class := range classes {
			if int(y) == class {
				count[c]++
			}
		}
	}
	chosen = make([]int, 0, count[0]+count[1])
	for i, y := range labels {
		if int(y) == classes[0] || int(y) == classes[1] {
			chosen = append(chosen, i)
		}
	}
	return chosen, count
}

func relabel(y uint8, classes [2]int) uint8 {
	if int(y) == classes[1] {
		return 1
	}
	return 0
}

// binaryFromBytes returns the set of the chosen images, of which alone the array has the
// elements.
func binaryFromBytes(images, labels *Array, classes [2]int, chosen []int) *Set {
	var scale [256]float64
	for b := range scale {
		scale[b] = float64(b) / 255
	}
	dim := images.Dims[1] * images.Dims[2]
	set := &Set{
		X:       make([]float64, len(chosen)*dim),
		Y:       make([]uint8, len(chosen)),
		Dim:     dim,
		Shape:   []int{images.Dims[1], images.Dims[2]},
		Classes: []string{strconv.Itoa(classes[0]), strconv.Itoa(classes[1])},
	}
	for row, i := range chosen {
		dst := set.X[row*dim : (row+1)*dim]
		src := images.Data[row*dim : (row+1)*dim]
		for j, b := range src {
			dst[j] = scale[b]
		}
		set.Y[row] = relabel(labels.Data[i], classes)
	}
	return set
}
