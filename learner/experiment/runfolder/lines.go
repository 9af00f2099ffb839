package runfolder

import (
	"fmt"
	"os"
)

// file is the part of an os.File that a lineFile uses.
type file interface {
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// lineFile adds whole lines to a file, or nothing. end is where the last whole
// line ends: nothing of the file lies beyond it.
type lineFile struct {
	f    file
	path string
	end  int64
}

// add writes line, which ends in a newline, by one write. If not all of it was
// taken, the part that was is cut off again.
func (l *lineFile) add(line []byte) error {
	n, err := l.f.WriteAt(line, l.end)
	if err == nil && n < len(line) {
		err = fmt.Errorf("only %d of %d bytes were taken", n, len(line))
	}
	if err == nil {
		l.end += int64(len(line))
		return nil
	}
	if cut := l.f.Truncate(l.end); cut != nil {
		return fmt.Errorf("%w, and the part that was written could not be cut off at byte %d: %w", cause(err), l.end, cause(cut))
	}
	return cause(err)
}

func (l *lineFile) sync() error {
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("bringing %s to disk: %w", l.path, cause(err))
	}
	return nil
}

func (l *lineFile) close() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", l.path, cause(err))
	}
	return nil
}

// truncate cuts the file to its first size bytes.
func truncate(f *os.File, path string, size int64) error {
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("cutting %s back to %d bytes: %w", path, size, cause(err))
	}
	return nil
}
