package runfolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ringwave/phy/gains"
)

func testCheckpoint() Checkpoint {
	return Checkpoint{
		ConfigDigest: sha256.Sum256([]byte("config")), Round: 120, Repeated: 3, Skipped: 1, Clipped: 7,
		MetricsOffset: 4711, MetricsDigest: sha256.Sum256([]byte("metrics")), Seconds: 12.3456789, KeyEpoch: 2,
		Theta: []float64{0, math.Copysign(0, -1), 5e-324, math.Inf(-1), math.Float64frombits(0x7ff8dead0000beef), 1.0 / 3},
	}
}

func encode(t testing.TB, c Checkpoint) []byte {
	t.Helper()
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seal returns body with the right sum behind it.
func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

func TestCheckpointRoundTrip(t *testing.T) {
	f := newFolder(t)
	want := testCheckpoint()
	if err := f.SaveCheckpoint(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range want.Theta {
		if math.Float64bits(got.Theta[i]) != math.Float64bits(v) {
			t.Errorf("theta[%d] is %x, want %x", i, math.Float64bits(got.Theta[i]), math.Float64bits(v))
		}
	}
	// Theta holds a NaN, which no comparison of structs gets past.
	if !bytes.Equal(encode(t, got), encode(t, want)) {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
	want.Gains = &gains.State{Draws: 9, Looks: 7, Devices: []gains.DeviceState{{Sum: -0.1, Slack: 0.3, WrongSigns: 2}, {Sum: 1e-300, Left: 7}}}
	if got, err = DecodeCheckpoint(encode(t, want)); err != nil || !reflect.DeepEqual(got.Gains, want.Gains) {
		t.Errorf("gains %+v, want %+v: %v", got.Gains, want.Gains, err)
	}
}

// A checkpoint has the best model where samples are held out, and refuses what is none.
func TestCheckpointBest(t *testing.T) {
	want := testCheckpoint()
	want.Best = &Best{Round: 110, Loss: 0.25, Accuracy: 0.875, Waited: 3, Theta: []float64{6, 5, 4, 3, 2, 1}}
	b := encode(t, want)
	got, err := DecodeCheckpoint(b)
	if err != nil || !reflect.DeepEqual(got.Best, want.Best) || math.Float64bits(got.Theta[4]) != math.Float64bits(want.Theta[4]) {
		t.Errorf("best %+v, want %+v: %v", got.Best, want.Best, err)
	}
	if _, err := DecodeCheckpoint(seal(b[:len(b)-sha256.Size-8])); err == nil || !strings.Contains(err.Error(), "best theta has 6 elements, 48 bytes, but there are 40") {
		t.Errorf("a value is missing: %v", err)
	}
	for text, change := range map[string]func(b *Best){
		"best.round is 121":    func(b *Best) { b.Round = 121 },
		"best.round is -1":     func(b *Best) { b.Round = -1 },
		"best.loss is NaN":     func(b *Best) { b.Loss = math.NaN() },
		"best.accuracy is 2":   func(b *Best) { b.Accuracy = 2 },
		"best.waited is -1":    func(b *Best) { b.Waited = -1 },
		"the best theta has 5": func(b *Best) { b.Theta = b.Theta[:5] },
	} {
		bad, best := want, *want.Best
		change(&best)
		bad.Best = &best
		if _, err := bad.Encode(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckpointFormat(t *testing.T) {
	b := encode(t, Checkpoint{Round: 1, Theta: []float64{1}})
	meta := `{"config_digest":"` + strings.Repeat("00", 32) + `","round":1,"repeated":0,"skipped":0,"clipped":0,"metrics_offset":0,"metrics_digest":"` + strings.Repeat("00", 32) + `","seconds":0}`
	body := append([]byte("RWCKPT\x02"), byte(len(meta)), 0, 0, 0)
	body = append(body, meta...)
	body = append(body, 1, 0, 0, 0)                   // one element
	body = append(body, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f) // 1.0
	want := seal(body)
	if !bytes.Equal(b, want) {
		t.Errorf("encoded\n%q, want\n%q", b, want)
	}
}

// With scalars of earlier rounds the version is 3, and they come back to the bit, those of a
// round that made none as nil.
func TestCheckpointPast(t *testing.T) {
	c := Checkpoint{Round: 3, Theta: []float64{1}, Past: [][]float64{{2, -0.5}, nil, {0, 1}}}
	b := encode(t, c)
	behind := []byte{3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0xe0, 0xbf, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}
	if b[6] != 3 || !bytes.HasSuffix(b[:len(b)-sha256.Size], append([]byte{0xf0, 0x3f}, behind...)) {
		t.Errorf("encoded %q", b)
	}
	got, err := DecodeCheckpoint(b)
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	body := b[:len(b)-sha256.Size]
	theta := body[:len(body)-len(behind)]
	for want, bad := range map[string][]byte{
		"count of rounds with scalars is cut off":      theta,
		"scalars of 0 rounds":                          append(bytes.Clone(theta), 0, 0, 0, 0),
		"scalars of 4294967295 rounds in 4 bytes":      append(bytes.Clone(theta), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0),
		"list of scalars has 2 elements, 16 bytes, bu": body[:len(body)-1],
		"1 bytes too many":                             append(bytes.Clone(body), 0),
		"list of scalars is cut off":                   append(bytes.Clone(theta), 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	} {
		if _, err := DecodeCheckpoint(seal(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestCheckpointErrors(t *testing.T) {
	good := encode(t, testCheckpoint())
	body := good[:len(good)-sha256.Size]
	edit := func(old, new string) []byte { return seal(bytes.Replace(body, []byte(old), []byte(new), 1)) }
	for name, c := range map[string]struct {
		b    []byte
		part string
	}{
		"empty":          {nil, "does not begin with RWCKPT"},
		"other file":     {[]byte("PK\x03\x04 and so on"), "does not begin with RWCKPT"},
		"version":        {edit("RWCKPT\x02", "RWCKPT\x01"), "version 1, but this program reads versions 2 and 3: go on with the program that wrote it"},
		"head only":      {good[:20], "cut off"},
		"cut":            {good[:len(good)-1], "damaged or cut off"},
		"trailing":       {append(bytes.Clone(good), 0), "damaged or cut off"},
		"trailing, sum":  {seal(append(bytes.Clone(body), 0)), "theta has 6 elements"},
		"cut, sum":       {seal(body[:len(body)-8]), "theta has 6 elements"},
		"meta too long":  {seal([]byte("RWCKPT\x02\xff\xff\xff\xff....")), "take 4294967295 bytes"},
		"theta too long": {seal(append(bytes.Clone(body[:len(body)-8*6-4]), 0xff, 0xff, 0xff, 0xff)), "theta has 4294967295 elements"},
		"unknown field":  {edit(`"skipped"`, `"skippex"`), "skippex"},
		"other spelling": {edit(`"skipped"`, `"Skipped"`), "not spelt"},
		"other number":   {edit(`"round":120`, `"round":1e2`), "meta data"},
		"negative":       {edit(`"round":120`, `"round":-12`), "round is -12"},
		"digest":         {edit(`"config_digest":"b`, `"config_digest":"x`), "digest"},
		"many gains":     {withMeta(`{"gains":{"devices":[{}` + strings.Repeat(",{}", 1<<14) + `]}}`), "the length of devices is more than 16384; allowed is at most 16384"},
		"not JSON":       {edit(`{"config`, `["config`), "meta data"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeCheckpoint(c.b)
			wantError(t, err, c.part)
		})
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := DecodeCheckpoint(bad); err == nil {
			t.Fatalf("a flipped bit in byte %d went unseen", i)
		}
	}
}

// withMeta returns a checkpoint of other meta data, without a model.
func withMeta(meta string) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("RWCKPT\x02"), uint32(len(meta)))
	return seal(append(append(b, meta...), 0, 0, 0, 0))
}

func TestCheckpointFieldRanges(t *testing.T) {
	for part, c := range map[string]Checkpoint{
		"round is -1":          {Round: -1},
		"metrics_offset is -5": {MetricsOffset: -5},
		"seconds is NaN":       {Seconds: math.NaN()},
		"seconds is +Inf":      {Seconds: math.Inf(1)},
		"2 of 1 draws":         {Gains: &gains.State{Draws: 1, Looks: 2}},
	} {
		_, err := c.Encode()
		wantError(t, err, part)
	}
}

func TestLoadCheckpointErrors(t *testing.T) {
	f := newFolder(t)
	_, err := f.LoadCheckpoint()
	wantError(t, err, f.Path()+" has no checkpoint: the run ended before its first one, start it again")
	if err := os.WriteFile(f.file(CheckpointName), []byte("RWCKPT"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadCheckpoint()
	wantError(t, err, f.file(CheckpointName))
	// One of more bytes than any model takes is not read.
	if err := os.Truncate(f.file(CheckpointName), maxCheckpoint+1); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadCheckpoint()
	wantError(t, err, f.file(CheckpointName), "the length is more than 1107296256 bytes; allowed is at most 1107296256 bytes")
}

// A checkpoint with a model of some million parameters, and its best, is read back: 128 MB.
func TestLargeCheckpoint(t *testing.T) {
	f, theta := newFolder(t), make([]float64, 8<<20)
	theta[len(theta)-1] = 3
	if err := f.SaveCheckpoint(Checkpoint{Theta: theta, Best: &Best{Theta: theta}}); err != nil {
		t.Fatal(err)
	}
	c, err := f.LoadCheckpoint()
	if err != nil || !slices.Equal(c.Theta, theta) || !slices.Equal(c.Best.Theta, theta) {
		t.Errorf("%d parameters, %v", len(c.Theta), err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	good := encode(f, testCheckpoint())
	f.Add(good)
	f.Add(encode(f, Checkpoint{}))
	f.Add(encode(f, Checkpoint{Theta: []float64{1}, Past: [][]float64{nil, {2, 3}}}))
	f.Add(good[:40])
	f.Add([]byte("RWCKPT\x02\xff\xff\xff\xff........................................"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// With its sum put right as well, or nothing beyond it is ever reached.
		for _, b := range [][]byte{b, seal(b), seal(b[:max(0, len(b)-sha256.Size)])} {
			c, err := DecodeCheckpoint(b)
			if err != nil {
				continue
			}
			if again, err := c.Encode(); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("decoded %q, encoded %q, %v", b, again, err)
			}
		}
	})
}
