package gate

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/radio/intake"
)

// leastToken is how many characters a token has at least.
const leastToken = 16

// Limits bound what visitors may take. The zero value stands for usual ones.
type Limits struct {
	// Header is how long a request's head may take, Request how long all of it.
	Header, Request time.Duration
	// Connections is how many there are at a time: those beyond are closed at once.
	Connections int
}

// Options say where a door is and who may come in.
type Options struct {
	// Addr is host:port. Port 0 picks one; without a host it is 127.0.0.1.
	Addr string
	// TokenFile has the token; "" draws one.
	TokenFile string
	// Cert and Key are files in PEM, for addresses beyond loopback; "" makes a certificate
	// that signs itself.
	Cert, Key string
	// Names are what a browser may call this host by, besides its own name, its addresses and
	// the names in the certificate.
	Names  []string
	Limits Limits
}

// Gate is an open door.
type Gate struct {
	listener    *bounded
	port        string
	loopback    bool
	token       string
	names       []string // lower case
	fingerprint string
	certificate *tls.Certificate // nil on loopback
	limits      Limits
	server      *http.Server
	served      sync.WaitGroup
}

// Listen opens the door; Serve lets visitors in. Its errors are the user's to mend
// (intake.UserError).
func Listen(o Options) (*Gate, error) {
	g, err := listen(o)
	return g, intake.UserError(err)
}

func listen(o Options) (*Gate, error) {
	host, port, err := parseAddr(o.Addr)
	if err != nil {
		return nil, err
	}
	g := &Gate{loopback: isLoopback(host), limits: o.Limits.orUsual(), names: slices.Clone(o.Names)}
	if g.token, err = token(o.TokenFile); err != nil {
		return nil, err
	}
	if g.loopback && (o.Cert != "" || o.Key != "") {
		return nil, fmt.Errorf("--watch %s is of this machine alone, where no certificate is used: leave --watch-cert and --watch-key out", o.Addr)
	}
	if !g.loopback {
		if err := g.certify(host, o.Cert, o.Key); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("--watch %s: %w: another program may have this port, port 0 picks one that is free", o.Addr, err)
	}
	_, g.port, _ = net.SplitHostPort(l.Addr().String()) // of the system's
	g.listener = &bounded{Listener: l, room: make(chan struct{}, g.limits.Connections)}
	for k := range g.names {
		g.names[k] = strings.ToLower(g.names[k])
	}
	return g, nil
}

func (l Limits) orUsual() Limits {
	if l.Header == 0 {
		l.Header = 5 * time.Second
	}
	if l.Request == 0 {
		l.Request = 30 * time.Second
	}
	if l.Connections == 0 {
		l.Connections = 256
	}
	return l
}

// parseAddr returns host and port of an address.
func parseAddr(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("--watch is %q: allowed is host:port, as localhost:0 or 127.0.0.1:8080", intake.Sentence(addr))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", "", fmt.Errorf("--watch is %q: allowed is a port from 0 to 65535, where 0 picks one", intake.Sentence(addr))
	}
	switch strings.ToLower(host) {
	case "", "localhost":
		host = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return "", "", fmt.Errorf("--watch is %q: allowed is localhost, or an address of this machine such as 0.0.0.0", intake.Sentence(addr))
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// token reads the token of a file, or draws one.
func token(path string) (string, error) {
	if path == "" {
		b := make([]byte, 24)
		if _, err := rand.Read(b); err != nil {
			return "", fmt.Errorf("drawing a token: %w", err)
		}
		return base64.RawURLEncoding.EncodeToString(b), nil
	}
	const most = 4096
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("--watch-token: %w", err)
	}
	defer f.Close()
	b := make([]byte, most+1)
	n, err := f.Read(b)
	text := strings.TrimSpace(string(b[:n]))
	unfit := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.~", r))
	}
	if err != nil || n > most || len(text) < leastToken || strings.ContainsFunc(text, unfit) {
		return "", fmt.Errorf("--watch-token %s: it must have one word of at least %d letters, digits or -_.~", path, leastToken)
	}
	return text, nil
}

// URL returns what a user's browser is to open: with the token, so that who has it may look.
func (g *Gate) URL() string { return g.Address() + "/?token=" + g.token }

