package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// ServerOptions say what Embed runs.
type ServerOptions struct {
	Folder  *identity.Folder
	Address string       // host:port to listen at; empty for connections within the program only
	Store   string       // folder of its work queue (JetStream); empty for a bus without one
	Log     func(string) // is told the warnings and errors of the server
}

// Server is a nats-server in this program, without a monitor.
type Server struct {
	nats    *server.Server
	options ServerOptions
	host    string
	port    int
	log     *logger

	mu     sync.Mutex // of reloads
	closed bool
	timer  *time.Timer // fires when the next identity expires
	read   time.Time   // when the registry that holds was written
	done   chan struct{}
}

// Embed runs a server until Close, or until ctx ends. It admits the hosts of the folder's
// registry that are neither revoked nor expired, and takes in changes of the registry.
func Embed(ctx context.Context, o ServerOptions) (*Server, error) {
	s := &Server{options: o, log: &logger{tell: o.Log}, done: make(chan struct{})}
	if err := s.listenable(); err != nil {
		return nil, err
	}
	if err := s.readFolder(); err != nil {
		return nil, err
	}
	options, err := s.natsOptions(time.Now())
	if err != nil {
		return nil, err
	}
	if s.nats, err = server.NewServer(options); err != nil {
		return nil, fmt.Errorf("making the bus: %w", err)
	}
	s.nats.SetLoggerV2(s.log, false, false, false)
	s.nats.Start()
	if !s.nats.ReadyForConnections(patience) {
		s.nats.Shutdown()
		return nil, fmt.Errorf("starting the bus at %s: %s", o.Address, s.log.fatal())
	}
	s.mu.Lock()
	s.expireNext()
	s.mu.Unlock()
	go s.watch()
	context.AfterFunc(ctx, s.Close)
	return s, nil
}

// listenable looks whether there may be a listener at the address, for an error that says
// why there may not: the server's own are lines of a log.
func (s *Server) listenable() error {
	if s.options.Address == "" {
		return nil
	}
	host, text, err := net.SplitHostPort(s.options.Address)
	port, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil {
		return intake.UserError(fmt.Errorf("the address of the bus is %q; allowed is host:port, such as 0.0.0.0:4222", s.options.Address))
	}
	s.host, s.port = host, int(port)
	l, err := net.Listen("tcp", s.options.Address)
	if err != nil {
		return intake.UserError(fmt.Errorf("the bus cannot listen at %s: %w; allowed is an address of this host with a port that no other program has", s.options.Address, cause(err)))
	}
	return l.Close()
}

// cause takes off what the sentence has said already.
func cause(err error) error {
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Err
	}
	return err
}

func (s *Server) natsOptions(now time.Time) (*server.Options, error) {
	cert, err := s.options.Folder.Certificate()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: "ringwave",
		Host:       s.host,
		Port:       s.port,
		DontListen: s.options.Address == "",
		NoSigs:     true,
		MaxPayload: identity.MaxPayload,
		// A thousand hosts may connect at once.
		AuthTimeout:  identity.HandshakeSeconds + 2,
		TLSTimeout:   identity.HandshakeSeconds,
		TLS:          true,
		TLSConfig:    &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}},
		PingInterval: identity.PingSeconds * time.Second,
	}
	if s.options.Store != "" {
		o.JetStream, o.StoreDir, o.SyncAlways = true, s.options.Store, true
		o.DisableJetStreamBanner = true
	}
	if s.port == 0 {
		o.Port = server.RANDOM_PORT
	}
	for _, h := range s.options.Folder.Registry.Admitted(now) {
		p := identity.Permissions(h.Role, h.Index)
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: h.Nkey, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: p.Publish}, Subscribe: &server.SubjectPermission{Allow: p.Subscribe},
		}})
	}
	if len(o.Nkeys) == 0 { // to NATS nobody who may is everybody may
		nobody, err := nobody()
		if err != nil {
			return nil, err
		}
		o.Nkeys = append(o.Nkeys, nobody)
	}
	return o, nil
}

// nobody returns a user whose seed nobody has.
func nobody() (*server.NkeyUser, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making an nkey: %w", err)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	return &server.NkeyUser{Nkey: public, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{">"}}, Subscribe: &server.SubjectPermission{Deny: []string{">"}},
	}}, err
}

// Reload reads the registry again: who was added may connect, and who was revoked or has
// expired is disconnected at once.
func (s *Server) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.readFolder(); err != nil {
		return err
	}
	options, err := s.natsOptions(time.Now())
	if err != nil {
		return err
	}
	if err := s.nats.ReloadOptions(options); err != nil {
		return fmt.Errorf("reloading who may connect to the bus: %w", err)
	}
	s.expireNext()
	return nil
}

// readFolder reads the registry, which another process may change.
func (s *Server) readFolder() error {
	// The time comes first: a change in between is then seen as one, again.
	changed, err := s.options.Folder.Changed()
	if err != nil {
		return err
	}
	folder, err := identity.Open(s.options.Folder.Dir)
	if err != nil {
		return err
	}
	s.options.Folder, s.read = folder, changed
	return nil
}

// watchEvery is how often the registry is looked at.
const watchEvery = time.Second

// watch reloads when the registry has changed, until Close. What is wrong with it is logged
// once, and who is admitted stays as it was.
func (s *Server) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		err := s.reloadChanged()
		if err == nil || errors.Is(err, ErrClosed) {
			said = ""
		} else if text := err.Error(); text != said {
			s.log.say(text)
			said = text
		}
	}
}

func (s *Server) reloadChanged() error {
	s.mu.Lock()
	folder, read := s.options.Folder, s.read
	s.mu.Unlock()
	changed, err := folder.Changed()
	if err != nil || changed.Equal(read) {
		return err
	}
	return s.Reload()
}

// expireNext has the server reload when the next identity expires.
func (s *Server) expireNext() {
	now := time.Now()
	var next time.Time
	for _, h := range s.options.Folder.Registry.Admitted(now) {
		if next.IsZero() || h.Expires.Before(next) {
			next = h.Expires
		}
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if next.IsZero() {
		return
	}
	s.timer = time.AfterFunc(next.Sub(now), func() {
		if err := s.Reload(); err != nil && !errors.Is(err, ErrClosed) {
			s.log.say(err.Error())
		}
	})
}

// URL returns that of the server on this host; it is empty where it does not listen.
func (s *Server) URL() string {
	address, listens := s.nats.Addr().(*net.TCPAddr)
	if !listens {
		return ""
	}
	host := s.host
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	return "tls://" + net.JoinHostPort(host, strconv.Itoa(address.Port))
}

// Close disconnects everybody, and returns when the port is free. More calls do nothing.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.nats.WaitForShutdown()
		return
	}
	s.closed = true
	close(s.done)
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// logger is what the server writes its log to. Lines that are no warnings or errors nobody
// reads.
type logger struct {
	tell func(string)
	mu   sync.Mutex
	last string // fatal error
}

// say tells a line, but for that of every host's attempt, as it connects, at what nobody
// may hear.
func (l *logger) say(text string) {
	if strings.Contains(text, `Violation - Subject "`+probe+`"`) {
		return
	}
	if l.tell != nil {
		l.tell(intake.Sentence(text))
	}
}

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it is not ready in time"
	}
	return l.last
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, args ...any)  { l.say(fmt.Sprintf(format, args...)) }
func (l *logger) Errorf(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }

func (l *logger) Fatalf(format string, args ...any) {
	l.mu.Lock()
	l.last = intake.Sentence(fmt.Sprintf(format, args...))
	l.mu.Unlock()
	l.say(fmt.Sprintf(format, args...))
}
