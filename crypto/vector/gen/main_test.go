package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCurrent says whether the assembly in the packages is what the generator gives.
func TestCurrent(t *testing.T) {
	for name, f := range files() {
		dir := t.TempDir()
		run := exec.Command("go", append([]string{"run", "."}, f.arguments(name, dir)...)...)
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		for _, file := range []string{f.file + ".s", f.file + ".go"} {
			want, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "..", f.folder, file)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The first line has the command.
			_, want, _ = bytes.Cut(want, []byte("\n"))
			if first, got, _ := bytes.Cut(got, []byte("\n")); !bytes.Equal(got, want) || !strings.HasPrefix(string(first), "// Code generated") {
				t.Errorf("%s is not what the generator gives: run go generate in crypto/vector", path)
			}
		}
	}
}
