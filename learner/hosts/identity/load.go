package identity

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/nats-io/nkeys"

	"ringwave/radio/intake"
)

// maxFile bounds an identity file, in bytes.
const maxFile = 1 << 16

// Load reads the identity file of this host, and refuses one that others may read, that
// is not as it was enrolled, or that does not hold now. The error is one sentence with the
// file, the key, its value and what is allowed; that of a secret is not shown.
func Load(path string) (Identity, error) {
	if err := private(path); err != nil {
		return Identity{}, err
	}
	data, err := intake.ReadFile(path, maxFile)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return Identity{}, failf("%s: the identity: %v", path, excess)
	}
	if err != nil {
		return Identity{}, failf("%s: the identity cannot be read: %v", path, bare(err))
	}
	defer clear(data)
	return Parse(path, data, time.Now())
}

// private refuses a file that others than its owner may read or write.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return failf("%s: the identity cannot be read: %v; allowed is a file that ringwave enroll has made", path, bare(err))
	}
	if info.IsDir() {
		return failf("%s: the identity is a folder; allowed is one of the files in it, such as device-001.identity", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return failf("%s: the identity has the mode %04o, so that others than its owner may use it; allowed is 0600: run chmod 600 %s", path, mode, path)
	}
	return nil
}

// Parse is Load of what was read already, at a time; name stands for the file in errors.
func Parse(name string, data []byte, now time.Time) (Identity, error) {
	id, err := parse(string(data), now)
	if err != nil {
		id.Wipe()
		return Identity{}, failf("%s: %v", name, err)
	}
	id.Path = name
	return id, nil
}

func parse(text string, now time.Time) (id Identity, err error) {
	t, err := readTable(text)
	if err != nil {
		return id, err
	}
	least, most := 1, MaxDevices
	if role := t.values["role"]; role == string(Sweep) || role == string(Worker) {
		least, most = 0, 0
	}
	id.Devices = t.whole("devices", least, most)
	id.URL = t.url()
	id.Server = t.nkey("server", "U", nkeys.IsValidPublicUserKey)
	bench := t.nkey("bench", "A", nkeys.IsValidPublicAccountKey)
	id.keys = &keys{}
	id.Statement = t.statement(bench, t.seed(id.keys), id.Devices)
	if id.Role.hasSecret() {
		id.keys.secret = t.decoded("secret", "64 hexadecimal digits", SecretSize)
	}
	id.CA = []byte(t.text("ca", "the certificate of an authority, PEM", func(string) bool { return true }))
	if err := t.end(); err != nil {
		return id, err
	}
	if id.Role == Server && id.Server != id.Nkey {
		return id, fmt.Errorf("server is %q, and the key of seed is %q; allowed is the same for the server", id.Server, id.Nkey)
	}
	if err := id.Statement.holds(now, "this host's clock"); err != nil {
		return id, fmt.Errorf("not_before and expires: %w", err)
	}
	return id, checkCA(id.CA, now)
}

// seed takes that of the host's nkey into k, and returns the public nkey, which is never
// empty.
func (t *table) seed(k *keys) (public string) {
	public = "none"
	text := t.hidden("seed", "the seed of an nkey, 58 letters and digits that begin with SU", func(s string) bool {
		pair, err := nkeys.FromSeed([]byte(s))
		if err != nil {
			return false
		}
		defer pair.Wipe()
		found, err := pair.PublicKey()
		if err != nil || !nkeys.IsValidPublicUserKey(found) {
			return false
		}
		public = found
		return true
	})
	k.seed = []byte(text)
	return public
}

// decoded returns so many bytes of hexadecimal digits.
func (t *table) decoded(key, allowed string, size int) (value []byte) {
	t.hidden(key, allowed, func(s string) bool {
		var err error
		value, err = hex.DecodeString(s)
		return err == nil && len(value) == size
	})
	return value
}

// url returns that of the bus.
func (t *table) url() string {
	value := t.text("url", "tls://host:port", func(string) bool { return true })
	if t.err == nil {
		if err := CheckURL(value); err != nil {
			t.fail("url is %v", err)
		}
	}
	return value
}

// checkCA refuses what is not the one certificate of an authority that holds now.
func checkCA(text []byte, now time.Time) error {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("ca is no certificate in PEM; allowed is the text of ca.pem")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return errors.New("ca has more than one certificate; allowed is the one of ca.pem")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("ca cannot be understood (%v); allowed is the text of ca.pem", err)
	}
	if !cert.IsCA {
		return fmt.Errorf("ca is the certificate of %s, which is no authority; allowed is the text of ca.pem", strconv.Quote(cert.Subject.CommonName))
	}
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return fmt.Errorf("ca is valid from %s to %s, and this host's clock says %s; allowed is a time between: set the clock, or enrol again",
			cert.NotBefore.UTC().Format(time.RFC3339), cert.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}
