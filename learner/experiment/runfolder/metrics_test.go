package runfolder

import (
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

var errFull = errors.New("no space left on device")

// fakeFile is a disk with room for so many bytes.
type fakeFile struct {
	data        []byte
	room        int
	silent      bool // takes less than it was given and says nothing
	truncateErr error
}

func (f *fakeFile) WriteAt(p []byte, off int64) (int, error) {
	n := min(len(p), max(0, f.room-int(off)))
	f.data = append(f.data[:off], p[:n]...)
	if n < len(p) && !f.silent {
		return n, errFull
	}
	return n, nil
}

func (f *fakeFile) Truncate(size int64) error {
	if f.truncateErr != nil {
		return f.truncateErr
	}
	f.data = f.data[:size]
	return nil
}

func (f *fakeFile) Sync() error  { return nil }
func (f *fakeFile) Close() error { return nil }

func testRows() []Row {
	nan := math.NaN()
	return []Row{
		{Round: 1, TrainLoss: 0.6931471805599453, TestAccuracy: 0.5, M: -3.25, MIdeal: -3.2500000000000004, Eps: 4e-16, EpsStdPredicted: 2e-8, Attempts: 1, Eta: 0.05, Gamma: 0.05},
		{Round: 2, TrainLoss: math.Inf(1), TestAccuracy: nan, M: nan, MIdeal: 1, Eps: nan, EpsStdPredicted: 0, Attempts: 3, Skipped: true, Clipped: 2, Eta: nan, Gamma: nan},
		{Round: 5, TrainLoss: nan, TestAccuracy: 1, M: 5e-324, MIdeal: nan, Eps: math.MaxFloat64, EpsStdPredicted: nan, Attempts: 1, Eta: 1, Gamma: 1,
			Link: &LinkRow{Alpha: 20.5, FramesRepeated: 2, Quality: 0.97, Misfit: nan, WrongSigns: 2, MeansLeft: nan}},
	}
}

// sameRow compares rows with NaN equal to itself.
func sameRow(a, b Row) bool {
	if (a.Link == nil) != (b.Link == nil) || a.Link != nil && !sameNumbers(*a.Link, *b.Link) {
		return false
	}
	if (a.Validation == nil) != (b.Validation == nil) || a.Validation != nil && *a.Validation != *b.Validation {
		return false
	}
	a.Link, b.Link, a.Validation, b.Validation = nil, nil, nil, nil
	return sameNumbers(a, b)
}

func sameNumbers(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Field(i).CanFloat() && math.IsNaN(x.Field(i).Float()) && math.IsNaN(y.Field(i).Float()) {
			continue
		}
		if !x.Field(i).Equal(y.Field(i)) {
			return false
		}
	}
	return true
}

