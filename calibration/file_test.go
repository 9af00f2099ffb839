package calibration

import (
	"bytes"
	"errors"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func yes() *bool { v := true; return &v }

// some returns a file of three devices that has every odd value a file may have.
func some() File {
	nan, inf := math.NaN(), math.Inf(1)
	f := File{
		Version: Version,
		Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), ValidUntil: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		Program: "ringwave 1.0", Violations: []string{"devices 1 and 2 glitch \"together\""},
		Bench: Bench{
			Kind: Radios, Identity: "ab12", ReceiverURI: "hackrf://0", ReceiverDriver: "hackrf", ReceiverSerial: "00ff",
			ReceiveGainsDB: map[string]float64{"vga": 20, "lna": 16, "an odd one": 0.1}, FrequencyHz: 2437000123.5, SampleRateHz: 10e6,
			Clock: "external", ReceiverEpoch: 3, SessionID: "s1",
		},
		Sounding: Sounding{
			Kind: ZadoffChu, Length: 127, Root: 1, SamplesPerChip: 2, Repetitions: 4, Blocks: 200, Looks: 4, Sessions: 2,
			BlockSeconds: 0.5, RoundSeconds: 0.2, Amplitude: 0.9,
		},
		Advice: []AdviceLine{{Regime: "blind", Group: 3, Base: 3, SamplesPerSymbol: 8, Repeats: 1, ParameterSet: "lean-2048", Success: Value{0.99, 0.98, 1}, AirtimeSeconds: 0.25}},
	}
	for i := 1; i <= 3; i++ {
		f.Devices = append(f.Devices, Device{
			Index:       i,
			Transmitter: Transmitter{URI: "hackrf://" + string(rune('0'+i)), Driver: "hackrf", Serial: "ABC" + string(rune('0'+i)), TransmitGainsDB: map[string]float64{"vga": 30}, Epoch: 2},
			Soundings:   800, Missed: 1, Clipped: 2,
			Mu: Value{1.0 / 3, 0.3, 0.4}, Omega: Value{0.12, 0.11, 0.13}, Sigma: Value{0, 0, 0.01}, KFactor: Value{1e5, 10, inf}, SNRdB: Value{35, 34, 36},
			PhaseRad: Value{-1, -1.1, -0.9}, DelaySamples: Value{1e-7, -1e-3, 1e-3}, OffsetHz: Value{nan, nan, nan},
			DCI: 1e-3, DCQ: math.Copysign(0, -1), ImageDB: math.Inf(-1), IQGainDB: nan, IQPhaseRad: 0.01,
			Model: Gaussian, PhasePerSessionRad: []float64{-1, nan}, CoherenceSeconds: inf,
			PhaseDriftRadPerSecond: Value{1e-5, nan, nan}, GainDriftDBPerSecond: Value{-0.001, -0.002, 0},
		})
	}
	for _, list := range []*[]float64{&f.Devices[0].EchoDelaysSamples, &f.Devices[0].EchoI, &f.Devices[0].EchoQ, &f.Devices[0].EchoErrors} {
		*list = []float64{}
	}
	d := &f.Devices[1]
	d.EchoDelaysSamples, d.EchoI, d.EchoQ, d.EchoErrors = []float64{8, -3.25}, []float64{0.1, 0}, []float64{-0.02, 0.01}, []float64{0, 1e-3}
	f.Devices[1].PhaseLasts, f.Devices[1].Violations = yes(), []string{"its gain drifts", "its phase \\ \n jumps"}
	return f
}

