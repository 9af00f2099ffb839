package attack

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ringwave/crypto/sampler"
	"ringwave/crypto/xmkckks"
)

// crypto/README.md names attacks and tests that there are, and has the parameter sets
// as they are, with the inputs of an estimate.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	attacks := map[string]bool{}
	for _, a := range All() {
		attacks[a.Name] = true
	}
	for _, m := range regexp.MustCompile("`ringwave attack ([a-z0-9 -]+)`").FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Fields(m[1]) {
			if !attacks[name] {
				t.Errorf("there is no attack %s", name)
			}
		}
	}
	tests := testNames(t)
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1) {
		if !tests[m[1]] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for _, p := range xmkckks.Sets() {
		for _, want := range []string{tableLine(p), estimatorLine(p)} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no\n%s", p.Name, want)
			}
		}
	}
}

// tableLine returns the beginning of a set's line in the table of sets.
func tableLine(p xmkckks.Params) string {
	s := p.Security()
	met := func(ok bool) string {
		if ok {
			return "met"
		}
		return "exceeded"
	}
	name := "`" + p.Name + "`"
	if p.Name == xmkckks.Sets()[0].Name {
		name += " (default)"
	}
	return fmt.Sprintf("| %s | %d | %.0f | %.0f, %s | %.0f, %s | %.0f bits",
		name, p.N, s.LogQ, s.Standard, met(s.MeetsStandard()), s.Newer, met(s.MeetsNewer()), math.Round(s.Bits))
}

// estimatorLine returns the set as the lattice estimator takes it.
func estimatorLine(p xmkckks.Params) string {
	secret := map[sampler.Distribution]string{sampler.Ternary: "ternary", sampler.Signs: "signs"}[p.Secret]
	noise := map[sampler.Distribution]string{sampler.Binomial: "binomial", sampler.Gaussian: "gaussian"}[p.KeyError]
	return fmt.Sprintf("%q: LWE.Parameters(n=%d, q=%v, Xs=%s, Xe=%s, m=2*%d),", p.Name, p.N, p.Modulus(), secret, noise, p.N)
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
