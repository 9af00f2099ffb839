package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/nats-io/nkeys"

	"ringwave/radio/intake"
)

// version is that of the files.
const version = 1

// MaxDevices bounds the devices of a bench.
const MaxDevices = 10000

// table is one of TOML whose values are taken out one by one. What is wrong first is kept,
// in a sentence with the key.
type table struct {
	values map[string]any
	known  []string
	err    error
}

// readTable decodes text of TOML.
func readTable(text string) (*table, error) {
	if err := intake.CheckTOML(text); err != nil {
		return nil, err
	}
	t := &table{}
	if _, err := toml.Decode(text, &t.values); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	t.whole("version", version, version)
	return t, t.err
}

// fail keeps the first thing that is wrong.
func (t *table) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// take returns a key's value, and reports whether it is there and of type T.
func take[T any](t *table, key, allowed string) (value T, ok bool) {
	t.known = append(t.known, key)
	found, given := t.values[key]
	if !given {
		t.fail("there is no key %s; allowed is %s", key, allowed)
		return value, false
	}
	if value, ok = found.(T); !ok {
		t.fail("%s is %s; allowed is %s", key, kind(found), allowed)
	}
	return value, ok
}

// kind says what a value is. Its text may be a secret.
func kind(value any) string {
	switch v := value.(type) {
	case string:
		return "text in quotes"
	case int64:
		return fmt.Sprintf("the number %d", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return fmt.Sprintf("%v", v)
	case time.Time:
		return "the time " + v.Format(time.RFC3339)
	}
	return "a list or a table"
}

// text returns a value that may be shown.
func (t *table) text(key, allowed string, ok func(string) bool) string {
	value, is := take[string](t, key, allowed)
	if is && !ok(value) {
		t.fail("%s is %q; allowed is %s", key, value, allowed)
	}
	return value
}

// hidden returns a value that must not be shown.
func (t *table) hidden(key, allowed string, ok func(string) bool) string {
	value, is := take[string](t, key, allowed)
	if is && !ok(value) {
		t.fail("%s is something else (it is secret, and not shown); allowed is %s", key, allowed)
	}
	return value
}

// whole returns a number from least to most.
func (t *table) whole(key string, least, most int) int {
	allowed := fmt.Sprintf("a whole number from %d to %d", least, most)
	if least == most {
		allowed = fmt.Sprint(least)
	}
	value, is := take[int64](t, key, allowed)
	if is && (value < int64(least) || value > int64(most)) {
		t.fail("%s is %d; allowed is %s", key, value, allowed)
		return 0
	}
	return int(value)
}

// when returns a time.
func (t *table) when(key string) time.Time {
	value, _ := take[time.Time](t, key, "a time such as 2030-12-31T23:59:59Z")
	return value.UTC()
}

// nkey returns a public nkey of a kind, which begins with a letter.
func (t *table) nkey(key, letter string, valid func(string) bool) string {
	return t.text(key, "a public nkey, 56 letters and digits that begin with "+letter, valid)
}

// role returns one, and the index that goes with it.
func (t *table) role(devices int) (Role, int) {
	role := Role(t.text("role", "server, air, observer, device, sweep or worker", func(s string) bool {
		return slices.Contains([]Role{Server, Air, Observer, Device, Sweep, Worker}, Role(s))
	}))
	if role == Device {
		return role, t.whole("index", 1, devices)
	}
	return role, t.whole("index", 0, 0)
}

// end says what is wrong with the table, unknown keys included.
func (t *table) end() error {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains(t.known, key) {
			t.fail("unknown key %.80q; the nearest known one is %s", key, intake.Nearest(key, t.known))
		}
	}
	return t.err
}

// statement returns the part that identities and registries have in common. The nkey is
// given where the table has a seed in its place.
func (t *table) statement(bench, nkey string, devices int) Statement {
	s := Statement{Bench: bench}
	s.Role, s.Index = t.role(devices)
	if s.Nkey = nkey; nkey == "" {
		s.Nkey = t.nkey("nkey", "U", nkeys.IsValidPublicUserKey)
	}
	s.NotBefore, s.Expires = t.when("not_before"), t.when("expires")
	s.Signature = []byte(t.decoded("statement", "128 hexadecimal digits", 64))
	if t.err == nil {
		if err := s.genuine(); err != nil {
			t.fail("statement does not fit: %v; allowed is a file as it was enrolled, with no value changed", err)
		}
	}
	return s
}

// CheckURL says why a text is no URL of a bus, in words that follow it.
func CheckURL(text string) error {
	const allowed = "tls://host:port, such as tls://bench.example.org:4222"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "tls" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return fmt.Errorf("%q; allowed is %s", text, allowed)
	}
	if port, err := portOf(u); err != nil || port == 0 || CheckHost(u.Hostname()) != nil {
		return fmt.Errorf("%q; allowed is %s", text, allowed)
	}
	return nil
}

// bare takes the operation and the path off an error, for sentences that have named it.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// failf returns an error of the user's to mend, of one sentence.
func failf(format string, args ...any) error {
	return intake.UserError(errors.New(intake.Sentence(fmt.Sprintf(format, args...))))
}