func wantRows(t *testing.T, path string, want []Row) {
	t.Helper()
	got, err := ReadMetrics(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("read %d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if !sameRow(got[i], want[i]) {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// A run with samples that are held out has two columns more.
func TestMetricsValidated(t *testing.T) {
	f := newFolder(t)
	m, err := f.CreateMetrics(Validated)
	if err != nil {
		t.Fatal(err)
	}
	rows := testRows()
	rows[0].Validation = &ValidationRow{0.5, 0.25}
	rows[2].Validation = &ValidationRow{math.Inf(1), 1}
	for _, r := range rows[:2] {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	offset, digest := m.Offset(), m.Digest()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = f.OpenMetricsAt(offset, digest); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(rows[2]); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	wantRows(t, f.file(MetricsName), rows)
	if n := len(rows[0].Cells(Validated)); n != len(Validated.Columns()) || n != len(InMemory.Columns())+2 {
		t.Errorf("%d cells in %v", n, Validated.Columns())
	}
}

func TestMetricsRoundTrip(t *testing.T) {
	f := newFolder(t)
	m, err := f.CreateMetrics(InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, r := range testRows() {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
		// Each row is in the file before the next, without Sync or Close.
		wantRows(t, f.file(MetricsName), testRows()[:i+1])
	}
	text, err := os.ReadFile(f.file(MetricsName))
	if err != nil {
		t.Fatal(err)
	}
	want := metricsHeader + `
1,0.6931471805599453,0.5,-3.25,-3.2500000000000004,4e-16,2e-08,1,0,0,0.05,0.05,,,,,,,
2,+Inf,,,1,,0,3,1,2,,,,,,,,,
5,,1,5e-324,,1.7976931348623157e+308,,1,0,0,1,1,20.5,2,0.97,,0,2,
`
	if string(text) != want {
		t.Errorf("file is\n%swant\n%s", text, want)
	}
	if m.Offset() != int64(len(want)) {
		t.Errorf("offset is %d, want %d", m.Offset(), len(want))
	}
	if err := m.Sync(); err != nil {
		t.Error(err)
	}
	_, err = f.CreateMetrics(InMemory)
	wantError(t, err, f.file(MetricsName), "exists")
}

func TestMetricsResume(t *testing.T) {
	f := newFolder(t)
	m, err := f.CreateMetrics(InMemory)
	if err != nil {
		t.Fatal(err)
	}
	rows := testRows()
	if err := m.Add(rows[0]); err != nil {
		t.Fatal(err)
	}
	offset, digest := m.Offset(), m.Digest()
	if err := m.Add(rows[1]); err != nil {
		t.Fatal(err)
	}
	end := m.Offset()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	for bad, part := range map[int64]string{
		end + 1:    "has been cut",
		offset - 1: "no line ends at byte",
		3:          "header alone",
		-1:         "header alone",
	} {
		_, err := f.OpenMetricsAt(bad, digest)
		wantError(t, err, f.file(MetricsName), part)
	}
	wantRows(t, f.file(MetricsName), rows[:2])

	if m, err = f.OpenMetricsAt(offset, digest); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wantRows(t, f.file(MetricsName), rows[:1])
	if err := m.Add(rows[2]); err != nil {
		t.Fatal(err)
	}
	wantRows(t, f.file(MetricsName), []Row{rows[0], rows[2]})
	wantDigest(t, f, m)
}

// wantDigest wants the digest to be that of the file.
func wantDigest(t *testing.T, f *Folder, m *Metrics) {
	t.Helper()
	data, err := os.ReadFile(f.file(MetricsName))
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != sha256.Sum256(data) || m.Offset() != int64(len(data)) {
		t.Errorf("the digest is not that of the file's %d bytes", len(data))
	}
}

// What a checkpoint does not cover stays and is covered by the next one.
func TestMetricsDigestBeyondCheckpoint(t *testing.T) {
	f := newFolder(t)
	m, err := f.CreateMetrics(InMemory)
	if err != nil {
		t.Fatal(err)
	}
	wantDigest(t, f, m)
	offset, digest := m.Offset(), m.Digest()
	rows := testRows()
	if err := m.Add(rows[0]); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	other := digest
	other[31] ^= 1
	for _, open := range []func(int64, Digest) (*Metrics, error){f.OpenMetricsAt, f.OpenMetricsAfter} {
		_, err := open(offset, other)
		wantError(t, err, f.file(MetricsName), "changed or damaged")
		wantRows(t, f.file(MetricsName), rows[:1])
	}
	if m, err = f.OpenMetricsAfter(offset, digest); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wantDigest(t, f, m)
	if err := m.Add(rows[1]); err != nil {
		t.Fatal(err)
	}
	wantDigest(t, f, m)
	wantRows(t, f.file(MetricsName), rows[:2])
}

func TestMetricsResumeOtherHeader(t *testing.T) {
	f := newFolder(t)
	_, err := f.OpenMetricsAt(100, Digest{})
	wantError(t, err, f.file(MetricsName), "no such file")
	text := requiredColumns + ",colour\n" + strings.Repeat("1\n", 100)
	if err := os.WriteFile(f.file(MetricsName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = f.OpenMetricsAt(int64(len(text)), Digest{})
	wantError(t, err, "line 1", metricsHeader)
}

func TestMetricsOnAFullDisk(t *testing.T) {
	line := int(len(testRows()[0].line(InMemory)))
	for _, silent := range []bool{false, true} {
		disk := &fakeFile{room: line + line/2, silent: silent}
		m := newMetrics(disk, "metrics.csv")
		if err := m.Add(testRows()[0]); err != nil {
			t.Fatal(err)
		}
		whole := string(disk.data)
		err := m.Add(testRows()[0])
		wantError(t, err, "round 1", "metrics.csv")
		if !silent && !errors.Is(err, errFull) {
			t.Errorf("error %v does not wrap the disk's", err)
		}
		if string(disk.data) != whole || m.Offset() != int64(line) {
			t.Errorf("file is %q at %d, want only the first line", disk.data, m.Offset())
		}
		disk.room = 2 * line
		if err := m.Add(testRows()[0]); err != nil {
			t.Errorf("after space was made: %v", err)
		}
	}
}

func TestMetricsOnABrokenDisk(t *testing.T) {
	broken := errors.New("input/output error")
	m := newMetrics(&fakeFile{room: 5, truncateErr: broken}, "metrics.csv")
	err := m.Add(testRows()[0])
	wantError(t, err, "metrics.csv", "could not be cut off")
	if !errors.Is(err, errFull) || !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap both", err)
	}
}

func TestReadMetricsErrors(t *testing.T) {
	const good = "1,0.5,,,,,,1"
	for name, c := range map[string]struct {
		text  string
		parts []string
	}{
		"empty":           {"", []string{"is empty"}},
		"no newline":      {requiredColumns + "\n" + good, []string{"line 2", "cut off"}},
		"other header":    {"round,loss\n", []string{"line 1", `"round,loss"`, requiredColumns}},
		"order":           {strings.Replace(requiredColumns, "m,m_ideal", "m_ideal,m", 1) + "\n", []string{"line 1"}},
		"column twice":    {requiredColumns + ",eta,eta\n", []string{"line 1", `"eta"`, "twice"}},
		"fields":          {requiredColumns + "\n" + good + ",2\n", []string{"line 2", "9 fields", "8"}},
		"empty line":      {requiredColumns + "\n" + good + "\n\n", []string{"line 3", "1 fields"}},
		"round":           {requiredColumns + "\n-1,0.5,,,,,,1\n", []string{"line 2", "round", `"-1"`, "whole number from 0"}},
		"loss":            {requiredColumns + "\n1,low,,,,,,1\n", []string{"line 2", "train_loss", `"low"`, "number"}},
		"loss range":      {requiredColumns + "\n1,1e999,,,,,,1\n", []string{"train_loss", `"1e999"`}},
		"accuracy":        {requiredColumns + "\n1,1,1.5,,,,,1\n", []string{"test_accuracy", `"1.5"`, "0 to 1"}},
		"deviation":       {requiredColumns + "\n1,1,,,,,-1,1\n", []string{"eps_std_predicted", `"-1"`, "at least 0"}},
		"m":               {requiredColumns + "\n1,1,,x,,,,1\n", []string{"column m ", `"x"`, "empty or a number"}},
		"skipped":         {requiredColumns + ",skipped\n" + good + ",true\n", []string{"skipped", `"true"`, "0 or 1"}},
		"not rising":      {requiredColumns + "\n" + good + "\n" + good + "\n", []string{"line 3", "round 1 follows round 1"}},
		"very long value": {requiredColumns + "\n1,1,," + strings.Repeat("9x", 1500) + ",,,,1\n", []string{"column m ", "…"}},
		"very long line":  {requiredColumns + "\n" + good + strings.Repeat(" ", maxLine) + "\n", []string{"line 2 is longer than 4096 bytes; allowed is at most 4096 bytes"}},
		"beyond the run":  {requiredColumns + "\n1048577,0.5,,,,,,1\n", []string{"line 2", "column round is 1048577, but must be at most 1048576, the rounds of the run"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseMetrics("metrics.csv", strings.NewReader(c.text), 1<<20)
			wantError(t, err, append(c.parts, "metrics.csv")...)
			if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
	_, err := ReadMetrics("absent.csv", 5)
	wantError(t, err, "reading absent.csv", "no such file")
}

// A file that never ends is read no further than the run can be long.
func TestReadMetricsIsBounded(t *testing.T) {
	head := requiredColumns + "\n0,0.5,,,,,,1\n1,0.5,,,,,,1\n"
	rows, err := parseMetrics("metrics.csv", strings.NewReader(head), 1)
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	rest := strings.NewReader(strings.Repeat("2,0.5,,,,,,1\n", 1<<16))
	size := rest.Len()
	_, err = parseMetrics("metrics.csv", io.MultiReader(strings.NewReader(head), rest), 1)
	wantError(t, err, "metrics.csv", "the number of lines is more than 3; allowed is at most 3")
	if size-rest.Len() > maxLine {
		t.Errorf("%d bytes behind the last row were read", size-rest.Len())
	}
}

func TestReadMetricsColumnsByName(t *testing.T) {
	text := requiredColumns + ",colour,gamma,skipped\r\n7,0.5,,,,,,1,red,0.25,1\r\n"
	rows, err := parseMetrics("metrics.csv", strings.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r := rows[0]
	if r.Round != 7 || r.Gamma != 0.25 || !r.Skipped || !math.IsNaN(r.Eta) || r.Clipped != 0 {
		t.Errorf("row is %+v", r)
	}
}

// A file of before gains were judged is read, and has no verdict on them.
func TestReadMetricsWithoutVerdicts(t *testing.T) {
	text := strings.TrimSuffix(metricsHeader, ",wrong_signs,means_left") + "\n7,0.5,,1,1,0,0,1,0,0,,,20.5,0,0.9,0.1,1\n"
	rows, err := parseMetrics("metrics.csv", strings.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if l := rows[0].Link; l.ZeroGains != 1 || !math.IsNaN(l.WrongSigns) || !math.IsNaN(l.MeansLeft) {
		t.Errorf("row has %+v", *l)
	}
}

func FuzzMetrics(f *testing.F) {
	text := metricsHeader + "\n"
	for _, r := range testRows() {
		text += string(r.line(InMemory))
	}
	f.Add(text)
	f.Add(requiredColumns + ",colour\n1,0.5,,,,,,1,red\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parseMetrics("metrics.csv", strings.NewReader(text), 1<<20)
		if err != nil {
			return
		}
		written := metricsHeader + "\n"
		for _, r := range rows {
			written += string(r.line(InMemory))
		}
		again, err := parseMetrics("metrics.csv", strings.NewReader(written), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if !sameRow(rows[i], again[i]) {
				t.Fatalf("row %+v came back as %+v", rows[i], again[i])
			}
		}
	})
}
