package setup

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/memory"
	"ringwave/radio/intake"
)

// need is a part of the memory that something takes, and the keys that it grows with.
// Figures are of measured peaks: what they leave out is smaller than what of the sum
// may be in use at different times.
type need struct {
	bytes float64
	keys  []string
}

// programMemory is what the program takes with hardly any data, plots included.
const programMemory = 40e6

// Needed returns the parts of the memory that a run takes. Design is nil without encryption.
func Needed(c config.Config, design *xmkckks.Design, data dataset.Extent) []need {
	n, packed := float64(c.Devices.Count), float64(c.Optimizer.PackedDirections)
	dim := float64(data.Features + 1)
	if outputs := len(c.Task.Classes); outputs > 2 {
		dim *= float64(outputs)
	}
	if c.Task.Model == "lenet" {
		dim = lenetDim
	}
	batch := min(float64(c.Optimizer.BatchSize), float64(data.Samples)/n)
	needs := []need{
		dataNeed(c, data),
		{packed * (8*dim + 24*n), []string{"optimizer.packed_directions"}},
		// A device's generator, its shard, and its batch with scratch.
		{n * (4e3 + 16*batch), []string{"devices.count", "optimizer.batch_size"}},
		{bytesPerRound * float64(c.Optimizer.Rounds), []string{"optimizer.rounds"}},
	}
	if c.System().Gradients {
		needs = append(needs, need{n * (40*dim + 140*float64(c.Channel.Antennas)), []string{"devices.count", "channel.antennas"}})
	}
	if design == nil {
		return needs
	}
	needs = append(needs, need{n * deviceBytes(*design), []string{"devices.count"}},
		// The record of decryption shares.
		need{400 * n * float64(c.Optimizer.Rounds), []string{"devices.count", "optimizer.rounds"}})
	if c.OverWaveform() {
		frame := frameSymbols(c, design.Params) * float64(c.Link.SamplesPerSymbol) * 8
		needs = append(needs, need{waveformNeed(frame, c), []string{"devices.count", "link.samples_per_symbol", "link.group_size"}})
	}
	return needs
}

// lenetDim is the number of LeNet's parameters.
const lenetDim = 62006

// bytesPerRound is what is kept of a round until the plots are drawn.
const bytesPerRound = 2200

// dataNeed is what a data set takes: samples as numbers of 8 bytes, unless LeNet reads bytes,
// with their indices, and what they are taken from, which grows as it is read.
func dataNeed(c config.Config, data dataset.Extent) need {
	feature := 8.0
	if c.Task.Model == "lenet" && c.Task.Dataset == "cifar10" {
		feature = 0 // they are what was read
	}
	samples := float64(data.Samples) * (feature*float64(data.Features) + 40)
	switch c.Task.Dataset {
	case "strokes":
		return need{samples + float64(data.Read), []string{"task.strokes_train", "task.strokes_test"}}
	case "idx":
		return need{samples + 2.4*float64(data.Read), []string{"task.train_images", "task.test_images"}}
	}
	return need{samples + 2.4*float64(data.Read), []string{"task.dataset"}}
}

// deviceBytes is what a device's part of the protocol takes: keys, a ciphertext, what is
// sent, and in the whole form all coefficients of its share.
func deviceBytes(d xmkckks.Design) float64 {
	n := float64(d.Params.N)
	vector := 8 * n * float64(len(d.Params.Primes))
	bytes := 3.5*vector + 4*n
	if d.Form == xmkckks.Whole {
		bytes += 2*vector + 16*n
	}
	return bytes
}

// frameSymbols is the length of the longest frame: all coefficients in digits.
func frameSymbols(c config.Config, p xmkckks.Params) float64 {
	return float64(p.N)*math.Ceil(p.LogQ()/math.Log2(float64(c.Link.Base))) + float64(c.Link.PreambleSymbols)
}

// waveformNeed is what a link over a waveform takes for frames of so many bytes of
// samples: each device's symbols and samples, and the receiver's.
func waveformNeed(frame float64, c config.Config) float64 {
	return 2.7 * frame * float64(c.Devices.Count+1)
}

// NeededToCalibrate returns the parts of the memory that a calibration takes: what is kept of each
// sounding, and the samples of a block's.
func NeededToCalibrate(c config.Config) []need {
	k, n := c.Calibration, float64(c.Devices.Count)
	burst := 8 * float64(k.Length*k.SamplesPerChip*k.Repetitions+2*k.GuardSamples)
	return []need{
		{1200 * n * float64(k.Blocks) * float64(k.Looks), []string{"devices.count", "calibration.blocks", "calibration.looks"}},
		{9.2 * burst * n * float64(k.Looks), []string{"devices.count", "calibration.looks", "calibration.length_chips", "calibration.samples_per_chip", "calibration.repetitions", "calibration.guard_samples"}},
	}
}

// NeededForCurves returns the parts of the memory that curves take, each worker with a bench of the
// most devices, whose receiver takes as much as ten of them.
func NeededForCurves(c config.Config, devices, workers int) []need {
	l := c.Link
	frame := 8 * float64(l.BlockSymbols+l.PreambleSymbols) * float64(l.SamplesPerSymbol)
	return []need{{frame * float64(devices+10) * float64(workers), []string{"link.block_symbols", "link.samples_per_symbol"}}}
}

// CheckMemory refuses what does not fit into the memory that there is, before any of it
// is taken (intake.UserError). Where the system does not tell how much that is, it refuses
// nothing.
func CheckMemory(c config.Config, needs []need) error {
	available, ok := memory.Available()
	total := programMemory
	for _, n := range needs {
		total += n.bytes
	}
	if !ok || total <= float64(available.Bytes) {
		return nil
	}
	most := slices.MaxFunc(needs, func(a, b need) int { return cmp.Compare(a.bytes, b.bytes) })
	keys, err := withValues(c, most.keys)
	if err != nil {
		return err
	}
	return intake.UserError(fmt.Errorf("about %s of memory are needed, %s of them for %s, and %s has %s: lower %s, or set GOMEMLIMIT to what may be taken",
		bytesText(total), bytesText(most.bytes), keys, available.Of, bytesText(float64(available.Bytes)), strings.Join(most.keys, " or ")))
}

// withValues returns keys as key = value.
func withValues(c config.Config, keys []string) (string, error) {
	flat, err := c.Flat()
	if err != nil {
		return "", err
	}
	var texts []string
	for _, key := range keys {
		texts = append(texts, key+" = "+flat[key])
	}
	return strings.Join(texts, " and "), nil
}

func bytesText(b float64) string {
	if b < 1e9 {
		return fmt.Sprintf("%.0f MB", b/1e6)
	}
	return fmt.Sprintf("%.1f GB", b/1e9)
}
