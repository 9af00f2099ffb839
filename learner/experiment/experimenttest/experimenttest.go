package experimenttest

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The configurations, as seen from a package two folders deep.
const (
	LoopbackConfig     = "../../hw-configs/loopback.toml"
	CIFARConfig        = "../../hw-configs/cifar10-lenet.toml"
	Fig4Config         = "../../hw-configs/fig4-zf.toml"
	WaveformConfig     = "../../hw-configs/waveform-mnist.toml"
	AlignedConfig      = "../../hw-configs/waveform-aligned.toml"
	VirtualBenchConfig = "../../hw-configs/virtual-bench.toml"
)

// FewImages writes CIFAR-10 files of 20 random images each, of the classes 0 and 1.
func FewImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"} {
		var content []byte
		for i := range 20 {
			content = append(content, byte(i%2))
			for range 3072 {
				content = append(content, byte(rnd.Uint32()))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".bin"), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// WantAll wants each of some pieces in a text, of which a failure shows the beginning.
func WantAll(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%.10000s", p, text)
		}
	}
}

func ReadFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// NoData hides every data set that this machine may have.
func NoData(t *testing.T) {
	t.Setenv("RINGWAVE_DATA", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

// CacheFiles returns the files of a report's cache.
func CacheFiles(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "cache", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func ContainsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// NeedBench skips a test on a machine that lacks what an emulated bench needs, which is an
// error that err then is; with RINGWAVE_REQUIRE_BENCH=1 that is a failure, as other errors
// are.
func NeedBench(t testing.TB, err, lacking error) {
	t.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, lacking) || os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatal(err)
	}
	t.Skipf("%v (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)", err)
}

// Until waits until met, for a minute at most.
func Until(t testing.TB, what string, met func() bool) {
	t.Helper()
	const patience = time.Minute
	for end := time.Now().Add(patience); !met(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
