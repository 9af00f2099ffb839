//go:build unix

package sweeps

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a file is this user's.
func own(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
