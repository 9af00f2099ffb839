package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCurrent says whether the assembly beside this module is what the generator gives.
func TestCurrent(t *testing.T) {
	dir := t.TempDir()
	run := exec.Command("go", "run", ".", "-out", filepath.Join(dir, "tile_amd64.s"), "-stubs", filepath.Join(dir, "tile_amd64.go"), "-pkg", "kernel")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"tile_amd64.s", "tile_amd64.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		// The first line has the command.
		if _, want, _ := bytes.Cut(want, []byte("\n")); !bytes.HasSuffix(got, want) {
			t.Errorf("%s is not what the generator gives: run it again", name)
		}
	}
}
