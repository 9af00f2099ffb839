package jobs

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"ringwave/learner/experiment/runfolder"
)

const (
	// mostFiles bounds the files of a result, mostBytes their length in all.
	mostFiles = 64
	mostBytes = 256 << 20
	// mostArchive bounds a result as it is sent, with its header within what a bus takes.
	mostArchive = 64<<20 - mostHeader
)

// fileForm is what a file of a result may be called.
var fileForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// pack returns files of a folder as an archive.
func pack(dir string, names []string) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if err := packFile(w, filepath.Join(dir, name), name); err != nil {
			return nil, fmt.Errorf("packing the result: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing the result: %w", err)
	}
	return b.Bytes(), nil
}

func packFile(w *zip.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	entry, err := w.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, file)
	return err
}

// unpack writes the files of an archive into a folder that is there.
func unpack(archive []byte, dir string) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return fmt.Errorf("the result is no archive: %w", err)
	}
	if len(r.File) == 0 || len(r.File) > mostFiles {
		return fmt.Errorf("the result has %d files; allowed are 1 to %d", len(r.File), mostFiles)
	}
	left := int64(mostBytes)
	seen := map[string]bool{}
	for _, f := range r.File {
		if !fileForm.MatchString(f.Name) || seen[f.Name] {
			return fmt.Errorf("the result has a file %.40q; allowed are letters, digits and _.- , each name once", f.Name)
		}
		seen[f.Name] = true
		data, err := readEntry(f, left)
		if err != nil {
			return fmt.Errorf("the result's %s: %w", f.Name, err)
		}
		left -= int64(len(data))
		if err := runfolder.WriteFile(filepath.Join(dir, f.Name), data); err != nil {
			return &storeError{err}
		}
	}
	return nil
}

// readEntry returns the bytes of an entry, of which there may be most.
func readEntry(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1)) // which checks CRC-32 at its end
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes in all", mostBytes)
	}
	return data, err
}

// storeError is one of this host's disk, not of what came.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }
