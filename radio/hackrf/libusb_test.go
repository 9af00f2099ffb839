//go:build usb && linux

package hackrf_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/gousb"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

// throughLibusb plugs boards into an emulated bus that the machine's libusb, in
// this process, takes for its own.
func throughLibusb(t testing.TB, boards []virtual.Board) usb.Host {
	libusbBus(t, boards...)
	return usb.System()
}

func libusbBus(t testing.TB, boards ...virtual.Board) *usbfs.Bus {
	bus := radiotest.Bus(t, boards...)
	// The preload library looks at its folder's name at each call.
	ok(t, os.Setenv("UMOCKDEV_DIR", bus.Dir()))
	return bus
}

// TestLibusb does what the other tests do through libusb, with gousb in between.
func TestLibusb(t *testing.T) {
	front = throughLibusb
	t.Cleanup(func() { front = inProcess })
	alike(t)
	for name, test := range map[string]func(*testing.T){
		"Guard": TestGuard, "RandomFaults": func(t *testing.T) { manyFaults(t, 15, 400) },
	} {
		t.Run(name, test)
	}
}

// alike runs what goes the same on every way to a board.
func alike(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Lockstep", TestLockstep}, {"CloseFlushes", TestCloseFlushes}, {"Fill", TestFill},
		{"BoardLosesReceived", TestBoardLosesReceived}, {"BoardLosesSent", TestBoardLosesSent},
		{"HostDrops", TestHostDrops}, {"Retune", TestRetune}, {"Trigger", TestTrigger}, {"TriggerNever", TestTriggerNever},
		{"ClockLost", TestClockLost}, {"StreamsInTurn", TestStreamsInTurn}, {"ShortReads", TestShortReads},
		{"Settings", TestSettings}, {"SettingsRefused", TestSettingsRefused}, {"Permit", TestPermit}, {"OldFirmware", TestOldFirmware},
		{"OpenFaults", TestOpenFaults}, {"PipeFaults", TestPipeFaults}, {"SessionEnds", TestSessionEnds},
		{"UnderrunLimit", TestUnderrunLimit}, {"UnderrunLimitWhileWriting", TestUnderrunLimitWhileWriting},
		{"CarrierStays", TestCarrierStays}, {"Switch", TestSwitch},
	} {
		t.Run(c.name, c.test)
	}
}

// TestLibusbShortTransfers sends pieces of all lengths: each goes as it is, and
// nothing of what its buffer held before.
func TestLibusbShortTransfers(t *testing.T) {
	front = throughLibusb
	t.Cleanup(func() { front = inProcess })
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2})
	rx := receiver(t, r.open(1, lockstep))
	ctx := limited(t)
	board, err := r.host.Open(ctx, usb.Address{Bus: 1, Device: 1})
	ok(t, err)
	out, err := board.OpenOut(usb.OutConfig{Endpoint: 0x02, Size: 16384, Count: 4})
	ok(t, err)
	_, err = board.Control(usb.Setup{RequestType: usb.VendorOut, Request: 1, Value: 2}, nil, time.Second)
	ok(t, err)
	start(t, rx)
	x := noise(1, 150000)
	sent, left := 0, x
	for k := 0; len(left) > 0; k++ {
		n := min(256*(1+k*29%32), len(left))
		p := make([]byte, 2*n)
		for i, v := range left[:n] {
			p[2*i], p[2*i+1] = byte(int(math.Round(float64(real(v)*127)))), byte(int(math.Round(float64(imag(v)*127))))
		}
		ok(t, out.Write(ctx, p))
		sent, left = sent+2*n, left[n:]
	}
	for range 10 { // push it through
		ok(t, out.Write(ctx, make([]byte, 16384)))
		sent += 16384
	}
	got := make([]complex64, len(x))
	_, _, err = radio.ReadFull(ctx, rx, got)
	ok(t, err)
	if !same(got, x) {
		t.Error("other samples")
	}
	if taken := out.Taken(); taken > int64(sent) || taken < int64(sent-4*16384) {
		t.Errorf("%d of %d bytes taken", taken, sent)
	}
	ok(t, board.Close())
	if err := out.Write(ctx, make([]byte, 512)); !errors.Is(err, usb.ErrClosed) {
		t.Error(err)
	}
}

// TestLibusbThroughput moves samples at 20 Msps through libusb, beside a loop that
// does nothing but read from gousb.
func TestLibusbThroughput(t *testing.T) {
	front = throughLibusb
	t.Cleanup(func() { front = inProcess })
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	measure(t, "gousb alone, receive", func() { rawRead(t) })
	d := r.open(0, fullRate)
	measure(t, "receive", func() { gapless(t, "receive", receiveFor(t, d.OpenReceiver)) })
	measure(t, "transmit", func() { gapless(t, "transmit", transmitFor(t, d.OpenTransmitter)) })
	if s := r.bench.Slipped(); s > 0 {
		t.Logf("the emulated boards were too slow by %v", s)
	}
}

// rawRead reads as much as receiveFor does, without this package and without
// making samples of it.
func rawRead(t *testing.T) {
	c := gousb.NewContext()
	defer c.Close()
	dev, err := c.OpenDeviceWithVIDPID(0x1d50, 0x6089)
	ok(t, err)
	defer dev.Close()
	dev.ControlTimeout = time.Second
	cfg, err := dev.Config(1)
	ok(t, err)
	defer cfg.Close()
	intf, err := cfg.Interface(0, 0)
	ok(t, err)
	defer intf.Close()
	control := func(request uint8, value uint16, data []byte) {
		_, err := dev.Control(0x40, request, value, 0, data)
		ok(t, err)
	}
	control(6, 0, []byte{0x00, 0x2d, 0x31, 0x01, 1, 0, 0, 0}) // 20 Msps
	ep, err := intf.InEndpoint(1)
	ok(t, err)
	in, err := ep.NewStream(1<<18, 32)
	ok(t, err)
	control(1, 1, nil)
	buf := make([]byte, 1<<18)
	for left := 2 * seconds() * 20_000_000; left > 0; {
		n, err := in.Read(buf)
		ok(t, err)
		left -= n
	}
	control(1, 0, nil)
	ok(t, in.Close())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for err == nil {
		_, err = in.ReadContext(done, buf)
	}
}

// A second program that holds the board, and one that has gone.
func TestLibusbHeld(t *testing.T) {
	front = throughLibusb
	t.Cleanup(func() { front = inProcess })
	r := newRig(t, rigConfig{faults: true, boards: 2})
	d := r.open(0, "")
	if _, err := r.tryOpen(0, ""); !errors.Is(err, usb.ErrInUse) {
		t.Error(err)
	}
	ok(t, d.Close())
	d, err := r.tryOpen(0, "")
	ok(t, err)
	r.faulty[0].Unplug()
	if _, err := d.SetFrequency(limited(t), radio.Receive, 1e9); !errors.Is(err, usb.ErrUnplugged) {
		t.Error(err)
	}
	ok(t, d.Close())
}
