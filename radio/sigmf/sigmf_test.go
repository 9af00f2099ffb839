package sigmf_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/sigmf"
)

const rate radio.Hertz = 10e6

func samples(seed uint64, n int, size float64) []complex64 {
	rnd := rand.New(rand.NewPCG(seed, 2))
	x := make([]complex64, n)
	for k := range x {
		x[k] = complex(float32(size*(2*rnd.Float64()-1)), float32(size*(2*rnd.Float64()-1)))
	}
	return x
}

func create(t testing.TB, cfg sigmf.Config) (*sigmf.Writer, string) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "iq")
	if cfg.SampleRate == 0 {
		cfg.SampleRate = rate
	}
	w, err := sigmf.Create(base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w, base
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, base string) *sigmf.Recording {
	t.Helper()
	r, err := sigmf.Open(base, sigmf.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, r.Close()) })
	return r
}

func play(t testing.TB, r *sigmf.Recording) radio.Receiver {
	t.Helper()
	rx, err := r.OpenReceiver(t.Context())
	ok(t, err, rx.Start(t.Context()))
	return rx
}

func playAll(t testing.TB, base string) ([]complex64, radio.Meta) {
	t.Helper()
	r := open(t, base)
	x := make([]complex64, r.Samples()+1)
	n, meta, err := radio.ReadFull(t.Context(), play(t, r), x)
	if n != len(x)-1 || !errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
		t.Fatalf("read %d of %d: %v", n, len(x)-1, err)
	}
	return x[:n], meta
}

// Within full scale the error of I and of Q is at most half a step, plus the
// rounding of the result to float32; beyond it samples clip and are counted.
func TestQuantisation(t *testing.T) {
	const n, full = 50000, 0.8
	x := samples(1, n, full)
	for _, c := range []struct {
		datatype sigmf.Datatype
		steps    float64
	}{{sigmf.CI8, 127}, {sigmf.CI16, 32767}, {sigmf.CF32, 0}} {
		w, base := create(t, sigmf.Config{Datatype: c.datatype, FullScale: full})
		ok(t, w.Record(x, radio.Meta{Epoch: 1}), w.Record([]complex64{complex(0.9, 0), complex(0, -0.9)}, radio.Meta{First: n, Epoch: 1}), w.Close())
		y, _ := playAll(t, base)
		bound := 0.0
		if c.steps > 0 {
			bound = full / c.steps / 2
		}
		worst := 0.0
		for k := range x {
			for _, e := range [...]float64{float64(real(x[k])) - float64(real(y[k])), float64(imag(x[k])) - float64(imag(y[k]))} {
				worst = max(worst, math.Abs(e))
			}
		}
		if c.steps == 0 && worst != 0 || worst > bound+full*0x1p-24 || c.steps > 0 && worst < 0.98*bound {
			t.Errorf("%s: an error of %g instead of at most %g", c.datatype, worst, bound)
		}
		if c.steps == 0 {
			continue
		}
		if got := w.Written(); got.Clipped != 2 || got.Samples != n+2 || math.Abs(float64(real(y[n]))-full) > 1e-6 || math.Abs(float64(imag(y[n+1]))+full) > 1e-6 {
			t.Errorf("%s: %+v, clipped to %v and %v", c.datatype, got, y[n], y[n+1])
		}
		// What was played is recorded to the bit: replaying a replay is exact.
		again, twice := create(t, sigmf.Config{Datatype: c.datatype, FullScale: full})
		ok(t, again.Record(y, radio.Meta{Epoch: 1}), again.Close())
		a, _ := os.ReadFile(base + ".sigmf-data")
		b, _ := os.ReadFile(twice + ".sigmf-data")
		if !bytes.Equal(a, b) {
			t.Errorf("%s: a recording of the recording differs", c.datatype)
		}
	}
}

// The range is the same on both sides: -128 and -32768 are not written.
func TestClippingIsSymmetric(t *testing.T) {
	for datatype, limit := range map[sigmf.Datatype]float32{sigmf.CI8: 127, sigmf.CI16: 32767} {
		w, base := create(t, sigmf.Config{Datatype: datatype, FullScale: radio.Amplitude(limit)})
		x := []complex64{complex(limit, -limit), complex(limit+0.4, -limit-0.4), complex(limit+1, 0), complex(-limit-1, 0)}
		ok(t, w.Record(x, radio.Meta{}), w.Close())
		y, _ := playAll(t, base)
		if want := []complex64{x[0], x[0], complex(limit, 0), complex(-limit, 0)}; w.Written().Clipped != 2 || !reflect.DeepEqual(y, want) {
			t.Errorf("%s: %d clipped, %v", datatype, w.Written().Clipped, y)
		}
	}
}

func TestInvalidSamples(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := []complex64{1, complex(nan, 0.5), complex(0.5, -inf), -1}
	for datatype, want := range map[sigmf.Datatype][]complex64{
		sigmf.CF32: {1, 0, 0, -1},
		sigmf.CI8:  {1, 0.5i, 0.5 - 1i, -1},
	} {
		w, base := create(t, sigmf.Config{Datatype: datatype})
		ok(t, w.Record(x, radio.Meta{}))
		if got := w.Written().Invalid; got != 2 {
			t.Errorf("%s: %d invalid instead of 2", datatype, got)
		}
		ok(t, w.Close())
		y, meta := playAll(t, base)
		for k := range want {
			if d := y[k] - want[k]; math.Hypot(float64(real(d)), float64(imag(d))) > 0.006 {
				t.Errorf("%s: sample %d is %v instead of %v", datatype, k, y[k], want[k])
			}
		}
		if found := datatype == sigmf.CF32; found != (meta.Invalid == 2) || found != (meta.Flags == radio.Invalid) {
			t.Errorf("%s: %+v", datatype, meta)
		}
	}
}

