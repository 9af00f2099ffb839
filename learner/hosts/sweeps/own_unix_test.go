//go:build unix

package sweeps

import (
	"os"
	"path/filepath"
	"testing"

	"ringwave/radio/intake"
)

// The folder of a worker among those of all users is its user's alone.
func TestPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := private(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v: the mode is %v", err, info.Mode())
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := private(link); !intake.IsUserError(err) {
		t.Errorf("a link that another may have made: %v", err)
	}
	if os.Getuid() != 0 {
		return // to make another user's takes root
	}
	if err := os.Chown(dir, 4242, -1); err != nil {
		t.Fatal(err)
	}
	if err := private(dir); !intake.IsUserError(err) {
		t.Errorf("another user's folder: %v", err)
	}
}
