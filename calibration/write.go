package calibration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes the file to path so that whoever looks sees the old content or the new,
// never a part. A file that Read would refuse is not written: the error says why.
func Write(path string, f File) error {
	text := f.Text()
	if _, err := Parse(path, text); err != nil {
		return fmt.Errorf("writing the calibration: %w", err)
	}
	return writeFile(path, text)
}

// writeFile replaces path by data: into a temporary file beside it, synced, then
// renamed. On any error the old content stays and the temporary file is removed.
func writeFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-"+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	if err := replace(temp, path, data); err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("writing %s (what was there before is unchanged): %w", path, cause(err))
	}
	syncDir(filepath.Dir(path))
	return nil
}

// replace fills temp, closes it in any case, and renames it to path.
func replace(temp *os.File, path string, data []byte) error {
	if err := fill(temp, data); err != nil {
		temp.Close()
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func fill(temp *os.File, data []byte) error {
	if _, err := temp.Write(data); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner reads; results are shared.
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	return temp.Sync()
}

// syncDir asks the disk to keep a rename in dir. Its error is of no use: the rename is
// done, and after a power cut either content is whole. Some systems cannot.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	_ = d.Sync()
}

// cause takes the operation and the path off an error of package os, because every
// message here has already named the file.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
