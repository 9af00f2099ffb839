package jobs

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a worker or a broker sends is understood or refused, and says the same when it is
// written again.
func FuzzMessages(f *testing.F) {
	for _, header := range []any{
		request{Verb: result, Worker: "lab-1", Program: "p", Job: strings.Repeat("0a", 16)},
		request{Verb: failed, Worker: "lab-1", Program: "p", Job: strings.Repeat("0a", 16), Class: crash, Why: "it does not work", Log: "a\nb"},
		answer{Verdict: begin, Kind: "run", Title: "seed=1"},
		beat{Worker: "lab-1", Slots: 2, Jobs: []held{{Sweep: "0123456789abcdef", Job: strings.Repeat("0a", 16), Done: 1, Of: 2}}},
	} {
		text, err := encode(header, []byte("rest"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if r, err := decodeRequest(message); err == nil {
			text, err := encode(r, r.result)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := decodeRequest(text); err != nil || again.Worker != r.Worker || again.Why != r.Why || again.Log != r.Log || !bytes.Equal(again.result, r.result) {
				t.Errorf("%+v became %+v, %v", r, again, err)
			}
		}
		if a, err := decodeAnswer(message); err == nil && len(a.Why) > 4*mostWhy {
			t.Errorf("a sentence of %d bytes", len(a.Why))
		}
		if b, err := decodeBeat(message); err == nil && (b.Slots < 1 || b.Slots > MostSlots) {
			t.Errorf("%+v", b)
		}
	})
}

// A result is files in its folder and nowhere else, of a bounded size, or refused.
func FuzzUnpack(f *testing.F) {
	for _, names := range [][]string{{"metrics.csv", "model.npy"}, {"../escape"}, {"a", "a"}, {"/etc/x"}, {}} {
		f.Add(archive(f, names...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		root := t.TempDir()
		dir := filepath.Join(root, "result")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := unpack(data, dir)
		var disk *storeError
		if errors.As(err, &disk) {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}

func archive(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		entry, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Names that lead elsewhere, that are there twice or are too many, and files that are too long
// are refused with a sentence each.
func TestUnpackRefuses(t *testing.T) {
	many := make([]string, mostFiles+1)
	for i := range many {
		many[i] = "f" + strings.Repeat("x", i)
	}
	for want, data := range map[string][]byte{
		`a file "../escape"`: archive(t, "../escape"),
		`a file "a"`:         archive(t, "a", "a"),
		"has 0 files":        archive(t),
		"has 65 files":       archive(t, many...),
		"is no archive":      []byte("nonsense"),
	} {
		if err := unpack(data, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v in place of %s", err, want)
		}
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	entry, err := w.Create("zeros")
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range mostBytes>>20 + 1 {
		if _, err := entry.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unpack(b.Bytes(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "zeros: more than 268435456 bytes in all") {
		t.Errorf("a bomb: %v", err)
	}
}
