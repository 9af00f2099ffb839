package remote

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ringwave/radio"
)

// kinds are the errors that callers tell apart, and their names on the way.
func kinds() map[string]error {
	return map[string]error{
		"starved":       radio.ErrStarved,
		"closed":        radio.ErrClosed,
		"busy":          radio.ErrBusy,
		"untimed":       radio.ErrUntimed,
		"not started":   radio.ErrNotStarted,
		"not permitted": radio.ErrNotPermitted,
		"no guard":      radio.ErrNoGuard,
		"guard":         radio.ErrGuard,
		"deadline":      context.DeadlineExceeded,
	}
}

// fails puts an error into an answer.
func (a *answer) fails(err error) {
	a.Error = strings.ToValidUTF8(err.Error(), "?")
	if len(a.Error) > maxText {
		a.Error = strings.ToValidUTF8(a.Error[:maxText], "") + "..."
	}
	if a.Error == "" {
		a.Error = "an error without words"
	}
	for name, kind := range kinds() {
		if errors.Is(err, kind) {
			a.Kinds = append(a.Kinds, name)
		}
	}
	slices.Sort(a.Kinds) // the same bytes for the same error
}

// failure returns the error of an answer, nil if it has none.
func (a *answer) failure() error {
	if a.Error == "" {
		return nil
	}
	all := kinds()
	far := &farError{text: a.Error}
	for _, name := range a.Kinds {
		if kind, ok := all[name]; ok { // another version may know more
			far.kinds = append(far.kinds, kind)
		}
	}
	return far
}

// farError is an error of the radio's host, in its words.
type farError struct {
	text  string
	kinds []error
}

// Error returns the sentence as the radio's host has it.
func (e *farError) Error() string { return e.text }

// Unwrap returns what kinds of error it is.
func (e *farError) Unwrap() []error { return e.kinds }
