package sounder_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/virtual"
)

// airRate is the sample rate of emulated boards.
const airRate radio.Hertz = 2e6

// air is emulated boards without trigger wires, the last of which hears all others. Their
// time waits for who reads.
type air struct {
	array  *array.Array
	boards []*virtual.HackRF
	bench  *virtual.Bench
	cfg    sounder.Config
	// wrap changes what is located, and hears what hears it; nil does nothing.
	wrap  func(tx []radio.Transmitter)
	hears func(rx radio.Receiver) radio.Receiver
}

// newAir makes boards whose streams begin one after the other.
func newAir(t testing.TB, transmitters int, change func(*virtual.Config)) *air {
	t.Helper()
	a := &air{}
	// A Zadoff-Chu sequence of this length cannot be searched for over so many offsets.
	s, err := sounding.New(sounding.Config{Kind: sounding.MSequence, Length: 127, SamplesPerChip: 2, Repetitions: 2})
	ok(t, err)
	a.cfg = sounder.Config{
		Sounding: s, Devices: transmitters, Blocks: 1, Looks: 1, Guard: 96, Amplitude: 0.5,
		Search: sounding.Search{Delay: 80, Offset: 10e3 / 2e6}, Lead: 100_000, Reach: 500_000,
	}
	cfg := virtual.Config{Ears: []virtual.Ear{{Board: transmitters, Noise: &hiss{std: 0.02, rnd: rand.New(rand.NewPCG(1, 2))}}}}
	open := array.Config{Rate: airRate, Frequency: 433.92e6, Clock: array.SharedClock, Trigger: array.SoundedStart}
	var plugged []virtual.Board
	for i := range transmitters + 1 {
		serial := fmt.Sprintf("%032x", 0xc0+i)
		b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial, Reference: &virtual.Gains{}})
		ok(t, err)
		a.boards, plugged = append(a.boards, b), append(plugged, b)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b})
		uri := "hackrf:" + serial + "?transfer=16384&lna=0&vga=0&hold=on&deadline_ms=0&ring=4"
		if i == transmitters {
			open.Receiver = uri
			break
		}
		open.Transmitters = append(open.Transmitters, uri)
		cfg.Links = append(cfg.Links, virtual.Link{From: i, To: transmitters, Gain: complex64(cmplx.Rect(0.4, float64(i)))})
	}
	cfg.Phase = func(board int, turn uint64) loopback.Radians {
		return loopback.Radians(2 * math.Pi * rand.New(rand.NewPCG(uint64(board), turn)).Float64())
	}
	if change != nil {
		change(&cfg)
	}
	a.bench, err = virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, a.bench.Close()) })
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, airRate, 20)
	ok(t, err)
	session, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	devices, err := radio.NewRegistry(map[string]radio.Opener{"hackrf": hackrf.NewOpener(session, virtual.NewHost(plugged...), permit, virtual.NewGuard())})
	ok(t, err)
	open.Locate = a.locate
	a.array, err = array.Open(t.Context(), devices, open)
	ok(t, err)
	t.Cleanup(func() {
		end() // time stands still: what was written cannot be sent any more
		ok(t, a.array.Close())
	})
	return a
}

func (a *air) locate(ctx context.Context, tx []radio.Transmitter, rx radio.Receiver) ([]radio.SampleIndex, error) {
	if a.wrap != nil {
		a.wrap(tx)
	}
	if a.hears != nil {
		rx = a.hears(rx)
	}
	// However close they may have begun, their indices are apart.
	for i := range tx {
		var err error
		if tx[i], err = radio.Shift(tx[i], radio.SampleIndex(-12_345*i)); err != nil {
			return nil, err
		}
	}
	a.cfg.Transmitters, a.cfg.Receiver = tx, rx
	offsets, err := sounder.Locate(ctx, a.cfg)
	for i := range offsets {
		offsets[i] += radio.SampleIndex(-12_345 * i)
	}
	return offsets, err
}

// hiss is white noise.
type hiss struct {
	std float64
	rnd *rand.Rand
}

