package identity

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"ringwave/radio/intake"
)

// maxRegistry bounds a registry, in bytes: of MaxDevices devices.
const maxRegistry = 1 << 23

// Registry is the hosts of a bench, which is public.
type Registry struct {
	Bench   string // the public nkey that signs enrolments
	URL     string // of the bus
	Expires time.Time
	Hosts   []Enrolled // the server, the air, the observer and the devices by index
}

// Enrolled is a host of a registry.
type Enrolled struct {
	Statement
	Revoked time.Time // zero where it was not
}

// Admitted returns the hosts that may connect at a time.
func (r Registry) Admitted(now time.Time) (list []Enrolled) {
	for _, h := range r.Hosts {
		if h.Revoked.IsZero() && h.holds(now, "") == nil {
			list = append(list, h)
		}
	}
	return list
}

// Unready says of the devices 1 to count that may not connect at a time why: one that was
// revoked, has expired or is not valid yet.
func (r Registry) Unready(count int, now time.Time) (why []string) {
	for _, h := range r.Hosts[others:min(others+count, len(r.Hosts))] {
		if !h.Revoked.IsZero() {
			why = append(why, fmt.Sprintf("the identity of %s was revoked at %s", h, stamp(h.Revoked)))
		} else if err := h.holds(now, "this host's clock"); err != nil {
			why = append(why, err.Error())
		}
	}
	return why
}

// Devices returns how many were enrolled, revoked ones included.
func (r Registry) Devices() int { return max(0, len(r.Hosts)-others) }

// Sweeps reports whether it is one of sweeps and their workers, which has no devices.
func (r Registry) Sweeps() bool { return len(r.Hosts) > 0 && r.Hosts[0].Role == Sweep }

// AdmittedDevices returns how many devices may connect at a time.
func (r Registry) AdmittedDevices(now time.Time) (count int) {
	for _, h := range r.Admitted(now) {
		if h.Role == Device {
			count++
		}
	}
	return count
}

// others is the number of hosts that are no devices.
const others = 3 // of a bench: len(rolesOf(false))

// Find returns the host of that role and index.
func (r Registry) Find(role Role, index int) (Enrolled, bool) {
	for _, h := range r.Hosts {
		if h.Role == role && h.Index == index {
			return h, true
		}
	}
	return Enrolled{}, false
}

// readRegistry reads and checks one, signatures included.
func readRegistry(path string) (Registry, error) {
	data, err := intake.ReadFile(path, maxRegistry)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return Registry{}, failf("%s: the registry: %v", path, excess)
	}
	if err != nil {
		return Registry{}, failf("%s: the registry cannot be read: %v; allowed is that of a folder that ringwave enroll has made", path, bare(err))
	}
	r, err := parseRegistry(string(data))
	if err != nil {
		return Registry{}, failf("%s: %v", path, err)
	}
	return r, nil
}

func parseRegistry(text string) (r Registry, err error) {
	t, err := readTable(text)
	if err != nil {
		return r, err
	}
	r.Bench = t.nkey("bench", "A", nkeys.IsValidPublicAccountKey)
	r.URL = t.url()
	r.Expires = t.when("expires")
	hosts, _ := take[[]map[string]any](t, "host", "tables [[host]], one a host")
	if err := t.end(); err != nil {
		return r, err
	}
	sweeps := len(hosts) == len(rolesOf(true)) && hosts[0]["role"] == string(Sweep)
	if !sweeps && (len(hosts) <= others || len(hosts) > others+MaxDevices) {
		return r, fmt.Errorf("there are %d tables [[host]]; allowed are %d to %d", len(hosts), others+1, others+MaxDevices)
	}
	for i, values := range hosts {
		h, err := readEnrolled(values, r.Bench, i, sweeps)
		if err != nil {
			return r, fmt.Errorf("[[host]] %d: %w", i+1, err)
		}
		r.Hosts = append(r.Hosts, h)
	}
	return r, nil
}

