package scenes

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/sigmf"
)

// hostile is a name that must stay text.
const hostile = `<script>alert(1)</script>`

// recordTones records a tone at a quarter of the rate below the carrier for a second, and
// then one as far above it, with a mark on the second.
func recordTones(t *testing.T) (path string) {
	t.Helper()
	const rate = 100_000
	path = filepath.Join(t.TempDir(), "tones")
	w, err := sigmf.Create(path, sigmf.Config{Datatype: sigmf.CF32, SampleRate: rate, Description: hostile})
	if err != nil {
		t.Fatal(err)
	}
	for part, cycles := range []float64{-0.25, 0.25} {
		samples := make([]complex64, rate)
		for k := range samples {
			samples[k] = complex64(cmplx.Rect(0.5, 2*math.Pi*cycles*float64(k)))
		}
		if err := w.Record(samples, radio.Meta{First: radio.SampleIndex(part * rate)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Annotate(sigmf.Annotation{First: rate, Count: rate, Label: "tone", Comment: hostile}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path + ".sigmf-meta"
}

// strongest returns where the newest spectrum of messages is strongest, as a share of its
// width; NaN where there is none.
func strongest(t *testing.T, messages [][]byte) float64 {
	t.Helper()
	at := math.NaN()
	for _, m := range messages {
		n := binary.LittleEndian.Uint32(m)
		var h struct {
			Kind    string
			Columns int
		}
		if err := json.Unmarshal(m[4:4+n], &h); err != nil {
			t.Fatal(err)
		}
		if h.Kind != "spectrum" {
			continue
		}
		most := math.Inf(-1)
		for k := range h.Columns {
			if v := float64(math.Float32frombits(binary.LittleEndian.Uint32(m[4+int(n)+4*k:]))); v > most {
				most, at = v, float64(k)/float64(h.Columns)
			}
		}
	}
	return at
}

// A recording plays at its speed, holds still when it is told to, and is sought within its
// bounds; what is shown is what was recorded there.
func TestPlayer(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	p := newPlayer([]string{recordTones(t)}, "", air.New(air.Config{SampleRate: 100_000, Now: clock}), clock)
	l := p.Look()
	defer l.Close()
	wish := func(seconds, speed float64, playing bool) {
		p.Wish(watch.PlayerWish{Seconds: &seconds, Speed: &speed, Playing: &playing})
	}
	step := func(d time.Duration) float64 {
		now = now.Add(d)
		return strongest(t, l.Next(256))
	}
	if b := p.Playback(); b.Duration != 2 || b.Problem != "" || !b.Playing || b.Speed != 0.2 || len(b.Marks) != 1 || b.Marks[0] != (watch.Mark{From: 1, To: 2, Text: "tone: " + hostile}) {
		t.Fatalf("%+v", b)
	}
	wish(0.5, 1, false)
	if at := step(time.Second); math.Abs(at-0.25) > 0.01 {
		t.Errorf("at half a second the strongest column is at %v, want 0.25", at)
	}
	if b := p.Playback(); b.Seconds != 0.5 || b.Playing {
		t.Errorf("it does not hold still: %+v", b)
	}
	if at := step(time.Second); !math.IsNaN(at) {
		t.Errorf("a spectrum at %v of a player that stands still", at)
	}
	wish(1.5, 1, false)
	if at := step(time.Second); math.Abs(at-0.75) > 0.01 {
		t.Errorf("at a second and a half the strongest column is at %v, want 0.75", at)
	}
	wish(0.25, 2, true) // back, and on at twice the speed
	step(0)
	if step(250 * time.Millisecond); math.Abs(p.Playback().Seconds-0.75) > 1e-9 {
		t.Errorf("it stands at %v s after a quarter of a second at twice the speed from 0.25 s", p.Playback().Seconds)
	}
	step(10 * time.Second)
	if b := p.Playback(); b.Seconds != 2 || b.Playing {
		t.Errorf("it goes on behind its end: %+v", b)
	}
	wish(1e9, 1e9, false)
	if b := p.Playback(); b.Seconds != 2 || b.Speed != fastest {
		t.Errorf("%+v", b)
	}
	wish(-1, math.NaN(), false)
	if b := p.Playback(); b.Seconds != 0 || b.Speed != fastest {
		t.Errorf("%+v", b)
	}
	track := 7
	p.Wish(watch.PlayerWish{Track: &track})
	if b := p.Playback(); b.Track != 0 {
		t.Errorf("%+v", b)
	}
	p.mu.Lock()
	p.close()
	p.mu.Unlock()
}

// Recordings that cannot be played are the user's to mend, or say so where others can.
func TestBadRecordings(t *testing.T) {
	path := recordTones(t)
	board := watch.NewBoard("test", fstest.MapFS{})
	if err := Folder(board, path); err != nil || board.Scenes() != 1 {
		t.Fatalf("%v, %d scenes", err, board.Scenes())
	}
	data := strings.TrimSuffix(path, "-meta") + "-data"
	if err := os.Truncate(data, 1001); err != nil {
		t.Fatal(err)
	}
	if err := Folder(board, path); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "tones") {
		t.Errorf("of a dataset that was cut: %v", err)
	}
	p := newPlayer([]string{path}, "", air.New(air.Config{SampleRate: 1e5}), time.Now)
	if b := p.Playback(); b.Problem == "" || b.Playing {
		t.Errorf("%+v", b)
	}
	l := p.Look()
	defer l.Close()
	if m := l.Next(64); m != nil {
		t.Errorf("%d messages of what cannot be played", len(m))
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Folder(board, path); err == nil || !intake.IsUserError(err) {
		t.Errorf("of broken metadata: %v", err)
	}
}
