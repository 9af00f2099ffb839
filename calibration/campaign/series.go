package campaign

import (
	"math"
	"slices"

	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
)

// series returns what blocks tell of each device.
func (c *Config) series(blocks []sounder.Block) moments.Bench {
	n, rate := c.Soundings.Devices, float64(c.SampleRate)
	b := moments.Bench{Looks: c.Soundings.Looks, Devices: make([]moments.Series, n)}
	for _, block := range blocks {
		b.Session = append(b.Session, block.Session)
		for k, r := range block.Records {
			addRecord(&b.Devices[k%n], r, rate)
		}
	}
	for _, s := range b.Devices {
		fillNoise(s)
	}
	c.holdClock(b.Devices, blocks)
	b.BlockSeconds = c.blockSeconds(blocks)
	b.LookSeconds = float64(c.Soundings.LookSamples()) / rate
	return b
}

// blockSeconds returns the time from block to block: the median of what it was.
func (c *Config) blockSeconds(blocks []sounder.Block) float64 {
	rate := float64(c.SampleRate)
	var steps []float64
	for k := 1; k < len(blocks); k++ {
		if d := blocks[k].At - blocks[k-1].At; d > 0 && blocks[k].Session == blocks[k-1].Session {
			steps = append(steps, float64(d)/rate)
		}
	}
	if len(steps) == 0 {
		return 1 / rate
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// addRecord adds a burst to a device's series.
func addRecord(s *moments.Series, r sounder.Record, rate float64) {
	nan := math.NaN()
	row := sounding.Estimate{GainVar: nan, Delay: 0, DDelayVar: nan, DOffsetVar: nan}
	gain, noise, delay, offset := complex(nan, nan), nan, nan, nan
	if e := r.Estimate; e != nil {
		row, gain, noise = *e, e.Gain, float64(e.Noise)
		s.NoiseDoF = float64(e.NoiseDoF)
		delay, offset = float64(e.Delay+e.DDelay), float64(e.Offset+e.DOffset)*rate
	}
	s.Gain, s.GainVar, s.Noise = append(s.Gain, gain), append(s.GainVar, row.GainVar), append(s.Noise, noise)
	s.Clipped = append(s.Clipped, r.Clipped)
	s.Delay, s.DelayVar = append(s.Delay, delay), append(s.DelayVar, row.DDelayVar)
	s.Offset, s.OffsetVar = append(s.Offset, offset), append(s.OffsetVar, row.DOffsetVar*rate*rate)
}

// holdClock takes from delays what all devices' clocks have run apart by from the
// receiver's, in sessions in which soundings were followed for that: delays are then what
// is left of them beside a clock that goes evenly.
func (c *Config) holdClock(devices []moments.Series, blocks []sounder.Block) {
	looks := c.Soundings.Looks
	for first := 0; first < len(blocks); {
		end, followed := first, false
		for ; end < len(blocks) && blocks[end].Session == blocks[first].Session; end++ {
			followed = followed || blocks[end].Moved != 0
		}
		if followed {
			slope := c.commonSlope(devices, blocks, first, end)
			for _, s := range devices {
				for k := first * looks; k < end*looks; k++ {
					s.Delay[k] += float64(blocks[k/looks].Moved) - slope*c.elapsed(blocks, first, k)
				}
			}
		}
		first = end
	}
}

// elapsed returns the samples from block first to look k of all.
func (c *Config) elapsed(blocks []sounder.Block, first, k int) float64 {
	looks := c.Soundings.Looks
	return float64(blocks[k/looks].At-blocks[first].At) + c.Soundings.BurstCentre(k%looks, 0)
}

// commonSlope returns by how many samples a sample delays grow from block first up to end,
// each device with a delay of its own.
func (c *Config) commonSlope(devices []moments.Series, blocks []sounder.Block, first, end int) float64 {
	looks := c.Soundings.Looks
	slope, lever := 0.0, 0.0
	for _, s := range devices {
		var all []delayed
		for k := first * looks; k < end*looks; k++ {
			if !math.IsNaN(s.Delay[k]) {
				all = append(all, delayed{at: c.elapsed(blocks, first, k), delay: s.Delay[k] + float64(blocks[k/looks].Moved), weight: 1})
			}
		}
		for _, d := range centred(all) {
			slope += d.at * d.delay
			lever += d.at * d.at
		}
	}
	if lever == 0 {
		return 0
	}
	return slope / lever
}

// fillNoise returns bursts without noise the mean of the others': a converter that rounds
// all of a weak one to 0 hides its noise, and does not end it.
func fillNoise(s moments.Series) {
	noise, variance, n := 0.0, 0.0, 0.0
	for k, v := range s.Noise {
		if v > 0 && s.GainVar[k] > 0 {
			noise, variance, n = noise+v, variance+s.GainVar[k], n+1
		}
	}
	for k, v := range s.Noise {
		if v == 0 || s.GainVar[k] == 0 {
			s.Noise[k], s.GainVar[k] = noise/n, variance/n
		}
	}
}

// AllSessions stands for all of them where Estimates is asked for one.
const AllSessions = -1

// Estimates returns the estimates of device i, from 0, of so many devices in a session of
// blocks. Bursts that were missed have none.
func Estimates(blocks []sounder.Block, session, i, devices int) []sounding.Estimate {
	var out []sounding.Estimate
	for _, b := range blocks {
		if session != AllSessions && b.Session != session {
			continue
		}
		for k := i; k < len(b.Records); k += devices {
			if e := b.Records[k].Estimate; e != nil {
				out = append(out, *e)
			}
		}
	}
	return out
}
