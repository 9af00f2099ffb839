package gate

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ringwave/radio/intake"
)

// open opens a door to a page that says "page", with metrics that say "open".
func open(t *testing.T, o Options) *Gate {
	t.Helper()
	g, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, "body", http.StatusRequestEntityTooLarge)
				return
			}
			fmt.Fprint(w, text)
		})
	}
	g.Serve(say("page"), say("open"))
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// ask asks the door and returns what it answers.
func ask(t *testing.T, c *http.Client, method, url string, head map[string]string) (status int, body string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range head {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	if c == nil {
		c = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// Who may come in on this machine, and who may not.
func TestLoopback(t *testing.T) {
	g := open(t, Options{Addr: "localhost:0"})
	base, host := g.Address(), strings.TrimPrefix(g.Address(), "http://")
	bearer := map[string]string{"Authorization": "Bearer " + g.token}
	cookie := map[string]string{"Cookie": g.cookie() + "=" + g.token}
	with := func(m map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			out[k] = v
		}
		for k := 0; k < len(more); k += 2 {
			out[more[k]] = more[k+1]
		}
		return out
	}
	for _, c := range []struct {
		name, method, path string
		head               map[string]string
		want               int
	}{
		{"no token", "GET", "/", nil, 403},
		{"wrong token", "GET", "/?token=" + strings.Repeat("x", len(g.token)), nil, 403},
		{"empty token", "GET", "/?token=", nil, 403},
		{"token", "GET", "/?token=" + g.token, nil, 303},
		{"cookie", "GET", "/", cookie, 200},
		{"cookie of another port", "GET", "/", map[string]string{"Cookie": "ringwave-1=" + g.token}, 403},
		{"bearer", "GET", "/", bearer, 200},
		{"metrics of this machine", "GET", "/metrics", nil, 200},
		{"health of this machine", "GET", "/healthz", nil, 200},
		{"another host", "GET", "/", with(cookie, "Host", "evil.example:"+g.port), 421},
		{"metrics by another host", "GET", "/metrics", map[string]string{"Host": "evil.example:" + g.port}, 421},
		{"another port", "GET", "/", with(cookie, "Host", "localhost:1"), 421},
		{"by name", "GET", "/", with(cookie, "Host", "localhost:"+g.port), 200},
		{"another origin", "POST", "/scenes/x/stop", with(cookie, "Origin", "http://evil.example"), 403},
		{"another origin with the token", "POST", "/scenes/x/stop", with(bearer, "Origin", "http://evil.example"), 403},
		{"origin of another port", "POST", "/scenes/x/stop", with(cookie, "Origin", "http://127.0.0.1:1"), 403},
		{"no origin", "POST", "/scenes/x/stop", cookie, 403},
		{"its own origin", "POST", "/scenes/x/stop", with(cookie, "Origin", "http://"+host), 200},
		{"a program with the token", "POST", "/scenes/x/stop", bearer, 200},
		{"a socket of another page", "GET", "/socket", with(cookie, "Upgrade", "websocket", "Connection", "Upgrade", "Origin", "https://evil.example"), 403},
		{"a socket of nobody", "GET", "/socket", with(cookie, "Upgrade", "websocket", "Connection", "Upgrade"), 403},
		{"another site's picture", "GET", "/scenes/x/plots/y.svg", with(cookie, "Sec-Fetch-Site", "cross-site"), 403},
		{"another method", "DELETE", "/", cookie, 405},
	} {
		status, body, h := ask(t, nil, c.method, base+c.path, c.head)
		if status != c.want {
			t.Errorf("%s: %d %q, want %d", c.name, status, body, c.want)
		}
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", c.name, h)
		}
	}
	_, _, h := ask(t, nil, "GET", g.URL(), nil)
	set := h.Get("Set-Cookie")
	for _, want := range []string{"ringwave-" + g.port + "=", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie is %q, want %s in it", set, want)
		}
	}
	if h.Get("Location") != "/" {
		t.Errorf("it goes on at %q, with the token in the address", h.Get("Location"))
	}
}

