package radio

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings reads the parameters of a URI and keeps the first error, which names the
// device, the parameter, its value and what is allowed.
type Settings struct {
	uri URI
	err error
}

// ReadSettings begins to read a URI's parameters, of which only the given ones are
// allowed.
func ReadSettings(u URI, allowed ...string) *Settings {
	return &Settings{uri: u, err: u.Only(allowed...)}
}

// Err returns the first error.
func (s *Settings) Err() error { return s.err }

// Has reports whether a parameter is there.
func (s *Settings) Has(key string) bool { return s.uri.Params.Has(key) }

// Text returns a parameter as it is, "" where it is not there.
func (s *Settings) Text(key string) string { return s.uri.Params.Get(key) }

// Wrong says that a parameter is not allowed as it is.
func (s *Settings) Wrong(key, allowed string) {
	if s.err == nil {
		s.err = fmt.Errorf("device %q has the parameter %s=%s; allowed is %s", s.uri, key, s.Text(key), allowed)
	}
}

// Number returns a number from least to most, or unset where there is none.
func (s *Settings) Number(key string, unset, least, most float64) float64 {
	if !s.Has(key) {
		return unset
	}
	v, err := strconv.ParseFloat(s.Text(key), 64)
	if err != nil || !(v >= least && v <= most) {
		s.Wrong(key, fmt.Sprintf("a number from %s to %s", plain(least), plain(most)))
		return unset
	}
	return v
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Whole returns a whole number from least to most that is a multiple of step, or unset
// where there is none.
func (s *Settings) Whole(key string, unset, least, most, step int) int {
	if !s.Has(key) {
		return unset
	}
	v, err := strconv.Atoi(s.Text(key))
	if err != nil || v < least || v > most || v%step != 0 {
		multiple := ""
		if step > 1 {
			multiple = fmt.Sprintf(", a multiple of %d", step)
		}
		s.Wrong(key, fmt.Sprintf("a whole number from %d to %d%s", least, most, multiple))
		return unset
	}
	return v
}

// Milliseconds returns a time in whole milliseconds from least to most, or unset where
// there is none.
func (s *Settings) Milliseconds(key string, unset time.Duration, least, most int) time.Duration {
	return time.Duration(s.Whole(key, int(unset/time.Millisecond), least, most, 1)) * time.Millisecond
}

// Word returns one of a few words, the first where there is none. An empty one stands
// for that alone.
func (s *Settings) Word(key string, words ...string) string {
	if !s.Has(key) {
		return words[0]
	}
	var allowed []string
	for _, w := range words {
		if w == "" {
			continue
		}
		if s.Text(key) == w {
			return w
		}
		allowed = append(allowed, w)
	}
	s.Wrong(key, strings.Join(allowed, ", "))
	return words[0]
}
