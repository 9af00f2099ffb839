package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// nextCollection returns how large the heap is when it is gone through next.
func nextCollection() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC
}

// A heap of a few megabytes is left alone, unless the user says how large it may be.
func TestUnhurried(t *testing.T) {
	bound, known := Available()
	if !known {
		t.Skip("SKIPPED: nobody says how much memory there is")
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var unhurried, usual uint64
	if status := Unhurried(func() int { unhurried = nextCollection(); return 7 }); status != 7 {
		t.Errorf("gives %d, want what it calls gives", status)
	}
	if want := uint64(min(small, bound.Bytes/share)); unhurried < 2*want {
		t.Errorf("the heap is gone through at %d bytes, want %d at least", unhurried, 2*want)
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "50")
		Unhurried(func() int { usual = nextCollection(); return 0 })
		if usual >= small {
			t.Errorf("with %s set, the heap is gone through at %d bytes", name, usual)
		}
		t.Setenv(name, "")
	}
}
