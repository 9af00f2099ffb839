// Command gen writes the assembly of the packages that compute with vectors:
//
//	go run . -of ntt -out ../../ntt/passes_amd64.s -stubs ../../ntt/passes_amd64.go -pkg ntt
//
// It is a module of its own so that the program does not depend on avo.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

// files has what writes the assembly of each package.
var files = map[string]func(){
	"ntt": transforms,
}

func main() {
	of := flag.String("of", "", "the package to write the assembly of")
	flag.Parse()
	write, ok := files[*of]
	if !ok {
		fmt.Fprintf(os.Stderr, "gen: -of is %q: allowed are %v\n", *of, slices.Sorted(maps.Keys(files)))
		os.Exit(2)
	}
	ConstraintExpr("amd64")
	write()
	Generate()
}