func (h *hiss) Add(dst []complex64, _ int64) {
	for k := range dst {
		dst[k] += complex(float32(h.std*h.rnd.NormFloat64()), float32(h.std*h.rnd.NormFloat64()))
	}
}

// beat is how far apart devices send marks in arrivals.
const beat = 1000

// arrivals has all devices send a mark, one a beat behind another by the common index, and
// returns by how much later than there each is heard.
func (a *air) arrivals(t *testing.T) (late []float64) {
	t.Helper()
	mark, err := sounding.New(sounding.Config{Kind: sounding.MSequence, Length: 63, Repetitions: 2})
	ok(t, err)
	at := radio.SampleIndex(0)
	all := a.array.Transmitters()
	for _, tx := range all {
		at = max(at, tx.(radio.Pacer).Earliest()+radio.SampleIndex(airRate)/5)
	}
	for i, tx := range all {
		_, err := tx.Write(t.Context(), mark.Samples(0.5), radio.TxMeta{Timed: true, Start: at + radio.SampleIndex(i*beat), BurstEnd: true})
		ok(t, err)
	}
	heard, dst := make([]complex64, beat*(len(all)+1)), make([]complex64, 1<<14)
	for done := false; !done; {
		n, meta, err := a.array.Receiver().Read(t.Context(), dst)
		ok(t, err)
		for k, x := range dst[:n] {
			if i := meta.Index(k) - at + beat/2; i >= 0 && int(i) < len(heard) {
				heard[i] = x
			}
		}
		done = meta.Index(n-1) > at+radio.SampleIndex(len(heard))
	}
	for i := range all {
		m, err := mark.Acquire([][]complex64{heard[i*beat : (i+1)*beat]}, beat/2, sounding.Search{Delay: 100, Offset: a.cfg.Search.Offset})
		if err != nil {
			t.Fatalf("the mark of device %d: %v", i+1, err)
		}
		late = append(late, float64(m.Delay))
	}
	return late
}

// Boards that begin when they begin are brought to one index, of which the receiver's
// differs by what its clock runs apart, and so they are when they begin anew.
func TestLocate(t *testing.T) {
	for i, c := range []struct {
		name    string
		devices int
		change  func(*virtual.Config)
		apart   float64 // samples between devices
		late    float64 // samples, all together
	}{
		{"one", 1, nil, 0, 0.2},
		{"three", 3, nil, 0.2, 0.2},
		{"a receiver 20 ppm off", 3, func(c *virtual.Config) { c.Boards[3].SamplePPM, c.Boards[3].OffsetPPM = 20, 20 }, 0.3, 60},
		{"a receiver 50 ppm off the other way", 5, func(c *virtual.Config) { c.Boards[5].SamplePPM = -50 }, 0.5, 150},
		{"other ways", 3, func(c *virtual.Config) { c.Links[0].Delay, c.Links[2].Delay = 700, 5 }, 0.2, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && i > 1 {
				t.Skip("the goroutines of three devices with other figures: not with -short")
			}
			a := newAir(t, c.devices, c.change)
			for range 2 {
				ok(t, a.array.Start(t.Context()))
				ok(t, a.array.Coherent(t.Context()))
				least, most := math.Inf(1), math.Inf(-1)
				for _, late := range a.arrivals(t) {
					least, most = min(least, late), max(most, late)
				}
				t.Logf("offsets %d, marks late by %.3f to %.3f samples", a.array.Offsets(), least, most)
				if most-least > c.apart || most > c.late || least < -c.late {
					t.Errorf("marks are late by %.3f to %.3f samples", least, most)
				}
			}
		})
	}
}

// fed is what these tests take boards for.
type fed interface {
	radio.Transmitter
	radio.Pacer
	radio.Idler
	radio.LossChecker
}

// tardy is late with some of its first writes, a number of them.
type tardy struct {
	fed
	times int
}

func (d *tardy) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	if d.times--; d.times >= 0 {
		meta.Start = 1
	}
	return d.fed.Write(ctx, src, meta)
}

