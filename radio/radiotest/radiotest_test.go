package radiotest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ringwave/radio/radiotest"
)

// recorder is a test that notes its failures and ends when it is told to.
type recorder struct {
	testing.TB
	cleanups []func()
	said     []string
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) end() {
	for k := len(r.cleanups) - 1; k >= 0; k-- {
		r.cleanups[k]()
	}
}

// A file that is left open is told, and one that is closed is not.
func TestLeaks(t *testing.T) {
	if radiotest.OpenFiles() == 0 {
		t.Skip("the system does not say how many files are open")
	}
	for _, left := range []bool{true, false} {
		r := &recorder{TB: t}
		radiotest.Leaks(r)
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		if !left {
			f.Close()
		}
		r.end()
		if told := strings.Contains(strings.Join(r.said, "\n"), "file handles were left"); told != left {
			t.Errorf("left open: %v, but said: %q", left, r.said)
		}
		f.Close()
	}
}
