package kernel

import "ringwave/crypto/vector"

// Columns is Count neighbouring columns of rows of bytes, from column From on. A byte b stands
// for Factor b + Addend: the product and the sum are rounded to float64, and what comes of it
// to float32.
type Columns struct {
	From, Count    int
	Factor, Addend float64
}

// Gather sets a part of a panel to columns of Lanes rows: column c of row i to dst[c*Lanes+i].
// It panics where a row or dst is too short, or there are fewer rows.
func Gather(p vector.Path, dst []float32, rows [][]uint8, c Columns) {
	lanes := Lanes(p)
	rows, dst = rows[:lanes], dst[c.From*lanes:(c.From+c.Count)*lanes]
	for _, row := range rows {
		_ = row[c.From : c.From+c.Count]
	}
	if p != vector.Portable {
		done := gatherAssembly(p, dst, rows, c)
		dst, c.From, c.Count = dst[done*lanes:], c.From+done, c.Count-done
	}
	gatherPortable(dst, rows, c)
}

// gatherPortable reads four rows side by side: all paths have a multiple of lanes.
func gatherPortable(dst []float32, rows [][]uint8, c Columns) {
	const side = 4
	of := func(b uint8) float32 { return float32(float64(c.Factor*float64(b)) + c.Addend) }
	lanes := len(rows)
	for first := 0; first < lanes; first += side {
		var r [side][]uint8
		for i := range r {
			r[i] = rows[first+i][c.From:][:c.Count]
		}
		for j := range c.Count {
			to := (*[side]float32)(dst[j*lanes+first:])
			to[0], to[1], to[2], to[3] = of(r[0][j]), of(r[1][j]), of(r[2][j]), of(r[3][j])
		}
	}
}
