package sweepreport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/radio/intake"
)

// Replaceable refuses a folder that has anything in it but a report.
func Replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return intake.PathError(fmt.Errorf("looking into the folder of the report: %w", err))
	}
	for _, e := range entries {
		if e.IsDir() || !isOurs(e.Name()) {
			return intake.UserError(fmt.Errorf("the folder of the report, %s, holds %s: must be new or empty, or have an earlier report alone, which is replaced", out, e.Name()))
		}
	}
	return nil
}

// isOurs reports whether a file is one that a report has.
func isOurs(name string) bool {
	if slices.Contains([]string{HTMLName, MarkdownName, RunsName, CurvesName}, name) {
		return true
	}
	return strings.HasPrefix(name, figurePrefix) && slices.Contains([]string{".svg", ".png"}, filepath.Ext(name))
}

// hidden begins the names of folders that a report is made in, or was in, beside its own.
func hidden(out string) string { return "." + filepath.Base(out) + "-report-" }

// beside makes a folder that can be renamed to out. One that a killed process leaves is
// hidden, and in nobody's way.
func beside(out string) (string, error) {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the report: %w", err)
	}
	dir, err := os.MkdirTemp(parent, hidden(out))
	if err != nil {
		return "", fmt.Errorf("making the folder of the report: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

// replace puts a folder into the place of out. Whoever looks there finds the old folder or
// the new one; where the system cannot exchange two, for a moment none.
func replace(dir, out string) error {
	err := os.Rename(dir, out) // onto nothing, or an empty folder
	if err == nil {
		return nil
	}
	if exchange(dir, out) == nil {
		return nil // the old one is removed with what the report was made in
	}
	old := dir + "-old"
	if err := os.Rename(out, old); err != nil {
		return fmt.Errorf("replacing the report: %w", err)
	}
	if err := os.Rename(dir, out); err != nil {
		return errors.Join(fmt.Errorf("replacing the report: %w", err), os.Rename(old, out))
	}
	_ = os.RemoveAll(old) // which nobody looks for
	return nil
}
