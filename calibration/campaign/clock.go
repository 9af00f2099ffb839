package campaign

import (
	"math"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
)

// clock returns by how many parts per million device i's sample clock is faster than the
// receiver's: a faster one's bursts come earlier by as much from look to look. Each block
// has a delay of its own, so that neither what triggers boards nor what moves in the pauses
// counts. nil where blocks have one look.
func (c *Config) clock(i int, blocks []sounder.Block) *calibration.Value {
	slope, lever, parts := 0.0, 0.0, []delayed{}
	for _, b := range blocks {
		block := c.delays(i, b)
		if len(block) < 2 {
			continue
		}
		for _, d := range centred(block) {
			slope += d.weight * d.at * d.delay
			lever += d.weight * d.at * d.at
			parts = append(parts, d)
		}
	}
	if lever == 0 || math.IsInf(lever, 0) {
		return nil
	}
	slope /= lever
	square, free := 0.0, -1.0 // a slope, and a mean a block, are taken from them
	for _, d := range parts {
		e := d.delay - slope*d.at
		square += d.weight * e * e
		if !d.first {
			free++
		}
	}
	if free < 1 {
		return nil
	}
	v := around(-1e6*slope, 1e12*square/free/lever)
	return &v
}

// delayed is the delay of a look, with its weight, at a time in samples.
type delayed struct {
	at, delay, weight float64
	first             bool // of its block
}

// delays returns those of a block's looks.
func (c *Config) delays(i int, b sounder.Block) (out []delayed) {
	for k := i; k < len(b.Records); k += c.Soundings.Devices {
		e := b.Records[k].Estimate
		if e == nil || !(e.DDelayVar >= 0) || math.IsInf(e.DDelayVar, 0) {
			continue
		}
		out = append(out, delayed{
			at: c.Soundings.BurstCentre(k/c.Soundings.Devices, i), delay: float64(e.Delay + e.DDelay),
			weight: 1 / max(e.DDelayVar, 1e-24), first: len(out) == 0,
		})
	}
	return out
}

// centred returns a block's looks about its means.
func centred(block []delayed) []delayed {
	weight, at, delay := 0.0, 0.0, 0.0
	for _, d := range block {
		weight, at, delay = weight+d.weight, at+d.weight*d.at, delay+d.weight*d.delay
	}
	for k := range block {
		block[k].at -= at / weight
		block[k].delay -= delay / weight
	}
	return block
}
