package dataset

import (
	"slices"
	"testing"

	"ringwave/crypto/keystream"
)

func TestStrokes(t *testing.T) {
	train, test, err := Strokes(keystream.FromInteger(5), 402, 40)
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 402 || test.Len() != 40 || train.Dim != 784 || len(train.X) != 402*784 {
		t.Fatalf("got %d and %d samples of %d features", train.Len(), test.Len(), train.Dim)
	}
	var count [4]int
	for _, y := range train.Y {
		count[y]++
	}
	if count != [4]int{101, 101, 100, 100} {
		t.Errorf("the classes have %v samples", count)
	}
	for i, x := range train.X {
		if !(x >= 0 && x <= 1) {
			t.Fatalf("value %d is %v", i, x)
		}
	}
	if slices.Equal(train.Row(0), test.Row(0)) || slices.Equal(train.Row(0), train.Row(4)) {
		t.Error("two samples are the same")
	}
	longer, _, err := Strokes(keystream.FromInteger(5), 500, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(longer.X[:len(train.X)], train.X) {
		t.Error("a larger set does not begin with the smaller one")
	}
	if _, _, err := Strokes(keystream.FromInteger(5), 0, 1); err == nil {
		t.Error("an empty training set gave no error")
	}
	if _, _, err := Strokes(keystream.FromInteger(5), 1, -1); err == nil {
		t.Error("a negative test set gave no error")
	}
}

// TestStrokesNeedManyPixels tries every pixel with every threshold of a grid,
// for ring against bar: none alone may come near what a model is to reach.
func TestStrokesNeedManyPixels(t *testing.T) {
	set, _, err := Strokes(keystream.FromInteger(6), 2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	set, err = set.Choose([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	best := 0
	for j := range set.Dim {
		for threshold := 0.1; threshold < 1; threshold += 0.1 {
			above := 0
			for i, y := range set.Y {
				if (set.Row(i)[j] > threshold) == (y == 1) {
					above++
				}
			}
			best = max(best, above, set.Len()-above)
		}
	}
	share := float64(best) / float64(set.Len())
	t.Logf("the best single pixel is right for %.1f %%", 100*share)
	if share > 0.9 {
		t.Errorf("one pixel is right for %.1f %%", 100*share)
	}
}

// Two classes drawn alone are those of a set of all, whatever the count.
func TestStrokesOfTwoClasses(t *testing.T) {
	for count := 4; count <= 9; count++ {
		for _, classes := range [][]int{{0, 1}, {3, 1}, {2, 0}} {
			var got [2]*Set
			for i, drawn := range [][]int{nil, classes[:]} {
				train, test, err := Strokes(keystream.FromInteger(7), count, 13-count, drawn...)
				if err != nil {
					t.Fatal(err)
				}
				if i == 1 && train.Len() >= count {
					t.Errorf("%d of %d images are drawn", train.Len(), count)
				}
				if got[i], err = train.Choose(classes); err != nil {
					t.Fatal(err)
				}
				if _, err = test.Choose(classes); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got[0].X, got[1].X) || !slices.Equal(got[0].Y, got[1].Y) {
				t.Errorf("%d images, classes %v: others than in a set of all", count, classes)
			}
		}
	}
}
