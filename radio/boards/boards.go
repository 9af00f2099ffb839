package boards

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"ringwave/radio"
	"ringwave/radio/guard"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/rtltcp"
	"ringwave/radio/sigmf"
	"ringwave/radio/usb"
)

// Config is what a program's boards go by. The zero value has the boards of this machine,
// of which none may send.
type Config struct {
	// USB is where boards are plugged in; nil is this machine.
	USB usb.Host
	// Permit is what may be sent. Guard watches over the boards that send; nil will do
	// where nothing may be sent.
	Permit radio.TransmitPermit
	Guard  radio.Guard
	// Media are places in memory, which the scheme loopback opens.
	Media []*loopback.Medium
	// EndProgram ends the program for which a guard uses these boards, and returns once it is
	// gone; nil where nothing is to be ended.
	EndProgram func() error
	// Drivers are the program's own, of schemes that this package does not have.
	Drivers []Driver
}

// Driver opens the devices of one scheme.
type Driver struct {
	Scheme string
	Opener radio.Opener
	// NewOpener makes the Opener of what sends, which must know what may be sent and who
	// watches: it stands in Opener's place in Config.Drivers. Nothing is sent any more
	// once session has ended.
	NewOpener func(session context.Context, permit radio.TransmitPermit, watch radio.Guard) radio.Opener
	// Board is set for what opens a board, not a file or memory, and Tried once that was
	// done with a real one.
	Board, Tried bool
	// Kinds are the boards on USB that it is for.
	Kinds []Kind
	// OpenSwitch opens the way on which a guard in another process switches a board off;
	// nil for what cannot send.
	OpenSwitch func(ctx context.Context, u radio.URI) (guard.Switch, error)

	// Find lists the boards that can be found by their driver, as those that SoapySDR finds
	// here, or at the server that a URI names; nil where there is none.
	Find func(ctx context.Context, where radio.URI) ([]Listing, error)

	// The rest may be nil. Notes returns what a board's descriptors alone give away, API
	// the version of its firmware's interface in them, and Remedy what a user can do
	// about an error of the driver's own.
	Notes  func(usb.Listed) []string
	API    func(usb.Identity) string
	Remedy func(error) []string
}

// Listing is a board that Find has found.
type Listing struct{ URI, Driver, Model, Serial string }

// Kind is a sort of board on USB.
type Kind struct {
	Name string
	Is   func(usb.Identity) bool
	// Problem says why the driver does not open it over USB, empty where it does, and
	// ToDo what to do then.
	Problem string
	ToDo    []string
}

// Boards are the radios that a program knows. It is read-only and safe for use by several
// goroutines.
type Boards struct {
	drivers  []Driver
	usb      usb.Host
	registry *radio.Registry
}

// New returns the boards of a configuration. Nothing is sent any more once session has
// ended.
func New(session context.Context, cfg Config) (*Boards, error) {
	memory, err := loopback.NewOpener(cfg.Media...)
	if err != nil {
		return nil, err
	}
	host := cfg.USB
	if host == nil {
		host = usb.System()
	}
	own := slices.Clone(cfg.Drivers)
	for i, d := range own {
		if d.NewOpener == nil && d.OpenSwitch != nil {
			return nil, fmt.Errorf("a driver for the scheme %q with OpenSwitch and no NewOpener; allowed is NewOpener for what sends, which is told the permit and the guard", d.Scheme)
		}
		if d.NewOpener == nil {
			continue
		}
		if d.Opener != nil {
			return nil, fmt.Errorf("a driver for the scheme %q with Opener and NewOpener; allowed is one of them", d.Scheme)
		}
		own[i].Opener = d.NewOpener(session, cfg.Permit, cfg.Guard)
	}
	return newBoards(host, slices.Concat([]Driver{
		{Scheme: "loopback", Opener: memory},
		{Scheme: "file", Opener: sigmf.Opener{}},
		hackrfDriver(host, hackrf.NewOpener(session, host, cfg.Permit, cfg.Guard)),
		{
			Scheme: "rtlsdr", Opener: rtlsdr.NewOpener(host, cfg.Permit), Board: true,
			Kinds: []Kind{{Name: "RTL-SDR", Is: rtlsdr.Matches}},
		},
		{Scheme: "rtl_tcp", Opener: rtltcp.NewOpener(&net.Dialer{}, cfg.Permit), Board: true},
		plutoDriver(pluto.NewOpener(session, cfg.Permit, cfg.Guard)),
	}, soapyDrivers(session, cfg), own))
}

