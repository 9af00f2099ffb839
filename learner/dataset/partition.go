package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/crypto/keystream"
)

// maxAlpha keeps the sum of many gamma draws finite. Shares at this
// concentration already differ by about one in a thousand.
const maxAlpha = 1e6

// IID splits n samples at random into shards, one a device, whose sizes differ
// by at most one. It gives each device's sample indices, ascending. Every index
// 0..n-1 occurs once. It needs 1 <= devices <= n.
func IID(n, devices int, seed keystream.Seed) ([][]int, error) {
	if err := checkDevices(n, devices); err != nil {
		return nil, err
	}
	order := shuffled(n, seed)
	shards := make([][]int, devices)
	for i := range shards {
		shards[i] = slices.Clone(order[i*n/devices : (i+1)*n/devices])
		slices.Sort(shards[i])
	}
	return shards, nil
}

// shuffled returns the indices 0..n-1 in random order.
func shuffled(n int, seed keystream.Seed) []int {
	return rand.New(seed.Derive("partition iid").Stream()).Perm(n)
}

// Drawn returns the indices of so many of n samples, 0 to n, drawn at random, ascending: the
// first shard that IID makes of the same seed, where that has as many.
func Drawn(n, count int, seed keystream.Seed) []int {
	drawn := shuffled(n, seed)[:count]
	slices.Sort(drawn)
	return drawn
}

// Dirichlet splits samples so that the devices' shares of each class are a draw
// from the symmetric Dirichlet distribution of concentration alpha, in
// (0, 10^6]: a small alpha gives each device few classes, a large one nearly
// equal shards. It gives each device's sample indices, ascending; every index
// 0..len(labels)-1 occurs once. It needs 1 <= devices <= len(labels).
//
// Every device gets a sample: afterwards each device without one, in ascending
// order, takes the highest index of the device that then has most (of several,
// the first).
func Dirichlet(labels []uint8, devices int, alpha float64, seed keystream.Seed) ([][]int, error) {
	if err := checkDevices(len(labels), devices); err != nil {
		return nil, err
	}
	if !(alpha > 0 && alpha <= maxAlpha) {
		return nil, fmt.Errorf("alpha is %v; allowed is above 0 and at most %v", alpha, float64(maxAlpha))
	}
	var byClass [256][]int
	for i, y := range labels {
		byClass[y] = append(byClass[y], i)
	}
	shards := make([][]int, devices)
	stream := seed.Derive("partition dirichlet").Stream()
	for class, members := range byClass {
		if len(members) == 0 {
			continue
		}
		stream.Start(uint32(class), 0)
		deal(shards, members, alpha, stream)
	}
	for i := range shards {
		slices.Sort(shards[i])
	}
	fillEmpty(shards)
	return shards, nil
}

// deal shuffles the members of one class and appends them to the shards in
// proportions drawn from the Dirichlet distribution.
func deal(shards [][]int, members []int, alpha float64, source rand.Source) {
	rnd := rand.New(source)
	rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	share := shares(len(shards), alpha, source)
	var upTo float64
	start := 0
	for i := range shards {
		upTo += share[i]
		end := min(max(int(math.Round(upTo*float64(len(members)))), start), len(members))
		if i == len(shards)-1 {
			end = len(members)
		}
		shards[i] = append(shards[i], members[start:end]...)
		start = end
	}
}

// shares draws from the symmetric Dirichlet distribution: gamma draws over their
// sum. At very small alpha all draws can be too small for a float64; the
// distribution then is the limit for alpha to 0, all to one device.
func shares(devices int, alpha float64, source rand.Source) []float64 {
	gamma := distuv.Gamma{Alpha: alpha, Beta: 1, Src: source}
	out := make([]float64, devices)
	var sum float64
	for i := range out {
		out[i] = gamma.Rand()
		sum += out[i]
	}
	if sum < math.SmallestNonzeroFloat64*(1<<52) {
		clear(out)
		out[rand.New(source).IntN(devices)] = 1
		return out
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// fillEmpty needs at least as many samples as shards: while one is empty,
// another then has two or more.
func fillEmpty(shards [][]int) {
	for i := range shards {
		if len(shards[i]) > 0 {
			continue
		}
		most := 0
		for j := range shards {
			if len(shards[j]) > len(shards[most]) {
				most = j
			}
		}
		last := len(shards[most]) - 1
		shards[i] = []int{shards[most][last]}
		shards[most] = shards[most][:last]
	}
}

func checkDevices(samples, devices int) error {
	if devices < 1 || devices > samples {
		return fmt.Errorf("the number of devices is %d; allowed is 1 to %d, the number of samples", devices, samples)
	}
	return nil
}
