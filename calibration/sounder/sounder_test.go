package sounder_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/radio"
)

// rig is a bench in memory whose gains are drawn by block and look.
type rig struct {
	t      testing.TB
	bench  *bench.Bench
	phases []float64
	cfg    sounder.Config
	quiet  int // a device that sends nothing, -1 for none
}

const rigNoise = 0.01

func newRig(t testing.TB, devices, blocks, looks int) *rig {
	t.Helper()
	r := &rig{t: t, quiet: -1}
	var err error
	cfg := bench.Config{Rate: 1e6, NoiseStd: rigNoise, Seed: keystream.FromInteger(7)}
	for i := range devices {
		phase := 0.7 + float64(i)
		r.phases = append(r.phases, phase)
		cfg.Devices = append(cfg.Devices, channel.Impairments{DelaySamples: 1.25 * float64(i), PhaseRad: phase, CarrierOffset: 1e-6 * float64(i)})
	}
	r.bench, err = bench.New(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, r.bench.Close()) })
	s, err := sounding.New(sounding.Config{Kind: sounding.ZadoffChu, Length: 63, SamplesPerChip: 2, Repetitions: 2})
	ok(t, err)
	r.cfg = sounder.Config{
		Sounding: s, Devices: devices, Blocks: blocks, Looks: looks, Guard: 40,
		Search: sounding.Search{Delay: 32, Offset: 1e-5}, Amplitude: 0.5, OnLook: r.fade,
	}
	r.open()
	return r
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	r.cfg.Transmitters, r.cfg.Receiver, err = r.bench.Streams()
	ok(r.t, err)
}

// gain is that of a device in a block: it crosses zero.
func (r *rig) gain(block, look, device int) float64 {
	rnd := rand.New(rand.NewPCG(uint64(block), uint64(device)))
	return 1 + rnd.NormFloat64() + 0.01*float64(look)
}

func (r *rig) fade(block, look int, at radio.SampleIndex) error {
	r.bench.Begin(uint32(block), uint32(look))
	for i := range r.cfg.Devices {
		g := complex(float32(r.gain(block, look, i)), 0)
		if i == r.quiet {
			g = 0
		}
		if err := r.bench.Medium.SetGain(i, at, g); err != nil {
			return err
		}
	}
	return nil
}

// run plays all blocks and gives them.
func (r *rig) run() []sounder.Block {
	r.t.Helper()
	blocks, err := r.tryRun()
	ok(r.t, err)
	return blocks
}

func (r *rig) tryRun() (blocks []sounder.Block, err error) {
	r.t.Helper()
	s, err := sounder.New(r.cfg)
	ok(r.t, err)
	return blocks, s.Run(context.Background(), func(b sounder.Block) error {
		blocks = append(blocks, b)
		return nil
	})
}

func table(t testing.TB, blocks []sounder.Block, devices int) []byte {
	t.Helper()
	var b bytes.Buffer
	ok(t, sounder.WriteHeader(&b))
	for _, k := range blocks {
		ok(t, sounder.WriteBlock(&b, k, devices))
	}
	return b.Bytes()
}

// The gains that are found are those that were set, faded ones and negative ones
// included.
func TestGains(t *testing.T) {
	r := newRig(t, 3, 60, 2)
	blocks := r.run()
	if len(blocks) != 60 {
		t.Fatalf("%d blocks", len(blocks))
	}
	off, n := make([]float64, 3), 0
	for _, b := range blocks {
		for k, rec := range b.Records {
			if rec.Estimate == nil {
				t.Fatalf("block %d, record %d: %s", b.Number, k, rec.Missed)
			}
			e, i := rec.Estimate, k%3
			turned := e.Gain * cmplx.Rect(1, -r.phases[i])
			// Carrier offsets turn the phase: only the size is compared there.
			want, got := math.Abs(r.gain(b.Number, k/3, i)), cmplx.Abs(turned)
			if i == 0 {
				want, got = r.gain(b.Number, k/3, i), real(turned)
			}
			off[i] += (got - want) * (got - want) / e.GainVar
			n++
			if math.Abs(got-want) > 6*math.Sqrt(e.GainVar) {
				t.Errorf("block %d, device %d: a gain of %.4f and not %.4f, with a deviation of %.4f", b.Number, i+1, got, want, math.Sqrt(e.GainVar))
			}
			if d := float64(e.Delay - blocks[0].Records[0].Estimate.Delay); math.Abs(d-1.25*float64(i)) > 0.02 {
				t.Errorf("device %d: a delay of %.3f samples", i+1, d)
			}
		}
	}
	for i, sum := range off {
		// The real part has half of the variance; 120 squares of deviation 0.13.
		if mean := sum / float64(n/3); mean < 0.2 || mean > 1 {
			t.Errorf("device %d: squared errors are %.2f of what is told of them", i+1, mean)
		}
	}
}

