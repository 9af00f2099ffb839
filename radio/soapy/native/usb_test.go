//go:build soapy && usb && linux && cgo

package native_test

import (
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/native"
	"ringwave/radio/virtual"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

// emulated opens an emulated HackRF through SoapyHackRF.
func emulated(t testing.TB, clock loopback.Clock) (soapy.Board, *virtual.HackRF) {
	t.Helper()
	const serial = "0000000000000000f77c60dc26977ac3"
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}, Clock: clock})
	bus := radiotest.Bus(t, h)
	t.Setenv("UMOCKDEV_DIR", bus.Dir())
	b := native.New()
	found, err := b.Find(t.Context(), radio.URI{}, soapy.Args{"driver": "hackrf"})
	ok(t, err)
	if len(found) == 0 {
		radiotest.Missing(t, "SoapySDR finds no HackRF (on Debian: apt-get install soapysdr-module-hackrf)")
	}
	board, err := b.Make(t.Context(), radio.URI{}, soapy.Args{"driver": "hackrf", "serial": serial})
	ok(t, err)
	t.Cleanup(func() { ok(t, board.Close()) })
	return board, h
}

// SoapyHackRF's settings reach the board, and its carrier is on while a stream is active.
func TestHackRF(t *testing.T) {
	board, h := emulated(t, loopback.WallClock())
	ctx := t.Context()
	who, err := board.Hardware(ctx)
	if err != nil || who.Driver != "HackRF" {
		t.Errorf("the board is %+v, %v", who, err)
	}
	duplex, err := board.FullDuplex(ctx, rx)
	got(t, "FullDuplex", duplex, false, err, equal)
	timed, err := board.HasHardwareTime(ctx, "")
	got(t, "HasHardwareTime", timed, false, err, equal)
	ok(t, board.SetFrequency(ctx, tx, 433.92e6))
	ok(t, board.SetSampleRate(ctx, tx, 4e6))
	ok(t, board.SetGain(ctx, tx, "VGA", 17))
	out, err := board.SetupStream(ctx, tx, "CS8", nil)
	ok(t, err)
	if h.Carrier() {
		t.Error("its carrier is on before Activate")
	}
	ok(t, out.Activate(ctx, 0, 0))
	for range 8 {
		n, err := out.Write(ctx, make([]byte, 2*out.MTU()), soapy.BlockInfo{}, radiotest.Patience)
		if n != 2*out.MTU() || err != nil {
			t.Fatalf("%d bytes were taken, %v", n, err)
		}
	}
	if !h.Carrier() {
		t.Error("its carrier is off behind Activate")
	}
	if s := h.Settings(); s.Frequency != 433_920_000 || math.Abs(float64(s.Rate)-4e6) > 1 {
		t.Errorf("the board has %+v", s)
	}
	ok(t, out.Deactivate(ctx, 0, 0))
	if h.Carrier() {
		t.Error("its carrier is on behind Deactivate")
	}
	ok(t, out.Close())
}

// TestHackRFThroughput receives from an emulated board at 20 Msps through SoapyHackRF.
func TestHackRFThroughput(t *testing.T) {
	board, _ := emulated(t, loopback.WallClock())
	ctx := t.Context()
	ok(t, board.SetSampleRate(ctx, rx, fullRate))
	in, err := board.SetupStream(ctx, rx, "CS8", soapy.Args{"buffers": "64"})
	ok(t, err)
	ok(t, in.Activate(ctx, 0, 0))
	block := make([]byte, 2*in.MTU())
	began, used, overflows := time.Now(), cpu(t), 0
	for left := seconds() * fullRate; left > 0; {
		n, _, err := in.Read(ctx, block, radiotest.Patience)
		if errors.Is(err, soapy.ErrOverflow) {
			overflows++
			continue
		}
		ok(t, err)
		left -= n / 2
	}
	took := time.Since(began)
	ok(t, in.Close()) // while it is active
	t.Logf("20 Msps for %.2f s (%.2f Msps): %d overflows, %.0f %% of a core, the emulated board included", took.Seconds(),
		float64(seconds())*fullRate/1e6/took.Seconds(), overflows, 100*(cpu(t)-used).Seconds()/took.Seconds())
	if overflows > 0 && os.Getenv("RINGWAVE_LONG") == "1" {
		t.Errorf("%d overflows", overflows)
	}
}
