package air

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/cmplx"

	"ringwave/learner/experiment/chart"
)

// The most that a message of a frame has.
const (
	mostSymbols = 1500
	mostTraces  = 60
	mostBins    = 600
	mostPhases  = 256
	mostTeeth   = 200
)

// message returns a header with numbers behind it, as package watch has it.
func message(header any, values ...any) ([]byte, error) {
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	if rest := len(text) % 4; rest != 0 {
		text = append(text, bytes.Repeat([]byte{' '}, 4-rest)...)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, text...)
	for _, v := range values {
		if out, err = binary.Append(out, binary.LittleEndian, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// band is the part of a header that says which frequencies columns are of.
type band struct {
	Kind    string  `json:"kind"`
	Columns int     `json:"columns"`
	Low     float64 `json:"low_hz"`
	High    float64 `json:"high_hz"`
}

func (d *Display) band(kind string, columns int) band {
	half := float64(d.cfg.SampleRate) / 2
	return band{kind, columns, -half, half}
}

// spectrumMessage returns the newest spectrum, average and peak hold. The caller has mu.
func (d *Display) spectrumMessage(columns int) []byte {
	columns = min(columns, Bins)
	average := d.average
	if average == nil {
		average = d.now
	}
	m, err := message(struct {
		band
		Centre  float64 `json:"centre_hz"`
		Bin     float64 `json:"bin_hz"`
		Seconds float64 `json:"seconds"`
	}{d.band("spectrum", columns), float64(d.cfg.Centre), float64(d.cfg.SampleRate) / Bins, d.seconds},
		reduce(d.now, columns), reduce(average, columns), reduce(d.peak, columns))
	if err != nil {
		return nil // numbers have JSON
	}
	return m
}

// waterfallMessage returns the lines that a viewer lacks who has so many. The caller has mu.
func (d *Display) waterfallMessage(has uint64, columns int) []byte {
	columns = min(columns, Bins)
	first := has
	if d.made > keptLines {
		first = max(first, d.made-keptLines)
	}
	var levels []byte
	var seconds []float64
	for k := first; k < d.made; k++ {
		l := d.lines[k%keptLines]
		seconds = append(seconds, l.seconds)
		for _, v := range reduce(l.powers, columns) {
			levels = append(levels, byte(math.Round(255*(min(max(float64(v), lowDB), highDB)-lowDB)/(highDB-lowDB))))
		}
	}
	m, err := message(struct {
		band
		Lines   int       `json:"lines"`
		LowDB   float64   `json:"low_db"`
		HighDB  float64   `json:"high_db"`
		Seconds []float64 `json:"seconds"`
	}{d.band("waterfall", columns), len(seconds), lowDB, highDB, seconds}, levels)
	if err != nil {
		return nil
	}
	return m
}

// tooth is a tooth of a density, in the units of what is drawn.
type tooth struct {
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Integer int     `json:"integer"`
}

// frameHeader is a frame's.
type frameHeader struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Failure string   `json:"failure"`
	Alpha   float64  `json:"alpha"`
	SNR     *float64 `json:"snr_db"` // null where nothing tells
	Symbols int      `json:"symbols"`
	Soft    int      `json:"soft"`
	Traces  int      `json:"traces"`
	Points  int      `json:"trace_points"`
	Bins    int      `json:"bins"`
	Width   float64  `json:"bin_width"`
	Teeth   []tooth  `json:"teeth"`
	Plain   bool     `json:"plain"`
	Margin  float64  `json:"margin"`
	Phases  int      `json:"phase_points"`
}

// frameMessage returns a frame as it is drawn.
func frameMessage(v chart.LinkView) ([]byte, error) {
	scale := 1.0
	h := frameHeader{Kind: "frame", Name: v.Frame, Failure: v.Failure, Teeth: []tooth{}}
	if v.Alpha > 0 && !math.IsInf(v.Alpha, 0) {
		scale, h.Alpha = v.Alpha, v.Alpha
	}
	if !math.IsNaN(v.SNR) && !math.IsInf(v.SNR, 0) {
		h.SNR = &v.SNR
	}
	var symbols, soft []float32
	for _, y := range v.Symbols[:min(len(v.Symbols), mostSymbols)] {
		symbols = append(symbols, float32(scale)*real(y), float32(scale)*imag(y))
	}
	for _, y := range v.Soft[:min(len(v.Soft), mostSymbols)] {
		soft = append(soft, float32(scale)*y)
	}
	h.Symbols, h.Soft = len(symbols)/2, len(soft)
	traces, points := eye(v)
	if points > 0 {
		h.Traces, h.Points = len(traces)/points, points
	}
	counts := v.Density.Count[:min(len(v.Density.Count), mostBins)]
	h.Bins, h.Width, h.Plain, h.Margin = len(counts), finite(v.Density.Width*scale), v.Density.Plain, finite(v.Density.Margin)
	bins := make([]float32, len(counts))
	for k, n := range counts {
		bins[k] = float32(n)
	}
	for _, t := range v.Density.Teeth[:min(len(v.Density.Teeth), mostTeeth)] {
		h.Teeth = append(h.Teeth, tooth{finite(t.From * scale), finite(t.To * scale), int(t.Integer)})
	}
	phases := phaseTrack(v)
	h.Phases = len(phases) / 3
	return message(h, symbols, soft, traces, bins, phases)
}

// finite returns a number that JSON has.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// phaseTrack returns seconds, phase as seen and as tracked, of each point.
func phaseTrack(v chart.LinkView) (out []float32) {
	at := func(list []float64, k int) float32 {
		if k < len(list) {
			return float32(list[k])
		}
		return float32(math.NaN())
	}
	step := max(1, len(v.Seconds)/mostPhases)
	for k := 0; k < len(v.Seconds); k += step {
		out = append(out, float32(v.Seconds[k]), at(v.Seen, k), at(v.Tracked, k))
	}
	return out
}

// eye returns stretches of two symbols about the middles of some, of so many points each.
func eye(v chart.LinkView) (traces []float32, points int) {
	sps := v.SamplesPerSymbol
	if sps < 1 || math.IsNaN(v.Centre) {
		return nil, 0
	}
	points = 2*max(sps, 8) + 1
	turn := cmplx.Exp(complex(0, -v.Phase))
	for k := range mostTraces {
		centre := v.Centre + float64(k*sps)
		if !(centre-float64(sps) >= 0 && centre+float64(sps) < float64(len(v.Samples)-1)) {
			break
		}
		for p := range points {
			t := centre + (2*float64(p)/float64(points-1)-1)*float64(sps)
			first := int(t)
			part := complex(t-float64(first), 0)
			z := complex128(v.Samples[first])*(1-part) + complex128(v.Samples[first+1])*part
			traces = append(traces, float32(real(z*turn)))
		}
	}
	return traces, points
}
