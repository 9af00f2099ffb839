package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	"github.com/nats-io/nkeys"

	"ringwave/crypto/secret"
)

// SecretSize is the length of the secret of patterns and linear checks, in bytes.
const SecretSize = 32

// Identity is what a host is, and what it proves that with. Copies share the keys.
type Identity struct {
	Statement
	Path    string // of the file
	Devices int    // of the bench when the file was written; more may have been added since
	URL     string // of the bus
	Server  string // the public nkey of the server, which signs what it broadcasts
	CA      []byte // the certificate of the bench's authority, PEM
	keys    *keys  // behind a pointer, so that to print an identity prints no secret
}

// keys are what nobody else may have.
type keys struct {
	seed   []byte // of the nkey, as nkeys writes it
	secret []byte // nil where the role has none
}

// Signatures are over a prefix and the message: a bus may have a host sign what it likes
// when the host connects, and must not get what counts as one of another kind.
const prefix = "ringwave "

// Sign signs a message for a purpose, as "broadcast", that Verify must be told, too.
func (id Identity) Sign(purpose string, message []byte) ([]byte, error) {
	return id.sign(purposed(purpose, message))
}

// Verify says why a signature is not that of the public nkey for this purpose.
func Verify(nkey, purpose string, message, signature []byte) error {
	if err := verify(nkey, purposed(purpose, message), signature); err != nil {
		return fmt.Errorf("the signature of a %s is not that of %.8s…: %w", purpose, nkey, err)
	}
	return nil
}

// purposed returns what is signed of a message: its digest, for messages are long and a
// signature reads twice what it is of.
func purposed(purpose string, message []byte) []byte {
	digest := sha256.Sum256(message)
	return append([]byte(prefix+purpose+"\x00"), digest[:]...)
}

// SignNonce signs what a bus asks for when the host connects, unless it could be taken for
// something else.
func (id Identity) SignNonce(nonce []byte) ([]byte, error) {
	if bytes.HasPrefix(nonce, []byte(prefix)) {
		return nil, fmt.Errorf("the bus wants %s to sign a message of Ringwave's, which no bus has a use for", id)
	}
	return id.sign(nonce)
}

func (id Identity) sign(text []byte) (signature []byte, err error) {
	if id.keys == nil || len(id.keys.seed) == 0 {
		return nil, fmt.Errorf("signing as %s: there is no key, or it has been overwritten", id)
	}
	secret.Do(func() {
		var pair nkeys.KeyPair
		if pair, err = nkeys.FromSeed(id.keys.seed); err != nil {
			return
		}
		defer pair.Wipe()
		signature, err = pair.Sign(text)
	})
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", id, err)
	}
	return signature, nil
}

// Secret returns the secret of patterns and linear checks, nil where the role has none.
// It is not a copy: Wipe overwrites it.
func (id Identity) Secret() []byte {
	if id.keys == nil {
		return nil
	}
	return id.keys.secret
}

// Roots returns the bench's own authority, which certifies its bus, and no other.
func (id Identity) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(id.CA) // which was checked when it was read
	return pool
}

// Wipe overwrites the keys. The identity can no longer sign, and neither can its copies.
func (id Identity) Wipe() {
	if id.keys == nil {
		return
	}
	clear(id.keys.seed)
	clear(id.keys.secret)
	id.keys.seed, id.keys.secret = nil, nil
}

// hasSecret reports whether a role has the secret of patterns and linear checks.
func (r Role) hasSecret() bool { return r == Server || r == Device }
