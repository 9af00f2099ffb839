//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package lockfile

import (
	"errors"
	"io/fs"
	"os"
)

// suffix is what the name of the file that stands for the lock ends in.
const suffix = ".held"

// File is an open file that is locked until it is closed.
type File struct {
	*os.File
	guard string // the path of the file that stands for the lock
}

// Hint says what a user must do about a lock that a killed process has left: it
// is a file, which such a process cannot remove.
func Hint(path string) string {
	return " (if none is running, remove " + path + suffix + ")"
}

func open(path string) (*File, error) {
	held, err := os.OpenFile(path+suffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, err
	}
	err = held.Close()
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path+suffix))
	}
	return &File{File: f, guard: path + suffix}, nil
}

// Close closes the file and gives up the lock.
func (f *File) Close() error {
	err := f.File.Close()
	if errors.Is(err, os.ErrClosed) {
		return err // the lock may be another's by now
	}
	return errors.Join(err, os.Remove(f.guard))
}
