package identity

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"ringwave/crypto/lockfile"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// The files of a folder, besides identities.
const (
	caCert       = "ca.pem"
	caKey        = "ca.key"
	serverCert   = "server.pem"
	serverKey    = "server.key"
	enrolmentKey = "enrolment.key"
	registryName = "enrolment.toml"
	confName     = "nats-server.conf"
	lockName     = ".lock"
)

// slack is how much clocks of hosts may differ when an identity is new.
const slack = time.Hour

// Defaults of Options.
const (
	DefaultURL   = "tls://localhost:4222"
	DefaultValid = 365 * 24 * time.Hour
	leastValid   = time.Minute
	mostValid    = 20 * 365 * 24 * time.Hour
)

// Options say what Create makes.
type Options struct {
	Devices int
	// Sweeps has the folder be for sweeps and their workers, in place of a bench's devices.
	Sweeps bool
	URL    string        // DefaultURL where it is empty
	Hosts  []string      // names and addresses of the bus; this host's where there is none
	Valid  time.Duration // DefaultValid where it is 0
	// Now is the clock that identities are enrolled by; nil for time.Now.
	Now func() time.Time
}

// Folder is what enrolled a bench. The server's host needs it to run the bus: of secrets
// server.key and server.identity only.
type Folder struct {
	Dir      string
	Registry Registry
	now      func() time.Time
}

// Create enrols a bench in a new folder, which appears with all of its files or not at
// all. One that exists is left as it is.
func Create(dir string, o Options) (*Folder, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil, failf("%s is there already; allowed is a folder that is not, or --add and --revoke for one that was enrolled", dir)
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".enroll-") // of mode 0700
	if err != nil {
		return nil, intake.PathError(fmt.Errorf("making the folder %s: %w", dir, bare(err)))
	}
	defer os.RemoveAll(temp) // of which nothing is left when it has been renamed
	f := &Folder{Dir: temp, now: o.Now}
	if err := f.fill(o); err != nil {
		return nil, fmt.Errorf("enrolling in the folder %s: %w", dir, err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return nil, fmt.Errorf("naming the new folder %s: %w", dir, err)
	}
	f.Dir = dir
	return f, nil
}

// complete checks options and puts in what is missing.
func (o *Options) complete() error {
	if o.URL == "" {
		o.URL = DefaultURL
	}
	if o.Valid == 0 {
		o.Valid = DefaultValid
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Hosts) == 0 {
		o.Hosts = []string{"localhost", "127.0.0.1", "::1"}
		if name, err := os.Hostname(); err == nil && CheckHost(name) == nil {
			o.Hosts = append(o.Hosts, name)
		}
	}
	if o.Sweeps {
		if o.Devices != 0 {
			return failf("--devices is %d beside --sweeps; allowed is one of them", o.Devices)
		}
	} else if o.Devices < 1 || o.Devices > MaxDevices {
		return failf("--devices is %d; allowed is 1 to %d", o.Devices, MaxDevices)
	}
	if err := CheckURL(o.URL); err != nil {
		return failf("--url is %v", err)
	}
	for _, h := range o.Hosts {
		if err := CheckHost(h); err != nil {
			return failf("--host is %v", err)
		}
	}
	if u, err := url.Parse(o.URL); err == nil && !slices.Contains(o.Hosts, u.Hostname()) {
		o.Hosts = append(o.Hosts, u.Hostname()) // otherwise nobody could connect
	}
	if o.Valid < leastValid || o.Valid > mostValid {
		return failf("--valid is %v; allowed is %v to %v", o.Valid, leastValid, mostValid)
	}
	return nil
}

// fill writes all files of a new bench.
func (f *Folder) fill(o Options) error {
	now := o.Now().UTC().Truncate(time.Second)
	enrol, bench, err := newKey(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	defer enrol.Wipe()
	f.Registry = Registry{Bench: bench, URL: o.URL, Expires: now.Add(o.Valid)}
	ca, err := newAuthority(bench, now.Add(-slack), f.Registry.Expires)
	if err != nil {
		return fmt.Errorf("making the authority of the bench: %w", err)
	}
	if err := f.writeCertificates(ca, enrol, o.Hosts); err != nil {
		return err
	}
	shared := make([]byte, SecretSize)
	rand.Read(shared)
	defer clear(shared)
	e := enroller{folder: f, enrol: enrol, ca: ca.pem, secret: shared, from: now.Add(-slack), until: f.Registry.Expires, devices: o.Devices, sweeps: o.Sweeps}
	if err := e.next(len(rolesOf(o.Sweeps)) + o.Devices); err != nil {
		return err
	}
	return f.write(now)
}

// newKey makes a pair of keys, and returns its public one, too.
func newKey(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string, err error) {
	if pair, err = create(); err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		return nil, "", fmt.Errorf("making an nkey: %w", err)
	}
	return pair, public, nil
}

