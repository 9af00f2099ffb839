package bus_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// portOf waits for the file in which a nats-server says where it listens.
func portOf(t *testing.T, dir string, log fmt.Stringer) string {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		list, err := filepath.Glob(filepath.Join(dir, "*.ports"))
		if err != nil {
			t.Fatal(err)
		}
		var ports struct{ Nats []string }
		if len(list) == 1 {
			text, err := os.ReadFile(list[0])
			if err == nil && json.Unmarshal(text, &ports) == nil && len(ports.Nats) > 0 {
				return ports.Nats[0]
			}
		}
		<-time.After(10 * time.Millisecond) // between two looks
	}
	t.Fatalf("nats-server does not say where it listens:\n%s", log)
	return ""
}

// refuses12 has a client of TLS that is not ours offer 1.2, and 1.3.
func refuses12(t *testing.T, url string) {
	t.Helper()
	for version, want := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "tls://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		info := make([]byte, 1<<14)
		if n, err := c.Read(info); err != nil || !strings.Contains(string(info[:n]), `"tls_required":true`) {
			t.Fatalf("%.300s, %v", info, err)
		}
		client := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: version})
		if err := client.Handshake(); (err == nil) != want {
			t.Errorf("%s: TLS %x: %v", url, version, err)
		}
	}
}

// Whoever offers TLS 1.2 is refused, by both kinds of server.
func TestTLS13Only(t *testing.T) {
	b := bustest.New(t, 1, "127.0.0.1:0")
	refuses12(t, b.Server.URL())
	refuses12(t, foreign(t, b.Folder))
}

// Others than Go hold the certificate for one of its authority, for all of its names.
func TestCertificates(t *testing.T) {
	f, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{Devices: 1, URL: "tls://bench.example.org:4222", Hosts: []string{"localhost", "10.1.2.3", "::1"}})
	if err != nil {
		t.Fatal(err)
	}
	ca, cert := filepath.Join(f.Dir, "ca.pem"), filepath.Join(f.Dir, "server.pem")
	id, err := identity.Load(f.IdentityPath(identity.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"localhost", "10.1.2.3", "::1", "bench.example.org"}
	for _, name := range append(slices.Clone(names), "other.example.org", "10.1.2.4") {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: id.Roots(), DNSName: name}); (err == nil) != slices.Contains(names, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl here")
	}
	for name, want := range map[string]bool{"bench.example.org": true, "localhost": true, "other.example.org": false} {
		out, err := exec.Command(openssl, "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca, "-verify_hostname", name, cert).CombinedOutput()
		if (err == nil) != want {
			t.Errorf("openssl: %s: %v: %s", name, err, out)
		}
	}
	if out, err := exec.Command(openssl, "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca, "-verify_ip", "10.1.2.3", cert).CombinedOutput(); err != nil {
		t.Errorf("openssl: %v: %s", err, out)
	}
}

// refusedSentence says what is wrong with an error of Dial.
func refusedSentence(t *testing.T, err error, path, url, want string) {
	t.Helper()
	if err == nil || !intake.IsUserError(err) || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), url) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("%v, not %q", err, want)
	}
}

// Each way in which there is no connection is one sentence with the identity's file and the
// URL.
func TestDialRefuses(t *testing.T) {
	b, other := bustest.New(t, 2, "127.0.0.1:0"), bustest.New(t, 2, "127.0.0.1:0")
	id := b.Identity(identity.Device, 1)
	dial := func(id identity.Identity, url string) error {
		t.Helper()
		c, err := bus.Dial(t.Context(), id, url, bus.Options{})
		if err == nil {
			c.Close()
		}
		return err
	}
	refusedSentence(t, dial(id, other.Server.URL()), id.Path, other.Server.URL(), "its certificate is not of this bench's authority")
	// Who trusts the other bench, and has no enrolment there.
	stranger := id
	stranger.CA = other.Identity(identity.Device, 1).CA
	refusedSentence(t, dial(stranger, other.Server.URL()), id.Path, other.Server.URL(), "the bus does not admit device 1: it was revoked, has expired, or is of another bench")
	free := freePort(t)
	refusedSentence(t, dial(id, "tls://127.0.0.1:"+free), id.Path, "127.0.0.1:"+free, "nobody listens there")
	refusedSentence(t, dial(id, "tls://nobody.invalid:4222"), id.Path, "nobody.invalid", `there is no host of the name "nobody.invalid"`)
	refusedSentence(t, dial(id, "http://x"), id.Path, "http://x", "allowed is tls://host:port")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.Server.URL(), "tls://"))
	refusedSentence(t, dial(id, "tls://127.0.0.2:"+port), id.Path, "127.0.0.2", "")
	if err := b.Folder.Revoke([]int{1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Server.Reload(); err != nil {
		t.Fatal(err)
	}
	refusedSentence(t, dial(id, b.Server.URL()), id.Path, b.Server.URL(), "the bus does not admit device 1")
	if err := dial(b.Identity(identity.Device, 2), b.Server.URL()); err != nil {
		t.Error(err)
	}
}

// A bus that anybody may use, or that is none, is refused.
func TestDialRefusesOtherServers(t *testing.T) {
	b := bustest.New(t, 1, "")
	id := b.Identity(identity.Server, 0)
	for want, change := range map[string]func(o *server.Options){
		"it wants no TLS or no identity": func(o *server.Options) { o.TLS, o.TLSConfig = false, nil },
		"it has no TLS 1.3": func(o *server.Options) {
			o.TLSConfig.MaxVersion, o.TLSConfig.MinVersion = tls.VersionTLS12, tls.VersionTLS12
			o.TLSConfig.CipherSuites = nil
		},
		"it lets everybody hear everything": func(o *server.Options) {
			for _, n := range o.Nkeys {
				n.Permissions = nil
			}
		},
		"its max_payload is 1000; allowed is": func(o *server.Options) { o.MaxPayload = 1000 },
	} {
		url := changed(t, b.Folder, change)
		_, err := bus.Dial(t.Context(), id, url, bus.Options{})
		refusedSentence(t, err, id.Path, url, want)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "SSH-2.0-x\r\n")
			c.Close()
		}
	}()
	url := "tls://" + l.Addr().String()
	_, err = bus.Dial(t.Context(), id, url, bus.Options{})
	refusedSentence(t, err, id.Path, url, "")
}