// Address returns where the page is, without a token.
func (g *Gate) Address() string {
	host, _, _ := net.SplitHostPort(g.listener.Addr().String()) // of the system's
	if g.loopback {
		return "http://" + net.JoinHostPort(host, g.port)
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return "https://" + net.JoinHostPort(host, g.port)
}

// Note says what else a user must know; "" for nothing.
func (g *Gate) Note() string {
	if g.fingerprint == "" {
		return ""
	}
	return "its certificate signs itself, and its SHA-256 is " + g.fingerprint + ": compare it with what the browser shows"
}

// Serve lets visitors in until Close. Open is for all programs of this machine where the
// door is on loopback; elsewhere it wants a token as page does.
func (g *Gate) Serve(page, open http.Handler) {
	g.server = &http.Server{
		Handler:           g.guard(page, open),
		ReadHeaderTimeout: g.limits.Header, ReadTimeout: g.limits.Request, WriteTimeout: g.limits.Request, IdleTimeout: g.limits.Request,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       log.New(silence{}, "", 0), // what visitors do wrong is theirs
	}
	l := net.Listener(g.listener)
	if g.certificate != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*g.certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	g.served.Go(func() { _ = g.server.Serve(l) }) // it ends by Close
}

// silence takes in what nobody reads.
type silence struct{}

// Write implements io.Writer.
func (silence) Write(p []byte) (int, error) { return len(p), nil }

// Close shuts the door. It ends all connections, also those of WebSockets.
func (g *Gate) Close() error {
	if g.server == nil {
		return g.listener.Close()
	}
	err := g.server.Close()
	g.listener.closeAll()
	g.served.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// guard lets in who may come.
func (g *Gate) guard(page, open http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, 4096)
		switch {
		case !g.knows(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this is not the host that was asked for: open the address that the program has printed")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			refuse(w, http.StatusMethodNotAllowed, "allowed are GET, HEAD and POST")
		case g.foreign(r):
			refuse(w, http.StatusForbidden, "this request is from another page: it is refused")
		case r.URL.Path == "/metrics" || r.URL.Path == "/healthz":
			if !g.loopback && !g.hasToken(r) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				refuse(w, http.StatusUnauthorized, "a token is needed: Authorization: Bearer and the token that the program has printed, or that of --watch-token")
				return
			}
			open.ServeHTTP(w, r)
		case r.URL.Query().Has("token"):
			g.enter(w, r)
		case !g.hasToken(r):
			refuse(w, http.StatusForbidden, "a token is needed: open the address that the program has printed, with ?token= in it")
		default:
			page.ServeHTTP(w, r)
		}
	})
}

// setHeaders sets what all answers have.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }

// knows reports whether a Host is one that this door may be called by: a page of another
// name whose address was made to be this one's is told apart by it.
func (g *Gate) knows(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || port != g.port {
		return false
	}
	host = strings.ToLower(host)
	a, err := netip.ParseAddr(host)
	if g.loopback {
		return host == "localhost" || err == nil && a.IsLoopback()
	}
	return err == nil || slices.Contains(g.names, host) // who asks by address asks for this one
}

// foreign reports whether a request is from another page, or may be where it matters. What
// browsers send says so; a program that has the token need not.
func (g *Gate) foreign(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		scheme := map[bool]string{true: "http", false: "https"}[g.loopback]
		return err != nil || u.Host != r.Host || u.Scheme != scheme
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return r.Method == http.MethodPost || r.URL.Path != "/"
	}
	matters := r.Method == http.MethodPost || r.Header.Get("Upgrade") != ""
	return matters && r.Header.Get("Sec-Fetch-Site") == "" && !g.bears(r)
}

// cookie returns the name of the cookie that has the token: ports of one host share cookies.
func (g *Gate) cookie() string { return "ringwave-" + g.port }

func (g *Gate) same(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// bears reports whether a request has the token in its head.
func (g *Gate) bears(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.same(strings.TrimSpace(given))
}

func (g *Gate) hasToken(r *http.Request) bool {
	if g.bears(r) {
		return true
	}
	c, err := r.Cookie(g.cookie())
	return err == nil && g.same(c.Value)
}

// enter takes the token of an address, and goes on without it there, so that it is in no
// history and no picture of a screen.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !g.same(q.Get("token")) {
		refuse(w, http.StatusForbidden, "the token is not this program's: each has its own, in the address that it prints")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.token, Path: "/", HttpOnly: true, Secure: !g.loopback, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodPost {
		refuse(w, http.StatusBadRequest, "a token in an address is for GET")
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// bounded is a listener with so many connections at a time. Those beyond are closed.
type bounded struct {
	net.Listener
	room chan struct{}

	mu    sync.Mutex
	conns map[*conn]bool
}

// Accept implements net.Listener.
func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			own := &conn{Conn: c, of: l}
			l.mu.Lock()
			if l.conns == nil {
				l.conns = map[*conn]bool{}
			}
			l.conns[own] = true
			l.mu.Unlock()
			return own, nil
		default:
			_ = c.Close()
		}
	}
}

// closeAll ends all connections.
func (l *bounded) closeAll() {
	l.mu.Lock()
	list := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		list = append(list, c)
	}
	l.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
}

// conn is a connection that makes room when it is closed.
type conn struct {
	net.Conn
	of   *bounded
	once sync.Once
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		delete(c.of.conns, c)
		c.of.mu.Unlock()
		<-c.of.room
	})
	return err
}
