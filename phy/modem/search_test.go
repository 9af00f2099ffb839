package modem

import (
	"math"
	"os"
	"testing"
)

// searched are how many of 100,000 frames were missed, and where no preamble is how many
// were found, by the search by transforms in double precision that this one has taken the
// place of: at an SNR where a few are missed, and a probability at which a few are false.
var searched = []struct {
	name           string
	cfg            Config
	snrDB          float64 // of a symbol
	missed, untrue float64
}{
	{"flat-top, 4", flatTop(4, FlatTop{Edge: 1}), -3, 11058, 68},
	{"flat-top, 8", flatTop(8, FlatTop{Edge: 1}), -5, 1198, 33},
	{"flat-top, 16", flatTop(16, FlatTop{Edge: 1}), -5, 873, 10},
	{"root-raised-cosine, 2", rootRaised(2), -5, 66, 1972},
	{"root-raised-cosine, 8", rootRaised(8), -5, 141, 13},
}

// Preambles are missed and invented as often as before, to five deviations. Fewer frames
// are looked at unless RINGWAVE_LONG is in the environment.
func TestSearchFigures(t *testing.T) {
	const all, falsely = 100_000, 0.1
	frames := 2000
	switch {
	case os.Getenv("RINGWAVE_LONG") != "":
		frames = all
	case testing.Short():
		frames = 200
	}
	for _, c := range searched {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			detector := mustDetector(t, c.cfg, Search{MaxOffset: 1e-4, FalseAlarm: falsely})
			rnd := newRand(5)
			missed, untrue := 0.0, 0.0
			for seed := range uint64(frames) {
				s := newScene(c.cfg, seed, 30, 3, device{gain: 1, phase: 2, delay: Samples(rnd.Float64())})
				s.lead = rnd.IntN(400)
				s.offset = CyclesPerSample(2e-4 * (rnd.Float64() - 0.5))
				s.noise = float64(c.cfg.SamplesPerSymbol) / math.Pow(10, c.snrDB/10)
				samples, payload := s.capture(t)
				there := false
				for _, found := range detector.Find(samples) {
					if math.Abs(float64(found.Payload-payload-s.devices[0].delay)) < float64(c.cfg.SamplesPerSymbol) {
						there = true
					} else {
						untrue++
					}
				}
				if !there {
					missed++
				}
			}
			t.Logf("of %d frames %v were missed, and %v found where none was", frames, missed, untrue)
			share := float64(frames) / all
			for name, v := range map[string][2]float64{"missed": {missed, c.missed * share}, "found where there is none": {untrue, c.untrue * share}} {
				if bound := 5*math.Sqrt(v[1]*(1+share)) + 1; math.Abs(v[0]-v[1]) > bound {
					t.Errorf("%v %s, want %v to %.0f", v[0], name, v[1], bound)
				}
			}
		})
	}
}