// changed runs a server with the folder's configuration, but for a change.
func changed(t *testing.T, f *identity.Folder, change func(o *server.Options)) string {
	t.Helper()
	t.Chdir(f.Dir)
	o, err := server.ProcessConfigFile("nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(deadline) {
		t.Fatal("the server is not ready")
	}
	return "tls://" + s.Addr().String()
}

// freePort returns a port at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// What cannot listen says so.
func TestEmbedRefuses(t *testing.T) {
	b := bustest.New(t, 1, "127.0.0.1:0")
	taken := strings.TrimPrefix(b.Server.URL(), "tls://")
	for address, want := range map[string]string{
		taken:               "the bus cannot listen at " + taken + ": bind: address already in use; allowed is an address of this host with a port that no other program has",
		"4222":              `the address of the bus is "4222"; allowed is host:port`,
		"localhost:70000":   `the address of the bus is "localhost:70000"; allowed is host:port`,
		"192.0.2.1:4222":    "the bus cannot listen at 192.0.2.1:4222: bind: cannot assign requested address",
		"nobody.invalid:42": "the bus cannot listen at nobody.invalid:42: lookup nobody.invalid",
	} {
		_, err := bus.Embed(t.Context(), bus.ServerOptions{Folder: b.Folder, Address: address})
		if err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if err := os.Remove(filepath.Join(b.Folder.Dir, "server.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Embed(t.Context(), bus.ServerOptions{Folder: b.Folder}); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "server.key") {
		t.Error(err)
	}
}

// Who is revoked is disconnected at once and told so, for good; the others are not, and who
// was added may connect.
func TestRevoked(t *testing.T) {
	b := bustest.New(t, 2, "127.0.0.1:0")
	ended, troubled := make(chan error, 1), make(chan error, 10)
	first := b.DialURL(identity.Device, 1, b.Server.URL(), bus.Options{Ended: func(err error) { ended <- err }})
	second := b.DialURL(identity.Device, 2, b.Server.URL(), bus.Options{Lost: func(err error) { troubled <- err }, Ended: func(err error) { troubled <- err }})
	if err := b.Folder.Revoke([]int{1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.Add(1, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Server.Reload(); err != nil {
		t.Fatal(err)
	}
	id := b.Identity(identity.Device, 1)
	refusedSentence(t, wait(t, ended, "the end of the connection"), id.Path, b.Server.URL(), "the bus does not admit device 1")
	if err := first.Publish("rw.r.device.1.x", nil); !errors.Is(err, bus.ErrClosed) {
		t.Error(err)
	}
	got := subscribe(t, b.DialURL(identity.Server, 0, b.Server.URL(), bus.Options{}), "rw.r.device.>")
	for index, c := range map[int]bus.Conn{2: second, 3: b.DialURL(identity.Device, 3, b.Server.URL(), bus.Options{})} {
		if err := c.Publish(fmt.Sprintf("rw.r.device.%d.x", index), nil); err != nil {
			t.Fatal(err)
		}
		if m := got.next(t); m.Subject != fmt.Sprintf("rw.r.device.%d.x", index) {
			t.Errorf("%s", m.Subject)
		}
	}
	if len(troubled) > 0 {
		t.Error(<-troubled)
	}
}

// What another process changes in the folder is taken in without a word, and a registry that
// is broken is said so and changes nothing.
func TestWatched(t *testing.T) {
	b := bustest.New(t, 2, "")
	log := make(chan string, 100)
	s, err := bus.Embed(t.Context(), bus.ServerOptions{Folder: b.Folder, Log: func(line string) { log <- line }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := make(chan error, 1)
	b.Dial(identity.Device, 1, bus.Options{InProcess: s, Ended: func(err error) { ended <- err }})
	second := b.Dial(identity.Device, 2, bus.Options{InProcess: s})
	path := filepath.Join(b.Folder.Dir, "enrolment.toml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("version = 7"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line := ""; !strings.Contains(line, path+": version is 7; allowed is 1"); {
		line = wait(t, log, "word of the broken registry")
	}
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	other, err := identity.Open(b.Folder.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Revoke([]int{1}); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, ended, "the end of the connection"); !strings.Contains(err.Error(), "the bus does not admit device 1") {
		t.Error(err)
	}
	if err := second.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	id := b.Identity(identity.Device, 1)
	_, err = bus.Dial(t.Context(), id, "", bus.Options{InProcess: s})
	refusedSentence(t, err, id.Path, "in this program", "the bus does not admit device 1")
}

// A connection outlasts a restart of its server, with its subscriptions.
func TestRestart(t *testing.T) {
	b := bustest.New(t, 1, "127.0.0.1:0")
	address := strings.TrimPrefix(b.Server.URL(), "tls://")
	lost, connected := make(chan error, 100), make(chan bool, 100)
	device := b.DialURL(identity.Device, 1, b.Server.URL(), bus.Options{Lost: func(err error) { lost <- err }, Connected: func() { connected <- true }})
	got := subscribe(t, device, "rw.r.server.all.>")
	b.Server.Close()
	refusedSentence(t, wait(t, lost, "the loss"), b.Identity(identity.Device, 1).Path, b.Server.URL(), "")
	if err := device.Publish("rw.r.device.1.x", nil); !errors.Is(err, bus.ErrLost) {
		t.Errorf("while it is lost: %v", err)
	}
	if err := device.Flush(t.Context()); !errors.Is(err, bus.ErrLost) {
		t.Errorf("while it is lost: %v", err)
	}
	b.Start(address)
	wait(t, connected, "the connection")
	if err := device.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.DialURL(identity.Server, 0, b.Server.URL(), bus.Options{}).Publish("rw.r.server.all.x", []byte("again")); err != nil {
		t.Fatal(err)
	}
	if m := got.next(t); string(m.Payload) != "again" {
		t.Errorf("%q", m.Payload)
	}
}

// Who dials before there is a server waits for it, for so long as was asked.
func TestPatience(t *testing.T) {
	b := bustest.New(t, 1, "")
	id, port := b.Identity(identity.Device, 1), freePort(t)
	waiting := make(chan error, 10)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	go func() {
		c, err := bus.Dial(ctx, id, "tls://127.0.0.1:"+port, bus.Options{Patience: time.Hour, Waiting: func(err error) { waiting <- err }})
		if err == nil {
			err = c.Close()
		}
		done <- err
	}()
	refusedSentence(t, wait(t, waiting, "word of waiting"), id.Path, port, "nobody listens there")
	b.Start("127.0.0.1:" + port)
	if err := wait(t, done, "the connection"); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	go func() {
		_, err := bus.Dial(ended, id, "tls://127.0.0.1:"+freePort(t), bus.Options{Patience: time.Hour, Waiting: func(err error) { cancel() }})
		done <- err
	}()
	if err := wait(t, done, "the end"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An identity that expires while it is connected is disconnected then.
func TestExpires(t *testing.T) {
	if testing.Short() || os.Getenv("RINGWAVE_LONG") == "" {
		t.Skip("it takes a minute; RINGWAVE_LONG=1 runs it")
	}
	b := bustest.New(t, 1, "127.0.0.1:0")
	if err := b.Folder.Add(1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := b.Server.Reload(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	b.DialURL(identity.Device, 2, b.Server.URL(), bus.Options{Ended: func(err error) { ended <- err }})
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "the bus does not admit device 2") {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it is still connected")
	}
}

// What is subscribed while the connection is lost for a moment is heard when it is back.
func TestSubscribeWhileLost(t *testing.T) {
	b := bustest.New(t, 1, "127.0.0.1:0")
	proxy := bustest.NewProxy(t, b.Server.URL())
	lost := make(chan error, 100)
	device := b.DialURL(identity.Device, 1, proxy.URL(), bus.Options{Lost: func(err error) { lost <- err }})
	proxy.Refuse(true)
	proxy.Cut()
	wait(t, lost, "the loss")
	time.AfterFunc(200*time.Millisecond, func() { proxy.Refuse(false) })
	got := subscribe(t, device, "rw.r.server.all.>")
	if err := b.Dial(identity.Server, 0, bus.Options{}).Publish("rw.r.server.all.x", []byte("here")); err != nil {
		t.Fatal(err)
	}
	if m := got.next(t); string(m.Payload) != "here" {
		t.Errorf("%q", m.Payload)
	}
}