// Gaps, epochs and reports of a stream come back with the same positions, and
// annotations with the same indices.
func TestMetaRoundTrip(t *testing.T) {
	frequency, zero := radio.Hertz(300e9), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w, base := create(t, sigmf.Config{
		Datatype: sigmf.CF32, Frequency: &frequency, Zero: zero,
		Hardware: "bench", Author: "A <b>", Description: "d\u00e9", Recorder: "ringwave",
	})
	x := samples(1, 1000, 1)
	ok(t,
		w.Record(x[:300], radio.Meta{First: 1000, Epoch: 4}),
		w.Record(x[300:400], radio.Meta{
			First: 1310, Epoch: 4, Flags: radio.Overrun | radio.Clipped, Clipped: 3,
			Gaps:    []radio.Gap{{At: 0, Length: 10, Exact: true}, {At: 50, Length: 7}},
			Changes: []radio.EpochChange{{At: 60, Epoch: 5}},
		}),
		w.Record(nil, radio.Meta{}),
		w.Record(x[400:], radio.Meta{First: 1500, Epoch: 6}), // a step that nobody explains
		w.Annotate(sigmf.Annotation{First: 1200, Count: 200, Band: &radio.Span[radio.Hertz]{Min: 299e9, Max: 301e9}, Label: "frame", Comment: "c", Tag: &sigmf.Tag{Round: 7, Attempt: 1, Again: 255, Phase: "c0", Device: -1, Group: 2, Epoch: 4}}),
		w.Annotate(sigmf.Annotation{First: 1000, Count: 5, Tag: &sigmf.Tag{Phase: "b", Device: 0, Group: -1, Transmitters: []radio.Epoch{3, 1 << 62}}}),
		// Both ends are in gaps, and all of it is in one.
		w.Annotate(sigmf.Annotation{First: 1305, Count: 150, Label: "edges", Tag: &sigmf.Tag{Round: 8, Device: -1, Group: -1}}),
		w.Annotate(sigmf.Annotation{First: 1302, Count: 5, Label: "lost", Tag: &sigmf.Tag{Round: 9, Device: -1, Group: -1}}),
		w.Close(), w.Close(),
	)
	y, meta := playAll(t, base)
	if !reflect.DeepEqual(y, x) {
		t.Error("samples differ")
	}
	want := radio.Meta{
		First: 1000, Epoch: 4, Flags: radio.Overrun | radio.Clipped, Clipped: 3,
		Gaps:    []radio.Gap{{At: 300, Length: 10, Exact: true}, {At: 350, Length: 7}, {At: 400, Length: 83}},
		Changes: []radio.EpochChange{{At: 360, Epoch: 5}, {At: 400, Epoch: 6}},
	}
	if !reflect.DeepEqual(meta, want) {
		t.Errorf("meta %+v instead of %+v", meta, want)
	}
	r := open(t, base)
	var got []string
	for _, a := range r.Annotations() {
		if a.Tag != nil {
			got = append(got, fmt.Sprintf("%d+%d %q %+v", a.First, a.Count, a.Label, *a.Tag))
		}
		if (a.Band != nil) != (a.Label == "frame") || a.Band != nil && *a.Band != (radio.Span[radio.Hertz]{Min: 299e9, Max: 301e9}) {
			t.Errorf("%q has the band %v", a.Label, a.Band)
		}
	}
	wantAnnotations := []string{
		`1000+5 "" {Round:0 Attempt:0 Again:0 Phase:b Device:0 Group:-1 Epoch:0 Transmitters:[3 4611686018427387904] Alpha:0 Factors:[]}`,
		`1200+200 "frame" {Round:7 Attempt:1 Again:255 Phase:c0 Device:-1 Group:2 Epoch:4 Transmitters:[] Alpha:0 Factors:[]}`,
		`1305+150 "edges" {Round:8 Attempt:0 Again:0 Phase: Device:-1 Group:-1 Epoch:0 Transmitters:[] Alpha:0 Factors:[]}`,
		`1302+5 "lost" {Round:9 Attempt:0 Again:0 Phase: Device:-1 Group:-1 Epoch:0 Transmitters:[] Alpha:0 Factors:[]}`,
	}
	if !reflect.DeepEqual(got, wantAnnotations) {
		t.Errorf("annotations %q", got)
	}
	m := r.Metadata()
	if c := m.Captures[0]; *c.Frequency != frequency || !c.Time.Equal(zero.Add(100*time.Microsecond)) {
		t.Errorf("capture %+v", c)
	}
	if m.Author != "A <b>" || m.Description != "d\u00e9" || m.Hardware != "bench" || m.SampleRate != rate {
		t.Errorf("metadata %+v", m)
	}
}

// A clock is asked once, for the last sample of the first block; all times go by the
// receiver's samples from there.
func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	asked := 0
	w, base := create(t, sigmf.Config{Datatype: sigmf.CF32, Now: func() time.Time { asked++; return at }})
	x := samples(1, 1000, 1)
	ok(t, w.Record(x[:500], radio.Meta{First: 20_000}), w.Record(x[500:], radio.Meta{First: 30_000}), w.Close())
	c := open(t, base).Metadata().Captures
	if asked != 1 || !c[0].Time.Equal(at.Add(-50*time.Microsecond)) || !c[1].Time.Equal(at.Add(950*time.Microsecond)) {
		t.Errorf("asked %d times: captures at %v and %v", asked, c[0].Time, c[1].Time)
	}
}

