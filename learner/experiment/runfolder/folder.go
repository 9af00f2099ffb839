// Package runfolder keeps one run's folder, runs/<utc>-<name>/.
//
// It takes in rows of metrics, checkpoints, a summary, a manifest, log events
// and whole files, and gives them back on reading. What it writes is either
// there whole or not there: small files appear by rename, lines are added one
// write at a time, and a line that did not fit is taken out again. Two
// processes cannot hold the same folder. It knows files: not what learning,
// cryptography or a radio is, nor which of the numbers are good.
package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ringwave/crypto/lockfile"
	"ringwave/radio/intake"
)

// The names of the files that a run folder is known by.
const (
	ConfigName     = "config.toml"
	ManifestName   = "manifest.json"
	MetricsName    = "metrics.csv"
	SummaryName    = "summary.json"
	CheckpointName = "checkpoint"
	LogName        = "log.jsonl"
	// CalibrationName is the calibration that a run went by.
	CalibrationName = "calibration.toml"

	lockName   = ".lock"
	tempPrefix = ".tmp-"
)

// Folder is a run folder that this process holds the lock of. Its methods may
// be called from several goroutines.
type Folder struct {
	path string
	lock *lockfile.File
}

// mostOfASecond is how many folders of one name MakeDir makes within a second.
const mostOfASecond = 10000

// MakeDir makes a new and empty folder, with its parents, and returns its path:
// root/20261120T134500Z-name, with t in UTC, or behind that -2, -3 and so on where there
// is one already. No two calls return the same path, in whatever processes.
func MakeDir(root, name string, t time.Time) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("making the folder %s: %w", root, intake.Cause(err))
	}
	first := defaultDir(root, name, t)
	path := first
	for n := 2; n <= mostOfASecond; n++ {
		// Mkdir succeeds for one process alone.
		err := os.Mkdir(path, 0o755)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("making the folder %s: %w", path, intake.Cause(err))
		}
		path = fmt.Sprintf("%s-%d", first, n)
	}
	return "", fmt.Errorf("making the folder %s: it is there, and so are those up to %s: name another", first, path)
}

// RemoveUnbegun removes the folder of a run that was killed before its first checkpoint,
// and so before its first round. A folder with anything in it that is not of such a run
// is left alone, as is one that another process holds.
func RemoveUnbegun(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into %s: %w", dir, intake.Cause(err))
	}
	known := []string{ConfigName, ManifestName, MetricsName, LogName, CalibrationName, lockName, "shares.journal", "link.secret"}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".lock")
		if e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) && !slices.Contains(known, e.Name()) && !slices.Contains(known, name) {
			return fmt.Errorf("%s holds %s and no checkpoint: it is no run that was broken off as it began; name another folder", dir, e.Name())
		}
	}
	f, err := hold(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.RemoveAll(dir))
}

// IfMade returns what removes a folder again that is not there yet: once it was made, and
// where it is empty. What was there before, as a link to a folder, stays.
func IfMade(dir string) (remove func()) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return func() {}
	}
	return func() { _ = os.Remove(dir) } // which refuses one that is not empty
}

// defaultDir returns root/20261120T134500Z-name. Whatever in name is not a letter or
// digit of ASCII, a dot, an underscore or a hyphen becomes a hyphen; an empty name
// becomes "run".
func defaultDir(root, name string, t time.Time) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	if safe == "" {
		safe = "run"
	}
	return filepath.Join(root, t.UTC().Format("20060102T150405Z")+"-"+safe)
}

// Create makes the folder dir, with its parents, and locks it. A folder that is
// there and not empty is refused, so that no run ever overwrites another.
func Create(dir string) (*Folder, error) {
	// Looked at before anything is written: a mistyped path must not leave a
	// lock file in somebody's folder.
	if err := requireEmpty(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the run folder %s: %w", dir, intake.Cause(err))
	}
	f, err := hold(dir)
	if err != nil {
		return nil, err
	}
	// Looked at again under the lock: another process may have been quicker.
	if err := requireEmpty(dir); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// requireEmpty returns an error if dir is there and holds more than a lock file.
func requireEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into the run folder %s: %w", dir, intake.Cause(err))
	}
	for _, e := range entries {
		// Some systems have a second file for the lock.
		if !strings.HasPrefix(e.Name(), lockName) {
			return fmt.Errorf("the run folder %s is not empty (it holds %s): name a new or an empty folder", dir, e.Name())
		}
	}
	return nil
}

