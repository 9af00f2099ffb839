package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// authority certifies the bus of one bench and nothing else.
type authority struct {
	cert *x509.Certificate
	pem  []byte
	key  *ecdsa.PrivateKey
}

func newAuthority(bench string, from, until time.Time) (a authority, err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return a, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Ringwave bench " + bench[:8]},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	if a.cert, a.pem, err = certify(template, template, &a.key.PublicKey, a.key, from, until); err != nil {
		return a, err
	}
	return a, nil
}

// server returns the certificate of the bus under these names, and its key, both PEM.
func (a authority) server(hosts []string) (cert, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "Ringwave bus"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if _, cert, err = certify(template, a.cert, &own.PublicKey, a.key, a.cert.NotBefore, a.cert.NotAfter); err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(own)
	return cert, key, err
}

// certify signs a certificate, and returns it with its PEM.
func certify(template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey, from, until time.Time) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, from, until
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// hostName is a name of DNS or of a local network. The last word has a letter, unlike that
// of an address that is none.
var hostName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*$`)

// CheckHost says why a text is neither a host's name nor an address, in words that follow
// it.
func CheckHost(text string) error {
	if net.ParseIP(text) == nil && (len(text) > 253 || !hostName.MatchString(text)) {
		return fmt.Errorf("%q; allowed is a host's name such as bench.example.org, or an IP address", text)
	}
	return nil
}

// portOf returns the port that a URL has.
func portOf(u *url.URL) (int, error) {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0, errors.New("no port")
	}
	return int(port), nil
}
