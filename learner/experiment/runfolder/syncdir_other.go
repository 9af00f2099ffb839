//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package runfolder

// syncDir does nothing: a folder cannot be synced here.
func syncDir(string) {}