// Open locks the folder of an earlier run, to go on with it. Temporary files
// that a killed process left are removed.
func Open(dir string) (*Folder, error) {
	if err := requireRun(dir); err != nil {
		return nil, err
	}
	f, err := hold(dir)
	if err != nil {
		return nil, err
	}
	if err := f.removeTemps(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// requireRun returns an error unless dir holds a file that only a run has.
func requireRun(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("opening the run folder %s: %w", dir, intake.Cause(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a run folder: it is a file", dir)
	}
	for _, name := range []string{ConfigName, ManifestName, MetricsName, CheckpointName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is not a run folder: it has none of %s, %s, %s and %s", dir, ConfigName, ManifestName, MetricsName, CheckpointName)
}

func hold(dir string) (*Folder, error) {
	path := filepath.Join(dir, lockName)
	lock, err := lockfile.Open(path)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("the run folder %s is in use by another process%s: wait for it to end, or choose another folder", dir, lockfile.Hint(path))
	}
	if err != nil {
		return nil, fmt.Errorf("locking the run folder %s: %w", dir, intake.Cause(err))
	}
	return &Folder{path: dir, lock: lock}, nil
}

func (f *Folder) removeTemps() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("looking into the run folder %s: %w", f.path, intake.Cause(err))
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(f.file(e.Name())); err != nil {
			return fmt.Errorf("removing the left-over file %s: %w", f.file(e.Name()), intake.Cause(err))
		}
	}
	return nil
}

// Path returns the folder's path as it was named in Create or Open.
func (f *Folder) Path() string { return f.path }

// Close gives up the lock. It does not close Metrics or a Log opened from f.
func (f *Folder) Close() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the run folder %s: %w", f.path, intake.Cause(err))
	}
	return nil
}

func (f *Folder) file(name string) string { return filepath.Join(f.path, name) }

// WriteAtomic writes the file name in the folder, as WriteFile does. The name
// is that of a file in the folder itself and does not begin with a dot.
func (f *Folder) WriteAtomic(name string, data []byte) error {
	if name == "" || name != filepath.Base(name) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("writing into the run folder %s: %q is not the name of a file in it (no folders, no leading dot)", f.path, name)
	}
	return WriteFile(f.file(name), data)
}

// WriteFile writes data to path so that whoever looks sees the old content or
// the new, never a part: into a temporary file beside it, synced, then renamed.
// On any error the old content stays and the temporary file is removed.
func WriteFile(path string, data []byte) error { return writeFile(path, data, 0o644) }

// WritePrivate is WriteFile for what only its owner may read.
func WritePrivate(path string, data []byte) error { return writeFile(path, data, 0o600) }

func writeFile(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), tempPrefix+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, intake.Cause(err))
	}
	if err := replace(temp, path, data, mode); err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("writing %s (what was there before is unchanged): %w", path, intake.Cause(err))
	}
	syncDir(filepath.Dir(path))
	return nil
}

// replace fills temp, closes it in any case, and renames it to path.
func replace(temp *os.File, path string, data []byte, mode fs.FileMode) error {
	if err := fill(temp, data, mode); err != nil {
		temp.Close()
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func fill(temp *os.File, data []byte, mode fs.FileMode) error {
	if _, err := temp.Write(data); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner reads; results are shared.
	if err := temp.Chmod(mode); err != nil {
		return err
	}
	return temp.Sync()
}

// What is read back of a folder is bounded, in bytes: a summary or a manifest, and a
// checkpoint, which has the largest model there is twice, and scalars of momentum.
const (
	maxJSON       = 1 << 20
	maxCheckpoint = 2*8*MaxTheta + 32<<20
)

// MaxTheta is the most parameters of a model whose checkpoints are read back.
const MaxTheta = 1 << 26

// jsonLimits bound JSON of a folder: lists are of devices at most.
func jsonLimits() intake.JSONLimits {
	return intake.JSONLimits{Depth: 8, Members: 256, Elements: 1 << 14}
}