// The file as the specification wants it, looked at without this package.
func TestFileForm(t *testing.T) {
	phase := 0.0
	w, base := create(t, sigmf.Config{Datatype: sigmf.CI16, FullScale: 32767, Primes: []uint64{1<<55 + 1, 3}, FrameFormat: 2, Frames: &sigmf.Frames{
		Run: 7, Devices: 5, Group: 3, Base: 3, BlockSymbols: 8192, Coefficients: []int{4, 1, 4, 1}, SamplesPerSymbol: 8, PreambleSymbols: 127,
		Pulse: sigmf.Pulse{Shape: "square", Edge: 2, Tolerance: 1}, DigitLevel: 0.5, Alpha: 4, AlphaTolerance: 0.25, CommonPhase: &phase,
	}})
	ok(t, w.Record([]complex64{1 + 2i, -3 + 256i}, radio.Meta{First: 5, Epoch: 1}),
		w.Annotate(sigmf.Annotation{First: 6, Count: 1, Band: &radio.Span[radio.Hertz]{Min: -5, Max: 2.5e6}, Label: "x", Tag: &sigmf.Tag{Round: 1, Phase: "b", Device: 2, Group: -1, Epoch: 1, Alpha: 1.5, Factors: []int{2, 3}}}), w.Close())
	data, err := os.ReadFile(base + ".sigmf-data")
	ok(t, err)
	if want := []byte{1, 0, 2, 0, 0xfd, 0xff, 0, 1}; !bytes.Equal(data, want) {
		t.Errorf("dataset %v instead of %v", data, want)
	}
	text, err := os.ReadFile(base + ".sigmf-meta")
	ok(t, err)
	sum := sha512.Sum512(data)
	want := `{"global":{"core:datatype":"ci16_le","core:sample_rate":10000000,"core:version":"1.2.5","core:num_channels":1,
		"core:sha512":"` + hex.EncodeToString(sum[:]) + `","core:extensions":[{"name":"ringwave","version":"1.3.0","optional":true}],
		"ringwave:scale":1,"ringwave:modulus":"108086391056891907","ringwave:primes":[36028797018963969,3],"ringwave:frame_format":2,"ringwave:samples":2,
		"ringwave:frames":{"run":7,"devices":5,"group_size":3,"base":3,"block_symbols":8192,"coefficients":[4,1,4,1],"samples_per_symbol":8,"preamble_symbols":127,
		"pulse":"square","edge_samples":2,"tolerance_samples":1,"digit_level":0.5,"alpha":4,"alpha_tolerance":0.25,"common_phase":0}},
		"captures":[{"core:sample_start":0,"core:global_index":5,"ringwave:epoch":1}],
		"annotations":[{"core:sample_start":1,"core:sample_count":1,"core:freq_lower_edge":-5,"core:freq_upper_edge":2500000,"core:label":"x","ringwave:round":1,"ringwave:attempt":0,
		"ringwave:phase":"b","ringwave:device":2,"ringwave:epoch":1,"ringwave:alpha":1.5,"ringwave:group_factors":[2,3]}]}`
	var a, b any
	ok(t, json.Unmarshal(text, &a), json.Unmarshal([]byte(want), &b))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("metadata\n%s", text)
	}
	if !bytes.Contains(text, []byte("36028797018963969")) { // DeepEqual saw it as a double
		t.Errorf("a prime was rounded:\n%s", text)
	}
	info, err := os.Stat(base + ".sigmf-data")
	ok(t, err)
	if info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v", info.Mode())
	}
}

