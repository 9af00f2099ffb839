//go:build usb

package usb

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gousb"
)

// Each error has its kind, whether gousb hands it on, wraps it or only quotes it.
func TestClassify(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{gousb.ErrorPipe, ErrStall}, {gousb.ErrorTimeout, ErrTimeout}, {gousb.ErrorAccess, ErrAccess}, {gousb.ErrorBusy, ErrInUse},
		{gousb.ErrorNoDevice, ErrUnplugged}, {gousb.TransferNoDevice, ErrUnplugged}, {gousb.ErrorNotFound, ErrUnplugged},
		{gousb.TransferStall, ErrStall}, {gousb.TransferTimedOut, ErrTimeout}, {gousb.TransferCancelled, ErrCancelled},
		{fmt.Errorf("opening: %w", gousb.ErrorAccess), ErrAccess},
		{fmt.Errorf("failed to claim interface 0 on x: %v", gousb.ErrorBusy), ErrInUse},
	} {
		if got := classify(c.err); !errors.Is(got, c.want) {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
	for _, err := range []error{gousb.ErrorIO, gousb.TransferError, errors.New("x")} {
		if got := classify(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