// Two sittings give what one gives.
func TestResumed(t *testing.T) {
	for _, cut := range []int{1, 17, 20, 21, 39} {
		whole := newRig(t, 2, 40, 2)
		whole.cfg.Sessions = 2
		want := table(t, whole.run(), 2)

		first := newRig(t, 2, 40, 2)
		first.cfg.Sessions = 2
		done := first.runUntil(cut)
		again := newRig(t, 2, 40, 2)
		again.cfg.Sessions, again.cfg.First = 2, len(done)
		again.cfg.Session, again.cfg.Acquired = done[len(done)-1].Session, sounder.Places(done, 2)
		if len(done)%20 == 0 {
			again.cfg.Session, again.cfg.Acquired = again.cfg.Session+1, nil
		}
		if got := table(t, append(done, again.run()...), 2); !bytes.Equal(got, want) {
			t.Errorf("stopped after %d blocks: other soundings", len(done))
		}
	}
}

// runUntil stops once so many blocks were emitted.
func (r *rig) runUntil(n int) (blocks []sounder.Block) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := sounder.New(r.cfg)
	ok(r.t, err)
	err = s.Run(ctx, func(b sounder.Block) error {
		if blocks = append(blocks, b); len(blocks) >= n {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) && len(blocks) < r.cfg.Blocks {
		r.t.Fatal(err)
	}
	return blocks
}

// What is lost is missed, and nothing else is touched.
func TestLoss(t *testing.T) {
	want := newRig(t, 2, 40, 1).run()
	r := newRig(t, 2, 40, 1)
	at := want[35].At + radio.SampleIndex(100)
	ok(t, r.bench.Medium.Drop(at, 50))
	got := r.run()
	missed := 0
	for k, b := range got {
		for n, rec := range b.Records {
			if rec.Missed != "" {
				missed++
				if k != 35 || n != 0 || !strings.Contains(rec.Missed, "lost") {
					t.Errorf("block %d, record %d: %s", k, n, rec.Missed)
				}
				continue
			}
			if rec.Estimate.Gain != want[k].Records[n].Estimate.Gain {
				t.Errorf("block %d, record %d: another gain", k, n)
			}
		}
	}
	if missed != 1 {
		t.Errorf("%d soundings were missed", missed)
	}
}

// A retune ends the session; the next one finds its soundings anew.
func TestRetuned(t *testing.T) {
	blocks := newRig(t, 2, 60, 1).run()
	for _, who := range []string{"a transmitter", "the receiver"} {
		r := newRig(t, 2, 60, 1)
		at := blocks[40].At + 20
		if who == "the receiver" {
			ok(t, r.bench.Medium.RetuneReceiver(at, 1))
		} else {
			ok(t, r.bench.Medium.Retune(1, at, 1))
		}
		got := r.run()
		if len(got) != 60 || got[39].Session != 0 || got[59].Session != 1 {
			t.Fatalf("%s: %d blocks, sessions %d and %d", who, len(got), got[39].Session, got[59].Session)
		}
		for k, b := range got {
			if b.Number != k || (k < 40 || k > 41) && b.Records[0].Missed != "" {
				t.Errorf("%s: block %d is numbered %d: %s", who, k, b.Number, b.Records[0].Missed)
			}
		}
	}
}

// A session that ends in its first block, before anything was heard, costs that block.
func TestRetunedAtOnce(t *testing.T) {
	r := newRig(t, 2, 40, 1)
	ok(t, r.bench.Medium.RetuneReceiver(20, 1))
	got := r.run()
	if len(got) != 40 || got[0].Records[1].Missed == "" || got[39].Session != 1 || got[39].Records[1].Missed != "" {
		t.Errorf("%d blocks, the last of session %d; the first was missed as %q", len(got), got[39].Session, got[0].Records[1].Missed)
	}
}

// late is a receiver that loses samples from each block on, and not how many.
type late struct {
	radio.Receiver
	by, every radio.SampleIndex
}

func (l *late) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return l.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil loses so many samples once its index has come to every, and calls the next
// one by the index of the first that was lost.
func (l *late) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	lost := radio.SampleIndex(0)
	if l.by != 0 {
		lost = l.by
	}
	if until != radio.Forever {
		until += lost
	}
	n, meta, err := radio.ReadUntil(ctx, l.Receiver, dst, until)
	meta.First -= lost
	if err == nil && n > 0 && l.by == 0 && meta.First > l.every {
		l.by = 700
		meta.Gaps = append(meta.Gaps, radio.Gap{At: n - 1})
		waste := make([]complex64, l.by)
		if _, _, err := radio.ReadFull(ctx, l.Receiver, waste); err != nil {
			return 0, meta, err
		}
	}
	return n, meta, err
}

