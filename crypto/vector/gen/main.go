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
	"github.com/mmcloughlin/avo/reg"
)

// assembly is a file of assembly, and what writes it.
type assembly struct {
	folder string // from the top of the repository
	file   string // without its ending
	write  func()
}

func files() map[string]assembly {
	return map[string]assembly{
		"kernel":    {"learner/model/kernel", "tile_amd64", tiles},
		"keystream": {"crypto/keystream", "aes_amd64", keystreams},
		"ntt":       {"crypto/ntt", "passes_amd64", transforms},
		"model":     {"learner/model", "dots_amd64", dots},
		"samples":   {"phy/kernel", "samples_amd64", signals},
		"zq":        {"phy/zq", "scaled_amd64", multiples},
		"sampler":   {"crypto/sampler", "counts_amd64", samplers},
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
	ConstraintExpr("amd64,!purego")
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

// wipe overwrites all vector registers: what is left in them at the end is secret.
func wipe(lanes int) {
	if lanes == 8 {
		for _, z := range []reg.VecPhysical{
			reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
			reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
		} {
			VPXORQ(z, z, z)
		}
	}
	VZEROALL()
}
