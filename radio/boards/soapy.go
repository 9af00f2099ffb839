package boards

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"ringwave/radio"
	"ringwave/radio/guard"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/native"
	"ringwave/radio/soapy/remote"
)

// soapyBuild is how to get a build with SoapySDR.
var soapyBuild = []string{
	"sudo apt-get install gcc libc6-dev pkg-config libsoapysdr-dev soapysdr-module-all   (on Debian)",
	"CGO_ENABLED=1 go install -tags soapy ./cmd/ringwave",
	"or, with a SoapySDRServer where the board is, without a tag: soapy-remote:HOST?driver=NAME",
}

// soapyModules says how to get what SoapySDR needs for a board.
var soapyModules = []string{
	"SoapySDRUtil --info names the modules that are there, SoapySDRUtil --find the boards. On Debian a",
	"board's module is a package: apt-cache search soapysdr-module",
}

// soapyDrivers opens boards through SoapySDR: of this machine, and of servers.
func soapyDrivers(session context.Context, cfg Config) []Driver {
	here, there := native.New(), remote.New(&net.Dialer{})
	driver := func(scheme string, backend soapy.Backend, opener radio.Opener, reserved []string) Driver {
		isRemote := scheme == soapyRemote
		return Driver{
			Scheme: scheme, Board: true, Opener: opener,
			OpenSwitch: func(_ context.Context, u radio.URI) (guard.Switch, error) {
				return soapy.OpenSwitch(u, backend, isRemote, reserved, cfg.endProgram)
			},
			Find: func(ctx context.Context, where radio.URI) ([]Listing, error) {
				found, err := backend.Find(ctx, where, soapy.Args{})
				var list []Listing
				for _, args := range found {
					list = append(list, soapyListing(where, args, isRemote))
				}
				return list, err
			},
			Remedy: soapyRemedy,
		}
	}
	return []Driver{
		driver("soapy", here, soapy.NewOpener(session, here, cfg.Permit, cfg.Guard), nil),
		driver(soapyRemote, there, soapy.NewRemoteOpener(session, there, cfg.Permit, cfg.Guard, remote.Parameters()...), remote.Parameters()),
	}
}

// soapyRemote is the scheme of boards of servers.
const soapyRemote = "soapy-remote"

// endProgram ends the program whose guard this is.
func (c Config) endProgram() error {
	if c.EndProgram == nil {
		return nil
	}
	return c.EndProgram()
}

// soapyListing names a board by what tells it from others.
func soapyListing(where radio.URI, args soapy.Args, isRemote bool) Listing {
	name := soapy.Args{}
	for _, key := range []string{"driver", "serial", "addr", "uri", "device_id", "device"} {
		// A label or a serial number of several words is no name.
		if v := args[key]; v != "" && !strings.ContainsAny(v, ",= ") {
			name[key] = v
			if key == "serial" {
				break
			}
		}
	}
	u := radio.URI{Scheme: where.Scheme, Name: name.String()}
	if isRemote {
		u.Name, u.Params = where.Name, map[string][]string{}
		for key, v := range name {
			u.Params.Set(key, v)
		}
	}
	return Listing{URI: u.String(), Driver: args["driver"], Model: plainText(args["label"]), Serial: plainText(args["serial"])}
}

func soapyRemedy(err error) []string {
	switch {
	case errors.Is(err, soapy.ErrNoBuild):
		return soapyBuild
	case errors.Is(err, native.ErrNoModule):
		return soapyModules
	}
	return nil
}

// addSoapy lists the boards that SoapySDR finds here, but for those that a driver of this
// program's own has found.
func (b *Boards) addSoapy(ctx context.Context, inv *Inventory) {
	d, _ := b.driver("soapy")
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	list, err := d.Find(ctx, radio.URI{Scheme: d.Scheme})
	inv.Soapy.Listed = err == nil
	if err != nil {
		inv.Soapy.Problem, inv.Soapy.ToDo = err.Error(), soapyRemedy(err)
		return
	}
	for _, l := range list {
		known := func(f Found) bool {
			return f.OnUSB() && f.Driver == l.Driver && l.Serial != "" && strings.HasSuffix(f.Serial, l.Serial)
		}
		if !slices.ContainsFunc(inv.Devices, known) {
			inv.Devices = append(inv.Devices, l.found(d))
		}
	}
}

// found is a listed board as an inventory has it.
func (l Listing) found(d Driver) Found {
	return Found{URI: l.URI, Driver: d.Scheme, Model: l.Model, Serial: l.Serial, TriedOnHardware: d.tried(), driver: d}
}

// expand returns what a named device stands for: the boards of a server that was named alone,
// or the device itself.
func (b *Boards) expand(ctx context.Context, u radio.URI) []Found {
	d, _ := b.driver(u.Scheme)
	itself := Found{URI: u.String(), Driver: u.Scheme, TriedOnHardware: d.tried(), driver: d}
	if d.Scheme != soapyRemote || len(u.Params) > 0 {
		return []Found{itself}
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	list, err := d.Find(ctx, u)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("the SoapySDR server %s finds no boards", u.Name)
	}
	if err != nil {
		itself.fail(err)
		return []Found{itself}
	}
	var all []Found
	for _, l := range list {
		all = append(all, l.found(d))
	}
	return all
}
