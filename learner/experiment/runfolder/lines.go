package runfolder

import (
	"fmt"
	"io/fs"
	"os"

	"ringwave/radio/intake"
)

// Lines is a file of lines, of which killed processes and full disks leave whole ones. It
// is for one goroutine.
type Lines struct{ lines lineFile }

// OpenLines opens a file to add lines to it. One without any gets a header, and the part of
// a line at its end is cut off.
func OpenLines(path, header string, mode fs.FileMode) (*Lines, error) {
	lines, err := openLines(path, mode)
	if err != nil {
		return nil, err
	}
	l := &Lines{lines}
	if l.lines.end == 0 {
		err = l.Add(header)
	}
	if err != nil {
		l.lines.f.Close()
		return nil, err
	}
	return l, nil
}

// Add adds a line, or nothing.
func (l *Lines) Add(line string) error {
	if err := l.lines.add([]byte(line + "\n")); err != nil {
		return fmt.Errorf("writing %s: %w", l.lines.path, err)
	}
	return nil
}

// Close closes the file.
func (l *Lines) Close() error { return l.lines.close() }

// openLines opens a file, or makes it, and cuts off what is no whole line.
func openLines(path string, mode fs.FileMode) (l lineFile, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return l, fmt.Errorf("opening %s: %w", path, intake.Cause(err))
	}
	end, err := wholeLines(f)
	if err != nil {
		f.Close()
		return l, fmt.Errorf("reading %s: %w", path, intake.Cause(err))
	}
	if err := truncate(f, path, end); err != nil {
		f.Close()
		return l, err
	}
	return lineFile{f: f, path: path, end: end}, nil
}

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
		return fmt.Errorf("%w, and the part that was written could not be cut off at byte %d: %w", intake.Cause(err), l.end, intake.Cause(cut))
	}
	return intake.Cause(err)
}

func (l *lineFile) sync() error {
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("bringing %s to disk: %w", l.path, intake.Cause(err))
	}
	return nil
}

func (l *lineFile) close() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", l.path, intake.Cause(err))
	}
	return nil
}

// truncate cuts the file to its first size bytes.
func truncate(f *os.File, path string, size int64) error {
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("cutting %s back to %d bytes: %w", path, size, intake.Cause(err))
	}
	return nil
}
