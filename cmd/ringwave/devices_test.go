package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio"
	"ringwave/radio/boards"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// listing is a usb.Host with boards that nobody can open.
type listing struct {
	boards []usb.Listed
	err    error
}

func (l listing) List(_ context.Context, want func(usb.Identity) bool) (found []usb.Listed, err error) {
	for _, b := range l.boards {
		if want(b.Identity) {
			found = append(found, b)
		}
	}
	return found, l.err
}

func (l listing) OpenBeside(context.Context, usb.Address, func(usb.Identity) bool) (usb.Controller, error) {
	return nil, usb.ErrAccess
}

func (l listing) Open(context.Context, usb.Address) (usb.Transport, error) {
	return nil, fmt.Errorf("opening: %w", usb.ErrDriverBound)
}

// look runs the command on a host.
func look(t *testing.T, host usb.Host, probe bool, uris ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := devices(t.Context(), host, uris, probe, false, &out)
	return out.String(), err
}

// lookJSON does the same for machines.
func lookJSON(t *testing.T, host usb.Host, probe bool, uris ...string) (boards.Inventory, error) {
	t.Helper()
	var out bytes.Buffer
	err := devices(t.Context(), host, uris, probe, true, &out)
	var inv boards.Inventory
	if err := json.Unmarshal(out.Bytes(), &inv); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return inv, err
}

const (
	oneSerial   = "0000000000000000457863c82f4d4e5f"
	otherSerial = "000000000000000087c867dc2b8b3d5f"
)

// virtualHackRF makes an emulated board.
func virtualHackRF(t testing.TB, serial string, api uint16) *virtual.HackRF {
	t.Helper()
	b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial, API: api})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// joined puts boards on a bench.
func joined(t testing.TB, reference bool, boards ...virtual.Radio) {
	t.Helper()
	cfg := virtual.Config{Clock: loopback.WallClock()}
	for _, b := range boards {
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: reference})
	}
	bench, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Boards that cannot be opened: why, and what to do, ready to be copied.
// Longer, or of more branches, than most because it is a table of boards and remedies.
func TestDevicesBlocked(t *testing.T) {
	one := usb.Listed{
		Address: usb.Address{Bus: 3, Device: 7}, Identity: usb.Identity{Vendor: 0x1d50, Product: 0x6089, Release: 0x0106},
		Product: "HackRF One", Serial: oneSerial,
	}
	dongle := usb.Listed{Address: usb.Address{Bus: 1, Device: 4}, Identity: usb.Identity{Vendor: 0x0bda, Product: 0x2838}, Serial: "00000001"}
	with := func(b usb.Listed, change func(*usb.Listed)) usb.Listed { change(&b); return b }
	for name, c := range map[string]struct {
		board usb.Listed
		want  []string
	}{
		"permission": {
			with(one, func(b *usb.Listed) { b.Blocked, b.Serial = usb.ErrAccess, "" }),
			[]string{
				"hackrf:?at=003%2F007", "cannot be opened: permission denied", "udevadm control --reload", "usermod -aG plugdev",
				`echo 'SUBSYSTEM=="usb", ATTR{idVendor}=="1d50", ATTR{idProduct}=="6089", MODE="0660", GROUP="plugdev", TAG+="uaccess"' | sudo tee -a /etc/udev/rules.d/70-ringwave.rules`,
			},
		},
		"bound": {
			with(dongle, func(b *usb.Listed) {
				b.Driver, b.Blocked = "dvb_usb_rtl28xxu", fmt.Errorf("opening: %w", usb.ErrDriverBound)
			}),
			[]string{"rtlsdr:00000001", "a driver of the kernel holds the board", "sudo modprobe -r dvb_usb_rtl28xxu", "blacklist dvb_usb_rtl28xxu' | sudo tee /etc/modprobe.d/ringwave-dvb-usb-rtl28xxu.conf"},
		},
		"bound, by what is not known": {
			with(dongle, func(b *usb.Listed) { b.Blocked = usb.ErrDriverBound }),
			[]string{"lsusb -t", "modprobe -r"},
		},
		"bound, but given up": {
			with(one, func(b *usb.Listed) { b.Driver = "hackrf" }),
			[]string{"the kernel's driver hackrf has it", "blacklist hackrf"},
		},
		"in use":   {with(one, func(b *usb.Listed) { b.Blocked = usb.ErrInUse }), []string{"another program holds the board", "fuser -v /dev/bus/usb/003/007"}},
		"refused":  {with(one, func(b *usb.Listed) { b.Blocked = usb.ErrStall }), []string{"refused", "unplug the board"}},
		"old":      {with(one, func(b *usb.Listed) { b.Identity.Release = 0x0102 }), []string{"USB API: 0102", "tells of no losses", "limit_ms=0", "hackrf_spiflash -w"}},
		"new":      {with(one, func(b *usb.Listed) { b.Identity.Release = 0x0113 }), []string{"USB API 0113, after 0112"}},
		"from RAM": {with(one, func(b *usb.Listed) { b.Serial = "RunningFromRAM" }), []string{"hackrf:RunningFromRAM", "serial RunningFromRAM", "runs from RAM", "hackrf_spiflash -w"}},
		"boot loader": {
			usb.Listed{Address: one.Address, Identity: usb.Identity{Vendor: 0x1fc9, Product: 0x000c}},
			[]string{"NXP boot loader", "on USB: 003/007, 1fc9:000c", "DFU", "dfu-util --device 1fc9:000c"},
		},
		"Pluto": {
			usb.Listed{Address: one.Address, Identity: usb.Identity{Vendor: 0x0456, Product: 0xb673}, Product: "PlutoSDR", Blocked: usb.ErrAccess},
			[]string{"PlutoSDR", "over the network", "ringwave devices --probe pluto:192.168.2.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := look(t, listing{boards: []usb.Listed{c.board}}, false)
			if err != nil {
				t.Errorf("a listing fails: %v", err)
			}
			experimenttest.WantAll(t, text, c.want...)
			inv, err := lookJSON(t, listing{boards: []usb.Listed{c.board}}, false)
			if err != nil || len(inv.Devices) != 1 || inv.Devices[0].Opened || (inv.Devices[0].Problem != "") != (len(inv.Devices[0].ToDo) > 0) {
				t.Errorf("%+v, %v", inv, err)
			}
			text, err = look(t, listing{boards: []usb.Listed{c.board}}, true)
			if radio := inv.Devices[0].URI != ""; radio != intake.IsUserError(err) {
				t.Errorf("with --probe: %v", err)
			} else if radio && c.board.Blocked == nil { // what only shows when it is opened
				experimenttest.WantAll(t, text, "a driver of the kernel holds the board", "modprobe -r")
			}
		})
	}
}

