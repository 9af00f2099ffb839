package intake

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A file that never ends is read up to the bound and no further.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	var excess *Excess
	if data, err := ReadFile(path, 4); data != nil || !errors.As(err, &excess) || err.Error() != "the length is more than 4 bytes; allowed is at most 4 bytes" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		if _, err := ReadFile("/dev/zero", 1<<16); !errors.As(err, &excess) {
			t.Error(err)
		}
	}
	// What says that it is too long is not read at all.
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil {
		t.Skip(err)
	}
	if _, err := ReadFile(long, 4); !errors.As(err, &excess) {
		t.Error(err)
	}
	endless := strings.NewReader(strings.Repeat("x", 1000))
	if _, err := Read(endless, 4); !errors.As(err, &excess) || endless.Len() != 995 {
		t.Errorf("%d bytes are left, %v", endless.Len(), err)
	}
	if _, err := ReadFile(path+"x", 4); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestSentence(t *testing.T) {
	if got := Sentence("a\nb  c"); got != "a b c" {
		t.Errorf("%q", got)
	}
	for shift := range 4 {
		long := strings.Repeat("x", shift) + "key is " + strings.Repeat("ü€", 4000) + ": allowed is less"
		got := Sentence(long)
		if len(got) > maxSentence+3 || !utf8.ValidString(got) || !strings.HasPrefix(got, strings.Repeat("x", shift)+"key is ") || !strings.HasSuffix(got, ": allowed is less") {
			t.Errorf("%q", got)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"radio", "optimizer", "optimizer.rounds"}
	for key, want := range map[string]string{
		"OPTIMIZER": "optimizer", "Optimizer.Rounds": "optimizer.rounds", "optimiser.rounds": "optimizer.rounds", "radioo": "radio",
		// Of what is cut off nothing counts.
		strings.Repeat("x", maxShown) + "optimizer.rounds": "radio",
	} {
		if got := Nearest(key, known); got != want {
			t.Errorf("%.40s: %s, want %s", key, got, want)
		}
	}
}
