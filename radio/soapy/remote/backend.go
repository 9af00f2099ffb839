package remote

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// DefaultPort is SoapyRemote's.
const DefaultPort = 55132

// The URI's parameters that this package reads.
const (
	streamParam  = "stream"
	mtuParam     = "mtu"
	windowParam  = "window"
	timeoutParam = "timeout_ms"
)

// Parameters returns the parameters of a URI that Make and Find read:
//
//	stream      how samples come and go: tcp, where none is lost on the way, or udp; tcp
//	            unless given (SoapyRemote's own clients take udp)
//	mtu         bytes of a block with all headers, 576 to 65536, and to 4144 over udp, where
//	            servers cut longer ones; 32768 unless given, and 1500 over udp
//	window      bytes that may be on their way, which is also what both ends ask of their
//	            systems for buffers, 65536 to 67108864; 4194304 unless given, and 262144 for
//	            transmitting: what waits there is late
//	timeout_ms  time that the server may take to answer a call, 1 to 600000, after which it is
//	            given up; 30000 unless given
func Parameters() []string { return []string{streamParam, mtuParam, windowParam, timeoutParam} }

// stopKey keeps a server from asking further servers. It is SoapyRemote's.
const stopKey = "soapy_remote_no_deeper"

// options are what a URI says.
type options struct {
	address     string // host and port
	datagrams   bool
	mtu, window int // 0 where it is not given
	limit       time.Duration
}

func parseOptions(u radio.URI) (o options, err error) {
	if o.address, err = addressOf(u); err != nil {
		return o, err
	}
	p := radio.ReadSettings(u, slices.Collect(maps.Keys(u.Params))...) // others look at theirs
	o.datagrams = p.Word(streamParam, "tcp", "udp") == "udp"
	unset, most := 1<<15, 1<<16
	if o.datagrams {
		unset, most = 1500, maxDatagram+transport
	}
	o.mtu = p.Whole(mtuParam, unset, 576, most, 1)
	o.window = p.Whole(windowParam, 0, 1<<16, 1<<26, 1)
	o.limit = p.Milliseconds(timeoutParam, 30*time.Second, 1, 600_000)
	return o, p.Err()
}

// addressOf returns host and port.
func addressOf(u radio.URI) (string, error) {
	host, port, err := net.SplitHostPort(u.Name)
	if err != nil {
		host, port = u.Name, strconv.Itoa(DefaultPort)
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		} else if strings.Contains(host, ":") {
			host = ""
		}
	}
	if host == "" || strings.ContainsAny(host, "[]/ ") {
		return "", fmt.Errorf("device %q has the address %q; allowed is HOST, HOST:PORT, [IPv6] or [IPv6]:PORT", u, u.Name)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("device %q has the port %q; allowed is 1 to 65535", u, port)
	}
	return net.JoinHostPort(host, port), nil
}

// backend is a soapy.Backend.
type backend struct{ dialer Dialer }

// New makes a back end that calls servers, which URIs name as scheme:HOST[:PORT]; see
// Parameters.
func New(d Dialer) soapy.Backend { return backend{d} }

func deeper(args soapy.Args) soapy.Args {
	all := soapy.Args{stopKey: ""}
	maps.Copy(all, args)
	return all
}

// Find implements soapy.Backend: it returns what the server finds.
func (b backend) Find(ctx context.Context, where radio.URI, args soapy.Args) ([]soapy.Args, error) {
	o, err := parseOptions(where)
	if err != nil {
		return nil, err
	}
	l, err := dial(ctx, b.dialer, o)
	if err != nil {
		return nil, err
	}
	found, err := ask(ctx, l, newRequest(callFind).args(deeper(args)), (*answer).argsList)
	l.leave()
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		delete(a, stopKey)
	}
	return found, nil
}

// Make implements soapy.Backend.
func (b backend) Make(ctx context.Context, where radio.URI, args soapy.Args) (soapy.Board, error) {
	o, err := parseOptions(where)
	if err != nil {
		return nil, err
	}
	l, err := dial(ctx, b.dialer, o)
	if err != nil {
		return nil, err
	}
	if err := tell(ctx, l, newRequest(callMake).args(deeper(args))); err != nil {
		l.leave()
		return nil, err
	}
	l.made = true
	return &board{link: l, opts: o, dialer: b.dialer, streams: map[*stream]bool{}}, nil
}
