package attack

import (
	"fmt"
	"io"
	"time"
)

// ProgressTo returns what writes a line on w before each attack: which it is, and how much
// time is left.
func ProgressTo(w io.Writer) func(Progress) {
	began := time.Now()
	return func(p Progress) {
		fmt.Fprintf(w, "attack %d of %d, %s", p.Number, p.Of, p.Attack.Name)
		if p.Done > 0 {
			left := time.Duration(float64(time.Since(began)) * (1 - p.Done) / p.Done)
			fmt.Fprintf(w, ", about %v left", left.Round(100*time.Millisecond))
		}
		fmt.Fprintln(w)
	}
}