// A terminal gets nothing that a board's strings could play with it.
func TestDevicesStrings(t *testing.T) {
	b := usb.Listed{Identity: usb.Identity{Vendor: 0x0bda, Product: 0x2838}, Product: "a\x1b[2Jb\n", Serial: "\x07c%?"}
	text, err := look(t, listing{boards: []usb.Listed{b}}, false)
	if err != nil || strings.ContainsAny(text, "\x1b\x07") {
		t.Errorf("%q, %v", text, err)
	}
	inv, _ := lookJSON(t, listing{boards: []usb.Listed{b}}, false)
	if u, err := radio.ParseURI(inv.Devices[0].URI); err != nil || u.Name != b.Serial {
		t.Errorf("the URI %q names %q, %v", inv.Devices[0].URI, u.Name, err)
	}
}

// USB that cannot be looked at hides nothing of what else was asked for.
func TestDevicesWithoutUSB(t *testing.T) {
	text, err := look(t, listing{err: usb.ErrNoUSBBuild}, false)
	if !errors.Is(err, usb.ErrNoUSBBuild) || !intake.IsUserError(err) {
		t.Errorf("a build without USB: %v", err)
	}
	experimenttest.WantAll(t, text, "this build has no USB", "apt-get install gcc libc6-dev pkg-config libusb-1.0-0-dev", "CGO_ENABLED=1 go install -tags usb ./cmd/ringwave")
	inv, err := lookJSON(t, listing{err: usb.ErrNoUSBBuild}, false, "pluto:192.168.2.1")
	if err != nil || inv.USB.Listed || len(inv.Devices) != 1 || inv.Devices[0].Driver != "pluto" {
		t.Errorf("%+v, %v", inv, err)
	}
	if _, err = look(t, listing{err: errors.New("libusb is ill")}, false); err == nil || intake.IsUserError(err) {
		t.Errorf("a broken machine gives %v", err)
	}
}

// Without --probe no board is asked anything, and with it none is left on; nothing
// is sent.
func TestDevicesProbe(t *testing.T) {
	one, old := virtualHackRF(t, oneSerial, 0), virtualHackRF(t, otherSerial, virtual.API2018)
	dongle, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Serial: "00000001"})
	if err != nil {
		t.Fatal(err)
	}
	joined(t, true, one, old, dongle)
	host := virtual.NewHost(one, old, dongle)
	text, err := look(t, host, false)
	if err != nil {
		t.Error(err)
	}
	experimenttest.WantAll(t, text, "hackrf:"+oneSerial, "hackrf:"+otherSerial, "rtlsdr:00000001", "never tried on a real board", "--probe opens each")
	if n := len(one.Transcript()) + len(old.Transcript()); n > 0 {
		t.Errorf("%d requests without --probe", n)
	}
	text, err = look(t, host, true)
	if err != nil {
		t.Error(err)
	}
	experimenttest.WantAll(t, text, "firmware 2022.09.1", "revision r10", "clock input: there is a reference clock", "transmit gain txvga: 0 dB (0 dB to 47 dB",
		"firmware 2018.01.1", "USB API: 0102", "receive sample rate: 2.048 MHz", "never tried on a real")
	inv, err := lookJSON(t, host, true)
	if err != nil || len(inv.Devices) != 3 {
		t.Fatalf("%+v, %v", inv, err)
	}
	for _, f := range inv.Devices {
		if !f.Opened || f.TriedOnHardware == nil || *f.TriedOnHardware || len(f.Capabilities) == 0 || len(f.Notes) == 0 {
			t.Errorf("%+v", f)
		}
	}
	if c := inv.Devices[0].ClockInput; c == nil || !*c {
		t.Error("the clock input of a new board is not told")
	}
	if inv.Devices[1].ClockInput != nil || inv.Devices[2].ClockInput != nil {
		t.Error("boards that do not tell have a clock input")
	}
	neverSent(t, one, old)
}

