package runfolder

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newFolder(t *testing.T) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "runs", "one"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// wantError fails unless err is one line that has every part in it.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has several lines", err)
	}
}

func TestMakeDir(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 45, 0, 0, time.FixedZone("CET", 3600))
	for name, want := range map[string]string{
		"mnist":   "20261120T134500Z-mnist",
		"":        "20261120T134500Z-run",
		"../a b/": "20261120T134500Z-..-a-b-",
		"σ=1":     "20261120T134500Z---1",
	} {
		root := filepath.Join(t.TempDir(), "runs")
		for _, suffix := range []string{"", "-2", "-3"} {
			got, err := MakeDir(root, name, at)
			if err != nil || got != filepath.Join(root, want+suffix) {
				t.Errorf("MakeDir(%q) = %s, %v; want %s", name, got, err, want+suffix)
			}
			if _, err := Create(got); err != nil {
				t.Error(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := MakeDir(file, "run", at)
	wantError(t, err, file)
}

// Whoever asks at the same moment gets a folder of its own.
func TestMakeDirAtOnce(t *testing.T) {
	const callers = 32
	root, at := filepath.Join(t.TempDir(), "runs"), time.Date(2026, 11, 20, 14, 45, 0, 0, time.UTC)
	paths := make(chan string, callers)
	for range callers {
		go func() {
			path, err := MakeDir(root, "run", at)
			if err != nil {
				t.Error(err)
			}
			paths <- path
		}()
	}
	seen := map[string]bool{}
	for range callers {
		seen[<-paths] = true
	}
	if len(seen) != callers {
		t.Errorf("%d callers got %d folders", callers, len(seen))
	}
}

func TestCreateRefusesWhatIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Create(dir)
	wantError(t, err, dir, "thesis.tex", "not empty")
	if _, err := os.Stat(filepath.Join(dir, lockName)); err == nil {
		t.Error("a lock file was left in the refused folder")
	}
	_, err = Create(filepath.Join(dir, "thesis.tex"))
	wantError(t, err, "thesis.tex")
}

func TestCreateTakesAnEmptyFolder(t *testing.T) {
	f, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// A run that ended before its first file left a lock file only.
	again, err := Create(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestLock(t *testing.T) {
	f := newFolder(t)
	_, err := Create(f.Path())
	wantError(t, err, f.Path(), "another process")
	if err := f.WriteAtomic(ConfigName, []byte("a")); err != nil {
		t.Fatal(err)
	}
	_, err = Open(f.Path())
	wantError(t, err, f.Path(), "another process")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "absent"))
	wantError(t, err, "absent", "no such file")
	_, err = Open(dir)
	wantError(t, err, dir, "not a run folder")
	file := filepath.Join(dir, ConfigName)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file)
	wantError(t, err, file, "it is a file")

	left := filepath.Join(dir, tempPrefix+"checkpoint-123")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Stat(left); err == nil {
		t.Error("the left-over temporary file is still there")
	}
}

func TestWriteAtomic(t *testing.T) {
	f := newFolder(t)
	for _, content := range []string{"old", "new"} {
		if err := f.WriteAtomic("a.txt", []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.file("a.txt"))
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v, want %q", got, err, content)
		}
	}
	for _, name := range []string{"", ".", "..", "../a", "a/b", `a\b`, lockName} {
		wantError(t, f.WriteAtomic(name, nil), "not the name of a file")
	}
	onlyHas(t, f.Path(), lockName, "a.txt")
}

func TestWriteAtomicFails(t *testing.T) {
	f := newFolder(t)
	// A folder of that name with something in it cannot be renamed over.
	if err := os.MkdirAll(f.file("a.txt/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantError(t, f.WriteAtomic("a.txt", []byte("x")), f.file("a.txt"), "unchanged")
	onlyHas(t, f.Path(), lockName, "a.txt")
}

func onlyHas(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, names)
	}
}

func TestLog(t *testing.T) {
	f := newFolder(t)
	log, err := f.OpenLog()
	if err != nil {
		t.Fatal(err)
	}
	log.Warn("round failed", "round", 3, "reason", "sync lost")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(f.file(LogName))
	if err != nil {
		t.Fatal(err)
	}
	// A kill in the middle of a write longer than one block.
	part := append(bytes.Clone(whole), bytes.Repeat([]byte("x"), 10000)...)
	if err := os.WriteFile(f.file(LogName), part, 0o644); err != nil {
		t.Fatal(err)
	}
	if log, err = f.OpenLog(); err != nil {
		t.Fatal(err)
	}
	log.Info("resumed", "at", time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.file(LogName))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if len(lines) != 2 || lines[0]+"\n" != string(whole) {
		t.Fatalf("log is %q", got)
	}
	if !strings.Contains(lines[0], `"msg":"round failed","round":3,"reason":"sync lost"`) || !strings.Contains(lines[1], `"at":"2026-01-02T02:04:05Z"`) {
		t.Errorf("log is %q", got)
	}
}

func TestLogTellsOfLostEvents(t *testing.T) {
	disk := &fakeFile{room: 100}
	log := newLog(lineFile{f: disk, path: "log.jsonl"})
	log.Info("first")
	log.Info("second, which is too long for what is left")
	log.Info(strings.Repeat("third", 20))
	wantError(t, log.Close(), "2 events", "log.jsonl", errFull.Error())
	if n := bytes.Count(disk.data, []byte("\n")); n != 1 || disk.data[len(disk.data)-1] != '\n' {
		t.Errorf("log is %q, want one whole line", disk.data)
	}
}
