package model

// Tensor is a part of theta that has a name and a shape.
type Tensor struct {
	Name  string
	Shape []int // slowest index first
}

// Size returns the number of its values.
func (t Tensor) Size() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensors returns the parts of a model's theta, in its order. A model tells them by a
// method Tensors; theta of one that has none is a single tensor of that name.
func Tensors(m Model) []Tensor {
	if sum, ok := m.(batchSum); ok {
		m = sum.Model
	}
	if named, ok := m.(interface{ Tensors() []Tensor }); ok {
		return named.Tensors()
	}
	return []Tensor{{"theta", []int{m.Dim()}}}
}

// Tensors returns the weights, one a feature, and the bias.
func (m *Logistic) Tensors() []Tensor {
	return []Tensor{{"weight", []int{1, m.features}}, {"bias", []int{1}}}
}

// Tensors returns each layer's weights and biases, named as PyTorch would.
func (m *LeNet) Tensors() []Tensor {
	kernels := map[int][]int{0: {lenetChannels, 5, 5}, 1: {6, 5, 5}}
	names := []string{"conv1", "conv2", "fc1", "fc2", "fc3"}
	var all []Tensor
	for i, l := range m.layers {
		shape, ok := kernels[i]
		if !ok {
			shape = []int{l.Fan()}
		}
		all = append(all,
			Tensor{names[i] + ".weight", append([]int{l.Rows()}, shape...)},
			Tensor{names[i] + ".bias", []int{l.Rows()}})
	}
	return all
}
