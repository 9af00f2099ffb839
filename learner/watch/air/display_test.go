package air

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ringwave/learner/experiment/chart"
	"ringwave/phy/lattice"
	"ringwave/radio"
)

// clock is one that goes on by itself, a tick a look.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(between)
		return now
	}
}

// parse returns a message's header and the numbers behind it.
func parse(t *testing.T, m []byte) (h map[string]any, rest []byte) {
	t.Helper()
	n := binary.LittleEndian.Uint32(m)
	if n%4 != 0 {
		t.Errorf("a header of %d bytes", n)
	}
	if err := json.Unmarshal(m[4:4+n], &h); err != nil {
		t.Fatal(err)
	}
	return h, m[4+n:]
}

func floats(b []byte) (out []float64) {
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return out
}

// tone returns samples of a tone.
func tone(n int, amplitude, cycles float64) []complex64 {
	out := make([]complex64, n)
	for k := range out {
		out[k] = complex64(cmplx.Rect(amplitude, 2*math.Pi*cycles*float64(k)))
	}
	return out
}

// A tone lights the column of its frequency at its level, in the newest spectrum, the
// average, the peak hold and the waterfall.
func TestTone(t *testing.T) {
	const rate, columns = 2e6, 256
	for _, f := range []float64{-900e3, -1e3 * 1000 / 8, 0, 250e3, 700e3} {
		d := New(Config{SampleRate: rate, Now: clock()})
		l := d.Look()
		if err := d.Record(tone(1<<14, 0.1, f/rate), radio.Meta{First: 1e6}); err != nil {
			t.Fatal(err)
		}
		messages := l.Next(columns)
		if len(messages) != 2 {
			t.Fatalf("%d messages", len(messages))
		}
		h, rest := parse(t, messages[0])
		if h["kind"] != "spectrum" || h["columns"] != float64(columns) || h["low_hz"] != -rate/2 || h["high_hz"] != rate/2 || math.Abs(h["seconds"].(float64)-0.5) > 0.01 {
			t.Errorf("%v", h)
		}
		want := int((f + rate/2) / rate * columns)
		values := floats(rest)
		for part := range 3 {
			got := values[part*columns : (part+1)*columns]
			at := slices.Index(got, slices.Max(got))
			if at != want || math.Abs(got[at]+20) > 1.5 { // a tone between two bins reads up to 1.42 dB less
				t.Errorf("%v Hz: column %d at %.2f dB, want %d at -20 dB", f, at, got[at], want)
			}
		}
		h, rest = parse(t, messages[1])
		if h["lines"] != 1.0 || len(rest) != columns || slices.Index(rest, slices.Max(rest)) != want {
			t.Errorf("waterfall: %v, %d bytes", h, len(rest))
		}
		l.Close()
	}
}

// Noise of power 1 a sample has the mean level that its bins' width asks for: 1.5/Bins, 1.5
// being the noise bandwidth of a Hann window.
func TestNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	d := New(Config{SampleRate: 1e6, Now: clock()})
	l := d.Look()
	defer l.Close()
	for range 400 {
		samples := make([]complex64, Bins)
		for k := range samples {
			samples[k] = complex64(complex(rnd.NormFloat64(), rnd.NormFloat64()) * math.Sqrt2 / 2)
		}
		d.Record(samples, radio.Meta{})
		l.Next(Bins)
	}
	sum := 0.0
	for _, p := range d.average {
		sum += p
	}
	// The average has a variance of newest/(2-newest) of one spectrum's: over Bins bins the
	// mean's deviation is below 0.5 %.
	if got, want := sum/Bins, 1.5/Bins; math.Abs(got/want-1) > 0.02 {
		t.Errorf("mean level %v, want %v", got, want)
	}
}

// A burst that is shorter than a block, in a block that comes when enough were taken, is in
// the peak hold, and is gone once that is reset.
func TestBurst(t *testing.T) {
	d := New(Config{SampleRate: 1e6, Now: func() time.Time { return time.Unix(0, 0) }})
	l := d.Look()
	defer l.Close()
	quiet := make([]complex64, 1<<15)
	for range 20 {
		d.Record(quiet, radio.Meta{})
	}
	struck := slices.Clone(quiet)
	copy(struck[20000:], tone(1500, 1, 0.25))
	d.Record(struck, radio.Meta{})
	d.Record(quiet, radio.Meta{})
	peak := func() float64 {
		for _, m := range l.Next(64) {
			if h, rest := parse(t, m); h["kind"] == "spectrum" {
				return floats(rest)[2*64+48]
			}
		}
		t.Fatal("no spectrum")
		return 0
	}
	if got := peak(); got < -6 {
		t.Errorf("the peak hold has %.1f dB where a burst was", got)
	}
	l.Ask("reset")
	d.made, d.madeAt = 1, time.Unix(-1, 0)
	d.Record(quiet, radio.Meta{})
	if got := peak(); got > -100 {
		t.Errorf("the peak hold has %.1f dB after it was reset", got)
	}
}

