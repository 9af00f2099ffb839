package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// Options of Dial. All of them may be left out. Callbacks must not wait.
type Options struct {
	// InProcess is a server of this program, to which no network leads.
	InProcess *Server
	// Patience is how long Dial tries again while nobody answers.
	Patience time.Duration
	Limits   Limits
	// Waiting is told once why there is no connection yet, while Dial tries again.
	Waiting func(error)
	// Connected is told that the connection is back, and Lost that it is not there, and why
	// it does not come back where that changes. It comes back by itself.
	Connected func()
	Lost      func(error)
	// Ended is told why the connection is closed for good: the bus no longer admits the host.
	Ended func(error)
	// Trouble is told what was refused or dropped.
	Trouble func(error)
}

// complete checks options and puts in what is missing.
func (o *Options) complete() error {
	for _, f := range []*func(error){&o.Waiting, &o.Lost, &o.Ended, &o.Trouble} {
		if *f == nil {
			*f = func(error) {}
		}
	}
	if o.Connected == nil {
		o.Connected = func() {}
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	return o.Limits.check()
}

const (
	// attempt bounds one attempt to connect.
	attempt = 10 * time.Second
	// Attempts begin so far apart, and twice as far each time, up to the last.
	firstPause, lastPause = 50 * time.Millisecond, 5 * time.Second
)

// Dial connects a host to the bus at a URL, that of its identity where it is empty. It
// speaks TLS 1.3 to who has a certificate of the bench's own authority, and to nobody else.
// A connection that is lost comes back by itself, without end. Errors are one sentence with
// the URL and the identity's file.
func Dial(ctx context.Context, id identity.Identity, url string, o Options) (Conn, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if url == "" {
		url = id.URL
	}
	if err := identity.CheckURL(url); err != nil {
		return nil, intake.UserError(fmt.Errorf("%s: the URL of the bus is %w", id.Path, err))
	}
	d := &dialer{id: id, url: url, options: o, until: time.Now().Add(o.Patience)}
	for tried := 1; ; tried++ {
		c, err := d.try(ctx)
		if err == nil {
			return c, nil
		}
		if !d.hopeful(err) || ctx.Err() != nil || time.Now().Add(pause(tried)).After(d.until) {
			return nil, d.sentence(err)
		}
		if tried == 1 {
			o.Waiting(d.sentence(err))
		}
		if !sleep(ctx, pause(tried)) {
			return nil, d.sentence(ctx.Err())
		}
	}
}

// pause returns how long to wait after so many attempts.
func pause(tried int) time.Duration {
	return min(lastPause, firstPause<<min(tried-1, 10))
}

// sleep waits, and reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// dialer makes a connection.
type dialer struct {
	id      identity.Identity
	url     string
	options Options
	until   time.Time
	over    sync.Once // its Ended
}

// hopeful reports whether a later attempt may succeed: nobody answers.
func (d *dialer) hopeful(err error) bool {
	var network *net.OpError
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &network) && !strings.Contains(err.Error(), "tls:")
}

// try makes one attempt, which ctx ends early.
func (d *dialer) try(ctx context.Context) (Conn, error) {
	type result struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := nats.Connect(d.address(), d.natsOptions()...)
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return d.check(ctx, r.nc)
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.nc.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// address returns what NATS is told.
func (d *dialer) address() string {
	if d.options.InProcess != nil {
		return nats.DefaultURL // which is not looked at
	}
	return d.url
}

func (d *dialer) natsOptions() []nats.Option {
	list := []nats.Option{
		nats.Name("ringwave " + d.id.String()),
		nats.Nkey(d.id.Nkey, d.id.SignNonce),
		nats.Timeout(attempt),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(pause),
		nats.ReconnectBufSize(-1), // what cannot be sent is lost at once, not sent late
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(3),
		nats.PermissionErrOnSubscribe(true),
	}
	if inbox := d.id.Role.Inbox(); inbox != "" {
		list = append(list, nats.CustomInboxPrefix(inbox))
	}
	if d.options.InProcess != nil {
		list = append(list, nats.InProcessServer(d.options.InProcess))
	} else {
		list = append(list, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: d.id.Roots()}))
	}
	return append(list, d.callbacks()...)
}

