package experiment

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/channel"
	"ringwave/radio"
)

// draw draws the plots of a calibration.
func (k *Calibration) draw(r *campaign.Result) ([]string, error) {
	return chart.CalibrationPlots(k.folder.Path(), k.view(r, k.blocks))
}

// Look analyses some blocks of the calibration as if there were no more. What Result has of
// the bench is not that of the folder's file. It may be called from any goroutine, and takes
// the longer the more blocks there are.
func (k *Calibration) Look(blocks []sounder.Block) (campaign.Result, error) {
	cfg, err := campaignConfig(k.Config, k.root)
	if err != nil {
		return campaign.Result{}, err
	}
	bench := setup.SimulatedBench(k.Config, k.root) // numbers do not depend on it
	bench.Now = time.Now()
	return campaign.Analyse(cfg, blocks, bench)
}

// View returns what is drawn of a result of some blocks of the calibration. It may be called
// from any goroutine.
func (k *Calibration) View(r campaign.Result, blocks []sounder.Block) chart.CalibrationView {
	return k.view(&r, blocks)
}

func (k *Calibration) view(r *campaign.Result, blocks []sounder.Block) chart.CalibrationView {
	v := chart.CalibrationView{Title: k.Config.CalibrationHeading(), RoundSeconds: k.Config.Calibration.RoundSeconds}
	for i, d := range r.Links.Devices {
		s := chart.LinkSeries{Name: fmt.Sprintf("device %d", i+1), Effective: d.Gain, Mu: d.Mu.Value, Sigma: d.Sigma.Value}
		s.Density, s.Model = density(r.File.Devices[i])
		k.overTime(&s, r.Series, blocks, i)
		for lag, rho := range d.Autocorrelation {
			s.Lags = append(s.Lags, float64(lag)*r.Series.BlockSeconds)
			s.Autocorrelation = append(s.Autocorrelation, rho)
		}
		s.Low, s.High = bartlett(d.Autocorrelation, d.Band)
		s.PhaseDeviation, s.GainDeviation = deviationOf(d.PhaseAllan), deviationOf(d.GainAllan)
		s.PhaseNoise, s.GainNoise = noiseOf(campaign.PhaseNoise(d)), noiseOf(campaign.GainNoise(d))
		v.Devices = append(v.Devices, s)
	}
	return v
}

// bartlett returns between what an estimated autocorrelation lies at each lag if there is
// none from there on (Bartlett): white noise's band, wider by what the lags before add to
// its variance.
func bartlett(rho []float64, band float64) (low, high []float64) {
	sum := 1.0
	for lag, r := range rho {
		half := band * math.Sqrt(sum)
		low, high = append(low, -half), append(high, half)
		if lag > 0 {
			sum += 2 * r * r
		}
	}
	return low, high
}

// noiseOf returns a spectrum as it is drawn.
func noiseOf(n campaign.Noise) chart.Noise {
	out := chart.Noise{Offset: n.Hertz, Value: n.Decibels, Floor: n.Floor}
	for _, v := range n.Decibels {
		out.Low, out.High = append(out.Low, v+n.Low), append(out.High, v+n.High)
	}
	return out
}

// overTime fills in what was measured of device i burst by burst.
func (k *Calibration) overTime(s *chart.LinkSeries, b moments.Bench, blocks []sounder.Block, i int) {
	series, rate := b.Devices[i], k.Config.Link.SampleRateHz
	s.Gain, s.Offset = series.Gain, series.Offset
	s.Seconds = make([]float64, len(series.Gain))
	first := lowestPlace(blocks)
	for n := range s.Seconds {
		block := blocks[n/b.Looks]
		s.Seconds[n] = float64(block.At-first[block.Session])/rate + float64(n%b.Looks)*b.LookSeconds + k.sessionBegins(block.Session, b)
		s.Session = append(s.Session, block.Session)
		s.Delay = append(s.Delay, series.Delay[n])
	}
}

// sessionBegins puts sessions one behind the other: boards count from 0 in each.
func (k *Calibration) sessionBegins(session int, b moments.Bench) float64 {
	before := 0
	for _, s := range b.Session {
		if s < session {
			before++
		}
	}
	return float64(before) * b.BlockSeconds
}

// lowestPlace returns the index of the first block of each session.
func lowestPlace(blocks []sounder.Block) map[int]radio.SampleIndex {
	first := map[int]radio.SampleIndex{}
	for _, b := range blocks {
		if _, ok := first[b.Session]; !ok {
			first[b.Session] = b.At
		}
	}
	return first
}

// density returns the density of the law fitted to a device's gains.
func density(d calibration.Device) (f func(float64) float64, name string) {
	mu, sigma := d.Mu.Value, d.Sigma.Value
	if !(sigma > 0) {
		return nil, ""
	}
	if d.Model == calibration.Rician && d.KFactor.Value > 0 && !math.IsInf(d.KFactor.Value, 0) {
		return channel.NewRicianMean(d.KFactor.Value, mu).Density, "Rician"
	}
	return distuv.Normal{Mu: mu, Sigma: sigma}.Prob, "Gaussian"
}

func deviationOf(points []moments.AllanPoint) (d chart.Deviation) {
	for _, p := range points {
		d.Tau, d.Value = append(d.Tau, p.Seconds), append(d.Value, p.Deviation)
		d.Low, d.High = append(d.Low, p.Low), append(d.High, p.High)
	}
	return d
}