// left returns what is in the folder of a recording.
func left(t *testing.T, base string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(base))
	ok(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestNothingHalfWritten(t *testing.T) {
	w, base := create(t, sigmf.Config{Datatype: sigmf.CI8})
	ok(t, w.Record(samples(1, 10, 1), radio.Meta{First: 20}))
	if names := left(t, base); len(names) != 1 || !strings.HasPrefix(names[0], ".tmp-iq-") {
		t.Errorf("before Close: %v", names)
	}
	err := w.Record(samples(1, 10, 1), radio.Meta{First: 29})
	var wrong *sigmf.FormatError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "is 29; allowed is 30 or more") {
		t.Errorf("an index backwards: %v", err)
	}
	if again := w.Record(nil, radio.Meta{}); again != err || w.Close() != err {
		t.Errorf("after a failure: %v", again)
	}
	if names := left(t, base); len(names) != 0 {
		t.Errorf("after a failure: %v", names)
	}

	w, base = create(t, sigmf.Config{Datatype: sigmf.CI8})
	ok(t, w.Record(samples(1, 10, 1), radio.Meta{}))
	w.Abort()
	w.Abort()
	if names := left(t, base); len(names) != 0 || w.Close() != nil || !errors.Is(w.Record(nil, radio.Meta{}), radio.ErrClosed) {
		t.Errorf("after Abort: %v", names)
	}

	// Someone else took the name meanwhile: theirs stays.
	w, base = create(t, sigmf.Config{Datatype: sigmf.CI8})
	ok(t, os.WriteFile(base+".sigmf-meta", []byte("theirs"), 0o600))
	if err := w.Close(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another's: %v", err)
	}
	if names := left(t, base); len(names) != 1 {
		t.Errorf("over another's: %v", names)
	}
	if _, err := sigmf.Create(base, sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another's: %v", err)
	}

	// The folder goes away.
	w, base = create(t, sigmf.Config{Datatype: sigmf.CI8})
	ok(t, os.RemoveAll(filepath.Dir(base)))
	if err := w.Close(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestEmptyRecording(t *testing.T) {
	w, base := create(t, sigmf.Config{Datatype: sigmf.CF32})
	ok(t, w.Close())
	rx := play(t, open(t, base))
	if _, _, err := rx.Read(t.Context(), make([]complex64, 1)); err != io.EOF {
		t.Error(err)
	}
}

func TestConfigErrors(t *testing.T) {
	f := radio.Hertz(2e12)
	for _, c := range []struct {
		cfg  sigmf.Config
		want string
	}{
		{sigmf.Config{Datatype: "cf64_le", SampleRate: 1}, `"cf64_le"; allowed is ci8, ci16_le, cf32_le`},
		{sigmf.Config{Datatype: sigmf.CI8}, "0 Hz; allowed is 1 Hz to 1 THz"},
		{sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1, FullScale: -1}, "-1; allowed is 1e-20 to 1e20"},
		{sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1, Frequency: &f}, "2 THz; allowed is -1 THz to 1 THz"},
	} {
		if _, err := sigmf.Create("x", c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
	w, _ := create(t, sigmf.Config{Datatype: sigmf.CI8})
	defer w.Abort()
	for _, a := range []sigmf.Annotation{{First: -1}, {Count: -1}, {Band: &radio.Span[radio.Hertz]{Min: 2, Max: 1}}, {Tag: &sigmf.Tag{Phase: strings.Repeat("x", 17)}}, {Comment: strings.Repeat("x", 257)}} {
		if err := w.Annotate(a); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}

const minimal = `{"global":{"core:datatype":"ci8","core:version":"1.2.5"%s},"captures":[%s],"annotations":[%s]}`

// place writes a recording of foreign making.
func place(t *testing.T, meta string, data []byte) string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "theirs")
	ok(t, os.WriteFile(base+".sigmf-meta", []byte(meta), 0o600), os.WriteFile(base+".sigmf-data", data, 0o600))
	return base
}

// A recording without any optional field, and the capture it implies.
func TestForeignRecording(t *testing.T) {
	base := place(t, fmt.Sprintf(minimal, `,"other:x":[1,{"y":null}]`, "", ""), []byte{0x80, 0, 64, 0xff})
	x, meta := playAll(t, base)
	if len(x) != 2 || x[0] != -1 || x[1] != complex(0.5, -1.0/128) || meta.First != 0 || meta.Epoch != 1 {
		t.Errorf("%v %+v", x, meta)
	}
	// The example of the specification, a loss of 500 samples.
	base = place(t, fmt.Sprintf(minimal, "", `{"core:sample_start":0,"core:global_index":0},{"core:sample_start":500,"core:global_index":1e3}`, `{"core:sample_start":400}`), make([]byte, 1200))
	_, meta = playAll(t, base)
	if len(meta.Gaps) != 1 || meta.Gaps[0] != (radio.Gap{At: 500, Length: 500, Exact: true}) || meta.Flags != radio.Overrun {
		t.Errorf("%+v", meta)
	}
	if a := open(t, base).Annotations()[0]; a.First != 400 || a.Count != 100 {
		t.Errorf("an annotation to the end of its capture: %+v", a)
	}
}

// repeated is a list of equal elements.
func repeated(element string, n int) string { return strings.Repeat(element+",", n-1) + element }

// numbered is a list of members with keys of their own.
func numbered(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, `"x:%d":0,`, k)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// Longer than 60 lines because it is a table of what is refused.
func TestDamagedMetadata(t *testing.T) {
	capture := func(s string) string { return fmt.Sprintf(minimal, "", s, "") }
	global := func(s string) string { return fmt.Sprintf(minimal, ","+s, "", "") }
	for _, c := range []struct{ meta, want string }{
		{"", "the metadata is no JSON at byte 0; allowed is JSON"},
		{"[]", "the metadata is no JSON object"},
		{"null", "the metadata is no JSON object"},
		{"{} {}", "the metadata is no JSON at byte 4"},
		{`{"global":`, "no JSON at byte"},
		{"\xff", "not UTF-8"},
		{strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "the nesting of the metadata is deeper than 64; allowed is a depth of 64"},
		{strings.Repeat("[", 1e6), "the nesting of the metadata is deeper than 64; allowed is a depth of 64"},
		{fmt.Sprintf(minimal, "", "", repeated("{}", 65537)), "the length of annotations is more than 65536; allowed is at most 65536"},
		{capture(repeated("{}", 200_000)), "the length of captures is more than 65536"},
		{global(`"x:y":[[` + repeated("1", 200_000) + `]]`), "the length of x:y is more than 65536"},
		{global(`"x:y":{` + numbered(100_000) + `}`), "the number of keys of x:y is more than 1024; allowed is at most 1024"},
		{global(numbered(100_000)), "the number of keys of global is more than 1024"},
		{`{"global":{}}`, "global core:datatype is missing; allowed is a string"},
		{`{"captures":[],"annotations":[]}`, "global is missing; allowed is an object"},
		{`{"global":{"core:datatype":"ci8","core:version":"1.0.0"},"annotations":[]}`, "captures is missing; allowed is an array of objects"},
		{`{"global":{"core:datatype":"ci8","core:version":"1.0.0"},"captures":[]}`, "annotations is missing"},
		{`{"global":{"core:datatype":"ci8","core:version":"1.0.0"},"captures":[],"annotations":[],"more":1}`, "a top-level key is more"},
		{`{"global":{"core:datatype":"ci16","core:version":"1.0.0"}}`, "core:datatype is ci16; allowed is ci8, ci16_le, cf32_le"},
		{`{"global":{"core:datatype":"ci8","core:version":"v1.0.0"}}`, "core:version is v1.0.0; allowed is 1.Y.Z"},
		{`{"global":{"core:datatype":"ci8","core:version":"2.0.0"}}`, "core:version is 2.0.0"},
		{`{"global":{"core:datatype":"ci8","core:datatype":"ci8"}}`, `key "core:datatype" is twice in one object; allowed is once`},
		{`{"global":{"CORE:datatype":"ci8","core:version":"1.0.0"}}`, "core:datatype is missing"},
		{global(`"core:sample_rate":0.5`), "core:sample_rate is 0.5; allowed is 1 to 1e+12"},
		{global(`"core:sample_rate":"1"`), `core:sample_rate is "1"; allowed is a number`},
		{global(`"core:num_channels":2`), "core:num_channels is 2; allowed is 1"},
		{global(`"core:offset":9`), "core:offset is 9; allowed is 0"},
		{global(`"core:dataset":"x.wav"`), "non-conforming datasets are not read"},
		{global(`"core:trailing_bytes":1`), "non-conforming datasets are not read"},
		{global(`"core:metadata_only":true`), "core:metadata_only is true; allowed is false"},
		{global(`"core:sha512":"abc"`), "core:sha512 is abc; allowed is 128 hexadecimal digits"},
		{global(`"core:hw":7`), "core:hw is 7; allowed is a string"},
		{global(`"core:extensions":[{"name":"x","version":"1"}]`), "core:extensions[0] the declaration's keys is 2"},
		{global(`"core:extensions":[{"name":"x","version":"1","optional":false}]`), "name is x; allowed is ringwave, or any that is optional"},
		{global(`"ringwave:scale":1`), "none where the extension ringwave is not declared"},
		{global(`"core:extensions":[{"name":"ringwave","version":"1.0.0","optional":true}],"ringwave:scale":0`), "ringwave:scale is 0"},
		{global(`"core:extensions":[{"name":"ringwave","version":"1.1.0","optional":true}],"ringwave:clip_level":-1`), "ringwave:clip_level is -1; allowed is 1e-30 to 1e30"},
		{global(`"core:datatype":"ci16_be"`), "twice in one object"},
		{`{"global":{"core:datatype":"ci16_be","core:version":"1.0.0"}}`, "core:datatype is ci16_be; allowed is ci8, ci16_le, cf32_le"},
		{capture(`5`), "captures[0] is 5; allowed is an object"},
		{capture(`{}`), "captures[0] core:sample_start is missing"},
		{capture(`{"core:sample_start":1}`), "captures[0] core:sample_start is 1; allowed is 0 in the first capture"},
		{capture(`{"core:sample_start":-1}`), "core:sample_start is -1; allowed is an integer from 0"},
		{capture(`{"core:sample_start":0.5}`), "core:sample_start is 0.5"},
		{capture(`{"core:sample_start":18446744073709551615}`), "core:sample_start is 18446744073709551615"},
		{capture(`{"core:sample_start":0},{"core:sample_start":0}`), "captures[1] core:sample_start is 0; allowed is more than 0"},
		{capture(`{"core:sample_start":0},{"core:sample_start":5},{"core:sample_start":4}`), "captures[2] core:sample_start is 4"},
		{capture(`{"core:sample_start":0,"core:global_index":9},{"core:sample_start":5}`), "captures[1] core:global_index is 5; allowed is 14 or more"},
		{capture(`{"core:sample_start":0,"core:global_index":9},{"core:sample_start":5,"core:global_index":13}`), "captures[1] core:global_index is 13"},
		{capture(`{"core:sample_start":0,"core:header_bytes":4}`), "core:header_bytes is 4"},
		{capture(`{"core:sample_start":0,"core:frequency":2e12}`), "core:frequency is 2e+12; allowed is -1e+12 to 1e+12"},
		{capture(`{"core:sample_start":0,"core:datetime":"2026-01-01T00:00:00+01:00"}`), "core:datetime is 2026-01-01T00:00:00+01:00"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2},{"core:sample_start":1}`), "annotations[1] core:sample_start is 1; allowed is 2 or more"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:round":4294967296}`), "ringwave:round is 4294967296"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:first_index":2}`), "ringwave:index_count is missing"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:index_count":2}`), "ringwave:first_index is missing"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:first_index":-2,"ringwave:index_count":2}`), "ringwave:first_index is -2"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:transmitter_epochs":[1,-1]}`), "ringwave:transmitter_epochs is [1,-1]; allowed is 1 to 1024 integers of 0 or more"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:transmitter_epochs":[1,null]}`), "ringwave:transmitter_epochs is [1,null]"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:transmitter_epochs":[]}`), "ringwave:transmitter_epochs is []"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"ringwave:invalid":0.5}`), "ringwave:invalid is 0.5"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"core:freq_lower_edge":2}`), "core:freq_upper_edge is missing; allowed is a frequency, as core:freq_lower_edge is there"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"core:freq_upper_edge":2}`), "core:freq_lower_edge is missing"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"core:freq_lower_edge":3,"core:freq_upper_edge":2}`), "core:freq_lower_edge and core:freq_upper_edge is 3 and 2; allowed is -1 THz to 1 THz"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"core:freq_lower_edge":3,"core:freq_upper_edge":2e12}`), "is 3 and 2e+12"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":2,"core:freq_lower_edge":null,"core:freq_upper_edge":2}`), "core:freq_lower_edge is null; allowed is a number"},
		{global(`"core:author":"` + strings.Repeat("a", 500) + `\u0000","core:hw":{}`), "core:hw is {}"},
	} {
		_, err := sigmf.ParseMeta("bad.sigmf-meta", []byte(c.meta))
		var wrong *sigmf.FormatError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "bad.sigmf-meta: ") {
			t.Errorf("%.80s\n  gives %v\n  instead of %q", c.meta, err, c.want)
		}
	}
}