// What is written is read back: the same text, the same numbers to nine digits, and
// what is not finite as it was.
func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	f := some()
	f.Devices[0], f.Devices[2] = f.Devices[2], f.Devices[0]
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, got.Text()) || !bytes.Equal(b, some().Text()) {
		t.Errorf("reading and writing changed the file:\n%s\n%s", b, got.Text())
	}
	if got.Devices[0].Index != 1 || got.Bench.FrequencyHz != 2437000123.5 || got.Devices[0].Mu.Value != 0.333333333 {
		t.Errorf("read are %+v", got.Devices[0])
	}
	d := got.Devices[1]
	if !math.IsNaN(d.OffsetHz.Value) || !math.IsInf(d.ImageDB, -1) || !math.IsInf(d.KFactor.High, 1) || !math.IsNaN(d.PhasePerSessionRad[1]) {
		t.Errorf("what is not finite became %+v", d)
	}
	if d.PhaseLasts == nil || !*d.PhaseLasts || got.Devices[0].PhaseLasts != nil || !reflect.DeepEqual(d.Violations, some().Devices[1].Violations) {
		t.Errorf("device 2 is %+v", d)
	}
	if !reflect.DeepEqual(d.EchoDelaysSamples, []float64{8, -3.25}) || d.EchoI[0] != 0.1 || d.EchoQ[0] != -0.02 || d.EchoErrors[1] != 1e-3 {
		t.Errorf("the echoes of device 2 are %+v", d)
	}
	if none := got.Devices[0]; none.EchoDelaysSamples == nil || none.EchoErrors == nil || got.Devices[2].EchoDelaysSamples != nil {
		t.Errorf("no echoes and echoes not looked for are %+v, %+v", none, got.Devices[2])
	}
}

