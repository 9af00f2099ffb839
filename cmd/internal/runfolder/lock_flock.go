//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runfolder

import (
	"errors"
	"os"
	"syscall"
)

// heldHint is empty: the system drops a lock when its process ends.
const heldHint = ""

var errHeld = errors.New("lock held")

// takeLock locks the file at path, making it if needed, or gives errHeld. The
// file stays when the lock is given up: removing it would let a third process
// lock a new file while a second still waits on the old one.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, err
}

func releaseLock(f *os.File) error { return f.Close() }

// syncDir asks the disk to keep a rename in dir. Its error is of no use: the
// rename is done, and after a power cut either content is whole.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	_ = d.Sync()
}
