package modem

// normal is the normal equations of a small least-squares fit: n unknowns, and for each a
// row of n coefficients and a right side. gonum's solvers allocate, which a frame must not.
type normal [][]complex128

func newNormal(n int) normal {
	a := make(normal, n)
	for r := range a {
		a[r] = make([]complex128, n+1)
	}
	return a
}

func (a normal) clear() {
	for _, row := range a {
		clear(row)
	}
}

// solve writes the solution to x, and reports whether there is one. It destroys the
// equations, whose matrix is positive definite: pivots are taken as they come.
func (a normal) solve(x []complex128) bool {
	n := len(a)
	for p := range n {
		if !(real(a[p][p]) > 0) {
			return false
		}
		for r := p + 1; r < n; r++ {
			f := a[r][p] / a[p][p]
			for c := p; c <= n; c++ {
				a[r][c] -= f * a[p][c]
			}
		}
	}
	for p := n - 1; p >= 0; p-- {
		sum := a[p][n]
		for c := p + 1; c < n; c++ {
			sum -= a[p][c] * x[c]
		}
		x[p] = sum / a[p][p]
	}
	return true
}
