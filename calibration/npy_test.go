package calibration

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npy"
)

// Two devices, one of them without any gain.
func someGains(t *testing.T) (paths []string, gains []complex128) {
	gains = []complex128{1, 2i, complex(math.NaN(), math.NaN()), -3.5e-300 + 1e300i}
	for k, g := range [][]complex128{gains, nil} {
		b, err := EncodeGains(g)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprintf("gains-%d.npy", k+1)))
		if err := os.WriteFile(paths[k], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return paths, gains
}

func TestGains(t *testing.T) {
	paths, gains := someGains(t)
	b, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []complex128
	if err := npy.Read(bytes.NewReader(b), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(gains) {
		t.Fatalf("%d of %d gains", len(got), len(gains))
	}
	for k, g := range gains {
		if math.Float64bits(real(got[k])) != math.Float64bits(real(g)) || math.Float64bits(imag(got[k])) != math.Float64bits(imag(g)) {
			t.Errorf("gain %d is %v, want %v", k, got[k], g)
		}
	}
}

// NumPy itself reads them.
func TestGainsInNumPy(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import numpy").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("there is no python3 with numpy here: what NumPy reads is not checked")
	}
	paths, _ := someGains(t)
	const script = `
import sys, numpy
a, b = numpy.load(sys.argv[1]), numpy.load(sys.argv[2])
print(a.dtype, a.shape, a[1], numpy.isnan(a[2]), a[3], a.reshape(-1, 2).shape, b.dtype, b.shape)`
	out, err := exec.Command(python, "-c", script, paths[0], paths[1]).CombinedOutput()
	const want = "complex128 (4,) 2j True (-3.5e-300+1e+300j) (2, 2) complex128 (0,)"
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("NumPy says %q, want %q: %v", got, want, err)
	}
}
