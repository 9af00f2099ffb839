//go:build usb && linux

package rtlsdr_test

import (
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

// throughLibusb plugs boards into an emulated bus that the machine's libusb, in
// this process, takes for its own.
func throughLibusb(t testing.TB, boards ...virtual.Board) usb.Host {
	t.Helper()
	bus := radiotest.Bus(t, boards...)
	t.Setenv("UMOCKDEV_DIR", bus.Dir())
	return usb.System()
}

// TestLibusb does what the other tests do through libusb, with gousb in between.
func TestLibusb(t *testing.T) {
	front, faultStep = throughLibusb, 40
	t.Cleanup(func() { front, faultStep = inProcess, 5 })
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Receive", TestReceive}, {"Tuning", TestTuning}, {"Gain", TestGain}, {"GapsAreExact", TestGapsAreExact},
		{"Retune", TestRetune}, {"States", TestStates}, {"CloseStopsTheBoard", TestCloseStopsTheBoard},
		{"WaitingEnds", TestWaitingEnds}, {"CancelKeepsSamples", TestCancelKeepsSamples}, {"Silence", TestSilence},
		{"Faults", TestFaults}, {"Boards", TestBoards}, {"DirectSampling", TestDirectSampling}, {"Choice", TestChoice},
		{"Concurrent", TestConcurrent}, {"Unlocked", TestUnlocked}, {"Bias", TestBias},
	} {
		t.Run(c.name, c.test)
	}
}