// What files of earlier programs lack they need not have, and what is there is checked.
func TestOptionalKeys(t *testing.T) {
	old, err := Parse("c.toml", some().Text())
	if err != nil {
		t.Fatal(err)
	}
	if d := old.Devices[0]; d.OffsetFromCommonHz != nil || d.ClockPPM != nil || d.LeakageI != nil || d.LeakageQ != nil {
		t.Errorf("an old file tells %+v", d)
	}
	f := some()
	for k, v := range []**Value{&f.Devices[1].OffsetFromCommonHz, &f.Devices[1].ClockPPM, &f.Devices[1].LeakageI, &f.Devices[1].LeakageQ} {
		*v = &Value{float64(k), float64(k) - 1, float64(k) + 1}
	}
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("c.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Text(), text) || *got.Devices[1].ClockPPM != (Value{1, 0, 2}) || got.Devices[0].ClockPPM != nil {
		t.Errorf("read are %+v", got.Devices[1])
	}
	for _, c := range []struct{ old, new, want string }{
		{"clock_ppm = {value = 1.0, low = 0.0", "clock_ppm = {value = 1.0, low = 1.5", "device 2: clock_ppm is 1 from 1.5 to 2"},
		{"clock_ppm = {value = 1.0, low = 0.0, ", "clock_ppm = {value = 1.0, ", "there is no key device 2: clock_ppm.low"},
		{"leakage_i = {value = 2.0, low = 1.0, high = 3.0}", "leakage_i = 2", "device 2: leakage_i is 2: it must be a table"},
	} {
		_, err := Parse("c.toml", bytes.Replace(text, []byte(c.old), []byte(c.new), 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

// A file that could not be read is not made.
func TestEncodeRefuses(t *testing.T) {
	bad := some()
	bad.Devices[2].Mu = Value{}
	var refused *Error
	if text, err := bad.Encode(); text != nil || !errors.As(err, &refused) || !strings.Contains(err.Error(), "device 3: mu is 0") {
		t.Errorf("error is %v", err)
	}
}

// TestReadRefuses: longer, or of more branches, than most because it is a table of what is refused.
func TestReadRefuses(t *testing.T) {
	whole := string(some().Text())
	for name, c := range map[string]struct{ old, new, want string }{
		"syntax":            {"[sounding]", "[sounding", "c.toml: line "},
		"unknown key":       {"clipped = ", "cliped = ", "device 1: cliped; the nearest known one is device 1: clipped"},
		"case":              {"program", "Program", "unknown key Program; the nearest known one is program"},
		"missing key":       {"soundings = 800\n", "", "there is no key device 1: soundings"},
		"missing end":       {"low = 0.3,", "", "there is no key device 1: mu.low"},
		"version":           {"version = 1", "version = 2", "version is 2: this program reads 1"},
		"kind of value":     {"missed = 1", `missed = "x"`, `device 1: missed is "x": it must be a whole number`},
		"no table":          {"mu = {value = 0.333333333, low = 0.3, high = 0.4}", "mu = 1", "device 1: mu is 1: it must be a table {value"},
		"gains":             {"vga = 30.0", `vga = "a"`, "device 1: transmit_gains_db is a table: it must be a table of numbers"},
		"far gain":          {"vga = 30.0", "vga = 300", "device 1: transmit_gains_db.vga is 300: allowed are -200 to 200"},
		"negative epoch":    {"epoch = 2\n", "epoch = -2\n", "device 1: epoch is -2: it must be a whole number of at least 0"},
		"zero mean":         {"mu = {value = 0.333333333, low = 0.3", "mu = {value = 0.0, low = -1", "device 1: mu is 0: it must be a number other than zero"},
		"no mean":           {"mu = {value = 0.333333333, low = 0.3", "mu = {value = nan, low = -1", "device 1: mu is NaN"},
		"moments":           {"omega = {value = 0.12, low = 0.11, high = 0.13}", "omega = {value = 0.1, low = 0.09, high = 0.11}", "device 1: omega is 0.1, up to 0.11, with mu = 0.333333333: it must be at least mu^2, 0.111111111"},
		"order":             {"low = 0.3, high = 0.4", "low = 0.4, high = 0.3", "device 1: mu is 0.333333333 from 0.4 to 0.3: low, value and high"},
		"outside":           {"low = 0.3, high = 0.4", "low = 0.34, high = 0.4", "device 1: mu is 0.333333333 from 0.34 to 0.4: low, value and high"},
		"nan with interval": {"value = nan, low = nan", "value = nan, low = 0", "device 1: offset_hz is nan from 0 to NaN"},
		"duplicate index":   {"index = 2", "index = 1", "device 2: index is 1, which is also that of the [[device]] table 1"},
		"missing index":     {"index = 2", "index = 4", "no device has the index 2, but there are 3"},
		"index":             {"index = 2", "index = 0", "device 2: index is 0"},
		"no index":          {"index = 2\n", "", "there is no key device 2: index"},
		"model":             {`model = "gaussian"`, `model = "other"`, `device 1: model is "other": allowed are gaussian, rician`},
		"date":              {"created = 2026-11-21T12:00:00Z", `created = "now"`, `created is "now": it must be a date and time`},
		"no zone":           {"created = 2026-11-21T12:00:00Z", "created = 2026-11-21T12:00:00", "created is a date or a time without a zone: it must be a date and time"},
		"day":               {"valid_until = 2026-11-22T12:00:00Z", "valid_until = 2026-11-22", "valid_until is a date or a time without a zone"},
		"validity":          {"valid_until = 2026-11-22", "valid_until = 2026-11-20", "valid_until is 2026-11-20T12:00:00Z, before created, 2026-11-21T12:00:00Z"},
		"rate":              {"sample_rate_hz = 10000000.0", "sample_rate_hz = -1", "bench.sample_rate_hz is -1: it must be a positive number"},
		"amplitude":         {"amplitude = 0.9", "amplitude = 1.5", "sounding.amplitude is 1.5: allowed are 0 to 1"},
		"bench":             {`kind = "radios"`, `kind = "car"`, `bench.kind is "car": allowed are simulated, radios, recording`},
		"probability":       {"high = 1.0}", "high = 1.0, x = 1}", "unknown key advice 1: success_probability.x"},
		"regime":            {`regime = "blind"`, `regime = "deaf"`, `advice 1: regime is "deaf": allowed are emulated, mean-aligned, blind`},
		"phases":            {"phase_per_session_rad = [-1.0, nan]", "phase_per_session_rad = [-1.0, 9]", "device 1: phase_per_session_rad has at place 2 what is 9"},
		"echoes":            {"echo_i = [0.1, 0.0]", "echo_i = [0.1]", "device 2: echo_i has 1 values: it must have as many as echo_delays_samples, 2"},
		"no echo gains":     {"echo_q = [-0.02, 0.01]\n", "", "device 2: echo_q has 0 values"},
		"late echo":         {"echo_delays_samples = [8.0", "echo_delays_samples = [80.0", "device 2: echo_delays_samples has at place 1 what is 80: allowed are -64 to 64"},
		"echo":              {"echo_i = [0.1, 0.0]", "echo_i = [0.1, nan]", "device 2: echo_i has at place 2 what is NaN: allowed are -10 to 10"},
		"echo's error":      {"echo_errors = [0.0, 0.001]", "echo_errors = [0.0, -1]", "device 2: echo_errors has at place 2 what is -1"},
		"echoes' kind":      {"echo_i = [0.1, 0.0]", "echo_i = 0.1", "device 2: echo_i is 0.1: it must be a list of numbers"},
		"many echoes":       {"echo_delays_samples = [8.0, -3.25]", "echo_delays_samples = [1, 2, 3, 4, 5, 6, 7, 8, 9]", "device 2: echo_delays_samples has 9 values: allowed are at most 8"},
		"truth":             {"\nphase_lasts = true", "\nphase_lasts = 1", "device 2: phase_lasts is 1: it must be true or false"},
		"header":            {"[bench]", "[[bench]]", "bench is a list: it must be a table under the header [bench]"},
		"headers":           {"[[advice]]", "[advice]", "advice is a table: it must be tables under headers [[advice]]"},
		"too much":          {"# Whatever", strings.Repeat("#\n", MaxFile/2) + "# Whatever", "more than 1048576 bytes"},
	} {
		text := strings.Replace(whole, c.old, c.new, 1)
		if text == whole {
			t.Errorf("%s: %q is not in the file:\n%s", name, c.old, whole)
			continue
		}
		_, err := Parse("c.toml", []byte(text))
		var refused *Error
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "c.toml: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent.toml")); err == nil || !strings.Contains(err.Error(), "absent.toml: the calibration file cannot be read: no such file") {
		t.Errorf("an absent file: %v", err)
	}
	if _, err := Parse("c.toml", nil); err == nil || !strings.Contains(err.Error(), "there is no key version") {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := Parse("c.toml", []byte(strings.Replace(whole, "[[device]]", "", 3))); err == nil {
		t.Error("a file without devices was read")
	}
}

// Estimates whose last bits differ are one file; so are those of other boards after
// Anonymous, and those of other links are not.
func TestEqualContentEqualBytes(t *testing.T) {
	a, b := some(), some()
	b.Devices[0].Mu.Value = math.Nextafter(b.Devices[0].Mu.Value, 1)
	if !bytes.Equal(a.Text(), b.Text()) {
		t.Error("the last bit of a float is seen")
	}
	b.Created, b.ValidUntil, b.Program = b.Created.Add(time.Hour), b.ValidUntil.Add(time.Hour), "another"
	b.Bench.Kind, b.Bench.Identity, b.Bench.ReceiverURI, b.Bench.ReceiverDriver = Recording, "x", "x", "x"
	b.Bench.ReceiverSerial, b.Bench.ReceiverEpoch, b.Bench.SessionID = "x", 9, "x"
	for i := range b.Devices {
		b.Devices[i].URI, b.Devices[i].Driver, b.Devices[i].Serial, b.Devices[i].Epoch = "x", "x", "x", 9
	}
	before := b.Text()
	if bytes.Equal(a.Text(), before) || !bytes.Equal(a.Anonymous().Text(), b.Anonymous().Text()) {
		t.Error("Anonymous leaves identities or Text none")
	}
	if !bytes.Equal(before, b.Text()) {
		t.Error("Anonymous changed its receiver")
	}
	b.Devices[2].Omega.Value = 0.1201
	if bytes.Equal(a.Anonymous().Text(), b.Anonymous().Text()) {
		t.Error("Anonymous takes away what was measured")
	}
}

func TestMeanGainAndInterval(t *testing.T) {
	f := some()
	f.Devices[1].Mu.Value, f.Devices[1].PhaseRad.Value = 2, math.Pi/2
	if d := cmplx.Abs(f.MeanGain(1) - 2i); d > 1e-15 {
		t.Errorf("the mean is %v", f.MeanGain(1))
	}
	if v := Interval(-1, 0, 2); v != (Value{-1, -1, 2}) {
		t.Errorf("%v", v)
	}
	if v := Interval(3, 0, 2); v != (Value{3, 0, 3}) {
		t.Errorf("%v", v)
	}
}

// Whatever the bytes: one sentence, or a file whose text is read as the same file.
func FuzzFile(f *testing.F) {
	f.Add(some().Text())
	f.Add([]byte("version = 1\n[[device]]\nmu = {value = inf}\n"))
	f.Add([]byte("a.b.c = [[1, {x = 2}]]\n\"\\u0000\" = -nan"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse("c", data)
		var refused *Error
		if err != nil {
			if !errors.As(err, &refused) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("the error is %q", err)
			}
			return
		}
		text := got.Text()
		again, err := Parse("c", text)
		if err != nil {
			t.Fatalf("what was read is refused when written: %v\n%s", err, text)
		}
		if !bytes.Equal(text, again.Text()) {
			t.Fatalf("writing and reading changed\n%s\nto\n%s", text, again.Text())
		}
	})
}