// Short blocks are put together; a gap between them begins anew.
func TestShortBlocks(t *testing.T) {
	d := New(Config{SampleRate: 1e6, Now: clock()})
	l := d.Look()
	defer l.Close()
	samples := tone(Bins, 1, 0.125)
	d.Record(samples[:1000], radio.Meta{First: 0})
	d.Record(samples[:1500], radio.Meta{First: 5000})
	if l.Next(64) != nil {
		t.Error("a spectrum across a gap")
	}
	d.Record(samples[1500:], radio.Meta{First: 6500})
	if l.Next(64) == nil {
		t.Error("no spectrum of blocks that follow each other")
	}
}

// A frame's symbols come times alpha, so that those of a lattice are integers.
func TestFrame(t *testing.T) {
	d := New(Config{SampleRate: 1e6, Now: clock()})
	if d.WantsFrame() {
		t.Error("a frame is wanted and nobody looks")
	}
	l, other := d.Look(), d.Look()
	defer l.Close()
	defer other.Close()
	const alpha = 2.5
	v := chart.LinkView{Frame: "round 3, attempt 1, b", Alpha: alpha, SNR: math.NaN(), SamplesPerSymbol: 4, Centre: 4, Samples: tone(400, 1, 0.25), Phase: 0.5,
		Density: lattice.View{Width: 0.1, Count: []float64{1, 2, 3}, Teeth: []lattice.Tooth{{From: 0.3, To: 0.5, Integer: 1}}}}
	for k := range 3000 {
		v.Soft = append(v.Soft, float32(k%7-3)/alpha)
		v.Symbols = append(v.Symbols, complex(float32(k%7-3)/alpha, 0.01))
	}
	if !d.WantsFrame() {
		t.Fatal("no frame is wanted")
	}
	d.Frame(func() chart.LinkView { return v })
	if d.WantsFrame() {
		t.Error("another frame is wanted before the first was drawn")
	}
	m := l.Next(64)
	if len(m) != 1 || !slices.Equal(other.Next(64)[0], m[0]) || l.Next(64) != nil {
		t.Fatal("each viewer gets the frame once")
	}
	h, rest := parse(t, m[0])
	if h["name"] != v.Frame || h["alpha"] != alpha || h["snr_db"] != nil || h["symbols"] != float64(mostSymbols) || h["bin_width"] != 0.25 {
		t.Errorf("%v", h)
	}
	values := floats(rest)
	if want := 3*mostSymbols + int(h["traces"].(float64)*h["trace_points"].(float64)) + 3; len(values) != want || h["traces"].(float64) < 10 {
		t.Fatalf("%d numbers, want %d: %v", len(values), want, h)
	}
	for k := range mostSymbols {
		if x := values[2*k]; math.Abs(x-math.Round(x)) > 1e-6 {
			t.Fatalf("symbol %d lies at %v", k, x)
		}
	}
	// The eye is the real part at the common phase.
	points := int(h["trace_points"].(float64))
	if got, want := values[3*mostSymbols+points/2], math.Cos(2*math.Pi*0.25*4-0.5); math.Abs(got-want) > 1e-6 {
		t.Errorf("the middle of the eye is %v, want %v", got, want)
	}
}

// Ten look while a receiver records and frames come; what nobody looks at is not kept.
func TestManyLook(t *testing.T) {
	d := New(Config{SampleRate: 20e6})
	block := tone(1<<14, 0.5, 0.1)
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for k := 0; ; k++ {
			select {
			case <-stop:
				return
			default:
			}
			d.Record(block, radio.Meta{First: radio.SampleIndex(k << 14)})
			if d.WantsFrame() {
				d.Frame(func() chart.LinkView { return chart.LinkView{Alpha: 1} })
			}
		}
	})
	var lookers sync.WaitGroup
	for range 10 {
		lookers.Go(func() {
			l := d.Look()
			defer l.Close()
			for got := 0; got < 10; {
				got += len(l.Next(512))
			}
			l.Ask("reset")
		})
	}
	lookers.Wait()
	close(stop)
	all.Wait()
	if d.looks.Load() != 0 {
		t.Error("a look is left")
	}
	d.forget()
	d.Record(block, radio.Meta{})
	if len(d.blocks)+len(d.loud) > 0 {
		t.Error("samples are kept and nobody looks")
	}
}

// What a second of 20 Msps costs: a receiver that records blocks as they come, a viewer
// that looks 20 times. The figure of interest is the time over a second.
func BenchmarkSecond(b *testing.B) {
	block := tone(1<<14, 0.5, 0.1)
	for name, looks := range map[string]int{"nobody": 0, "one": 1, "ten": 10} {
		b.Run(name, func(b *testing.B) {
			now := time.Unix(0, 0)
			d := New(Config{SampleRate: 20e6, Now: func() time.Time { return now }})
			var lookers []interface{ Next(int) [][]byte }
			for range looks {
				lookers = append(lookers, d.Look())
			}
			for b.Loop() {
				for k := range 1220 {
					now = now.Add(time.Second / 1220)
					d.Record(block, radio.Meta{First: radio.SampleIndex(k << 14)})
					if k%61 == 0 {
						for _, l := range lookers {
							l.Next(1024)
						}
					}
				}
			}
		})
	}
}