func TestDamagedDataset(t *testing.T) {
	two := `{"core:sample_start":0},{"core:sample_start":5}`
	for _, c := range []struct {
		meta  string
		bytes int
		want  string
	}{
		{fmt.Sprintf(minimal, "", "", ""), 3, "the length is 3 bytes; allowed is a multiple of 2 bytes"},
		{fmt.Sprintf(minimal, "", two, ""), 10, "the length is 5 samples; allowed is more than 5, where the last capture begins"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":3,"core:sample_count":4}`), 12, "the length is 6 samples; allowed is 7 or more, where annotations[0] ends"},
		{fmt.Sprintf(minimal, "", `{"core:sample_start":0},{"core:sample_start":5,"core:global_index":9}`, `{"core:sample_start":5,"core:sample_count":1,"ringwave:first_index":4,"ringwave:index_count":6}`), 12,
			"annotations[0] ringwave:first_index and ringwave:index_count is 4 and 6; allowed is indices of the samples from 5 on"},
		{fmt.Sprintf(minimal, "", "", `{"core:sample_start":0,"core:sample_count":1}`), 0, "the length is 0 samples; allowed is 1 or more"},
		{fmt.Sprintf(minimal, `,"core:sha512":"`+strings.Repeat("0", 128)+`"`, "", ""), 2, "SHA-512 is"},
	} {
		_, err := sigmf.Open(place(t, c.meta, make([]byte, c.bytes)), sigmf.Options{})
		var wrong *sigmf.FormatError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
	w, base := create(t, sigmf.Config{Datatype: sigmf.CI16})
	ok(t, w.Record(samples(1, 100, 1), radio.Meta{}), w.Close())
	ok(t, os.Truncate(base+".sigmf-data", 4*99))
	if _, err := sigmf.Open(base, sigmf.Options{SkipChecksum: true}); err == nil || !strings.Contains(err.Error(), "99 samples; allowed is 100") {
		t.Errorf("truncated: %v", err)
	}
	ok(t, os.Truncate(base+".sigmf-data", 4*100))
	if _, err := sigmf.Open(base, sigmf.Options{}); err == nil || !strings.Contains(err.Error(), "SHA-512") {
		t.Errorf("changed: %v", err)
	}
	if _, err := sigmf.Open(base+"-none", sigmf.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	r, err := sigmf.Open(base, sigmf.Options{SkipChecksum: true})
	ok(t, err)
	rx := play(t, r)
	ok(t, os.Truncate(base+".sigmf-data", 10)) // while it plays
	if _, _, err := rx.Read(t.Context(), make([]complex64, 100)); !errors.Is(err, io.EOF) || err == io.EOF {
		t.Errorf("truncated while it plays: %v", err)
	}
	ok(t, r.Close(), r.Close())
	if _, _, err := rx.Read(t.Context(), make([]complex64, 100)); !errors.Is(err, radio.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := r.OpenReceiver(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

func TestDevice(t *testing.T) {
	w, base := create(t, sigmf.Config{Datatype: sigmf.CI8, Hardware: "bench"})
	ok(t, w.Record(samples(1, 200000, 1), radio.Meta{}), w.Close())
	odd := base + " %?" // a name that needs escapes
	ok(t, os.Rename(base+".sigmf-meta", odd+".sigmf-meta"), os.Rename(base+".sigmf-data", odd+".sigmf-data"))
	reg, err := radio.NewRegistry(map[string]radio.Opener{"file": sigmf.Opener{}})
	ok(t, err)
	uri := radio.URI{Scheme: "file", Name: odd + ".sigmf-data"}
	d, err := reg.Open(t.Context(), uri.String())
	ok(t, err)
	want := radio.URI{Scheme: "file", Name: odd + ".sigmf-meta"}.String() + ", recording of bench, driver sigmf\n  receive: yes\n  receive sample rate: 10 MHz (10 MHz)\n  indices: counted by the host"
	if got := radio.Describe(d).String(); got != want {
		t.Errorf("described as\n%s", got)
	}
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	x := make([]complex64, 150000)
	if _, _, err := rx.Read(t.Context(), x); !errors.Is(err, radio.ErrNotStarted) {
		t.Error(err)
	}
	ok(t, rx.Start(t.Context()))
	if err := rx.Start(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if n, _, err := radio.ReadFull(t.Context(), rx, x); n != len(x) || err != nil {
		t.Error(n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := rx.Read(ctx, x); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ok(t, rx.Close(), rx.Close(), d.Close())
	for u, want := range map[string]string{"file:x?checksum=no": "allowed is skip or verify", "file:x?a=1": "allowed is checksum"} {
		if _, err := reg.Open(t.Context(), u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// What a receiver hears, faults included, is what its recording plays.
func TestRecordLoopback(t *testing.T) {
	m, err := loopback.New(loopback.Config{Name: "bench", Rate: rate, Devices: []loopback.Device{{Gain: 1}}})
	ok(t, err, m.Drop(3000, 500), m.RetuneReceiver(7000, 1))
	tx, err := m.Transmitter(0)
	ok(t, err)
	s, err := tx.(radio.TransmitOpener).OpenTransmitter(t.Context())
	ok(t, err, s.Start(t.Context()))
	_, err = s.Write(t.Context(), samples(9, 10000, 1), radio.TxMeta{})
	ok(t, err)
	d, err := m.Receiver(100)
	ok(t, err)
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err, rx.Start(t.Context()))
	w, base := create(t, sigmf.Config{Datatype: sigmf.CF32})
	heard := make([]complex64, 9400)
	_, meta, err := radio.ReadFull(t.Context(), radio.Tee(rx, w), heard)
	ok(t, err, w.Close(), m.Close())
	x, played := playAll(t, base)
	if !reflect.DeepEqual(x, heard) || !reflect.DeepEqual(played, meta) || len(meta.Gaps) != 1 || len(meta.Changes) != 1 {
		t.Errorf("played %+v instead of %+v", played, meta)
	}
}

// Reads that are kept from stepping over a loss, in memory and of a recording of
// it: nothing is waited for beyond the index, and the loss is told by the read that
// steps over it.
func TestReadUntil(t *testing.T) {
	m, err := loopback.New(loopback.Config{Rate: rate, Devices: []loopback.Device{{Gain: 1}}})
	ok(t, err, m.Drop(3000, 5000))
	d, err := m.Transmitter(0)
	ok(t, err)
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
	ok(t, err, tx.Start(t.Context()))
	sent := samples(9, 10000, 1)
	if d, err = m.Receiver(0); err != nil {
		t.Fatal(err)
	}
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err, rx.Start(t.Context()))
	w, base := create(t, sigmf.Config{Datatype: sigmf.CF32})
	read := func(rx radio.Receiver, write func(until int)) {
		t.Helper()
		x := make([]complex64, 4000)
		for _, c := range []struct {
			until, n int
			first    radio.SampleIndex
			lost     radio.SampleCount
		}{{2000, 2000, 0, 0}, {4000, 1000, 2000, 0}, {4500, 0, 0, 0}, {6000, 0, 0, 0}, {9000, 1000, 8000, 5000}, {10000, 1000, 9000, 0}} {
			write(c.until)
			n, meta, err := radio.ReadFullUntil(t.Context(), rx, x, radio.SampleIndex(c.until))
			if err != nil || n != c.n || meta.First != c.first || c.lost == 0 != (len(meta.Gaps) == 0) || c.lost > 0 && meta.Gaps[0] != (radio.Gap{Length: c.lost, Exact: true}) {
				t.Errorf("until %d: %d samples, %+v, %v", c.until, n, meta, err)
			}
			if !reflect.DeepEqual(x[:n], sent[c.first:int(c.first)+n]) {
				t.Errorf("until %d: other samples", c.until)
			}
		}
	}
	written := 0
	read(radio.Tee(rx, w), func(until int) {
		_, err := tx.Write(t.Context(), sent[written:until], radio.TxMeta{})
		ok(t, err)
		written = until
	})
	ok(t, w.Close())
	read(play(t, open(t, base)), func(int) {})
}

// What a receiver says of its converter is in its recording, and the integers of a
// recording have an end of their own.
func TestClipLevel(t *testing.T) {
	for _, c := range []struct {
		datatype    sigmf.Datatype
		level, want radio.Amplitude
	}{
		{sigmf.CF32, 0, 0}, {sigmf.CF32, 0.9, 0.9},
		{sigmf.CI8, 0, 2 * 126.5 / 127}, {sigmf.CI8, 0.9, 0.9}, {sigmf.CI8, 3, 2 * 126.5 / 127},
		{sigmf.CI16, 0, 2 * 32766.5 / 32767},
	} {
		w, base := create(t, sigmf.Config{Datatype: c.datatype, FullScale: 2, ClipLevel: c.level})
		ok(t, w.Record([]complex64{1, 2, 3, -2i, 1.98}, radio.Meta{}), w.Close())
		rx := radio.Receiver(play(t, open(t, base)))
		if got := radio.ClipLevel(rx); math.Abs(float64(got-c.want)) > 1e-12 {
			t.Errorf("%s, %v: clip level %v, want %v", c.datatype, c.level, got, c.want)
		}
	}
	if _, err := sigmf.Create("x", sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1, ClipLevel: -1}); err == nil || !strings.Contains(err.Error(), "the clip level is -1") {
		t.Error(err)
	}
}

// The primes of q come back, of recordings that name them; q is their product.
func TestModulus(t *testing.T) {
	for _, primes := range [][]uint64{nil, {3}, {0x3ffffffffd6001, 0x7ffffffffb4001}, {1 << 62, 1<<62 - 1, 5}} {
		w, base := create(t, sigmf.Config{Datatype: sigmf.CI8, Primes: primes})
		ok(t, w.Record([]complex64{0.5}, radio.Meta{}), w.Close())
		if got := open(t, base).Metadata().Primes; !reflect.DeepEqual(got, primes) {
			t.Errorf("primes %v instead of %v", got, primes)
		}
	}
	for _, primes := range [][]uint64{{2}, {1<<62 + 1}, make([]uint64, 17)} {
		_, err := sigmf.Create("x", sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1, Primes: primes})
		if err == nil || !strings.Contains(err.Error(), "the primes is") || !strings.Contains(err.Error(), "1 to 16 integers from 3 to 2^62") {
			t.Errorf("primes %v: %v", primes, err)
		}
	}
	declared := `"core:extensions":[{"name":"ringwave","version":"1.2.0","optional":true}]`
	for _, c := range []struct{ global, want string }{
		{declared + `,"ringwave:primes":[7,11]`, `ringwave:modulus is ""; allowed is "77", the product of ringwave:primes`},
		{declared + `,"ringwave:primes":[7,11],"ringwave:modulus":"78"`, `ringwave:modulus is "78"; allowed is "77"`},
		{declared + `,"ringwave:modulus":"77"`, "ringwave:primes is missing; allowed is 1 to 16 integers"},
		{declared + `,"ringwave:primes":[],"ringwave:modulus":"1"`, "ringwave:primes is []"},
		{declared + `,"ringwave:primes":[7,-11],"ringwave:modulus":"77"`, "ringwave:primes is [7,-11]"},
		{declared + `,"ringwave:primes":[7,null],"ringwave:modulus":"7"`, "ringwave:primes is [7,null]"},
		{declared + `,"ringwave:primes":[7],"ringwave:modulus":7`, "ringwave:modulus is 7; allowed is a string"},
		{`"ringwave:primes":[7],"ringwave:modulus":"7"`, "none where the extension ringwave is not declared"},
	} {
		_, err := sigmf.ParseMeta("x", []byte(fmt.Sprintf(minimal, ","+c.global, "", "")))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v instead of %q", c.global, err, c.want)
		}
	}
}

// The form of frames is read back as it was written, and what is not one is refused, be it
// in a file or of a caller.
func TestFrames(t *testing.T) {
	const declared = `"core:extensions":[{"name":"ringwave","version":"1.3.0","optional":true}]`
	frames := func() *sigmf.Frames {
		return &sigmf.Frames{
			Run: 65535, Devices: 9, Group: 3, Base: 15, BlockSymbols: 1, Coefficients: []int{1, 2}, SamplesPerSymbol: 2, PreambleSymbols: 31,
			Pulse: sigmf.Pulse{Shape: "root", RollOff: 0.25, SpanSymbols: 16}, DigitLevel: 1e-3,
		}
	}
	w, base := create(t, sigmf.Config{Datatype: sigmf.CI8, Frames: frames()})
	ok(t, w.Record([]complex64{0.5}, radio.Meta{}),
		w.Annotate(sigmf.Annotation{Tag: &sigmf.Tag{Device: -1, Group: -1, Alpha: 2.5, Factors: []int{1, 50}}}), w.Close())
	d := open(t, base)
	if got := d.Metadata().Frames; !reflect.DeepEqual(got, frames()) {
		t.Errorf("frames %+v instead of %+v", got, frames())
	}
	if tag := d.Annotations()[0].Tag; tag.Alpha != 2.5 || !reflect.DeepEqual(tag.Factors, []int{1, 50}) {
		t.Errorf("tag %+v", tag)
	}
	for _, c := range []struct {
		spoil func(f *sigmf.Frames)
		want  string
	}{
		{func(f *sigmf.Frames) { f.Devices = 0 }, "devices is 0; allowed is an integer from 1"},
		{func(f *sigmf.Frames) { f.Base = 1 }, "base is 1; allowed is an integer from 2"},
		{func(f *sigmf.Frames) { f.Coefficients = nil }, "coefficients is null; allowed is 1 to 16 integers of 1 or more"},
		{func(f *sigmf.Frames) { f.Coefficients = make([]int, 17) }, "1 to 16 integers of 1 or more"},
		{func(f *sigmf.Frames) { f.Pulse.Shape = "" }, "pulse is ; allowed is 1 to 32 bytes"},
		{func(f *sigmf.Frames) { f.DigitLevel = 0 }, "digit_level is 0; allowed is a number above 0"},
		{func(f *sigmf.Frames) { f.Alpha = -1 }, "alpha is -1; allowed is a number of 0 or more"},
		{func(f *sigmf.Frames) { f.Alpha = math.NaN() }, "allowed is finite numbers"},
	} {
		f := frames()
		c.spoil(f)
		_, err := sigmf.Create("x", sigmf.Config{Datatype: sigmf.CI8, SampleRate: 1, Frames: f})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{declared + `,"ringwave:frames":[]`, "global ringwave:frames is []; allowed is an object"},
		{declared + `,"ringwave:frames":{}`, "ringwave:frames run is missing; allowed is an integer from 0 to 65535"},
		{`"ringwave:frames":{}`, "none where the extension ringwave is not declared"},
	} {
		_, err := sigmf.ParseMeta("x", []byte(fmt.Sprintf(minimal, ","+c.text, "", "")))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v instead of %q", c.text, err, c.want)
		}
	}
	for _, c := range []struct{ annotation, want string }{
		{`"ringwave:round":1,"ringwave:alpha":-1`, "ringwave:alpha is -1; allowed is a number of 0 or more"},
		{`"ringwave:round":1,"ringwave:group_factors":[0]`, "ringwave:group_factors is [0]; allowed is 1 to 1024 integers of 1 or more"},
		{`"ringwave:round":1,"ringwave:group_factors":[1,null]`, "ringwave:group_factors is [1,null]"},
	} {
		_, err := sigmf.ParseMeta("x", []byte(fmt.Sprintf(minimal, "", "", `{"core:sample_start":0,`+c.annotation+`}`)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v instead of %q", c.annotation, err, c.want)
		}
	}
}

// A tag that could not be read back is refused, and the recording goes on.
func TestTagsThatAreNone(t *testing.T) {
	w, _ := create(t, sigmf.Config{Datatype: sigmf.CI8})
	ok(t, w.Record([]complex64{0.5}, radio.Meta{}))
	for _, tag := range []sigmf.Tag{
		{Device: -2}, {Phase: "a phase of seventeen"}, {Alpha: math.NaN()}, {Alpha: -1}, {Alpha: math.Inf(1)}, {Factors: []int{0}}, {Factors: make([]int, 1025)},
	} {
		if err := w.Annotate(sigmf.Annotation{Tag: &tag}); err == nil || !strings.Contains(err.Error(), "a tag is ") {
			t.Errorf("%+v: %v", tag, err)
		}
	}
	ok(t, w.Close())
}

// Reports of invalid samples stay with the block that they are about.
func TestInvalidReports(t *testing.T) {
	w, base := create(t, sigmf.Config{Datatype: sigmf.CF32})
	x := make([]complex64, 100)
	ok(t, w.Record(x, radio.Meta{First: 0, Flags: radio.Invalid, Invalid: 2}),
		w.Record(x, radio.Meta{First: 100, Flags: radio.Invalid, Invalid: 3}),
		w.Record(x, radio.Meta{First: 200, Flags: radio.Clipped, Clipped: 1}), w.Close())
	rx := play(t, open(t, base))
	for _, want := range []radio.SampleCount{2, 3, 0} {
		_, meta, err := radio.ReadFull(t.Context(), rx, x)
		ok(t, err)
		if meta.Invalid != want || (meta.Flags&radio.Invalid != 0) != (want > 0) {
			t.Errorf("invalid %+v, want %d", meta, want)
		}
	}
}

// Whatever the two files hold: a clear error, or samples that are numbers, as many
// as the file has, with indices that only go forward.
func FuzzRecording(f *testing.F) {
	for _, d := range []sigmf.Datatype{sigmf.CI8, sigmf.CI16, sigmf.CF32} {
		w, base := create(f, sigmf.Config{Datatype: d, ClipLevel: 0.9})
		ok(f, w.Record(samples(1, 20, 1), radio.Meta{First: 5, Epoch: 1, Gaps: []radio.Gap{{At: 7, Length: 9, Exact: true}}, Flags: radio.Clipped, Clipped: 1}),
			w.Annotate(sigmf.Annotation{First: 6, Count: 10, Label: "x", Tag: &sigmf.Tag{Round: 1, Phase: "b", Device: -1, Group: 1, Transmitters: []radio.Epoch{1, 2}}}), w.Close())
		meta, err := os.ReadFile(base + ".sigmf-meta")
		ok(f, err)
		data, err := os.ReadFile(base + ".sigmf-data")
		ok(f, err)
		f.Add(meta, data)
	}
	base := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, meta, data []byte) {
		base := fmt.Sprintf("%s-%d", base, os.Getpid())
		ok(t, os.WriteFile(base+".sigmf-meta", meta, 0o600), os.WriteFile(base+".sigmf-data", data, 0o600))
		r, err := sigmf.Open(base, sigmf.Options{SkipChecksum: true})
		if err != nil {
			var wrong *sigmf.FormatError
			if !errors.As(err, &wrong) || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%q", err)
			}
			return
		}
		defer r.Close()
		rx := play(t, r)
		x := make([]complex64, 64)
		total, due := radio.SampleCount(0), radio.SampleIndex(0)
		for {
			n, m, err := rx.Read(t.Context(), x)
			for _, v := range x[:n] {
				if cmplx.IsNaN(complex128(v)) || cmplx.IsInf(complex128(v)) {
					t.Fatalf("sample %v", v)
				}
			}
			if n > 0 && m.First < due {
				t.Fatalf("index %d where %d was due", m.First, due)
			}
			if n > 0 {
				due = m.Index(n-1) + 1
			}
			total += radio.SampleCount(n)
			if err == io.EOF {
				break
			}
			ok(t, err)
		}
		if total != r.Samples() {
			t.Fatalf("%d of %d samples", total, r.Samples())
		}
		for _, a := range r.Annotations() {
			if a.First < 0 || a.Count < 0 {
				t.Fatalf("annotation %+v", a)
			}
		}
		if level := radio.ClipLevel(rx); !(level >= 0) {
			t.Fatalf("clip level %v", level)
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(minimal, "", "", "")))
	f.Add([]byte(fmt.Sprintf(minimal, `,"core:sample_rate":1e6,"core:num_channels":1,"core:extensions":[{"name":"ringwave","version":"1.0.0","optional":true}],"ringwave:scale":0.5,"ringwave:samples":9,"ringwave:frames":{"run":1,"devices":2,"group_size":1,"base":3,"block_symbols":9,"coefficients":[3,1],"samples_per_symbol":4,"preamble_symbols":31,"pulse":"flat-top","digit_level":1},"core:sha512":"`+strings.Repeat("aB", 64)+`"`,
		`{"core:sample_start":0,"core:frequency":-1.5,"core:datetime":"1955-11-05T14:00:00.123456789Z"},{"core:sample_start":5,"core:global_index":9e2,"ringwave:epoch":3,"ringwave:gap_estimated":true}`,
		`{"core:sample_start":3,"core:sample_count":4,"core:label":"\ud800","ringwave:round":1,"ringwave:phase":"c0","ringwave:device":0,"ringwave:overrun":true,"ringwave:invalid":2,"ringwave:alpha":1.5,"ringwave:group_factors":[1,2],"ringwave:first_index":3,"ringwave:index_count":4,"ringwave:transmitter_epochs":[1,2]}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := sigmf.ParseMeta("f", data)
		if err != nil {
			var wrong *sigmf.FormatError
			if !errors.As(err, &wrong) || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%q", err)
			}
			return
		}
		text, err := m.Encode()
		ok(t, err)
		again, err := sigmf.ParseMeta("f", text)
		ok(t, err)
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v\nis written and read as\n%+v", m, again)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, d := range []sigmf.Datatype{sigmf.CI8, sigmf.CI16, sigmf.CF32} {
		b.Run(string(d), func(b *testing.B) {
			w, _ := create(b, sigmf.Config{Datatype: d})
			defer w.Abort()
			x, meta := samples(1, 1<<16, 1), radio.Meta{}
			b.SetBytes(8 << 16)
			for b.Loop() {
				ok(b, w.Record(x, meta))
				meta.First += 1 << 16
			}
			b.ReportMetric(float64(b.N)*(1<<16)/1e6/b.Elapsed().Seconds(), "Msamples/s")
		})
	}
}
