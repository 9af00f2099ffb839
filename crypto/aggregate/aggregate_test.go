package aggregate

import "testing"

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		values [][]float64
		want   int
	}{
		{[][]float64{{1}}, 1}, {[][]float64{{1, 2, 3}, {4, 5, 6}}, 3},
		{nil, 0}, {[][]float64{{}}, 0}, {[][]float64{{}, {}}, 0}, {[][]float64{{1, 2}, {3}}, 0}, {[][]float64{{1}, {2}, {3, 4}}, 0},
	} {
		p, err := Width(c.values)
		if p != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%v: %d, %v", c.values, p, err)
		}
	}
}
