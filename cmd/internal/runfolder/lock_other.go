//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package runfolder

import (
	"errors"
	"io/fs"
	"os"
)

// heldHint says what these systems need: the lock is a file that a killed
// process cannot remove.
const heldHint = " (if none is running, remove its file " + lockName + ")"

var errHeld = errors.New("lock held")

// takeLock makes the file at path, or gives errHeld if it is there.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, errHeld
	}
	return f, err
}

func releaseLock(f *os.File) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Remove(f.Name())
}

// syncDir does nothing: a folder cannot be synced here.
func syncDir(string) {}