// A device that is late once is looked for again, wherever it was.
func TestLocateLate(t *testing.T) {
	for _, times := range []int{1, 2, 3} {
		a := newAir(t, 3, nil)
		a.wrap = func(tx []radio.Transmitter) { tx[1] = &tardy{tx[1].(fed), times} }
		ok(t, a.array.Start(t.Context()))
		for i, late := range a.arrivals(t) {
			if math.Abs(late) > 0.2 {
				t.Errorf("%d late writes: device %d is late by %.3f samples", times, i+1, late)
			}
		}
	}
}

// A device that is not where it was found, in the close look, is looked for again; and bursts
// that come when it is looked for again are not taken for others.
func TestLocateStrayed(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   int // the write
		by     radio.SampleIndex
		writes int // in all
	}{
		{"in the close look", 2, 3000, 8},
		{"after it was given up", 0, 600_000, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAir(t, 3, nil)
			d := &strayed{from: c.from, by: c.by}
			a.wrap = func(tx []radio.Transmitter) {
				d.fed = tx[1].(fed)
				tx[1] = d
			}
			ok(t, a.array.Start(t.Context()))
			if d.writes != c.writes {
				t.Errorf("%d bursts were sent; expected are %d", d.writes, c.writes)
			}
			for i, late := range a.arrivals(t) {
				if math.Abs(late) > 0.2 {
					t.Errorf("device %d is late by %.3f samples", i+1, late)
				}
			}
		})
	}
}

// Devices that are late together in the close look are not called late in the next one.
func TestLocateLateTogether(t *testing.T) {
	a := newAir(t, 3, nil)
	late := []*strayed{{from: 2, by: -10_000_000}, {from: 2, by: -10_000_000}}
	a.wrap = func(tx []radio.Transmitter) {
		for i, d := range late {
			d.fed = tx[i+1].(fed)
			tx[i+1] = d
		}
	}
	ok(t, a.array.Start(t.Context()))
	if late[0].writes != 8 || late[1].writes != 6 {
		t.Errorf("%d and %d bursts were sent; expected are 8 and 6", late[0].writes, late[1].writes)
	}
}

// strayed sends two bursts from one on at another index than it was told, as after a loss of
// samples that the board does not tell of.
type strayed struct {
	fed
	from   int
	by     radio.SampleIndex
	writes int
}

func (d *strayed) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	if d.writes++; d.writes > d.from && d.writes <= d.from+2 {
		meta.Start += d.by
	}
	return d.fed.Write(ctx, src, meta)
}

// A receiver that loses samples, and not how many, hears all devices anew: those that were
// found before are no longer where they were.
func TestLocateAfterALoss(t *testing.T) {
	a := newAir(t, 3, nil)
	a.wrap = func(tx []radio.Transmitter) {
		tx[1] = &startling{fed: tx[1].(fed), once: func() { ok(t, a.boards[3].Lose(radio.SampleIndex(a.bench.Index())+1000, 500)) }}
	}
	ok(t, a.array.Start(t.Context()))
	for i, late := range a.arrivals(t) {
		if math.Abs(late) > 0.2 {
			t.Errorf("device %d is late by %.3f samples", i+1, late)
		}
	}
}

// A device that is in trouble for some time is given its bursts behind those that it has: it
// would call others late.
func TestLocateInTrouble(t *testing.T) {
	a := newAir(t, 2, nil)
	a.wrap = func(tx []radio.Transmitter) { tx[0] = &troubled{fed: tx[0].(fed), times: 6} }
	ok(t, a.array.Start(t.Context()))
	for i, late := range a.arrivals(t) {
		if math.Abs(late) > 0.2 {
			t.Errorf("device %d is late by %.3f samples", i+1, late)
		}
	}
}

// troubled tells of an underrun behind each of its first pairs of writes, a number of them.
type troubled struct {
	fed
	mu            sync.Mutex
	times, writes int
}

func (d *troubled) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	n, err := d.fed.Write(ctx, src, meta)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	return n, err
}

func (d *troubled) Event(ctx context.Context) (radio.Event, error) {
	d.mu.Lock()
	if d.times > 0 && d.writes == 2 {
		d.times, d.writes = d.times-1, 0
		d.mu.Unlock()
		return radio.Event{Kind: radio.Underrun}, nil
	}
	d.mu.Unlock()
	return d.fed.Event(ctx)
}

