package intake_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"ringwave/radio/intake"
)

// What a user can mend is told from what the machine has failed at, however it is wrapped.
func TestUserErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		user bool
	}{
		{"a marked error", intake.UserError(errors.New("a key")), true},
		{"a wrapped one", fmt.Errorf("reading: %w", intake.UserError(errors.New("a key"))), true},
		{"any other", errors.New("a disk"), false},
		{"a path that is not there", intake.PathError(&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}), true},
		{"a path that is taken", intake.PathError(&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EEXIST}), true},
		{"a full disk", intake.PathError(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), false},
		{"a content", intake.PathError(errors.New("line 3")), true},
		{"nothing", intake.UserError(nil), false},
		{"nothing of a path", intake.PathError(nil), false},
	} {
		if got := intake.IsUserError(c.err); got != c.user {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if intake.UserError(nil) != nil || intake.PathError(nil) != nil {
		t.Error("nil became an error")
	}
}
