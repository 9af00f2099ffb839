package uplink

import (
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
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

// echoing returns statistics of a file whose second device has an echo of a gain, known to an
// error.
func echoing(gain, err float64) *LinkStats {
	stats := measuredOf(false, 0.01, 0, 0, 0)
	for i := range stats.File.Devices {
		stats.File.Devices[i].EchoDelaysSamples = []float64{}
	}
	d := &stats.File.Devices[1]
	d.EchoDelaysSamples, d.EchoI, d.EchoQ, d.EchoErrors = []float64{8, 3}, []float64{0, 0.001}, []float64{gain, 0}, []float64{err, err}
	stats.correct(waveform())
	return stats
}

// Devices take off the echoes that are told from nothing, unless these are too many, and say so.
func TestCorrectEchoes(t *testing.T) {
	for _, k := range []struct {
		gain  float64
		taken bool
		says  string
	}{
		{0.1, true, "devices take their echoes, of up to -19.9 dB, off what they send, as calibrated; of what is left, -57.0 dB"},
		{0.6, false, "WARNING: the echoes of device 2 add up to 0.6 of its first path, and devices take off 0.5 at most"},
	} {
		stats := echoing(k.gain, 0.001)
		if got := stats.undone(1)[0].Gain; (got == complex(0, k.gain)) != k.taken || stats.TakesOffEchoes() != k.taken || stats.undone(1)[1].Gain != 0 || stats.undone(0)[0].Gain != 0 {
			t.Errorf("corrections are %+v", stats.corrections)
		}
		if notes := strings.Join(stats.Notes(), "\n"); !strings.Contains(notes, k.says) {
			t.Errorf("notes are %q, want %q", notes, k.says)
		}
	}
	old := measuredOf(false, 0.01, 0, 0)
	if old.correct(waveform()); old.TakesOffEchoes() || len(old.Notes()) != 1 {
		t.Errorf("a file that tells nothing of echoes takes them off: %q", old.Notes())
	}
	var none *LinkStats
	if none.TakesOffEchoes() {
		t.Error("no calibration takes echoes off")
	}
}

// A session's own soundings are of first paths, as the file's: its phases and gains are those.
func TestSessionsFirstPaths(t *testing.T) {
	stats := echoing(0.2, 0.001)
	s, err := sounding.New(sounding.Config{Kind: sounding.ZadoffChu, Length: 31, Repetitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	heard, err := s.Shared(campaign.EchoesOf(stats.File.Devices[1]))
	if err != nil {
		t.Fatal(err)
	}
	block := sounder.Block{Records: []sounder.Record{{Estimate: &heard}, {Estimate: &heard}, {Missed: "lost"}}}
	got, err := stats.firstPaths(&sounder.Config{Sounding: s, Devices: 3, Amplitude: 1}, []sounder.Block{block})
	if err != nil {
		t.Fatal(err)
	}
	r := got[0].Records
	if cmplx.Abs(heard.Gain-1) < 1e-3 || cmplx.Abs(r[1].Estimate.Gain-1) > 1e-9 || r[1].Estimate.Noise > 0.01*heard.Noise || r[0].Estimate.Gain != heard.Gain || r[2].Estimate != nil {
		t.Errorf("of %+v become %+v and %+v", heard, r[0].Estimate, r[1].Estimate)
	}
}
