package model

import (
	"testing"

	"ringwave/crypto/vector"
)

// The named tensors of each model are all of theta.
func TestTensorsAreTheta(t *testing.T) {
	logistic, err := NewLogistic(7)
	if err != nil {
		t.Fatal(err)
	}
	softmax, err := NewSoftmax(7, 4)
	if err != nil {
		t.Fatal(err)
	}
	quadratic, err := NewQuadratic([]float64{1, 2}, []float64{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Model{logistic, NewLeNet(vector.Path(0), 2), NewLeNet(vector.Path(0), 10), softmax, BatchSum(logistic), quadratic} {
		sum, names := 0, map[string]bool{}
		for _, tensor := range Tensors(m) {
			sum += tensor.Size()
			names[tensor.Name] = true
		}
		if sum != m.Dim() || len(names) != len(Tensors(m)) {
			t.Errorf("%T: %d of %d values, %v", m, sum, m.Dim(), names)
		}
	}
	if n := len(Tensors(BatchSum(logistic))); n != 2 {
		t.Errorf("%d tensors of a model whose losses are sums", n)
	}
}
