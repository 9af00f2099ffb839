package dataset

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
)

// checkPartition says whether every index 0..n-1 occurs once and every shard is
// ascending and not empty.
func checkPartition(t *testing.T, shards [][]int, n, devices int) {
	t.Helper()
	if len(shards) != devices {
		t.Fatalf("%d shards for %d devices", len(shards), devices)
	}
	seen := make([]int, n)
	for i, shard := range shards {
		if len(shard) == 0 || !slices.IsSorted(shard) {
			t.Fatalf("shard %d of %d is %v", i, devices, shard)
		}
		for _, j := range shard {
			seen[j]++
		}
	}
	for j, times := range seen {
		if times != 1 {
			t.Fatalf("index %d occurs %d times", j, times)
		}
	}
}

func TestIID(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rnd.IntN(300)
		devices := 1 + rnd.IntN(n)
		seed := keystream.FromInteger(rnd.Uint64())
		shards, err := IID(n, devices, seed)
		if err != nil {
			t.Fatal(err)
		}
		checkPartition(t, shards, n, devices)
		for _, shard := range shards {
			if len(shard) != n/devices && len(shard) != (n+devices-1)/devices {
				t.Fatalf("%d samples on %d devices gave a shard of %d", n, devices, len(shard))
			}
		}
		if again, _ := IID(n, devices, seed); !reflect.DeepEqual(again, shards) {
			t.Fatal("the same seed gave another partition")
		}
	}
}

func TestDirichlet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	alphas := []float64{1e-300, 1e-6, 0.01, 0.1, 0.5, 1, 10, 1e6}
	for trial := range 400 {
		labels := make([]uint8, 1+rnd.IntN(200))
		classes := 1 + rnd.IntN(10)
		for i := range labels {
			labels[i] = uint8(rnd.IntN(classes))
		}
		devices := 1 + rnd.IntN(len(labels))
		alpha := alphas[trial%len(alphas)]
		seed := keystream.FromInteger(rnd.Uint64())
		shards, err := Dirichlet(labels, devices, alpha, seed)
		if err != nil {
			t.Fatal(err)
		}
		checkPartition(t, shards, len(labels), devices)
		if again, _ := Dirichlet(labels, devices, alpha, seed); !reflect.DeepEqual(again, shards) {
			t.Fatal("the same seed gave another partition")
		}
	}
}

// TestDirichletConcentration compares the shares of one class with the second
// moment of the Dirichlet distribution: for D devices the mean of the sum of
// squared shares is (alpha+1)/(D alpha+1).
func TestDirichletConcentration(t *testing.T) {
	if testing.Short() {
		t.Skip("twelve hundred partitions in one goroutine: not with -short")
	}
	const devices, draws = 4, 400
	labels := make([]uint8, 4000)
	for _, alpha := range []float64{0.1, 1, 10} {
		var mean float64
		for draw := range uint64(draws) {
			shards, err := Dirichlet(labels, devices, alpha, keystream.FromInteger(9).Derive("draw", draw))
			if err != nil {
				t.Fatal(err)
			}
			for _, shard := range shards {
				share := float64(len(shard)) / float64(len(labels))
				mean += share * share / draws
			}
		}
		want := (alpha + 1) / (devices*alpha + 1)
		// The sum of squares lies between 1/D and 1 and has mean want, so its
		// variance is at most (1-want)(want-1/D).
		bound := 5 * math.Sqrt((1-want)*(want-1./devices)/draws)
		if math.Abs(mean-want) > bound+1e-3 {
			t.Errorf("alpha %v: the mean sum of squared shares is %.4f, want %.4f within %.4f", alpha, mean, want, bound)
		}
	}
}

func TestPartitionErrors(t *testing.T) {
	seed := keystream.FromInteger(1)
	for _, devices := range []int{-1, 0, 4} {
		if _, err := IID(3, devices, seed); err == nil {
			t.Errorf("iid: %d devices for 3 samples gave no error", devices)
		}
		if _, err := Dirichlet([]uint8{0, 1, 0}, devices, 1, seed); err == nil {
			t.Errorf("dirichlet: %d devices for 3 samples gave no error", devices)
		}
	}
	for _, alpha := range []float64{0, -1, math.NaN(), math.Inf(1), 1e7} {
		if _, err := Dirichlet([]uint8{0, 1, 0}, 2, alpha, seed); err == nil {
			t.Errorf("alpha %v gave no error", alpha)
		}
	}
}