// neverSent wants that no board was ever switched to transmit, and all are off.
func neverSent(t *testing.T, boards ...*virtual.HackRF) {
	t.Helper()
	const setMode = 1
	for _, b := range boards {
		for _, q := range b.Transcript() {
			if q.Setup.Request == setMode && q.Setup.RequestType == usb.VendorOut && q.Setup.Value == uint16(virtual.ModeTransmit) {
				t.Errorf("board %s was switched to transmit", b.Serial())
			}
		}
		if mode := b.Settings().Mode; mode != virtual.ModeOff {
			t.Errorf("board %s is in mode %d", b.Serial(), mode)
		}
	}
}

// Boards of the same serial number have URIs of their own, each of which opens one.
func TestDevicesDuplicates(t *testing.T) {
	a, b := virtualHackRF(t, oneSerial, 0), virtualHackRF(t, oneSerial, virtual.API2026)
	joined(t, false, a, b)
	inv, err := lookJSON(t, virtual.NewHost(a, b), true)
	if err != nil || len(inv.Devices) != 2 || inv.Devices[0].API != "0106" || inv.Devices[1].API != "0112" || inv.Devices[0].URI == inv.Devices[1].URI {
		t.Errorf("%+v, %v", inv, err)
	}
	if c := inv.Devices[0].ClockInput; c == nil || *c {
		t.Error("a clock input without a clock")
	}
}

// A board that another program holds is told of, and the others are asked.
func TestDevicesInUse(t *testing.T) {
	a, b := virtualHackRF(t, oneSerial, 0), virtualHackRF(t, otherSerial, 0)
	joined(t, false, a, b)
	host := virtual.NewHost(a, b)
	d, err := hackrf.NewOpener(context.Background(), host, radio.TransmitPermit{}, nil).Open(t.Context(), radio.URI{Scheme: "hackrf", Name: oneSerial})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inv, err := lookJSON(t, host, true)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 devices could not be opened") || inv.Devices[0].Opened || !inv.Devices[1].Opened {
		t.Errorf("%+v, %v", inv, err)
	}
}

// What is given by URI: a Pluto that answers, and a server that is not there.
func TestDevicesNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := iiod.Serve(ln, iiod.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	empty, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "rtl_tcp:" + empty.Addr().String()
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	pluto := "pluto:" + ln.Addr().String()
	text, err := look(t, virtual.NewHost(), false, pluto, nobody)
	if err != nil {
		t.Error(err)
	}
	experimenttest.WantAll(t, text, "No radio on USB", pluto, nobody, "--probe opens each")
	inv, err := lookJSON(t, virtual.NewHost(), true, pluto, nobody)
	if err == nil || len(inv.Devices) != 2 {
		t.Fatalf("%+v, %v", inv, err)
	}
	if p := inv.Devices[0]; !p.Opened || !strings.Contains(p.Model, "Pluto") || p.Firmware == "" || len(p.Capabilities) == 0 || p.TriedOnHardware == nil {
		t.Errorf("%+v", p)
	}
	if r := inv.Devices[1]; r.Opened || !strings.Contains(r.Problem, "refused") || len(r.ToDo) == 0 {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct{ uri, want string }{
		{"uhd:x", `has the scheme "uhd"; allowed is`}, {"nothing", "has no scheme"},
	} {
		status, stdout, stderr := run(t, "devices", c.uri)
		if status != exitBadInput || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %q, %q", c.uri, status, stdout, stderr)
		}
	}
}

// Ctrl-C while boards are asked.
func TestDevicesInterrupted(t *testing.T) {
	a := virtualHackRF(t, oneSerial, 0)
	joined(t, false, a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := devices(ctx, virtual.NewHost(a), nil, true, false, &out); !errors.Is(err, experiment.ErrInterrupted) || out.Len() > 0 {
		t.Errorf("%v, %q", err, &out)
	}
}