// Elsewhere there is TLS, whose certificate is the one that was printed, and a token for all.
func TestElsewhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-token-of-twenty-letters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, Options{Addr: "0.0.0.0:0", TokenFile: file, Names: []string{"Bench.Example"}})
	if !strings.HasPrefix(g.URL(), "https://") || !strings.HasSuffix(g.URL(), "?token=a-token-of-twenty-letters") {
		t.Errorf("URL %s", g.URL())
	}
	var seen string
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		sum := sha256.Sum256(s.PeerCertificates[0].Raw)
		seen = strings.ToUpper(fmt.Sprintf("%x", sum))
		return nil
	}}}}
	base := "https://127.0.0.1:" + g.port
	for _, path := range []string{"/", "/metrics", "/healthz"} {
		if status, _, _ := ask(t, client, "GET", base+path, nil); status != 401 && status != 403 {
			t.Errorf("%s without a token: %d", path, status)
		}
		for _, host := range []string{"127.0.0.1", "bench.example"} {
			if status, _, _ := ask(t, client, "GET", base+path, map[string]string{"Authorization": "Bearer a-token-of-twenty-letters", "Host": host + ":" + g.port}); status != 200 {
				t.Errorf("%s of %s with a token: %d", path, host, status)
			}
		}
		if status, _, _ := ask(t, client, "GET", base+path, map[string]string{"Authorization": "Bearer a-token-of-twenty-letters", "Host": "evil.example:" + g.port}); status != 421 {
			t.Errorf("%s by another name: %d", path, status)
		}
	}
	if printed := strings.ReplaceAll(g.Note(), ":", ""); !strings.Contains(printed, seen) || seen == "" {
		t.Errorf("the certificate is %s, and printed was %s", seen, g.Note())
	}
	// Without TLS nobody comes in.
	if r, err := http.Get("http://127.0.0.1:" + g.port + "/metrics"); err == nil {
		defer r.Body.Close()
		if r.StatusCode == 200 {
			t.Error("metrics without TLS")
		}
	}
}

// What cannot be is the user's to mend.
func TestBadOptions(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	odd := filepath.Join(dir, "odd")
	for path, text := range map[string]string{short: "x", odd: "a token of several words here"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	busy := open(t, Options{Addr: "127.0.0.1:0"})
	for want, o := range map[string]Options{
		"allowed is host:port":                 {Addr: "localhost"},
		"allowed is a port from 0 to 65535":    {Addr: "1.2.3.4:99999"},
		"allowed is localhost, or an address":  {Addr: "example.org:1"},
		"it must have one word of at least 16": {Addr: "localhost:0", TokenFile: short},
		"letters, digits or":                   {Addr: "localhost:0", TokenFile: odd},
		"no such file":                         {Addr: "localhost:0", TokenFile: filepath.Join(dir, "none")},
		"go together":                          {Addr: "0.0.0.0:0", Cert: short},
		"leave --watch-cert":                   {Addr: "localhost:0", Cert: short, Key: short},
		"address already in use":               {Addr: "127.0.0.1:" + busy.port},
		"another program may have this port":   {Addr: "127.0.0.1:" + busy.port},
	} {
		_, err := Listen(o)
		if err == nil || !strings.Contains(err.Error(), want) || !intake.IsUserError(err) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// A request that never ends is ended, in its head and in its body.
func TestEndless(t *testing.T) {
	g := open(t, Options{Addr: "localhost:0", Limits: Limits{Header: 50 * time.Millisecond, Request: 100 * time.Millisecond}})
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"POST /metrics HTTP/1.1\r\nHost: localhost:" + g.port + "\r\nOrigin: http://localhost:" + g.port + "\r\nContent-Length: 100\r\n\r\nx",
	} {
		c, err := net.Dial("tcp", "127.0.0.1:"+g.port)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		// It ends by the door's doing, not by this deadline.
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, bufio.NewReader(c))
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Errorf("%.20q: the connection was left open", text)
		}
		c.Close()
	}
	// A head without end is refused at a bounded length.
	c, err := net.Dial("tcp", "127.0.0.1:"+g.port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := 0
	for sent < 1<<20 {
		n, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost:" + g.port + "\r\nX: " + strings.Repeat("x", 4096))[min(sent, 50):])
		if sent += n; err != nil {
			break
		}
	}
	if answer, _ := io.ReadAll(c); strings.HasPrefix(string(answer), "HTTP/1.1 200") || sent >= 1<<20 && len(answer) == 0 {
		t.Errorf("a head of %d bytes was answered with %.40q", sent, answer)
	}
}

// A thousand connections take a bounded part, and leave room for others when they go.
func TestManyConnections(t *testing.T) {
	before := runtime.NumGoroutine()
	g := open(t, Options{Addr: "localhost:0", Limits: Limits{Connections: 32, Header: time.Minute, Request: time.Minute}})
	var conns []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", "127.0.0.1:"+g.port)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	// Those beyond the limit are closed: reading from them ends.
	closed := 0
	deadline := time.Now().Add(20 * time.Second) // before the door gives up those that say nothing
	for _, c := range conns[40:] {
		if err := c.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	if closed != len(conns)-40 {
		t.Errorf("%d of %d were closed", closed, len(conns)-40)
	}
	if n := runtime.NumGoroutine(); n > before+32+20 {
		t.Errorf("%d goroutines for 1,000 connections", n-before)
	}
	for _, c := range conns {
		c.Close()
	}
	for { // the door hears of it when it reads
		c, err := net.Dial("tcp", "127.0.0.1:"+g.port)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n\r\n", g.port)
		answer, _ := io.ReadAll(c)
		c.Close()
		if strings.HasPrefix(string(answer), "HTTP/1.1 200") {
			return
		}
		runtime.Gosched()
	}
}