// startling does something before its first write.
type startling struct {
	fed
	once func()
}

func (d *startling) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	if d.once != nil {
		d.once()
		d.once = nil
	}
	return d.fed.Write(ctx, src, meta)
}

// Radios that stand still end the search, and what ends a stream is told as it is.
func TestLocateEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		rx   func(radio.Receiver) radio.Receiver
		want error
	}{
		{"a receiver that stands still", func(r radio.Receiver) radio.Receiver { return still{r} }, sounder.ErrStalled},
		{"a machine that is too slow", func(r radio.Receiver) radio.Receiver { return starved{r} }, radio.ErrStarved},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAir(t, 2, nil)
			a.cfg.Patience, a.hears = 50*time.Millisecond, c.rx
			if err := a.array.Start(t.Context()); !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
		})
	}
}

// starved ends as its host is too slow.
type starved struct{ radio.Receiver }

func (starved) Read(context.Context, []complex64) (int, radio.Meta, error) {
	return 0, radio.Meta{}, radio.ErrStarved
}

// tape is a receiver that plays samples.
type tape struct {
	radio.Receiver
	x   []complex64
	pos int
}

func (p *tape) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	n := copy(dst, p.x[p.pos:])
	p.pos += n
	if n == 0 {
		return 0, radio.Meta{}, io.EOF
	}
	return n, radio.Meta{First: radio.SampleIndex(p.pos - n)}, nil
}

// A burst is found where it is, and not a period of the sounding beside, wherever it lies
// among what is searched at a time.
func TestFindPair(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred searches in one goroutine: not with -short")
	}
	cfg := newAir(t, 1, nil).cfg
	const every = 20_000
	burst := cfg.Sounding.Samples(0.5)
	noise := hiss{std: 0.02, rnd: rand.New(rand.NewPCG(3, 4))}
	for at := 14_000; at < 34_000; at += 197 {
		x := make([]complex64, 1<<17)
		copy(x[at:], burst)
		copy(x[at+every:], burst)
		noise.Add(x, 0)
		cfg.Transmitters, cfg.Receiver = make([]radio.Transmitter, 1), &tape{x: x}
		if got, err := sounder.FindPair(t.Context(), cfg, every); err != nil || math.Abs(got-float64(at)) > 1 {
			t.Errorf("the burst at %d was found at %.2f: %v", at, got, err)
		}
	}
}

// Delays are rounded so that what is left differs least: two on either side of a half are
// rounded alike, whichever way all are.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		late []float64
		want []radio.SampleIndex
	}{
		{[]float64{0}, []radio.SampleIndex{0}},
		{[]float64{3.2, -7.1, 0.05}, []radio.SampleIndex{3, -7, 0}},
		{[]float64{0.49, 0.51, 4.5, -0.48}, []radio.SampleIndex{1, 1, 5, 0}},
		{[]float64{0.97, 0.03, 1.9}, []radio.SampleIndex{1, 0, 2}},
	} {
		if got := sounder.Together(c.late); !slices.Equal(got, c.want) {
			t.Errorf("%v became %d; expected is %d", c.late, got, c.want)
		}
	}
}

// A device that is not heard, or late whenever it is tried, is named with the reason.
func TestLocateFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*virtual.Config)
		wrap   func(tx []radio.Transmitter)
		want   string
	}{
		{"silent", func(c *virtual.Config) { c.Links[1].Gain = 0 }, nil, "no sounding of device 2 was found in 2 bursts: in "},
		{"always late", nil, func(tx []radio.Transmitter) { tx[2] = &tardy{tx[2].(fed), 1000} }, "no sounding of device 3 was found in 2 bursts: device 3 was late"},
		{"not fed", nil, func(tx []radio.Transmitter) { tx[0] = struct{ radio.Transmitter }{tx[0]} }, "a transmitter that does not go on by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAir(t, 3, c.change)
			a.wrap = c.wrap
			err := a.array.Start(t.Context())
			var unheard *sounder.NotHeardError
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || errors.As(err, &unheard) != strings.Contains(c.want, "no sounding") {
				t.Error(err)
			}
		})
	}
}
