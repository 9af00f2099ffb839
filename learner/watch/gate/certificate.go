package gate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

// lifetime is how long a certificate lasts that is made for one program's life.
const lifetime = 90 * 24 * time.Hour

// certify reads the certificate of two files, or makes one.
func (g *Gate) certify(host, cert, key string) (err error) {
	if (cert == "") != (key == "") {
		return errors.New("--watch-cert and --watch-key go together: give both or none")
	}
	names, addresses := ownNames(host)
	g.names = append(g.names, names...)
	var made tls.Certificate
	if cert == "" {
		made, err = selfSigned(append(names, g.names...), addresses)
	} else if made, err = tls.LoadX509KeyPair(cert, key); err != nil {
		return fmt.Errorf("--watch-cert %s, --watch-key %s: %w", cert, key, err)
	}
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(made.Certificate[0])
	if err != nil {
		return fmt.Errorf("--watch-cert %s: %w", cert, err)
	}
	g.names = append(g.names, leaf.DNSNames...)
	g.certificate = &made
	if cert == "" {
		sum := sha256.Sum256(leaf.Raw)
		parts := make([]string, len(sum))
		for k, b := range sum {
			parts[k] = fmt.Sprintf("%02X", b)
		}
		g.fingerprint = strings.Join(parts, ":")
	}
	return nil
}

// ownNames returns what this machine is called, and its addresses where it listens on all.
func ownNames(host string) (names []string, addresses []net.IP) {
	names = []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		names = append(names, strings.ToLower(name))
	}
	ip := net.ParseIP(host)
	if !ip.IsUnspecified() {
		return names, []net.IP{ip}
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return names, nil // a browser asks about names only then
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			addresses = append(addresses, n.IP)
		}
	}
	return names, addresses
}

// selfSigned makes a certificate for names and addresses.
func selfSigned(names []string, addresses []net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "ringwave --watch"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: names, IPAddresses: addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
