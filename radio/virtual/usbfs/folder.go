//go:build linux

package usbfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// folderPrefix begins the names of buses' folders.
	folderPrefix = "ringwave-bench-"
	// lockName is a file in each that is locked as long as its program lives.
	lockName = "lock"
)

// errTaken: another program has the lock, or has taken the folder away.
var errTaken = errors.New("another program has it")

// newFolder makes a temporary folder that is left alone by others until lock is closed.
func newFolder() (dir string, lock *os.File, err error) {
	for {
		if dir, err = os.MkdirTemp("", folderPrefix); err != nil {
			return "", nil, err
		}
		// One that sweeps may come between making the lock and taking it.
		if lock, err = claim(dir, os.O_CREATE); !errors.Is(err, errTaken) {
			break
		}
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// claim takes the lock of a folder; errTaken if it cannot be had.
func claim(dir string, flags int) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errTaken
	}
	mine, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(path); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	f.Close()
	return nil, errTaken
}

// sweep takes away the folders of this user's programs that were killed. What cannot be
// taken away stays: it is in nobody's way.
func sweep() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
			continue
		}
		dir := filepath.Join(os.TempDir(), e.Name())
		lock, err := claim(dir, 0)
		if err != nil {
			continue // it lives, or is no bus's
		}
		_ = os.RemoveAll(dir)
		lock.Close()
	}
}

// viewsName is the folder of views in a bus's.
const viewsName = "views"

// newView makes a folder by which one program sees the boards. The preload library
// keeps sockets of its own there, named by the program's file descriptors: two programs
// in one folder would take each other's away.
func (b *Bus) newView() (dir string, err error) {
	b.viewing.Lock()
	defer b.viewing.Unlock()
	dir = filepath.Join(b.dir, viewsName, fmt.Sprint(len(b.views)))
	if err := makeView(dir); err != nil {
		return "", err
	}
	b.views = append(b.views, dir)
	for _, d := range b.devices {
		if d == nil {
			continue
		}
		if err := d.appear(dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// makeView makes the folders without which libusb and udev say that the machine has no
// USB.
func makeView(dir string) error {
	for _, sub := range []string{"sys/bus/usb/devices", "dev/.node", "dev/bus/usb/001", "ioctl/dev/bus/usb/001"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// mirror makes what is at from be at to as well.
func mirror(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !info.IsDir():
		return os.Link(from, to)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := mirror(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