func (f *Folder) writeCertificates(ca authority, enrol nkeys.KeyPair, hosts []string) error {
	cert, key, err := ca.server(hosts)
	if err != nil {
		return fmt.Errorf("certifying the bus: %w", err)
	}
	defer clear(key)
	own, err := keyPEM(ca.key)
	if err != nil {
		return fmt.Errorf("encoding the key of the authority: %w", err)
	}
	defer clear(own)
	seed, err := enrol.Seed() // not a copy
	if err != nil {
		return fmt.Errorf("encoding the key that enrols: %w", err)
	}
	for name, data := range map[string][]byte{caKey: own, serverKey: key, enrolmentKey: seed} {
		if err := runfolder.WritePrivate(f.file(name), data); err != nil {
			return err
		}
	}
	if err := runfolder.WriteFile(f.file(caCert), ca.pem); err != nil {
		return err
	}
	return runfolder.WriteFile(f.file(serverCert), cert)
}

// write writes the registry and what is made from it.
func (f *Folder) write(now time.Time) error {
	if err := runfolder.WriteFile(f.file(registryName), []byte(f.Registry.text())); err != nil {
		return err
	}
	return runfolder.WriteFile(f.file(confName), []byte(f.Registry.conf(now)))
}

// Open reads the registry of a folder.
func Open(dir string) (*Folder, error) {
	f := &Folder{Dir: dir, now: time.Now}
	var err error
	f.Registry, err = readRegistry(f.file(registryName))
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Folder) file(name string) string { return filepath.Join(f.Dir, name) }

// IdentityPath returns the path of a host's identity file.
func (f *Folder) IdentityPath(role Role, index int) string {
	if role == Device {
		return f.file(fmt.Sprintf("device-%03d.identity", index))
	}
	return f.file(string(role) + ".identity")
}

// Changed returns when devices were last added or revoked.
func (f *Folder) Changed() (time.Time, error) {
	info, err := os.Stat(f.file(registryName))
	if err != nil {
		return time.Time{}, fmt.Errorf("looking at the registry: %w", err)
	}
	return info.ModTime(), nil
}

// Certificate returns that of the bus, with its key.
func (f *Folder) Certificate() (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.file(serverCert), f.file(serverKey))
	if err != nil {
		return cert, failf("%s and %s: the certificate of the bus and its key cannot be read: %v; allowed are those that ringwave enroll has made", f.file(serverCert), serverKey, err)
	}
	return cert, nil
}

// change locks the folder, reads its registry again, and has do change it.
func (f *Folder) change(do func(now time.Time) error) error {
	lock, err := lockfile.Open(f.file(lockName))
	if err != nil {
		return failf("%s: the folder cannot be changed: %v%s", f.Dir, bare(err), lockfile.Hint(f.file(lockName)))
	}
	defer lock.Close()
	latest, err := Open(f.Dir)
	if err != nil {
		return err
	}
	f.Registry = latest.Registry
	now := f.now().UTC().Truncate(time.Second)
	if err := do(now); err != nil {
		return err
	}
	return f.write(now)
}

