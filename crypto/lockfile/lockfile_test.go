package lockfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const childPath = "RINGWAVE_TEST_LOCK"

// A file is held against this process and others, until it is closed or its
// holder is killed; what is in it stays.
func TestOpen(t *testing.T) {
	if path := os.Getenv(childPath); path != "" {
		if _, err := Open(path); err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin)
		return
	}
	path := filepath.Join(t.TempDir(), "file")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("a second open: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	child := holder(t, path)
	if _, err := Open(path); !errors.Is(err, ErrHeld) {
		t.Errorf("while another process holds it: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed, as it was meant to be
	if Hint(path) != "" {
		t.Skip("this system keeps the locks of killed processes")
	}
	if f, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was locked")
	}
}

// holder starts a process that holds a file.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestOpen$")
	child.Env = append(os.Environ(), childPath+"="+path)
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return child
}
