package radio

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// URI names a device: scheme, a name that the scheme's opener understands, and
// parameters, written scheme:name?key=value&key=value. In the name, as in the
// parameters, a byte can be written %XX; a question mark or a per cent sign in a
// file's name must be.
type URI struct {
	Scheme string // lower case
	Name   string // unescaped
	Params url.Values
}

// ParseURI takes a URI apart. The scheme is a lower-case letter and then
// lower-case letters, digits, '+', '-', '.' and '_': those of RFC 3986 section 3.1,
// which allows upper case too, but for '_', which it does not have. It is here for
// rtl_tcp, whose name users know so.
func ParseURI(s string) (URI, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !validScheme(scheme) {
		return URI{}, fmt.Errorf("device %q has no scheme; allowed is scheme:name?key=value, as in loopback:bench?tx=0", s)
	}
	name, query, _ := strings.Cut(rest, "?")
	plain, err := url.PathUnescape(name)
	if err != nil {
		return URI{}, fmt.Errorf("device %q has the name %q; allowed after a per cent sign are two hexadecimal digits", s, name)
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return URI{}, fmt.Errorf("device %q has the parameters %q; allowed is key=value&key=value", s, query)
	}
	for key, values := range params {
		if len(values) > 1 {
			return URI{}, fmt.Errorf("device %q has the parameter %q %d times; allowed is once", s, key, len(values))
		}
	}
	return URI{Scheme: scheme, Name: plain, Params: params}, nil
}

func validScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' || c == '_')) {
			return false
		}
	}
	return s != ""
}

// String returns what ParseURI takes apart into u.
func (u URI) String() string {
	s := u.Scheme + ":" + (&url.URL{Path: u.Name}).EscapedPath()
	if len(u.Params) > 0 {
		s += "?" + u.Params.Encode()
	}
	return s
}

// Only fails where u has a parameter that is not among the keys.
func (u URI) Only(keys ...string) error {
	for key := range u.Params {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("device %q has the parameter %q; allowed is %s", u, key, oneOf(keys))
		}
	}
	return nil
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Opener opens the devices of a scheme.
type Opener interface {
	Open(ctx context.Context, u URI) (Device, error)
}

// Registry opens devices of all schemes it was given. The program makes one; there
// is none for all. It is read-only and safe for use by several goroutines.
type Registry struct{ openers map[string]Opener }

// NewRegistry makes a registry from openers by scheme.
func NewRegistry(openers map[string]Opener) (*Registry, error) {
	r := &Registry{openers: map[string]Opener{}}
	for scheme, o := range openers {
		if !validScheme(scheme) || o == nil {
			return nil, fmt.Errorf("an opener for scheme %q; allowed are an opener that is not nil and a scheme of lower-case letters, digits, +, -, . and _ that begins with a letter", scheme)
		}
		r.openers[scheme] = o
	}
	return r, nil
}

// Schemes returns the schemes in order.
func (r *Registry) Schemes() []string {
	var names []string
	for s := range r.openers {
		names = append(names, s)
	}
	slices.Sort(names)
	return names
}

// Open opens the device that a URI names.
func (r *Registry) Open(ctx context.Context, uri string) (Device, error) {
	u, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	o, ok := r.openers[u.Scheme]
	if !ok {
		return nil, fmt.Errorf("device %q has the scheme %q; allowed is %s", uri, u.Scheme, oneOf(r.Schemes()))
	}
	return o.Open(ctx, u)
}