// Add enrols so many more devices, until the bench expires, or for a shorter time if valid
// is not 0. The identities of the others stay as they are.
func (f *Folder) Add(devices int, valid time.Duration) error {
	return f.change(func(now time.Time) error {
		if f.Registry.Sweeps() {
			return failf("%s is for sweeps, whose workers share worker.identity; allowed is --add for a bench with devices", f.Dir)
		}
		had := f.Registry.Devices()
		if devices < 1 || had+devices > MaxDevices {
			return failf("--add is %d; allowed is 1 to %d, as there are %d devices", devices, MaxDevices-had, had)
		}
		until := f.Registry.Expires
		left := until.Sub(now)
		if left < leastValid {
			return failf("the bench %s expires at %s, and this host's clock says %s; allowed is one that is valid for %v or longer: enrol a new one", f.Dir, stamp(until), stamp(now), leastValid)
		}
		if valid != 0 {
			until = now.Add(valid)
		}
		if valid != 0 && (valid < leastValid || valid > left) {
			return failf("--valid is %v; allowed is %v to the %v that the bench is still valid: enrol a new one for more", valid, leastValid, left)
		}
		server, err := Load(f.IdentityPath(Server, 0))
		if err != nil {
			return err
		}
		defer server.Wipe()
		enrol, err := f.enrolmentKey()
		if err != nil {
			return err
		}
		defer enrol.Wipe()
		e := enroller{folder: f, enrol: enrol, ca: server.CA, secret: server.Secret(), from: now.Add(-slack), until: until, devices: had + devices}
		return e.next(devices)
	})
}

// enrolmentKey reads the key that the bench is named by.
func (f *Folder) enrolmentKey() (nkeys.KeyPair, error) {
	path := f.file(enrolmentKey)
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, failf("%s: the key that enrols cannot be read: %v; allowed is the one of this folder", path, bare(err))
	}
	defer clear(seed)
	pair, err := nkeys.FromSeed(seed)
	if err == nil {
		public, perr := pair.PublicKey()
		if perr == nil && public == f.Registry.Bench {
			return pair, nil
		}
		pair.Wipe()
	}
	return nil, failf("%s: the key is not that of the bench %.8s…; allowed is the one of this folder", path, f.Registry.Bench)
}

// Revoke takes the right to connect from devices, for good. Those that do not have it any
// more stay as they are.
func (f *Folder) Revoke(indices []int) error {
	return f.change(func(now time.Time) error {
		for _, i := range indices {
			if i < 1 || i > f.Registry.Devices() {
				return failf("--revoke has %d; allowed are the devices of the bench, 1 to %d", i, f.Registry.Devices())
			}
		}
		for _, i := range indices {
			if h := &f.Registry.Hosts[others+i-1]; h.Revoked.IsZero() {
				h.Revoked = now
			}
		}
		return nil
	})
}

// enroller makes identities.
type enroller struct {
	folder      *Folder
	enrol       nkeys.KeyPair
	ca, secret  []byte
	from, until time.Time
	devices     int // of the bench, with those to come
	sweeps      bool
}

// next enrols the next hosts in the order of the registry.
func (e enroller) next(count int) error {
	for range count {
		pair, public, err := newKey(nkeys.CreateUser)
		if err != nil {
			return err
		}
		role, index := place(len(e.folder.Registry.Hosts), e.sweeps)
		s := Statement{Bench: e.folder.Registry.Bench, Role: role, Index: index, Nkey: public, NotBefore: e.from, Expires: e.until}
		if s.Signature, err = e.enrol.Sign(s.text()); err != nil {
			return fmt.Errorf("signing the enrolment of %s: %w", s, err)
		}
		e.folder.Registry.Hosts = append(e.folder.Registry.Hosts, Enrolled{Statement: s})
		if err := e.write(s, pair); err != nil {
			return err
		}
	}
	return nil
}

// write writes an identity file. One of an enrolment that was broken off is replaced.
func (e enroller) write(s Statement, pair nkeys.KeyPair) error {
	defer pair.Wipe()
	seed, err := pair.Seed() // not a copy
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", s, err)
	}
	server := e.folder.Registry.Hosts[0].Nkey
	b := fmt.Appendf(nil, "# The identity of %s of a bench. Whoever has this file is %s: keep it secret.\n\n", s, s)
	b = fmt.Appendf(b, "version = %d\ndevices = %d\nurl = %q\nbench = %q\nserver = %q\n%s", version, e.devices, e.folder.Registry.URL, s.Bench, server, s.toml())
	b = fmt.Appendf(b, "ca = \"\"\"\n%s\"\"\"\nseed = %q\n", e.ca, seed)
	if s.Role.hasSecret() {
		b = fmt.Appendf(b, "secret = %q\n", hex.EncodeToString(e.secret))
	}
	defer clear(b)
	return runfolder.WritePrivate(e.folder.IdentityPath(s.Role, s.Index), b)
}