// A receiver that loses samples, and not how many, is looked for again within its reach.
func TestReceiverLosesCount(t *testing.T) {
	r := newRig(t, 2, 60, 1)
	r.cfg.Reach, r.cfg.Receiver = 2000, &late{Receiver: r.cfg.Receiver, every: 180_000}
	missed := 0
	for _, b := range r.run() {
		for _, rec := range b.Records {
			if rec.Missed != "" {
				missed++
			} else if math.Abs(float64(rec.Estimate.Delay)) > 10 {
				t.Errorf("block %d: a delay of %v", b.Number, rec.Estimate.Delay)
			}
		}
	}
	if missed < 1 || missed > 4 {
		t.Errorf("%d soundings were missed", missed)
	}
}

// Boards that lose samples in every block end the calibration, and it is said why.
func TestAllIsLost(t *testing.T) {
	r := newRig(t, 1, 60, 1)
	ok(t, r.bench.Medium.Drop(0, 1_000_000_000))
	_, err := r.tryRun()
	var unheard *sounder.NotHeardError
	if !errors.As(err, &unheard) || unheard.Device != -1 || !strings.Contains(err.Error(), "the last 16 blocks were missed: samples were lost") {
		t.Error(err)
	}
}

// still returns nothing.
type still struct{ radio.Receiver }

func (still) Read(ctx context.Context, _ []complex64) (int, radio.Meta, error) {
	<-ctx.Done()
	return 0, radio.Meta{}, ctx.Err()
}

// A receiver that stands still ends a patient sounder, and one that was interrupted says
// so instead.
func TestPatience(t *testing.T) {
	r := newRig(t, 1, 40, 1)
	r.cfg.Patience, r.cfg.Receiver = time.Millisecond, still{r.cfg.Receiver}
	if _, err := r.tryRun(); !errors.Is(err, sounder.ErrStalled) || !strings.Contains(err.Error(), "the receiver gave nothing for 1ms") {
		t.Error(err)
	}
	r = newRig(t, 1, 40, 1)
	r.cfg.Patience, r.cfg.Receiver = time.Hour, still{r.cfg.Receiver}
	s, err := sounder.New(r.cfg)
	ok(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.Run(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, sounder.ErrStalled) {
		t.Error(err)
	}
	r.cfg.Patience = -1
	if _, err := sounder.New(r.cfg); err == nil {
		t.Error("a patience of -1 is taken")
	}
}

func TestNotHeard(t *testing.T) {
	r := newRig(t, 2, 40, 1)
	r.quiet = 1
	_, err := r.tryRun()
	var unheard *sounder.NotHeardError
	if !errors.As(err, &unheard) || unheard.Device != 1 || !errors.Is(err, sounding.ErrNoSounding) {
		t.Error(err)
	}
}

// ahead is a receiver whose index differs.
type ahead struct {
	radio.Receiver
	by radio.SampleIndex
}

func (a ahead) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return a.ReadUntil(ctx, dst, radio.Forever)
}

func (a ahead) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	if until != radio.Forever {
		until -= a.by
	}
	n, meta, err := radio.ReadUntil(ctx, a.Receiver, dst, until)
	meta.First += a.by
	return n, meta, err
}

