package uplink

import (
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// measuredOf returns statistics of a file whose devices have these offsets, each known to
// half a width; of an older file where it does not say what they have in common.
func measuredOf(older bool, half float64, offsets ...float64) *LinkStats {
	stats := &LinkStats{unit: 1, path: "c.toml", File: &calibration.File{}}
	for _, hz := range offsets {
		d := calibration.Device{OffsetHz: calibration.Interval(hz, hz-half, hz+half), Mu: calibration.Interval(1, 1, 1), ImageDB: math.NaN()}
		if !older {
			v := calibration.Interval(hz-offsets[0], hz-offsets[0]-half, hz-offsets[0]+half)
			d.OffsetFromCommonHz = &v
		}
		stats.File.Devices = append(stats.File.Devices, d)
	}
	return stats
}

func waveform() config.Config {
	c := config.Default()
	c.Link.Kind, c.Link.SampleRateHz, c.Link.Base, c.Channel.Gains = "waveform", 10e6, 3, "continuous"
	return c
}

// Devices undo what is told from nothing, and nothing else.
func TestCorrect(t *testing.T) {
	c := waveform()
	stats := measuredOf(false, 0.01, 5, 5.3, 5.004)
	a := (1 + cmplx.Rect(math.Pow(10, 0.5/20), 0.02)) / 2
	d := &stats.File.Devices[2]
	d.ImageDB, d.IQGainDB, d.IQPhaseRad = -31, 0.5, 0.02
	leakI, leakQ := calibration.Interval(0.02, 0.019, 0.021), calibration.Interval(1e-4, -1e-3, 1e-3)
	d.LeakageI, d.LeakageQ = &leakI, &leakQ
	stats.File.Devices[0].LeakageI, stats.File.Devices[0].LeakageQ = &leakQ, &leakQ
	stats.correct(c)
	if k := stats.corrections; len(k) != 3 || k[0].Offset != 0 || k[0].Leakage != 0 || math.Abs(float64(k[1].Offset)-0.3e-7) > 1e-15 || k[2].Offset != 0 ||
		k[2].Leakage != complex(0.02, 1e-4) || cmplx.Abs(k[2].Image-(1-cmplx.Conj(a))/a) > 1e-12 || k[1].Image != 0 {
		t.Errorf("corrections are %+v", k)
	}
	if l := stats.left; l[0] != 0 || math.Abs(l[1]-0.01/1.96) > 1e-12 || l[2] != 0 {
		t.Errorf("left are %v Hz", l)
	}
	still := measuredOf(false, 0.01, 5, 5.001, 5)
	if still.correct(c); still.corrections != nil {
		t.Errorf("devices of one reference correct %+v", still.corrections)
	}
}

// What is left of carriers is said; so much of it that no scale is read is refused by one
// sentence with the figures.
func TestCheckCarriers(t *testing.T) {
	c := waveform()
	for _, k := range []struct {
		stats         *LinkStats
		refused, says string
	}{
		{measuredOf(false, 1e-4, 0, 0.3, 0), "", "devices turn their carriers by 0, -0.3, 0 Hz, as calibrated; what is left of device 2's, 5.1e-05 Hz"},
		{measuredOf(false, 1, 0, 30, 0), "", "WARNING: devices turn their carriers by 0, -30, 0 Hz"},
		{measuredOf(false, 10, 0, 30, 0), "c.toml: the carrier of device 2 is off from the others' by what is known to 5.1 Hz only, which turns it by 3.2 rad in an attempt of 0.1 s", "WARNING"},
		{measuredOf(true, 0.01, 7, 7.4, 7), "", "WARNING: devices do not turn their carriers; what is left of device 2's, 0.39 Hz"},
		{measuredOf(true, 0.5, 7, 40, 7), "device 2 is off", "WARNING"},
		{measuredOf(true, 0.5, 7, 7.4, 7), "", ""},
		{measuredOf(false, 0.5, 7, 7.4, 7), "", ""},
	} {
		k.stats.correct(c)
		err := k.stats.checkCarriers(c, 0.1)
		if (err != nil) != (k.refused != "") || err != nil && (!strings.Contains(err.Error(), k.refused) || !intake.IsUserError(err)) {
			t.Errorf("refused is %v, want %q", err, k.refused)
		}
		if note := k.stats.carrierNote(c, 0.1); !strings.HasPrefix(note, k.says) || (note == "") != (k.says == "") {
			t.Errorf("the note is %q, want %q", note, k.says)
		}
	}
}

// A session's own soundings take the place of what the file says of carriers where they
// contradict it, and tell where carriers turn by nothing.
func TestTakeCarriers(t *testing.T) {
	c := waveform()
	stats := measuredOf(false, 1e-4, 0, 0.3, 0)
	stats.correct(c)
	value := func(v, half float64) moments.Value { return moments.Value{Value: v, Low: v - half, High: v + half} }
	stats.takeCarriers(campaign.Carriers{Common: []moments.Value{{}, value(0.31, 0.01), value(0.2, 0.01)}}, 10e6, 77)
	k := stats.corrections
	if k[1].Offset != 0.3e-7 || math.Abs(float64(k[2].Offset)-0.2e-7) > 1e-15 || k[0].Since != -77 || k[2].Since != -77 || math.Abs(stats.left[2]-0.01/1.96) > 1e-9 {
		t.Errorf("corrections are %+v, left %v", k, stats.left)
	}
	still := measuredOf(false, 1e-4, 0, 0, 0)
	still.correct(c)
	still.takeCarriers(campaign.Carriers{Common: []moments.Value{{}, value(0.01, 0.01), value(0.001, 0.01)}}, 10e6, 77)
	if still.corrections != nil {
		t.Errorf("devices of one reference correct %+v", still.corrections)
	}
}
