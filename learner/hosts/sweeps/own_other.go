//go:build !unix

package sweeps

import "io/fs"

// own reports whether a file is this user's: the folder for temporary files is.
func own(fs.FileInfo) bool { return true }
