package sweeps

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// A sweep goes into a folder that is new, empty, or a sweep's: in any other it would write
// and remove what is not its own.
func TestOwnFolder(t *testing.T) {
	for what, files := range map[string][]string{
		"empty": {}, "begun, and killed": {"queue/"}, "killed later": {"queue/.lock"}, "earlier": {"queue/.lock", "queue/engine.id", "runs/", "notes.txt"},
		"without its queue": {"state.json", "runs/"},
	} {
		if err := ownFolder(folderOf(t, `{"runs": 8}`, files)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for holds, files := range map[string][]string{
		"thesis.tex": {"thesis.tex"}, "queue": {"queue/enrolled/ca.key"}, "state.json": {"state.json"}, "a": {"a", "queue/"},
	} {
		err := ownFolder(folderOf(t, "{}", files))
		if !intake.IsUserError(err) || !strings.Contains(err.Error(), "holds "+holds+": must be new or empty") {
			t.Errorf("%v: %v", files, err)
		}
	}
	if err := ownFolder(filepath.Join(t.TempDir(), "new")); err != nil {
		t.Error(err)
	}
}

// folderOf makes a folder with files of a text, and folders, whose names end in a slash.
func folderOf(t *testing.T, text string, names []string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A sweep that is done is done, whoever cancels it then.
func TestDoneIsNotCancelled(t *testing.T) {
	for want, s := range map[string]State{
		"done":      {Runs: 2, Done: 1, Aside: 1, Cancelled: true},
		"cancelled": {Runs: 2, Done: 1, Cancelled: true},
		"running":   {Runs: 2, Done: 2, Active: true},
		"stopped":   {Runs: 2, Done: 1},
	} {
		s.Name = "x"
		var b bytes.Buffer
		if err := s.WriteText(&b, time.Now()); err != nil || !strings.HasPrefix(b.String(), "x: "+want+", ") {
			t.Errorf("%v: %q in place of %s", err, b.String(), want)
		}
	}
}

// A patience of less than nothing is refused.
func TestPatienceRefused(t *testing.T) {
	dir := t.TempDir()
	folder, err := identity.Create(filepath.Join(dir, "q"), identity.Options{Sweeps: true})
	if err != nil {
		t.Fatal(err)
	}
	err = Work(t.Context(), WorkOptions{Identity: folder.IdentityPath(identity.Worker, 0), Patience: -time.Second, Scratch: dir, Say: func(string) {}})
	if !intake.IsUserError(err) || !strings.Contains(err.Error(), "--patience is -1s") {
		t.Errorf("%v", err)
	}
}