// callbacks tell the user what NATS tells.
func (d *dialer) callbacks() []nats.Option {
	var mu sync.Mutex
	said := "" // why the connection does not come back
	lost := func(nc *nats.Conn, err error) {
		if err == nil {
			return // it was closed here
		}
		if d.expired() {
			d.expire(nc)
			return
		}
		mu.Lock()
		text := d.sentence(err).Error()
		again := text == said
		said = text
		mu.Unlock()
		if !again {
			d.options.Lost(d.sentence(err))
		}
	}
	return []nats.Option{
		nats.DisconnectErrHandler(lost),
		nats.ReconnectErrHandler(lost),
		nats.ReconnectHandler(func(*nats.Conn) {
			mu.Lock()
			said = ""
			mu.Unlock()
			d.options.Connected()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			// Those of subscriptions Subscribe returns.
			if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), "Publish") {
				d.options.Trouble(fmt.Errorf("%w: %s is %s, and the bus says: %w", ErrForbidden, d.id.Path, d.id, err))
			}
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			if err := nc.LastError(); refusal(err) {
				d.over.Do(func() { d.options.Ended(d.sentence(err)) })
			}
		}),
	}
}

// expired reports whether the identity holds no longer.
func (d *dialer) expired() bool { return !time.Now().Before(d.id.Expires) }

// expire ends a connection that is lost and cannot come back, for the identity has expired: the
// certificate of the bus has, too, where they were made together, so that it cannot say so.
func (d *dialer) expire(nc *nats.Conn) {
	d.over.Do(func() {
		d.options.Ended(d.sentence(nats.ErrAuthExpired))
		go nc.Close() // which waits for the callback that this may be called by
	})
}

// refusal reports whether the bus does not admit the host.
func refusal(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAuthExpired)
}

// check refuses a server that lets the host do more than its role may: the permissions of
// one that is not ours are somebody's to configure.
func (d *dialer) check(ctx context.Context, nc *nats.Conn) (Conn, error) {
	c, err := newClient(nc, d.id, d.options)
	if err != nil {
		nc.Close()
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	stop, err := c.subscribe(bounded, probe, func(Message) {})
	if err == nil {
		stop()
		err = errOpen
	}
	if !errors.Is(err, ErrForbidden) {
		nc.Close()
		return nil, err
	}
	c.expiry = time.AfterFunc(time.Until(d.id.Expires), func() {
		if nc.IsReconnecting() { // else its loss is told
			d.expire(nc)
		}
	})
	return c, nil
}

// probe is a subject that no role may hear, within the runs': a server that lets a host
// have it goes by other permissions than ours.
const probe = "rw.none.nobody.probe"

// errOpen says that the server has no permissions.
var errOpen = errors.New("it lets everybody hear everything; allowed is a server with the permissions of nats-server.conf, which ringwave enroll has written")

// sentence says why there is no connection, and where that can be mended.
func (d *dialer) sentence(err error) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		lookup  *net.DNSError
	)
	why := ""
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("connecting to the bus %s: %w", d.where(), err)
	case refusal(err) && d.expired():
		why = fmt.Sprintf("the identity of %s expired at %s: enrol it again", d.id, d.id.Expires.UTC().Format(time.RFC3339))
	case refusal(err):
		why = fmt.Sprintf("the bus does not admit %s: it was revoked, has expired, or is of another bench; look at enrolment.toml of the bus, and enrol it again", d.id)
	case errors.As(err, &unknown):
		why = "its certificate is not of this bench's authority; allowed is the bus of the bench that the identity was enrolled for"
	case errors.As(err, &name):
		why = fmt.Sprintf("its certificate is for other names: %v; enrol with --host for this one", name)
	case errors.As(err, &invalid):
		why = fmt.Sprintf("its certificate does not hold: %v; set the clock, or enrol again", invalid)
	case errors.As(err, &lookup):
		why = fmt.Sprintf("there is no host of the name %q", lookup.Name)
	case errors.Is(err, nats.ErrNoServers), strings.Contains(err.Error(), "connection refused"):
		why = "nobody listens there; start ringwave serve or nats-server, or mend the URL"
	case errors.Is(err, nats.ErrTimeout), isTimeout(err):
		why = "nobody answers there"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrNkeysNotSupported):
		why = "it wants no TLS or no identity; allowed is a server with nats-server.conf, which ringwave enroll has written"
	case strings.Contains(err.Error(), "protocol version"):
		why = "it has no TLS 1.3, which is all that is spoken here"
	default:
		why = err.Error()
	}
	return intake.UserError(&connectError{intake.Sentence(fmt.Sprintf("%s: connecting to the bus %s: %s", d.id.Path, d.where(), why)), err})
}

// where says where the bus is.
func (d *dialer) where() string {
	if d.options.InProcess != nil {
		return "in this program"
	}
	return "at " + d.url
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// connectError is a sentence about an error of NATS or of the network.
type connectError struct {
	text  string
	cause error
}

func (e *connectError) Error() string { return e.text }
func (e *connectError) Unwrap() error { return e.cause }
