package boards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/guard"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/native"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// listing is a usb.Host with boards that nobody can open.
type listing []usb.Listed

func (l listing) List(_ context.Context, want func(usb.Identity) bool) (found []usb.Listed, err error) {
	for _, b := range l {
		if want(b.Identity) {
			found = append(found, b)
		}
	}
	return found, nil
}

func (l listing) Open(context.Context, usb.Address) (usb.Transport, error) { return nil, usb.ErrAccess }

func (l listing) OpenBeside(context.Context, usb.Address, func(usb.Identity) bool) (usb.Controller, error) {
	return nil, usb.ErrAccess
}

// newOf returns boards on a host.
func newOf(t *testing.T, host usb.Host, drivers ...Driver) *Boards {
	t.Helper()
	b, err := New(t.Context(), Config{USB: host, Drivers: drivers})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// toy is a radio of somebody else's, whose ends are those of a medium in memory.
type toy struct{ medium *loopback.Medium }

var errToyBroken = errors.New("the toy is broken")

func (o toy) Open(_ context.Context, u radio.URI) (radio.Device, error) {
	if err := u.Only("at"); err != nil {
		return nil, err
	}
	switch u.Name {
	case "sender":
		return o.medium.Transmitter(0)
	case "listener":
		return o.medium.Receiver(0)
	}
	return nil, errToyBroken
}

// toySwitch counts how often a toy was switched off.
type toySwitch struct{ offs *int }

func (s toySwitch) Off() error { *s.offs++; return nil }
func (toySwitch) Close() error { return nil }

var toyIdentity = usb.Identity{Vendor: 0xfeed, Product: 0xbeef, Release: 0x0203}

// toyDriver is what the package's documentation says to add for a radio.
func toyDriver(t *testing.T, offs *int) Driver {
	t.Helper()
	medium, err := loopback.New(loopback.Config{Rate: 1e6, Devices: []loopback.Device{{Gain: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return Driver{
		Scheme: "toy", Board: true, Tried: true,
		NewOpener:  func(context.Context, radio.TransmitPermit, radio.Guard) radio.Opener { return toy{medium} },
		Kinds:      []Kind{{Name: "Toy", Is: identified(toyIdentity.Vendor, toyIdentity.Product)}},
		OpenSwitch: func(context.Context, radio.URI) (guard.Switch, error) { return toySwitch{offs}, nil },
		Notes:      func(usb.Listed) []string { return []string{"it is made of tin"} },
		API:        func(i usb.Identity) string { return hackrf.API(i.Release).String() },
		Remedy: func(err error) []string {
			if errors.Is(err, errToyBroken) {
				return []string{"glue it"}
			}
			return nil
		},
	}
}

// A driver of the program's own is known wherever those of this package are: the array
// opens it, it is listed, asked and mended, and its guard switches it off.
// Longer, or of more branches, than most because it is one history of a driver, whose steps have branches of their own.
func TestOwnDriver(t *testing.T) {
	offs := 0
	b := newOf(t, listing{
		{Identity: toyIdentity, Address: usb.Address{Bus: 1, Device: 2}, Serial: "sender"},
		{Identity: toyIdentity, Address: usb.Address{Bus: 1, Device: 3}, Serial: "torn"},
		{Identity: usb.Identity{Vendor: 1, Product: 1}, Serial: "a mouse"},
	}, toyDriver(t, &offs))

	inv, err := b.Inventory(t.Context(), nil)
	if err != nil || len(inv.Devices) != 2 || !inv.USB.Listed {
		t.Fatalf("%+v, %v", inv, err)
	}
	err = b.Probe(t.Context(), &inv)
	if !intake.IsUserError(err) || err.Error() != "1 of 2 devices could not be opened" {
		t.Errorf("probing: %v", err)
	}
	good, torn := inv.Devices[0], inv.Devices[1]
	if good.URI != "toy:sender" || !good.OnUSB() || !good.Opened || good.Driver != "toy" || good.API != "0203" || good.TriedOnHardware == nil || !*good.TriedOnHardware || len(good.Capabilities) == 0 {
		t.Errorf("%+v", good)
	}
	if torn.Opened || torn.Problem != errToyBroken.Error() || !slices.Equal(torn.ToDo, []string{"glue it"}) || torn.Model != "Toy" || !slices.Equal(torn.Notes, []string{"it is made of tin"}) {
		t.Errorf("%+v", torn)
	}

	cfg := Config{Drivers: []Driver{toyDriver(t, &offs)}}
	if !cfg.Guarded("toy:sender") || !cfg.Guarded("hackrf:x") || !cfg.Guarded("pluto:x") || cfg.Guarded("rtlsdr:x") || cfg.Guarded("nonesuch:x") {
		t.Error("a guard is needed by the toy and HackRFs, and by no receiver")
	}
	s, err := b.OpenSwitch(t.Context(), radio.URI{Scheme: "toy", Name: "sender"})
	if err != nil || s.Off() != nil || offs != 1 {
		t.Errorf("%d times off, %v", offs, err)
	}
	if _, err := b.OpenSwitch(t.Context(), radio.URI{Scheme: "rtl_tcp", Name: "x"}); err == nil || err.Error() != `device "rtl_tcp:x": allowed are boards of hackrf and pluto and soapy and soapy-remote and toy` {
		t.Errorf("a switch of a receiver: %v", err)
	}

	a, err := array.Open(t.Context(), b.Registry(), array.Config{Transmitters: []string{"toy:sender"}, Receiver: "toy:listener", Rate: 1e6, Frequency: 433e6, Clock: array.SharedClock})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := slices.Repeat([]complex64{0.5i}, 4096)
	if _, err := a.Transmitters()[0].Write(t.Context(), sent, radio.TxMeta{}); err != nil {
		t.Fatal(err)
	}
	received, _ := radiotest.Read(t, a.Receiver(), 16)
	for _, x := range received {
		if math.Abs(cmplx.Abs(complex128(x))-0.5) > 1e-6 { // the carrier's phase is new
			t.Errorf("received %v, of an amplitude that was not sent", x)
		}
	}
}

// A driver of one's own that sends is made of what may be sent and of who watches.
func TestOwnDriverIsToldWhatMayBeSent(t *testing.T) {
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 432e6, Max: 434e6}, 1e6, 0)
	if err != nil {
		t.Fatal(err)
	}
	var told radio.TransmitPermit
	var watch radio.Guard
	drivers := []Driver{{Scheme: "toy", NewOpener: func(session context.Context, p radio.TransmitPermit, g radio.Guard) radio.Opener {
		if session != t.Context() {
			t.Error("the session is another")
		}
		told, watch = p, g
		return toy{}
	}}}
	watcher := virtual.NewGuard()
	b, err := New(t.Context(), Config{USB: listing{}, Permit: permit, Guard: watcher, Drivers: drivers})
	if err != nil {
		t.Fatal(err)
	}
	if told != permit || watch != radio.Guard(watcher) {
		t.Errorf("told of %v and %v", told, watch)
	}
	if _, err := b.Registry().Open(t.Context(), "toy:torn"); !errors.Is(err, errToyBroken) {
		t.Errorf("opening by what was made: %v", err)
	}
	if drivers[0].Opener != nil {
		t.Error("the caller's list was changed")
	}
}

// What cannot be a driver beside the others is refused, not taken for one of them.
func TestNewRefuses(t *testing.T) {
	opener := toy{}
	for want, d := range map[string]Driver{
		`"hackrf", which another has`: {Scheme: "hackrf", Opener: opener},
		`scheme "Toy"`:                {Scheme: "Toy", Opener: opener},
		`scheme "toy"`:                {Scheme: "toy"},
		"Opener and NewOpener":        {Scheme: "toy", Opener: opener, NewOpener: func(context.Context, radio.TransmitPermit, radio.Guard) radio.Opener { return opener }},
		"a kind of board without":     {Scheme: "toy", Opener: opener, Kinds: []Kind{{Name: "Toy"}}},
	} {
		if _, err := New(t.Context(), Config{USB: listing{}, Drivers: []Driver{d}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	twice := Driver{Scheme: "toy", Opener: opener}
	if _, err := NewRegistry(t.Context(), Config{USB: listing{}, Drivers: []Driver{twice, twice}}); err == nil {
		t.Error("two drivers of a scheme are taken")
	}
}

// The registry has all schemes, and a place in memory that it was given.
func TestRegistry(t *testing.T) {
	medium, err := loopback.New(loopback.Config{Name: "m", Rate: 1e6, Devices: []loopback.Device{{Gain: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegistry(t.Context(), Config{Media: []*loopback.Medium{medium}})
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"file", "hackrf", "loopback", "pluto", "rtl_tcp", "rtlsdr"} {
		if !slices.Contains(r.Schemes(), scheme) {
			t.Errorf("nothing opens %s", scheme)
		}
	}
	d, err := r.Open(t.Context(), "loopback:m?tx=0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	b := newOf(t, listing{})
	if got, err := b.Parse([]string{"pluto:h", "file:a%20b"}); err != nil || len(got) != 2 || got[1].Name != "a b" {
		t.Errorf("%v, %v", got, err)
	}
	for uri, want := range map[string]string{"uhd:x": `the scheme "uhd"; allowed is ` + strings.Join(b.Registry().Schemes(), ", "), "nothing": "no scheme"} {
		if _, err := b.Parse([]string{"pluto:h", uri}); !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// Each of two boards with one serial number has a URI that opens it; probing sends
// nothing and leaves boards off; a boot loader counts for no board.
func TestInventory(t *testing.T) {
	const serial = "0000000000000000457863c82f4d4e5f"
	one := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial})
	other := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial, API: virtual.API2026})
	radiotest.Bench(t, virtual.Config{Clock: loopback.WallClock(), Boards: []virtual.Place{{Radio: one}, {Radio: other}}})
	b := newOf(t, virtual.NewHost(one, other))
	inv, err := b.Inventory(t.Context(), nil)
	if err != nil || len(inv.Devices) != 2 || len(one.Transcript())+len(other.Transcript()) > 0 {
		t.Fatalf("%+v, %v", inv, err)
	}
	if err := b.Probe(t.Context(), &inv); err != nil {
		t.Fatal(err)
	}
	for i, board := range []*virtual.HackRF{one, other} {
		if f := inv.Devices[i]; !f.Opened || f.API != []string{"0106", "0112"}[i] || f.ClockInput == nil || board.Settings().Mode != virtual.ModeOff {
			t.Errorf("%+v", f)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	again := Inventory{Devices: []Found{{URI: "hackrf:" + serial, Driver: "hackrf"}}}
	if err := b.Probe(ended, &again); err != nil || again.Devices[0].Opened {
		t.Errorf("a board is opened after the end: %+v, %v", again, err)
	}

	loader := listing{{Identity: usb.Identity{Vendor: 0x1fc9, Product: 0x000c}}}
	inv, err = newOf(t, loader).Inventory(t.Context(), nil)
	if err != nil || len(inv.Devices) != 1 {
		t.Fatalf("%+v, %v", inv, err)
	}
	if f := inv.Devices[0]; f.URI != "" || f.Driver != "" || f.TriedOnHardware != nil || f.Problem == "" || len(f.ToDo) == 0 {
		t.Errorf("%+v", f)
	}
}

// The file of rules has the rule of each board that a driver opens, and no other.
func TestRulesFile(t *testing.T) {
	file, err := os.ReadFile("../../scripts/70-ringwave.rules")
	if err != nil {
		t.Fatal(err)
	}
	b := newOf(t, listing{})
	opens := func(i usb.Identity) (name string, does bool) {
		k, _, known := b.kindOf(i)
		return k.Name, known && k.Problem == ""
	}
	rules, vendors, ruled := map[string]bool{}, map[uint16]bool{}, map[string]bool{}
	id := regexp.MustCompile(`idVendor}=="([0-9a-f]{4})", ATTR{idProduct}=="([0-9a-f]{4})"`)
	for line := range strings.Lines(string(file)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var i usb.Identity
		if found := id.FindStringSubmatch(line); found != nil {
			_, err = fmt.Sscanf(found[1]+" "+found[2], "%x %x", &i.Vendor, &i.Product)
		}
		if name, does := opens(i); err != nil || !does || line != Rule(i) || rules[line] {
			t.Errorf("%q is a rule of no board that a driver opens, or not as it must be, or there twice; %v", line, err)
		} else {
			rules[line], vendors[i.Vendor], ruled[name] = true, true, true
		}
	}
	for vendor := range vendors {
		for product := range 1 << 16 {
			i := usb.Identity{Vendor: vendor, Product: uint16(product)}
			if _, does := opens(i); does && !rules[Rule(i)] {
				t.Errorf("the file does not have\n%s", Rule(i))
			}
		}
	}
	for _, d := range b.drivers {
		for _, k := range d.Kinds {
			if k.Problem == "" && !ruled[k.Name] {
				t.Errorf("the file has no rule of %s", k.Name)
			}
		}
	}
}

// A device that SoapySDR is to open says how to get it, in a build without SoapySDR and where
// no module has it.
func TestSoapyRemedies(t *testing.T) {
	d := Driver{Scheme: "soapy", Remedy: soapyRemedy}
	for _, c := range []struct {
		err  error
		want string
	}{{soapy.ErrNoBuild, "-tags soapy"}, {native.ErrNoModule, "SoapySDRUtil --info"}} {
		if got := strings.Join(d.remedy(fmt.Errorf("opening: %w", c.err), nil), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.err, got)
		}
	}
	inv, _ := newOf(t, listing{}).Inventory(t.Context(), nil)
	if errors.Is(soapyProblem(t), soapy.ErrNoBuild) && (inv.Soapy.Listed || !strings.Contains(strings.Join(inv.Soapy.ToDo, "\n"), "-tags soapy")) {
		t.Errorf("%+v", inv.Soapy)
	}
}

// soapyProblem returns why SoapySDR cannot be asked in this build, nil where it can.
func soapyProblem(t *testing.T) error {
	_, err := native.New().Find(t.Context(), radio.URI{}, soapy.Args{"driver": "none"})
	return err
}
