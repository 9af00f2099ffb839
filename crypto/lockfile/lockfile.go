// Package lockfile keeps a file for one holder at a time.
//
// It takes in a path and gives the open file, which no other process, and no
// second call in this one, gets before it is closed. It knows nothing of what is
// in the file. The lock is advisory: programs that do not ask for it are not kept
// out.
package lockfile

import (
	"errors"
	"os"
)

// ErrHeld says that the file is held already.
var ErrHeld = errors.New("in use by another process")

// Open opens the file at path for reading and writing, makes it if there is none,
// and locks it. The error is ErrHeld if another has it. The file stays when the
// lock is given up: removing it would let a third process lock a new file while a
// second still waits on the old one.
func Open(path string) (*File, error) { return open(path) }

// Held reports whether another has the file at path. It makes none.
func Held(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock, err := Open(path)
	if err == nil {
		_ = lock.Close() // nothing was written
	}
	return errors.Is(err, ErrHeld)
}
