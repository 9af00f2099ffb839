package intake

import (
	"errors"
	"io/fs"
	"os"
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

// Cause takes the operation and the paths off an error of package os, for a message that has
// named the file already.
func Cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
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