// newBoards checks the drivers, each by itself and against the others.
func newBoards(host usb.Host, drivers []Driver) (*Boards, error) {
	openers := map[string]radio.Opener{}
	for _, d := range drivers {
		if openers[d.Scheme] != nil {
			return nil, fmt.Errorf("a driver for the scheme %q, which another has; allowed is one driver a scheme", d.Scheme)
		}
		openers[d.Scheme] = d.Opener
		for _, k := range d.Kinds {
			if k.Name == "" || k.Is == nil {
				return nil, fmt.Errorf("the driver %q has a kind of board without a name or without Is; allowed are kinds with both", d.Scheme)
			}
		}
	}
	registry, err := radio.NewRegistry(openers)
	if err != nil {
		return nil, err
	}
	return &Boards{drivers, host, registry}, nil
}

// NewRegistry returns the registry of New's boards.
func NewRegistry(session context.Context, cfg Config) (*radio.Registry, error) {
	b, err := New(session, cfg)
	if err != nil {
		return nil, err
	}
	return b.registry, nil
}

// Registry returns what opens the devices.
func (b *Boards) Registry() *radio.Registry { return b.registry }

// Parse takes URIs apart. The error, of one that no driver opens, is the user's to mend.
func (b *Boards) Parse(uris []string) (list []radio.URI, err error) {
	schemes := b.registry.Schemes()
	for _, s := range uris {
		u, err := radio.ParseURI(s)
		if err != nil {
			return nil, intake.UserError(err)
		}
		if !slices.Contains(schemes, u.Scheme) {
			return nil, intake.UserError(fmt.Errorf("device %q has the scheme %q; allowed is %s", s, u.Scheme, strings.Join(schemes, ", ")))
		}
		list = append(list, u)
	}
	return list, nil
}

// Guarded reports whether a URI is of a board that can send, and so needs a guard. It
// opens nothing.
func (c Config) Guarded(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	for _, d := range slices.Concat([]Driver{hackrfDriver(c.USB, nil), plutoDriver(nil)}, soapyDrivers(context.Background(), c), c.Drivers) {
		if d.Scheme == scheme {
			return d.OpenSwitch != nil
		}
	}
	return false
}

// OpenSwitch opens a guard's way to a board: it is a guard.Open.
func (b *Boards) OpenSwitch(ctx context.Context, u radio.URI) (guard.Switch, error) {
	if d, known := b.driver(u.Scheme); known && d.OpenSwitch != nil {
		return d.OpenSwitch(ctx, u)
	}
	var allowed []string
	for _, d := range b.drivers {
		if d.OpenSwitch != nil {
			allowed = append(allowed, d.Scheme)
		}
	}
	return nil, fmt.Errorf("device %q: allowed are boards of %s", u, strings.Join(allowed, " and "))
}

// driver returns that of a scheme.
func (b *Boards) driver(scheme string) (Driver, bool) {
	for _, d := range b.drivers {
		if d.Scheme == scheme {
			return d, true
		}
	}
	return Driver{}, false
}

// kindOf returns what a board on USB is, and its driver; known is false for what is no
// radio.
func (b *Boards) kindOf(i usb.Identity) (k Kind, d Driver, known bool) {
	for _, d := range b.drivers {
		for _, k := range d.Kinds {
			if k.Is(i) {
				return k, d, true
			}
		}
	}
	return Kind{}, Driver{}, false
}

// tried returns whether a driver was ever tried on a real board; nil if it is of no board.
func (d Driver) tried() *bool {
	if !d.Board {
		return nil
	}
	return &d.Tried
}

func identified(vendor, product uint16) func(usb.Identity) bool {
	return func(i usb.Identity) bool { return i.Vendor == vendor && i.Product == product }
}

// plutoDriver opens ADALM-Plutos over the network. On USB they are known, to say so.
func plutoDriver(opener radio.Opener) Driver {
	return Driver{
		Scheme: "pluto", Opener: opener, Board: true,
		Kinds: []Kind{
			{
				Name: "ADALM-Pluto", Is: identified(0x0456, 0xb673),
				Problem: "this board is not opened over USB but over the network that its plug also is",
				ToDo:    []string{"ringwave devices --probe pluto:192.168.2.1"},
			},
			{
				Name: "ADALM-Pluto in DFU mode", Is: identified(0x0456, 0xb674),
				Problem: "this is a boot loader and no radio",
				ToDo:    []string{"unplug the board and plug it in again, without pressing its button"},
			},
		},
		OpenSwitch: func(ctx context.Context, u radio.URI) (guard.Switch, error) { return pluto.OpenSwitch(ctx, u) },
	}
}
