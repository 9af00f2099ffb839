package bustest

import (
	"path/filepath"
	"testing"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
)

// Bench is an enrolled bench with a server.
type Bench struct {
	Folder *identity.Folder
	Server *bus.Server
	store  string // of its queue; "" for none
	t      testing.TB
}

// New enrols so many devices and runs their server until the test ends: at an address such
// as 127.0.0.1:0, or, where it is empty, for connections within the process only.
func New(t testing.TB, devices int, address string) *Bench {
	t.Helper()
	folder, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{Folder: folder, t: t}
	b.Start(address)
	return b
}

// NewSweeps makes a folder for sweeps and their workers, and runs its server, with a queue,
// as New does.
func NewSweeps(t testing.TB, address string) *Bench {
	t.Helper()
	folder, err := identity.Create(filepath.Join(t.TempDir(), "queue"), identity.Options{Sweeps: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{Folder: folder, store: filepath.Join(t.TempDir(), "store"), t: t}
	b.Start(address)
	return b
}

// Start runs the server, after Server.Close again.
func (b *Bench) Start(address string) {
	b.t.Helper()
	s, err := bus.Embed(b.t.Context(), bus.ServerOptions{Folder: b.Folder, Address: address, Store: b.store})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Server = s
	b.t.Cleanup(s.Close)
}

// Identity returns that of a host; index is that of a device.
func (b *Bench) Identity(role identity.Role, index int) identity.Identity {
	b.t.Helper()
	id, err := identity.Load(b.Folder.IdentityPath(role, index))
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// Dial connects a host until the test ends, within the process if o says nothing else.
func (b *Bench) Dial(role identity.Role, index int, o bus.Options) bus.Conn {
	b.t.Helper()
	if o.InProcess == nil {
		o.InProcess = b.Server
	}
	return b.DialURL(role, index, "", o)
}

// DialURL connects a host through the network until the test ends.
func (b *Bench) DialURL(role identity.Role, index int, url string, o bus.Options) bus.Conn {
	b.t.Helper()
	c, err := bus.Dial(b.t.Context(), b.Identity(role, index), url, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() }) // the test may have cut it off
	return c
}
