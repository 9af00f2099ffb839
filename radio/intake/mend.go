package intake

import (
	"errors"
	"slices"
	"syscall"
)

// userError marks an error as the user's to mend.
type userError struct{ error }

func (e userError) Unwrap() error { return e.error }

// UserError marks err as one that the user can mend: of a configuration, a data file, an
// argument. nil stays nil.
func UserError(err error) error {
	if err == nil {
		return nil
	}
	return userError{err}
}

// IsUserError reports whether err, or what it wraps, was marked as the user's to mend.
func IsUserError(err error) bool {
	var e userError
	return errors.As(err, &e)
}

// PathError marks an error of a path as the user's to mend where the path does not exist,
// is taken or may not be used. A failing disk is the machine's.
func PathError(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && !slices.Contains([]syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.EACCES, syscall.EEXIST, syscall.EROFS, syscall.ENAMETOOLONG}, errno) {
		return err
	}
	return UserError(err)
}