// A receiver that counts from another sample is found, either way.
func TestReach(t *testing.T) {
	want := newRig(t, 2, 40, 1).run()
	for _, by := range []radio.SampleIndex{-1500, 0, 777, 1999} {
		r := newRig(t, 2, 40, 1)
		r.cfg.Reach, r.cfg.Receiver = 2000, ahead{r.cfg.Receiver, by}
		got := r.run()
		for k, b := range got {
			for i, rec := range b.Records {
				if rec.Estimate == nil {
					t.Fatalf("%d samples ahead: block %d: %s", by, k, rec.Missed)
				}
				if d := cmplx.Abs(rec.Estimate.Gain) - cmplx.Abs(want[k].Records[i].Estimate.Gain); math.Abs(d) > 8*math.Sqrt(rec.Estimate.GainVar) {
					t.Errorf("%d samples ahead: block %d, device %d: off by %.4f", by, k, i+1, d)
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	r := newRig(t, 2, 34, 2)
	ok(t, r.bench.Medium.Drop(20_000, 100))
	data := table(t, r.run(), 2)
	blocks, n, err := sounder.ReadTable(bytes.NewReader(data), 1<<20, 2, 2)
	ok(t, err)
	if n != int64(len(data)) || !bytes.Equal(table(t, blocks, 2), data) {
		t.Error("a table that is read and written again is another")
	}
	// A killed process leaves whole blocks and a part of one.
	for cut := len(data) - 1; cut > len(data)-2000; cut -= 97 {
		blocks, n, err := sounder.ReadTable(bytes.NewReader(data[:cut]), 1<<20, 2, 2)
		ok(t, err)
		if n > int64(cut) || !bytes.Equal(table(t, blocks, 2), data[:n]) {
			t.Errorf("cut at %d: %d bytes are kept", cut, n)
		}
	}
	damage := func(old, now string) []byte { return bytes.Replace(data, []byte(old), []byte(now), 1) }
	for name, c := range map[string]struct {
		data []byte
		text string
	}{
		"another header":  {damage("session", "sitting"), "line 1"},
		"a missing line":  {append(bytes.Clone(data[:len(data)-len(data)/3]), data[len(data)-len(data)/4:]...), "line"},
		"no number":       {damage("\n0,0,0,1,0,1,1,0,,", "\n0,0,0,1,0,1,1,0,,x"), "gain_i is"},
		"another device":  {damage("\n0,0,0,1,", "\n0,0,0,2,"), "device"},
		"a negative one":  {damage("\n0,0,0,1,0,1,", "\n0,0,0,1,0,-1,"), "receiver_epoch"},
		"too few columns": {damage(",,", ","), "columns"},
	} {
		if _, _, err := sounder.ReadTable(bytes.NewReader(c.data), 1<<20, 2, 2); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzTable(f *testing.F) {
	r := newRig(f, 1, 33, 1)
	f.Add(table(f, r.run()[:2], 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		blocks, n, err := sounder.ReadTable(bytes.NewReader(data), 1<<20, 1, 1)
		if err != nil {
			return
		}
		again, _, err := sounder.ReadTable(bytes.NewReader(table(t, blocks, 1)), 1<<20, 1, 1)
		if err != nil || len(again) != len(blocks) || n > int64(len(data)) {
			t.Errorf("%d blocks of %d bytes read again as %d: %v", len(blocks), n, len(again), err)
		}
	})
}

func TestConfigs(t *testing.T) {
	for name, change := range map[string]func(*sounder.Config){
		"no sounding":          func(c *sounder.Config) { c.Sounding = nil },
		"too few transmitters": func(c *sounder.Config) { c.Transmitters = c.Transmitters[:1] },
		"no block":             func(c *sounder.Config) { c.Blocks = 0 },
		"more sessions":        func(c *sounder.Config) { c.Sessions = 41 },
		"no guard":             func(c *sounder.Config) { c.Guard = 0 },
		"a wide search":        func(c *sounder.Config) { c.Search.Delay = 41 },
		"no amplitude":         func(c *sounder.Config) { c.Amplitude = 0 },
		"too loud":             func(c *sounder.Config) { c.Amplitude = 1.1 },
		"long looks":           func(c *sounder.Config) { c.LookEvery = sounder.MaxBlockSamples },
		"nobody sends":         func(c *sounder.Config) { c.Transmitters = nil },
		"too many done":        func(c *sounder.Config) { c.First = 41 },
		"places of one":        func(c *sounder.Config) { c.Acquired = make([]sounder.Acquired, 1) },
	} {
		r := newRig(t, 2, 40, 2)
		change(&r.cfg)
		if _, err := sounder.New(r.cfg); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
