package lattice

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What is shown is what decides: each symbol is read as the integer of the tooth that it
// lies in.
func TestViewIsWhatIsRead(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	h := []float64{0.48, 0.98, 1.51}
	y := make([]float32, 4096)
	for k := range y {
		for _, g := range h {
			y[k] += float32(g * float64(rnd.IntN(3)-1))
		}
		y[k] += float32(0.02 * rnd.NormFloat64())
	}
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	const alpha = 2.0
	res, err := r.At(y, alpha, func([]int32) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	read := append([]int32(nil), res.Y...)
	v, err := r.View(y, alpha)
	if err != nil || v.Plain || len(v.Teeth) < 7 {
		t.Fatalf("%d teeth, plain %v: %v", len(v.Teeth), v.Plain, err)
	}
	for k, x := range y {
		size := math.Abs(float64(x))
		for _, tooth := range v.Teeth {
			if size < tooth.From+v.Width || size > tooth.To-v.Width {
				continue // a bin's width of either end is the rounding's
			}
			if want := int32(math.Copysign(float64(tooth.Integer), float64(x))); read[k] != want {
				t.Fatalf("symbol %v is read as %d, and shown as %d", x, read[k], want)
			}
		}
	}
	if v, err = r.View(y, 0); err != nil || !v.Plain || len(v.Teeth) < 7 || v.Teeth[1].Integer != 0 {
		t.Errorf("without a scale: %+v, %v", v.Teeth, err)
	}
	if _, err = r.View(make([]float32, 100), 1); err == nil {
		t.Error("a view of nothing")
	}
}
