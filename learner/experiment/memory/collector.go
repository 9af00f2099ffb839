package memory

import (
	"os"
	"runtime"
)

// Unhurried calls do, with a garbage collector that leaves a heap alone that is small for
// the machine: else the first megabytes are gone through many times while data sets are read
// and plots are drawn, which took a third of a short run's time. It changes nothing where
// the environment sets GOGC or GOMEMLIMIT, or where nobody says how much memory there is.
func Unhurried(do func() int) int {
	bound, known := Available()
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" || !known {
		return do()
	}
	// The collector begins when the heap has doubled. Of what is never written no page is
	// ever taken.
	ballast := make([]byte, min(small, bound.Bytes/share))
	defer runtime.KeepAlive(ballast)
	return do()
}

// A heap is small up to so many bytes, and up to this share of all there is.
const (
	small = 256 << 20
	share = 64
)