// readEnrolled reads the host at a place of the list, which says its role and index.
func readEnrolled(values map[string]any, bench string, at int, sweeps bool) (h Enrolled, err error) {
	t := &table{values: values}
	if _, given := values["revoked"]; given {
		h.Revoked = t.when("revoked")
	}
	h.Statement = t.statement(bench, "", MaxDevices)
	if err := t.end(); err != nil {
		return h, err
	}
	role, index := place(at, sweeps)
	if h.Role != role || h.Index != index {
		return h, fmt.Errorf("role and index are those of %s; allowed is %s here", h, Statement{Role: role, Index: index})
	}
	return h, nil
}

// rolesOf returns the roles that are no devices, in the order of the list of hosts: of a
// bench, or of sweeps and their workers.
func rolesOf(sweeps bool) []Role {
	if sweeps {
		return []Role{Sweep, Worker}
	}
	return []Role{Server, Air, Observer}
}

// place returns the role and the index of a place in the list of hosts.
func place(at int, sweeps bool) (Role, int) {
	if roles := rolesOf(sweeps); at < len(roles) {
		return roles[at], 0
	}
	return Device, at - others + 1
}

// text is the registry as its file has it.
func (r Registry) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The hosts of a bench, which ringwave enroll has written. Nothing here is secret.\n\n")
	fmt.Fprintf(&b, "version = %d\nbench = %q\nurl = %q\nexpires = %s\n", version, r.Bench, r.URL, stamp(r.Expires))
	for _, h := range r.Hosts {
		fmt.Fprintf(&b, "\n[[host]]\nnkey = %q\n%s", h.Nkey, h.Statement.toml())
		if !h.Revoked.IsZero() {
			fmt.Fprintf(&b, "revoked = %s\n", stamp(h.Revoked))
		}
	}
	return b.String()
}

// toml is what identities and registries have in common.
func (s Statement) toml() string {
	return fmt.Sprintf("role = %q\nindex = %d\nnot_before = %s\nexpires = %s\nstatement = %q\n",
		s.Role, s.Index, stamp(s.NotBefore), stamp(s.Expires), hex.EncodeToString(s.Signature))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// conf is the configuration of a nats-server that is not ours, of version 2.9 or later.
func (r Registry) conf(now time.Time) string {
	var b strings.Builder
	port := r.URL[strings.LastIndexByte(r.URL, ':')+1:]
	store := ""
	if r.Sweeps() {
		store = "jetstream {\n  store_dir: \"jetstream\"\n}\n"
	}
	fmt.Fprintf(&b, `# Written by ringwave enroll, which writes it again when devices are added or revoked.
# The names of files are relative: start nats-server in this folder.
port: %s
max_payload: %d
ping_interval: "%ds"
tls {
  cert_file: %q
  key_file: %q
  # Suites of TLS 1.3 and no others, so that there is no other version: min_version is
  # not known to nats-server before 2.11.
  cipher_suites: ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
  timeout: %d
}
%sauthorization {
  timeout: %d
  users: [
`, port, MaxPayload, PingSeconds, serverCert, serverKey, HandshakeSeconds, store, HandshakeSeconds+2)
	for _, h := range r.Admitted(now) {
		p := Permissions(h.Role, h.Index)
		fmt.Fprintf(&b, "    # %s\n    { nkey: %s, permissions: { publish: [%s], subscribe: [%s] } }\n", h, h.Nkey, quoted(p.Publish), quoted(p.Subscribe))
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }

// What both kinds of server are told.
const (
	// MaxPayload is the longest payload, in bytes; it is NATS' own default, so that other
	// servers have it too.
	MaxPayload = 1 << 20
	// HandshakeSeconds is how long a host may take to connect: a thousand may do so at once.
	HandshakeSeconds = 20
	// PingSeconds is how often a silent host is asked whether it is there.
	PingSeconds = 20
)
