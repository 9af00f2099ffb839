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
	"slices"
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

// Choose returns the samples of two classes or more, in their order, as a new set whose
// class c is classes[c]. They must differ and must each have a sample.
func (s *Set) Choose(classes []int) (*Set, error) {
	if err := checkClasses(classes, len(s.Classes)); err != nil {
		return nil, err
	}
	chosen, count := choose(s.Y, classes)
	if c := lacking(count, false); c >= 0 {
		return nil, fmt.Errorf("the set has no sample of class %d (%s)", classes[c], s.Classes[classes[c]])
	}
	out := s.Subset(chosen)
	out.Classes = nil
	for _, c := range classes {
		out.Classes = append(out.Classes, s.Classes[c])
	}
	relabel(out.Y, classes)
	return out, nil
}

// checkClasses says whether the classes are two or more, differ and are in 0..limit-1.
func checkClasses(classes []int, limit int) error {
	if len(classes) < 2 {
		return fmt.Errorf("classes: there are %d; allowed are 2 or more", len(classes))
	}
	for i, c := range classes {
		if c < 0 || c >= limit {
			return fmt.Errorf("classes: %d is no class of this set; allowed is 0 to %d", c, limit-1)
		}
		if slices.Contains(classes[:i], c) {
			return fmt.Errorf("classes: %d is given twice; allowed are classes that differ", c)
		}
	}
	return nil
}

// places returns the place of each label in the list of classes, and -1 of others.
func places(classes []int) (at [256]int) {
	for y := range at {
		at[y] = slices.Index(classes, y)
	}
	return at
}

// choose returns the indices of the labels that are one of the classes, in ascending
// order, and how many there are of each.
func choose(labels []uint8, classes []int) (chosen, count []int) {
	at, count := places(classes), make([]int, len(classes))
	all := 0
	for _, y := range labels {
		if c := at[y]; c >= 0 {
			count[c]++
			all++
		}
	}
	chosen = make([]int, 0, all)
	for i, y := range labels {
		if at[y] >= 0 {
			chosen = append(chosen, i)
		}
	}
	return chosen, count
}

// relabel puts the place of its class in place of each label, all of which are of the
// classes.
func relabel(labels []uint8, classes []int) {
	at := places(classes)
	for i, y := range labels {
		labels[i] = uint8(at[y])
	}
}

// lacking returns a class of which there is no sample where there must be one, or -1. With
// oneClass any one class with samples is enough.
func lacking(count []int, oneClass bool) int {
	c := slices.Index(count, 0)
	if oneClass && slices.ContainsFunc(count, func(n int) bool { return n > 0 }) {
		return -1
	}
	return c
}

// fromBytes returns the set of the chosen images, of which alone the array has the
// elements.
func fromBytes(images, labels *Array, classes, chosen []int) *Set {
	var scale [256]float64
	for b := range scale {
		scale[b] = float64(b) / 255
	}
	dim := images.Dims[1] * images.Dims[2]
	set := &Set{
		X:     make([]float64, len(chosen)*dim),
		Y:     make([]uint8, len(chosen)),
		Dim:   dim,
		Shape: []int{images.Dims[1], images.Dims[2]},
	}
	for _, c := range classes {
		set.Classes = append(set.Classes, strconv.Itoa(c))
	}
	for row, i := range chosen {
		dst := set.X[row*dim : (row+1)*dim]
		src := images.Data[row*dim : (row+1)*dim]
		for j, b := range src {
			dst[j] = scale[b]
		}
		set.Y[row] = labels.Data[i]
	}
	relabel(set.Y, classes)
	return set
}
