package campaign

import (
	"math"
	"math/cmplx"
	"slices"

	"ringwave/calibration"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
)

// Carriers are how the carriers of all devices turn in one session. Seconds count from the
// first sample of the session's streams, of the receiver.
type Carriers struct {
	// Own are against the receiver's; Common against that of the reference device, whose
	// own is the median one, and which is exactly 0.
	Own    []moments.Carrier
	Common []moments.Value
	// Reference is the device, from 0.
	Reference int
}

// turns returns by how many hertz the gains of device i turn, 0 where that is not told
// from nothing.
func (c *Carriers) turns(i int) float64 {
	v := c.Own[i].Offset
	if !c.Own[i].Follows || math.Abs(v.Value) <= v.High-v.Value {
		return 0
	}
	return v.Value
}

// phased are a device's gains over a session, NaN where missed, with their seconds.
type phased struct {
	seconds []float64
	gains   []complex128
}

// FollowCarriers finds how the carriers turn in a session of blocks.
func FollowCarriers(soundings *sounder.Config, rate float64, blocks []sounder.Block, session int) Carriers {
	n := soundings.Devices
	series := make([]phased, n)
	for _, b := range blocks {
		if b.Session != session {
			continue
		}
		for k, r := range b.Records {
			s := &series[k%n]
			gain := cmplx.NaN()
			if r.Estimate != nil {
				gain = r.Estimate.Gain
			}
			s.seconds, s.gains = append(s.seconds, secondsOf(soundings, rate, b, k)), append(s.gains, gain)
		}
	}
	var c Carriers
	before := make([]sounding.Pooled, n)
	for i, s := range series {
		before[i] = scattered(Estimates(blocks, session, i, n))
		c.Own = append(c.Own, moments.FollowCarrier(s.seconds, s.gains, float64(before[i].Offset)*rate, math.Sqrt(before[i].OffsetVar)*rate))
	}
	c.Reference = median(c.Own)
	for i := range series {
		c.Common = append(c.Common, c.against(i, series, before, rate))
	}
	return c
}

// leastScatter is how many bursts tell their own scatter.
const leastScatter = 16

// scattered pools bursts as sounding.Pool does, with the error of the offset that their
// scatter shows where that is more than they claim: it holds the truth then. Where it is less
// they may all be off alike, as by what converters round.
func scattered(all []sounding.Estimate) sounding.Pooled {
	p := sounding.Pool(all)
	sum, n := 0.0, 0.0
	for _, e := range all {
		if e.DOffsetVar > 0 && !math.IsInf(e.DOffsetVar, 1) {
			d := float64(e.Offset + e.DOffset - p.Offset)
			sum, n = sum+d*d/e.DOffsetVar, n+1
		}
	}
	if n < leastScatter {
		return p
	}
	// The most that n - 1 squares say with three deviations, each of them sqrt(2/(n-1)).
	p.OffsetVar *= max(1, sum/(n-1)*(1+3*math.Sqrt(2/(n-1))))
	return p
}

// secondsOf returns when the burst of record k of a block was heard, at its centre: as late
// as it was fitted at, or as it was due where it was missed.
func secondsOf(soundings *sounder.Config, rate float64, b sounder.Block, k int) float64 {
	n := soundings.Devices
	at := float64(b.At) + soundings.BurstCentre(k/n, k%n)
	if e := b.Records[k].Estimate; e != nil {
		at += float64(e.Delay)
	}
	return at / rate
}

// median returns the device of the median offset, of two the lower one.
func median(own []moments.Carrier) int {
	order := make([]int, len(own))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if d := own[a].Offset.Value - own[b].Offset.Value; d != 0 {
			return int(math.Copysign(1, d))
		}
		return 0
	})
	return order[(len(order)-1)/2]
}

// against returns the offset of device i against the reference's: from the products of
// their gains, which the receiver's own carrier turns not at all, however it wanders.
func (c *Carriers) against(i int, series []phased, before []sounding.Pooled, rate float64) moments.Value {
	if i == c.Reference {
		return moments.Value{How: "reference"}
	}
	own, other := series[i], series[c.Reference]
	products := make([]complex128, len(own.gains))
	for k, g := range own.gains {
		products[k] = cmplx.NaN()
		if size := cmplx.Abs(other.gains[k]); size > 0 {
			products[k] = g * cmplx.Conj(other.gains[k]) / complex(size, 0)
		}
	}
	v := float64(before[i].Offset-before[c.Reference].Offset) * rate
	return moments.FollowCarrier(own.seconds, products, v, math.Sqrt(before[i].OffsetVar+before[c.Reference].OffsetVar)*rate).Offset
}

// carriers returns those of each session of blocks.
func (c *Config) carriers(blocks []sounder.Block) map[int]Carriers {
	out := map[int]Carriers{}
	for _, b := range blocks {
		if _, done := out[b.Session]; !done {
			out[b.Session] = FollowCarriers(&c.Soundings, float64(c.SampleRate), blocks, b.Session)
		}
	}
	return out
}

// Stilled returns blocks with gains that no longer turn: each has the phase that it would
// have had at the first sample of its session's streams.
func Stilled(soundings *sounder.Config, rate float64, blocks []sounder.Block, carriers map[int]Carriers) []sounder.Block {
	out := slices.Clone(blocks)
	for k, b := range out {
		c := carriers[b.Session]
		b.Records = slices.Clone(b.Records)
		for j := range b.Records {
			r := &b.Records[j]
			f := c.turns(j % soundings.Devices)
			if r.Estimate == nil || f == 0 {
				continue
			}
			e := *r.Estimate
			e.Gain *= cmplx.Rect(1, -2*math.Pi*math.Remainder(f*secondsOf(soundings, rate, b, j), 1))
			r.Estimate = &e
		}
		out[k].Records = b.Records
	}
	return out
}

// describe sets what the carriers of a device's last session are, and what the error of
// its turn adds to that of its phase.
func (c Carriers) describe(d *calibration.Device, i int, until float64) {
	common := valueOf(c.Common[i])
	d.OffsetHz, d.OffsetFromCommonHz = valueOf(c.Own[i].Offset), &common
	if c.turns(i) == 0 {
		return
	}
	v := c.Own[i].Offset
	more := math.Pi * (v.High - v.Low) * until // 2 pi times half the interval
	half := math.Hypot(d.PhaseRad.High-d.PhaseRad.Value, more)
	d.PhaseRad = calibration.Interval(d.PhaseRad.Value, d.PhaseRad.Value-half, d.PhaseRad.Value+half)
}
