//go:build !amd64 || purego

package model

import "gonum.org/v1/gonum/floats"

// dotter computes products of a sample with two vectors.
type dotter struct{}

func newDotter() dotter { return dotter{} }

// dot returns the products of x with a and with b, all as long as x.
func (dotter) dot(x, _, a, b []float64) (xa, xb float64) { return floats.Dot(x, a), floats.Dot(x, b) }
