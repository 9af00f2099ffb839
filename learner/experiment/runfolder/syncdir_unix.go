//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runfolder

import "os"

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
