package uplink

import (
	"math"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
)

// The most that is kept of a frame for plots.
const (
	viewSamples = 1 << 16
	viewSymbols = 1 << 13
)

// waveView is a frame of the first group's first transmission of a round, where
// its scale is found; of frames that were read, if any was, the last.
type waveView struct {
	read    bool
	samples []complex64 // from the frame's beginning on
	sync    modem.Sync
	begins  int // where in the capture samples begin
	soft    []float32
	alpha   float64
}

// keep takes a frame in, if it says more than the one at hand.
func (v *waveView) keep(o phy.Observation) {
	read := o.Failure == ""
	if o.Group != 0 || o.Slot.Transmission != slot.TxKey || v.read && !read {
		return
	}
	v.read, v.sync, v.alpha = read, o.Sync, o.Alpha
	v.begins = min(max(0, int(o.Sync.Start)), len(o.Samples))
	samples := o.Samples[v.begins:]
	v.samples = append(v.samples[:0], samples[:min(len(samples), viewSamples)]...)
	v.soft = append(v.soft[:0], o.Soft[:min(len(o.Soft), viewSymbols)]...)
}

// Plot draws what a radio engineer wants to see of the last round into a folder, under a
// title, and returns the files.
func (l *Waveform) Plot(dir, title string, rows []runfolder.Row) ([]string, error) {
	v := l.view
	// An eye in the middle of what was kept shows payload and not header.
	centre, period := float64(v.sync.Payload)-float64(v.begins), float64(l.samplesPerSymbol)
	centre += period * math.Max(0, math.Floor((float64(len(v.samples))/2-centre)/period))
	return chart.LinkPlots(dir, title, rows, chart.LinkView{
		Samples: v.samples, SampleRate: l.sampleRate, SamplesPerSymbol: l.samplesPerSymbol,
		Centre: centre, Phase: float64(v.sync.Theta),
		Soft: v.soft, Alpha: v.alpha,
	})
}
