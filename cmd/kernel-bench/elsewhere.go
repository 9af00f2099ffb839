//go:build !(linux && amd64)

// Command kernel-bench needs Linux on x86-64.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "kernel-bench: this needs Linux on x86-64")
	os.Exit(2)
}
