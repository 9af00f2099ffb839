package runfolder

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What was added is read again, every bit of it, and a line that was cut off is not.
// Longer, or of more branches, than most because it is one history of a file, of which each step goes on from the last.
func TestMessages(t *testing.T) {
	f := newFolder(t)
	want := map[int][]float64{
		1: {0.1, -3, 5e-324}, 2: {math.MaxFloat64, math.Copysign(0, -1), 1.0 / 3}, 4: {1, 2, 3},
	}
	for _, round := range slices.Sorted(maps.Keys(want)) {
		m, kept, err := f.OpenMessages(9, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) > 0 && kept[round-1] == nil && kept[round-2] == nil {
			t.Errorf("before round %d there is %v", round, kept)
		}
		if err := m.Add(round, want[round]); err != nil {
			t.Fatal(err)
		}
		if m.Add(round, nil) == nil {
			t.Error("a round of no direction was added")
		}
		if err := m.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(f.Path(), MessagesName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) + 1 {
		if err := os.WriteFile(path, data[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		m, kept, err := f.OpenMessages(9, 3)
		if err != nil {
			t.Fatal(err)
		}
		lines := max(0, strings.Count(string(data[:cut]), "\n")-1)
		if len(kept) != lines {
			t.Errorf("of %d bytes %d rounds are read, want %d", cut, len(kept), lines)
		}
		for round, values := range kept {
			for p, v := range values {
				if math.Float64bits(v) != math.Float64bits(want[round][p]) {
					t.Errorf("round %d, direction %d: %v, want %v", round, p+1, v, want[round][p])
				}
			}
		}
		// It goes on with whole lines.
		if err := m.Add(9, []float64{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		m.Close()
		if m, kept, err = f.OpenMessages(9, 3); err != nil || len(kept) != lines+1 {
			t.Fatalf("after %d bytes and a round: %v, %v", cut, kept, err)
		}
		m.Close()
	}
	for text, says := range map[string]string{
		"round,m_1,m_2\n":                                       "line 1: the header is not round and m_1 to m_3",
		"round,m_1,m_2,m_3\n1,2\n":                              "line 2: 2 fields, but the header names 4",
		"round,m_1,m_2,m_3\n10,1,2,3\n":                         "line 2: column round is 10, but must be at most 9, the rounds of the run",
		"round,m_1,m_2,m_3\n1,1,2," + strings.Repeat("3", 128):  "line 2 is longer than 128 bytes; allowed is at most 128 bytes",
		"round,m_1,m_2,m_3\n" + strings.Repeat("1,1,2,3\n", 19): "the number of lines is more than 19; allowed is at most 19",
		"round,m_1,m_2,m_3\nx,1,2,3\n":                          `line 2: column round is "x", but must be a whole number`,
		"round,m_1,m_2,m_3\n1,1,x,3\n":                          `line 2: column m_2 is "x", but must be a number`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.OpenMessages(9, 3); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Rows beyond the checkpoint's offset stay, but for one that was cut off.
func TestOpenMetricsAfter(t *testing.T) {
	f := newFolder(t)
	m, err := f.CreateMetrics(InMemory)
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	digests := map[int64]Digest{}
	for _, r := range testRows() {
		offsets = append(offsets, m.Offset())
		digests[m.Offset()] = m.Digest()
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	whole := m.Offset()
	digests[whole] = m.Digest()
	m.Close()
	path := filepath.Join(f.Path(), MetricsName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ cut, offset, want int64 }{
		{whole, offsets[0], whole}, {whole, whole, whole}, {whole - 1, offsets[1], offsets[2]}, {offsets[2] + 1, offsets[2], offsets[2]},
	} {
		if err := os.WriteFile(path, data[:x.cut], 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := f.OpenMetricsAfter(x.offset, digests[x.offset])
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if m.Offset() != x.want || info.Size() != x.want {
			t.Errorf("%d bytes, offset %d: goes on at %d of %d, want %d", x.cut, x.offset, m.Offset(), info.Size(), x.want)
		}
		m.Close()
	}
	if _, err := f.OpenMetricsAfter(whole, digests[whole]); err == nil || !strings.Contains(err.Error(), "it has been cut") {
		t.Errorf("a file shorter than the checkpoint has it: %v", err)
	}
}
