package hackrf

import (
	"testing"
	"time"

	"ringwave/radio"
)

// TestTransferBytes: a transfer takes no longer on the air at a low rate than a host may be
// late, and is as large as ever at the high ones; a URI's is taken as it is.
func TestTransferBytes(t *testing.T) {
	for _, c := range []struct {
		given int
		rate  radio.Hertz
		want  int
	}{
		{0, 20e6, 1 << 18}, {0, 8e6, 1 << 18}, {0, 4e6, 1 << 18}, {0, 2e6, 1 << 17}, {0, 1e5, 1 << 14},
		{1 << 20, 2e6, 1 << 20}, {512, 20e6, 512},
	} {
		o := options{transfer: c.given}
		size := o.transferBytes(c.rate)
		if size != c.want {
			t.Errorf("transfer=%d at %v: %d bytes, want %d", c.given, c.rate, size, c.want)
		}
		if air := c.rate.Duration(radio.SampleCount(size / sampleBytes)); c.given == 0 && c.rate >= 1e6 && air > 40*time.Millisecond {
			t.Errorf("at %v a transfer takes %v on the air", c.rate, air)
		}
	}
}
