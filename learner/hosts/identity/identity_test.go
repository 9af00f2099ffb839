package identity_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/nats-io/nkeys"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// enrol makes a bench of so many devices.
func enrol(t testing.TB, devices int) *identity.Folder {
	t.Helper()
	f, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func load(t testing.TB, f *identity.Folder, role identity.Role, index int) identity.Identity {
	t.Helper()
	id, err := identity.Load(f.IdentityPath(role, index))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// every calls do with each role, and each index that it has.
func every(devices int, do func(role identity.Role, index int)) {
	for _, role := range []identity.Role{identity.Server, identity.Air, identity.Observer} {
		do(role, 0)
	}
	for i := range devices {
		do(identity.Device, i+1)
	}
}

// Every host reads what it was enrolled as; the files that are secret only their owner
// reads, and the secret is the server's and the devices' only.
func TestEnrol(t *testing.T) {
	f := enrol(t, 3)
	server := load(t, f, identity.Server, 0)
	keys := map[string]bool{}
	every(3, func(role identity.Role, index int) {
		id := load(t, f, role, index)
		keys[id.Nkey] = true
		if id.Role != role || id.Index != index || id.Devices != 3 || id.URL != identity.DefaultURL || id.Server != server.Nkey || id.Bench != f.Registry.Bench {
			t.Errorf("%s is %+v", id, id)
		}
		want := server.Secret()
		if role == identity.Air || role == identity.Observer {
			want = nil
		}
		if !bytes.Equal(id.Secret(), want) || id.Secret() != nil && len(id.Secret()) != identity.SecretSize {
			t.Errorf("%s has a secret of %d bytes", id, len(id.Secret()))
		}
		if err := id.Check(server.Bench, time.Now()); err != nil {
			t.Error(err)
		}
		if h, ok := f.Registry.Find(role, index); !ok || h.Nkey != id.Nkey || !bytes.Equal(h.Signature, id.Signature) {
			t.Errorf("the registry has %+v for %s", h, id)
		}
		text := fmt.Sprintf("%v %+v %#v", id, id, id)
		seed := value(t, id.Path, "seed")
		if strings.Contains(text, seed) || strings.Contains(text, fmt.Sprintf("%v", []byte(seed))) || !strings.HasPrefix(text, id.Statement.String()) {
			t.Errorf("printed, %s shows its seed, or not its name: %s", id, text)
		}
	})
	if len(keys) != 6 {
		t.Errorf("%d nkeys of 6 hosts", len(keys))
	}
	for _, path := range files(t, f.Dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		public := slices.Contains([]string{"ca.pem", "server.pem", "enrolment.toml", "nats-server.conf"}, filepath.Base(path))
		if want := map[bool]os.FileMode{true: 0o644, false: 0o600}[public]; info.Mode().Perm() != want {
			t.Errorf("%s has the mode %04o, not %04o", path, info.Mode().Perm(), want)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(list) < 9 {
		t.Fatalf("%q, %v", list, err)
	}
	return list
}

// value returns the text that a key of a file has.
func value(t *testing.T, path, key string) string {
	t.Helper()
	var all map[string]any
	if _, err := toml.DecodeFile(path, &all); err != nil {
		t.Fatal(err)
	}
	return all[key].(string)
}

// A signature is of one host, one purpose and one message; what a bus asks for is never one
// of these; and a key that was overwritten signs no more.
func TestSign(t *testing.T) {
	f := enrol(t, 2)
	id, other := load(t, f, identity.Device, 1), load(t, f, identity.Device, 2)
	signature, err := id.Sign("broadcast", []byte("b~"))
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.Verify(id.Nkey, "broadcast", []byte("b~"), signature); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another host":    identity.Verify(other.Nkey, "broadcast", []byte("b~"), signature),
		"another purpose": identity.Verify(id.Nkey, "record", []byte("b~"), signature),
		"another message": identity.Verify(id.Nkey, "broadcast", []byte("b"), signature),
		"no nkey":         identity.Verify("U", "broadcast", []byte("b~"), signature),
	} {
		if err == nil {
			t.Errorf("the signature is taken for that of %s", what)
		}
	}
	if _, err := id.SignNonce([]byte("ringwave broadcast\x00b~")); err == nil {
		t.Error("a broadcast was signed for a bus")
	}
	nonce, err := id.SignNonce([]byte("nonce"))
	if err != nil {
		t.Fatal(err)
	}
	if public, err := nkeys.FromPublicKey(id.Nkey); err != nil || public.Verify([]byte("nonce"), nonce) != nil {
		t.Errorf("the nonce's signature is not NATS': %v", err)
	}
	held := id.Secret()
	id.Wipe()
	if _, err := id.Sign("broadcast", nil); err == nil || id.Secret() != nil || !bytes.Equal(held, make([]byte, identity.SecretSize)) {
		t.Errorf("after Wipe: %v, %x", err, held)
	}
}

// One statement does not stand for another host, bench or time.
func TestStatement(t *testing.T) {
	id := load(t, enrol(t, 2), identity.Device, 1)
	other := load(t, enrol(t, 2), identity.Device, 1)
	now := time.Now()
	for want, s := range map[string]func(s *identity.Statement, now *time.Time){
		"not signed by its bench":                    func(s *identity.Statement, _ *time.Time) { s.Index = 2 },
		"of the server is not signed by its bench":   func(s *identity.Statement, _ *time.Time) { s.Role = identity.Server },
		"device 1 is not signed by its bench":        func(s *identity.Statement, _ *time.Time) { s.Nkey = other.Nkey },
		"enrolment of device 1 is not signed by its": func(s *identity.Statement, _ *time.Time) { s.Expires = s.Expires.Add(time.Second) },
		"of another bench":                           func(s *identity.Statement, _ *time.Time) { *s = other.Statement },
		"device 1 is not signed":                     func(s *identity.Statement, _ *time.Time) { *s = other.Statement; s.Bench = id.Bench },
		"expired at":                                 func(s *identity.Statement, now *time.Time) { *now = s.Expires },
		"24h0m0s before: set the clock":              func(s *identity.Statement, now *time.Time) { *now = s.NotBefore.Add(-24 * time.Hour) },
	} {
		statement, at := id.Statement, now
		s(&statement, &at)
		if err := statement.Check(id.Bench, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// Whatever is wrong with a file is one sentence with the file, the key, the value if it is
// not secret, and what is allowed.
func TestLoadRefuses(t *testing.T) {
	f := enrol(t, 2)
	path := f.IdentityPath(identity.Device, 1)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(enrol(t, 2).IdentityPath(identity.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	line := func(text []byte, key string) string {
		for l := range strings.Lines(string(text)) {
			if strings.HasPrefix(l, key+" = ") {
				return l
			}
		}
		t.Fatalf("no key %s", key)
		return ""
	}
	for _, c := range []struct{ key, with, want string }{
		{"version", "version = 2", "version is 2; allowed is 1"},
		{"version", "", "there is no key version; allowed is 1"},
		{"role", `role = "king"`, `role is "king"; allowed is server, air, observer, device, sweep or worker`},
		{"role", `role = "server"`, "index is 1; allowed is 0"},
		{"role", `role = 7`, "role is the number 7; allowed is server, air"},
		{"role", "", "there is no key role; allowed is server, air"},
		{"index", "index = 2", "statement does not fit: the enrolment of device 2 is not signed"},
		{"index", "index = 3", "index is 3; allowed is a whole number from 1 to 2"},
		{"index", "index = -1", "index is -1; allowed is a whole number from 1 to 2"},
		{"index", "index = 1.5", "index is the number 1.5; allowed is a whole number from 1 to 2"},
		{"devices", "devices = 0", "devices is 0; allowed is a whole number from 1 to 10000"},
		{"url", `url = "http://x"`, `url is "http://x"; allowed is tls://host:port`},
		{"url", `url = "nats://x:4222"`, "allowed is tls://host:port"},
		{"url", `url = "tls://x"`, "allowed is tls://host:port"},
		{"url", `url = "tls://x:0"`, "allowed is tls://host:port"},
		{"url", `url = "tls://a:b@x:1"`, "allowed is tls://host:port"},
		{"url", `url = "tls://1.2.3:4222"`, "allowed is tls://host:port"},
		{"seed", `seed = "SUAX"`, "seed is something else (it is secret, and not shown); allowed is the seed of an nkey, 58 letters"},
		{"seed", `seed = 3`, "seed is the number 3; allowed is the seed"},
		{"seed", line(other, "seed"), "statement does not fit"},
		{"bench", line(other, "bench"), "statement does not fit"},
		{"bench", `bench = "UAX"`, `bench is "UAX"; allowed is a public nkey, 56 letters and digits that begin with A`},
		{"server", `server = "x"`, `server is "x"; allowed is a public nkey, 56 letters and digits that begin with U`},
		{"secret", `secret = "00"`, "secret is something else (it is secret, and not shown); allowed is 64 hexadecimal digits"},
		{"secret", "", "there is no key secret; allowed is 64 hexadecimal digits"},
		{"statement", `statement = "00"`, "statement is something else"},
		{"expires", `expires = "soon"`, "expires is text in quotes; allowed is a time such as 2030-12-31T23:59:59Z"},
		{"expires", "expires = 2099-01-01T00:00:00Z", "statement does not fit"},
		{"not_before", "", "there is no key not_before; allowed is a time"},
		{"ca", "ca = 'x'\nold = \"\"\"", `unknown key "old"; the nearest known one is `},
		{"version", "version = 1\nversion = 1", "already been defined"},
		{"version", "version = 1\nrolle = 3", `unknown key "rolle"; the nearest known one is role`},
		{"version", "version = [[[[[[[1]]]]]]]", "the nesting"},
	} {
		text := strings.Replace(string(good), line(good, c.key), c.with+"\n", 1)
		refused(t, path, text, c.want)
	}
	before, _, _ := strings.Cut(string(good), "ca = ")
	_, after, _ := strings.Cut(string(good), "-----END CERTIFICATE-----\n\"\"\"\n")
	leaf, err := os.ReadFile(filepath.Join(f.Dir, "server.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(f.Dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"x":                                      "ca is no certificate in PEM; allowed is the text of ca.pem",
		"":                                       "ca is no certificate in PEM; allowed is the text of ca.pem",
		string(leaf):                             `ca is the certificate of "Ringwave bus", which is no authority`,
		string(ca) + string(ca):                  "ca has more than one certificate",
		strings.Replace(string(ca), "M", "N", 1): "ca cannot be understood",
	} {
		refused(t, path, before+"ca = '''\n"+text+"'''\n"+after, want)
	}
	if _, err := identity.Parse(path, good, time.Now()); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
	for want, at := range map[string]time.Duration{
		"not_before and expires: the enrolment of device 1 is valid from": -25 * time.Hour,
		"not_before and expires: the enrolment of device 1 expired at":    366 * 24 * time.Hour,
	} {
		if _, err := identity.Parse(path, good, time.Now().Add(at)); !sentence(err, path, want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

func refused(t *testing.T, path, text, want string) {
	t.Helper()
	if _, err := identity.Parse(path, []byte(text), time.Now()); !sentence(err, path, want) {
		t.Errorf("%v, not %q", err, want)
	}
}

// sentence reports whether an error is one line for the user, with the file and the text.
func sentence(err error, path, want string) bool {
	return err != nil && intake.IsUserError(err) && strings.HasPrefix(err.Error(), path+": ") && strings.Contains(err.Error(), want) && !strings.ContainsAny(err.Error(), "\r\n")
}

// Files that others may read, are none, or are too long, are not taken.
func TestLoadRefusesFiles(t *testing.T) {
	f := enrol(t, 1)
	path := f.IdentityPath(identity.Device, 1)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o622, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Load(path); !sentence(err, path, fmt.Sprintf("has the mode %04o, so that others than its owner may use it; allowed is 0600: run chmod 600 %s", mode, path)) {
			t.Error(err)
		}
	}
	if _, err := identity.Load(f.Dir); !sentence(err, f.Dir, "the identity is a folder; allowed is one of the files in it") {
		t.Error(err)
	}
	none := filepath.Join(f.Dir, "none")
	if _, err := identity.Load(none); !sentence(err, none, "no such file") {
		t.Error(err)
	}
	if err := os.WriteFile(none, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Load(none); !sentence(err, none, "allowed is at most 65536 bytes") {
		t.Error(err)
	}
}

// A folder that is there stays as it is, and options that are wrong make none.
func TestCreateRefuses(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "bench")
	for want, o := range map[string]identity.Options{
		"--devices is 0; allowed is 1 to 10000":               {},
		"--devices is 10001; allowed is 1 to 10000":           {Devices: 10001},
		`--url is "x"; allowed is tls://host:port`:            {Devices: 1, URL: "x"},
		`--host is "a b"; allowed is a host's name`:           {Devices: 1, Hosts: []string{"localhost", "a b"}},
		`--host is "*.org"; allowed is a host's name`:         {Devices: 1, Hosts: []string{"*.org"}},
		`--host is "a..b"; allowed is a host's name`:          {Devices: 1, Hosts: []string{"a..b"}},
		`--host is "1.2.3.256"; allowed is a host's name`:     {Devices: 1, Hosts: []string{"1.2.3.256"}},
		"--valid is 1s; allowed is 1m0s to 175200h0m0s":       {Devices: 1, Valid: time.Second},
		"--valid is -1s; allowed is 1m0s to 175200h0m0s":      {Devices: 1, Valid: -time.Second},
		"--valid is 175201h0m0s; allowed is 1m0s to 175200h0": {Devices: 1, Valid: 175201 * time.Hour},
	} {
		if _, err := identity.Create(dir, o); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if _, err := identity.Create(filepath.Join(parent, "none", "bench"), identity.Options{Devices: 1}); !intake.IsUserError(err) {
		t.Error(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Fatalf("%v is left, %v", left, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Create(dir, identity.Options{Devices: 1}); err == nil || !strings.Contains(err.Error(), dir+" is there already; allowed is") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Fatalf("%v is in the folder that was there, %v", left, err)
	}
}

// Devices that are added have the next indices and the same secret; those that are revoked
// are so for good, and are not in what a nats-server reads.
func TestAddAndRevoke(t *testing.T) {
	f := enrol(t, 2)
	before, err := os.ReadFile(f.IdentityPath(identity.Device, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(2, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke([]int{2, 4}); err != nil {
		t.Fatal(err)
	}
	first := f.Registry.Hosts[others+1].Revoked
	if err := f.Add(1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke([]int{2}); err != nil {
		t.Fatal(err)
	}
	again, err := identity.Open(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(again.Registry) != fmt.Sprint(f.Registry) {
		t.Errorf("the folder has\n%v, not\n%v", again.Registry, f.Registry)
	}
	if after, err := os.ReadFile(f.IdentityPath(identity.Device, 2)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("an identity was changed, %v", err)
	}
	id, server := load(t, f, identity.Device, 5), load(t, f, identity.Server, 0)
	if id.Index != 5 || id.Devices != 5 || !bytes.Equal(id.Secret(), server.Secret()) || time.Until(id.Expires) > time.Hour {
		t.Errorf("%+v", id)
	}
	var admitted []int
	for _, h := range again.Registry.Admitted(time.Now()) {
		admitted = append(admitted, h.Index)
	}
	if want := []int{0, 0, 0, 1, 3, 5}; !slices.Equal(admitted, want) || first.IsZero() || again.Registry.Hosts[others+1].Revoked != first {
		t.Errorf("admitted are %v, device 2 was revoked at %v", admitted, again.Registry.Hosts[others+1].Revoked)
	}
	if later := again.Registry.Admitted(time.Now().Add(2 * time.Hour)); len(later) != 5 {
		t.Errorf("%d are admitted when the last has expired", len(later))
	}
	conf, err := os.ReadFile(filepath.Join(f.Dir, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range again.Registry.Hosts {
		if in := strings.Contains(string(conf), h.Nkey); in != h.Revoked.IsZero() {
			t.Errorf("%s is in the configuration: %v", h, in)
		}
	}
}

const others = 3

// Who was revoked stays so from the first time on.
func TestRevokedOnce(t *testing.T) {
	f := enrol(t, 2)
	if err := f.Revoke([]int{2}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir, "enrolment.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "revoked = ")
	if err := os.WriteFile(path, []byte(before+"revoked = 2026-01-02T03:04:05Z\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke([]int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if at := f.Registry.Hosts[others+1].Revoked.Format(time.RFC3339); at != "2026-01-02T03:04:05Z" {
		t.Errorf("device 2 was revoked at %s", at)
	}
}

// What another has changed since a folder was opened is not undone.
func TestChangesOfOthers(t *testing.T) {
	f := enrol(t, 1)
	other, err := identity.Open(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{other.Add(1, 0), f.Add(1, 0), other.Revoke([]int{3})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if other.Registry.Devices() != 3 || other.Registry.AdmittedDevices(time.Now()) != 2 {
		t.Errorf("%d devices", other.Registry.Devices())
	}
}

// What cannot be added or revoked changes nothing.
func TestChangeRefuses(t *testing.T) {
	f := enrol(t, 2)
	registry := filepath.Join(f.Dir, "enrolment.toml")
	before, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"--revoke has 3; allowed are the devices of the bench, 1 to 2": f.Revoke([]int{1, 3}),
		"--revoke has 0; allowed":                                      f.Revoke([]int{0}),
		"--add is 0; allowed is 1 to 9998, as there are 2 devices":     f.Add(0, 0),
		"--add is 9999; allowed is 1 to 9998":                          f.Add(9999, 0),
		"--valid is 8761h0m0s; allowed is 1m0s to the 87":              f.Add(1, 8761*time.Hour),
	} {
		if err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	for _, name := range []string{"server.identity", "enrolment.key"} {
		path := filepath.Join(f.Dir, name)
		if err := os.Rename(path, path+"x"); err != nil {
			t.Fatal(err)
		}
		if err := f.Add(1, 0); !sentence(err, path, "no such file") {
			t.Error(err)
		}
		if err := os.Rename(path+"x", path); err != nil {
			t.Fatal(err)
		}
	}
	other, err := os.ReadFile(filepath.Join(enrol(t, 1).Dir, "enrolment.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, "enrolment.key"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(1, 0); !sentence(err, filepath.Join(f.Dir, "enrolment.key"), "the key is not that of the bench") {
		t.Error(err)
	}
	if after, err := os.ReadFile(registry); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the registry was changed, %v", err)
	}
}

// A registry in which something was changed, or that was put together from others', is not
// taken.
func TestRegistryRefuses(t *testing.T) {
	f := enrol(t, 2)
	path := filepath.Join(f.Dir, "enrolment.toml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hosts := strings.Split(string(good), "\n[[host]]\n")
	for want, text := range map[string]string{
		"[[host]] 4: role and index are those of device 2; allowed is device 1": strings.Join(append(slices.Clone(hosts[:4]), hosts[5], hosts[4]), "\n[[host]]\n"),
		"[[host]] 5: statement does not fit":                                    strings.Replace(string(good), "index = 2", "index = 1", 1),
		"there are 3 tables [[host]]; allowed are 4 to 10003":                   strings.Join(hosts[:4], "\n[[host]]\n"),
		"there is no key host":                                                  hosts[0],
		"host is the number 3; allowed is tables":                               hosts[0] + "host = 3\n",
		`[[host]] 5: unknown key "x"; the nearest known one is`:                 string(good) + "x = 1\n",
		"[[host]] 5: revoked is true; allowed is a time":                        string(good) + "revoked = true\n",
		`unknown key "x"`: "x = 1\n" + string(good),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Open(f.Dir); !sentence(err, path, want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if _, err := identity.Open(t.TempDir()); err == nil || !intake.IsUserError(err) {
		t.Error(err)
	}
}

// Many who change a folder at once all do, or are told that another does; what it then has
// fits together.
func TestChangesAtOnce(t *testing.T) {
	f := enrol(t, 1)
	var group sync.WaitGroup
	added := make(chan bool, 8)
	for range cap(added) {
		group.Go(func() {
			own, err := identity.Open(f.Dir)
			if err == nil {
				err = own.Add(1, 0)
			}
			if err != nil && !strings.Contains(err.Error(), "in use by another") {
				t.Error(err)
			}
			added <- err == nil
		})
	}
	group.Wait()
	close(added)
	want := 1
	for ok := range added {
		if ok {
			want++
		}
	}
	again, err := identity.Open(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if want < 2 || again.Registry.Devices() != want {
		t.Errorf("%d devices, not %d", again.Registry.Devices(), want)
	}
	for i := range want {
		id := load(t, again, identity.Device, i+1)
		if h, ok := again.Registry.Find(identity.Device, i+1); !ok || h.Nkey != id.Nkey {
			t.Errorf("device %d is another in the registry", i+1)
		}
	}
}

// What is taken is as it was enrolled, and what is not is one sentence.
func FuzzParse(f *testing.F) {
	bench := enrol(f, 2)
	var seeds [][]byte
	every(2, func(role identity.Role, index int) {
		data, err := os.ReadFile(bench.IdentityPath(role, index))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data)
		f.Add(data)
	})
	f.Add([]byte("version = 1"))
	now := time.Now()
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := identity.Parse("file", data, now)
		if err != nil {
			if !sentence(err, "file", "") {
				t.Fatalf("%q", err)
			}
			return
		}
		if err := id.Check(id.Bench, now); err != nil {
			t.Fatal(err)
		}
		if _, err := id.Sign("test", nil); err != nil {
			t.Fatal(err)
		}
		if (id.Secret() != nil) != (id.Role == identity.Server || id.Role == identity.Device) {
			t.Fatalf("%s has a secret of %d bytes", id, len(id.Secret()))
		}
	})
}
