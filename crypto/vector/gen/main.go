// Command gen writes the assembly of the packages that compute with vectors, and the Go
// declarations beside it. In crypto/vector:
//
//	go generate
//
// It is a module of its own so that the program does not depend on avo.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

// assembly is a file of assembly, and what writes it.
type assembly struct {
	folder string // from the top of the repository
	file   string // without its ending
	write  func()
}

func files() map[string]assembly {
	return map[string]assembly{
		"kernel": {"learner/model/kernel", "tile_amd64", tiles},
		"ntt":    {"crypto/ntt", "passes_amd64", transforms},
	}
}

// arguments returns those with which this command writes the file into a folder.
func (a assembly) arguments(name, folder string) []string {
	return []string{
		"-of", name, "-pkg", path.Base(a.folder),
		"-out", filepath.Join(folder, a.file+".s"), "-stubs", filepath.Join(folder, a.file+".go"),
	}
}

func main() {
	of := flag.String("of", "", "the package to write the assembly of; all of them without it")
	flag.Parse()
	if *of == "" {
		all()
		return
	}
	a, ok := files()[*of]
	if !ok {
		fail(fmt.Errorf("-of is %q: allowed are %v", *of, slices.Sorted(maps.Keys(files()))))
	}
	ConstraintExpr("amd64")
	a.write()
	Generate()
}

// all runs this command for each file: one process writes one.
func all() {
	for name, a := range files() {
		run := exec.Command("go", append([]string{"run", "."}, a.arguments(name, filepath.Join("..", "..", "..", a.folder))...)...)
		run.Stderr = os.Stderr
		if err := run.Run(); err != nil {
			fail(fmt.Errorf("writing %s: %w", name, err))
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gen:", err)
	os.Exit(2)
}
