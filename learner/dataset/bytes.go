package dataset

import (
	"fmt"
	"sync"
)

// Scale says what a byte b stands for: Factor b + Offset, the product and the sum each
// rounded.
type Scale struct{ Factor, Offset float64 }

// Of returns the feature that a byte stands for.
func (s Scale) Of(b uint8) float64 { return float64(s.Factor*float64(b)) + s.Offset }

// octets are features as their files have them: an eighth of the memory.
type octets struct {
	values   []uint8 // as Set.X
	channels []Scale // of as many equal parts of a sample

	once sync.Once
	x    []float64 // what they stand for, where it is wanted
}

// OfBytes returns a set whose sample i has the features that values[i*dim:(i+1)*dim] stand
// for, dim being the product of the shape: the first of so many equal parts by the first of
// the channels, and so on. Row takes eight times their memory once it is called; a model that
// reads Bytes does without. The set keeps its arguments.
func OfBytes(values, y []uint8, channels []Scale, shape []int, classes []string) (*Set, error) {
	dim := 1
	for _, n := range shape {
		dim *= n
	}
	if dim < 1 || len(channels) < 1 || dim%len(channels) != 0 || len(values) != dim*len(y) {
		return nil, fmt.Errorf("a set of %d samples has %d bytes of shape %v in %d channels; allowed is as many as samples times the shape's product, in equal channels",
			len(y), len(values), shape, len(channels))
	}
	return &Set{Y: y, Dim: dim, Shape: shape, Classes: classes, octets: &octets{values: values, channels: channels}}, nil
}

// Bytes returns the features of a set that OfBytes made, whose memory they share; nil of
// others.
func (s *Set) Bytes() (values []uint8, channels []Scale) {
	if s.octets == nil {
		return nil, nil
	}
	return s.octets.values, s.octets.channels
}

// Values returns the number of features of all samples together.
func (s *Set) Values() int {
	if s.octets != nil {
		return len(s.octets.values)
	}
	return len(s.X)
}

// Memory returns the bytes that the samples take, or will once Row is called.
func (s *Set) Memory() int64 {
	each := 8
	if s.octets != nil {
		each++
	}
	return int64(each*s.Values() + len(s.Y))
}

// features returns what the bytes stand for, which is kept.
func (b *octets) features(dim int) []float64 {
	b.once.Do(func() {
		part := dim / len(b.channels)
		scale := make([][256]float64, len(b.channels))
		for c := range scale {
			for v := range scale[c] {
				scale[c][v] = b.channels[c].Of(uint8(v))
			}
		}
		b.x = make([]float64, len(b.values))
		for at := 0; at < len(b.values); at += part {
			table, to := &scale[at/part%len(scale)], b.x[at:at+part]
			for j, v := range b.values[at : at+part] {
				to[j] = table[v]
			}
		}
	})
	return b.x
}
