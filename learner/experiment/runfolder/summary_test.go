package runfolder

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSummaryRoundTrip(t *testing.T) {
	f := newFolder(t)
	want := Summary{
		Dataset: "mnist", FallbackUsed: true, Model: "logistic", Aggregator: "xmkckks", Form: "zero-order",
		ParameterSet: "B", Randomness: "seed", Seed: 1 << 63, Devices: 10, Rounds: 400, RoundsCompleted: 400,
		RoundsRepeated: 2, RoundsSkipped: 1, MessagesClipped: 5, KeyEpochs: 3, TrainLoss: 0.1, TestAccuracy: 0.98,
		Seconds: 12.5, UplinkBitsPerRound: 1 << 40, UplinkOverheadBitsPerRound: 7, FloodingBits: 40,
		ZeroGains: 3, WrongSigns: 1, DisagreeingDevices: []int{2, 3},
		Unusable: "no round was read", Notes: []string{"SNR < 10 dB"},
	}
	if err := f.WriteSummary(want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSummary(f.file(SummaryName))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	text, err := os.ReadFile(f.file(SummaryName))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"{\n  \"dataset\": \"mnist\",\n", `"SNR < 10 dB"`, `"uplink_bits_per_round": 1099511627776`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %q", text, part)
		}
	}
}

func TestSummaryOfADivergedRun(t *testing.T) {
	f := newFolder(t)
	if err := f.WriteSummary(Summary{TrainLoss: Float(math.Inf(1)), TestAccuracy: Float(math.NaN())}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.file(SummaryName))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"train_loss": null`, `"test_accuracy": null`, `"notes": []`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %q", text, part)
		}
	}
	s, err := ReadSummary(f.file(SummaryName))
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(float64(s.TrainLoss)) || !math.IsNaN(float64(s.TestAccuracy)) {
		t.Errorf("read %+v", s)
	}
}

func TestSummaryErrors(t *testing.T) {
	f := newFolder(t)
	wantError(t, f.WriteSummary(Summary{TestAccuracy: 98}), f.file(SummaryName), "test_accuracy is 98", "0 to 1")
	wantError(t, f.WriteSummary(Summary{Seconds: math.NaN()}), "seconds")
	_, err := ReadSummary(f.file(SummaryName))
	wantError(t, err, f.file(SummaryName), "no such file")
	for text, parts := range map[string][]string{
		"":                               {"cut off"},
		"{\n\"rounds\": 1,":              {"cut off"},
		"{\n\"rounds\": 1,\n}":           {"line 3"},
		"{\n\"rounds\": \"many\"}":       {"rounds", "string", "a whole number"},
		"{\n\"train_loss\": \"low\"}":    {"train_loss", "string", "a number or null"},
		"{\n\"rounds\": 1.5}":            {"rounds", "1.5", "a whole number"},
		"{\"fallback_used\": 1}":         {"fallback_used", "true or false"},
		"{\"test_accuracy\": 2}":         {"test_accuracy is 2", "0 to 1"},
		"{} {}":                          {"follows"},
		"{\"rounds\": 1, \"rounds\": 2}": {`key "rounds" is twice in one object; allowed is once`},
		"{\"x\": " + strings.Repeat("[", 9) + strings.Repeat("]", 9) + "}":  {"the nesting of the summary is deeper than 8; allowed is a depth of 8"},
		"{\"disagreeing_devices\": [0" + strings.Repeat(",0", 1<<14) + "]}": {"the length of disagreeing_devices is more than 16384; allowed is at most 16384"},
		strings.Repeat(" ", maxJSON+1):                                      {"the length is more than 1048576 bytes; allowed is at most 1048576 bytes"},
		"[]":                                                                {"array", "object"},
		"{\"notes\": \"n\"}":                                                {"notes", "list"},
		"{\"seed\": -1}":                                                    {"seed", "-1"},
		"{\"seconds\": 1e999}":                                              {"seconds"},
		"{\"dataset\": {\"a\": true}}":                                      {"dataset", "a string"},
	} {
		if err := os.WriteFile(f.file(SummaryName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSummary(f.file(SummaryName))
		wantError(t, err, append(parts, f.file(SummaryName))...)
	}
	if err := os.WriteFile(f.file(SummaryName), []byte(`{"rounds": 4, "of_a_later_version": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadSummary(f.file(SummaryName)); err != nil || s.Rounds != 4 {
		t.Errorf("read %+v, %v", s, err)
	}
}

func TestManifest(t *testing.T) {
	f := newFolder(t)
	path := filepath.Join(t.TempDir(), "train-images.idx3")
	data := DataFile{Name: filepath.Base(path), Bytes: 3, SHA256: sha256.Sum256([]byte("abc"))}
	m := NewManifest(time.Date(2026, 11, 20, 14, 45, 0, 123456789, time.FixedZone("CET", 3600)))
	m.Data = append(m.Data, data)
	m.Seeds["experiment"] = 7
	m.Modulus, m.Primes = "649037107305047591402387008954369", []uint64{0x3ffffffffd6001, 0x7ffffffffb4001}
	if err := f.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.file(ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var got Manifest
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Errorf("read %+v, want %+v", got, m)
	}
	if !strings.Contains(string(text), `"started": "2026-11-20T13:45:00.123Z"`) {
		t.Errorf("start time is not in UTC: %s", text)
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 && strings.Contains(string(text), host) {
		t.Errorf("the manifest names the host %s: %s", host, text)
	}
	if strings.Contains(string(text), `"/`) {
		t.Errorf("the manifest holds an absolute path: %s", text)
	}
	m.Calibration = "/home/ada/cal.toml"
	wantError(t, f.WriteManifest(m), f.file(ManifestName), "calibration", m.Calibration)
	m.Data[0].Name = path
	wantError(t, f.WriteManifest(m), f.file(ManifestName), "data[0].name", path)
	read, err := f.ReadManifest()
	if err != nil || read.Seeds["experiment"] != 7 || len(read.Data) != 1 {
		t.Errorf("read %+v, %v", read, err)
	}
	// A manifest of before the modulus was kept, and of a run without encryption.
	if err := os.WriteFile(f.file(ManifestName), []byte(`{"os": "linux", "seeds": {"experiment": 7}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if old, err := f.ReadManifest(); err != nil || old.OS != "linux" || old.Modulus != "" || old.Primes != nil {
		t.Errorf("an old manifest is read as %+v, %v", old, err)
	}
	for text, part := range map[string]string{
		"{":                              "JSON",
		`{"os": "linux", "os": "plan9"}`: `key "os" is twice in one object; allowed is once`,
		`{"primes": [1` + strings.Repeat(",1", 1<<14) + "]}": "the length of primes is more than 16384; allowed is at most 16384",
	} {
		if err := os.WriteFile(f.file(ManifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = f.ReadManifest()
		wantError(t, err, f.file(ManifestName), part)
	}
}
