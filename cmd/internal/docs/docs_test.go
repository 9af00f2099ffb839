package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the module's from here.
const root = "../../.."

// repository is the files of the repository and the folders they are in, by their paths
// from the root.
type repository map[string]bool

// readRepository lists the files below dir.
func readRepository(t *testing.T, dir string) repository {
	t.Helper()
	r := repository{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// What programs have written is not of the repository.
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "runs" || d.Name() == "screenshots") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(dir, name)
		if err == nil {
			r[filepath.ToSlash(rel)] = !d.IsDir()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has reports whether a name that a file in folder from cites is there: from the root, from
// the folder, or as the end of some path, the name of a file without its folder, say. Tests name files from the
// folder of whoever runs them, so that ../ at the beginning does not count. A star stands for
// part of a name.
func (r repository) has(from, name string) bool {
	name = strings.TrimSuffix(name, "/")
	if _, ok := r[path.Join(from, name)]; ok {
		return true
	}
	for strings.HasPrefix(name, "../") {
		name = name[len("../"):]
	}
	name = strings.TrimPrefix(name, "/")
	if _, ok := r[path.Clean(name)]; ok {
		return true
	}
	depth := strings.Count(name, "/")
	for p, file := range r {
		parts := strings.Split(p, "/")
		if !file || len(parts) <= depth {
			continue
		}
		if ok, err := path.Match(name, strings.Join(parts[len(parts)-depth-1:], "/")); ok && err == nil {
			return true
		}
	}
	return false
}

// mention is a text that may cite files, and where it is: its file and line.
type mention struct {
	file string
	line int
	text string
}

// written are the names of files that the program writes or its user has, and that are not
// of the repository.
var written = map[string]bool{
	"report.md": true, "timing.md": true, "comparison.md": true, "config.toml": true, "calibration.toml": true, "thesis.tex": true,
	"enrolment.toml": true, "SWEEP.toml": true,
}

var (
	// fileName is what looks like the name of a document, a configuration or a source
	// file, or like a path below a folder that has nothing else.
	fileName = regexp.MustCompile(`[A-Za-z0-9_./*-]*[A-Za-z0-9_*-]\.(?:md|toml|go|tex)\b|\b(?:hw-configs|scripts|\.ci|\.github)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*-]`)
	// link is that of Markdown to a file, with the heading in it or without.
	link    = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	section = regexp.MustCompile(`([A-Za-z/]*README\.md),? sections? ([0-9]+)(?: (?:to|and) ([0-9]+))?`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// outside is a folder that nobody who reads the repository has.
const outside = "../" + "shared"

// names returns the files that a text cites.
func (m mention) names() (list []string) {
	test := strings.HasSuffix(m.file, "_test.go")
	for _, at := range fileName.FindAllStringIndex(m.text, -1) {
		name := m.text[at[0]:at[1]]
		base := path.Base(name)
		address := strings.HasSuffix(m.text[:at[0]], ":") && strings.HasPrefix(name, "//")
		if address || written[base] || strings.HasPrefix(base, "_") { // _test.go is an ending
			continue
		}
		// Tests make up configurations of their own.
		if test && strings.HasSuffix(name, ".toml") && !strings.Contains(name, "hw-configs/") {
			continue
		}
		list = append(list, name)
	}
	return list
}

// wrong says which of a mention's citations lead nowhere. read gives the text of a file of
// the repository.
func (r repository) wrong(m mention, read func(name string) string) (list []string) {
	folder := path.Dir(m.file)
	// .ci/run looks there for data sets, and does without.
	if strings.Contains(m.text, outside) && !strings.HasPrefix(m.file, ".ci/") {
		list = append(list, outside+" is not in the repository")
	}
	for _, name := range m.names() {
		if !r.has(folder, name) {
			list = append(list, name+" is not in the repository")
		}
	}
	for _, at := range section.FindAllStringSubmatch(m.text, -1) {
		text := read(at[1])
		for _, number := range at[2:] {
			if number != "" && !strings.Contains(text, "\n## "+number+". ") {
				list = append(list, fmt.Sprintf("%s has no section %s", at[1], number))
			}
		}
	}
	if strings.HasSuffix(m.file, ".md") {
		list = append(list, r.wrongLinks(m, read)...)
	}
	return list
}

// wrongLinks says which links of a line of Markdown lead nowhere.
func (r repository) wrongLinks(m mention, read func(name string) string) (list []string) {
	for _, at := range link.FindAllStringSubmatch(m.text, -1) {
		target := m.file
		if at[1] != "" {
			target = path.Join(path.Dir(m.file), at[1])
		}
		if _, ok := r[target]; !ok {
			list = append(list, target+" is not in the repository")
			continue
		}
		if at[2] == "" {
			continue
		}
		found := false
		for _, h := range heading.FindAllStringSubmatch(read(target), -1) {
			found = found || anchor(h[1]) == at[2]
		}
		if !found {
			list = append(list, fmt.Sprintf("%s has no heading #%s", target, at[2]))
		}
	}
	return list
}

// anchor returns what a link calls a heading.
func anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

// Whoever reads the repository finds what it cites.
func TestWhatIsCitedIsThere(t *testing.T) {
	r := readRepository(t, root)
	all := mentions(t, root, r)
	if len(all) < 10000 {
		t.Fatalf("%d comments, strings and lines: the repository has more", len(all))
	}
	used := map[string]bool{}
	for _, m := range all {
		for _, wrong := range r.wrong(m, reader(root)) {
			t.Errorf("%s:%d: %s", m.file, m.line, wrong)
		}
		for _, name := range fileName.FindAllString(m.text, -1) {
			used[path.Base(name)] = true
		}
	}
	for name := range written {
		if !used[name] {
			t.Errorf("%s is an exception, and nothing cites it", name)
		}
	}
}

// own is this file, which has citations that lead nowhere on purpose.
const own = "cmd/internal/docs/docs_test.go"

// reader returns what reads files below dir; "" of those that are not there.
func reader(dir string) func(string) string {
	texts := map[string]string{}
	return func(name string) string {
		if _, ok := texts[name]; !ok {
			text, _ := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			texts[name] = string(text)
		}
		return texts[name]
	}
}

// The test above sees what leads nowhere, and does not take for a citation what is none.
func TestWrongCitationsAreSeen(t *testing.T) {
	r := readRepository(t, root)
	const none = "is not in the repository"
	for _, c := range []struct{ file, text, want string }{
		{"phy/phy.go", "as in physics.md section 3", "physics.md " + none},
		{"phy/phy.go", "as in " + outside + "/reference", outside + " " + none},
		{"phy/phy.go", "as in phy/README.md, section 3", ""},
		{"phy/phy.go", "as in phy/README.md, sections 2 to 99", "phy/README.md has no section 99"},
		{"phy/phy.go", "as in crypto/README.md, section 1", "crypto/README.md has no section 1"},
		{"phy/phy.go", "as in phy/lattice/teeth.go, waveform.go and lattice/teeth.go", ""},
		{"phy/phy.go", "as in phy/teeth.go", "phy/teeth.go " + none},
		{"phy/phy.go", "ringwave run hw-configs/loopback.toml", ""},
		{"phy/phy.go", "ringwave run hw-configs/loop.toml", "hw-configs/loop.toml " + none},
		{"phy/phy_test.go", "../../hw-configs/loop.toml", "../../hw-configs/loop.toml " + none},
		{"phy/phy_test.go", "../hw-configs/loopback.toml and x.toml", ""},
		{"phy/phy.go", "hw-configs/waveform-*.toml", ""},
		{"phy/phy.go", "hw-configs/nothing-*.toml", "hw-configs/nothing-*.toml " + none},
		{"phy/phy.go", "run scripts/nowhere", "scripts/nowhere " + none},
		{"phy/phy.go", "see https://example.org/a/b.md", ""},
		{"README.md", "see [this](phy/README.md), [that](crypto/README.md#flooding) and [here](#radios)", ""},
		{"README.md", "see [this](phy/nothing)", "phy/nothing " + none},
		{"README.md", "see [this](crypto/README.md#drowning)", "crypto/README.md has no heading #drowning"},
	} {
		if got := strings.Join(r.wrong(mention{c.file, 1, c.text}, reader(root)), "; "); got != c.want {
			t.Errorf("%s: %q: %q instead of %q", c.file, c.text, got, c.want)
		}
	}
}

// mentions returns all that may cite a file: comments and strings of Go files, Markdown,
// configurations and scripts.
func mentions(t *testing.T, dir string, r repository) (list []mention) {
	t.Helper()
	for name, file := range r {
		if !file || name == own {
			continue
		}
		full := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case strings.HasSuffix(name, ".go"):
			list = append(list, ofGo(t, name, full)...)
		case strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".toml") || strings.HasPrefix(name, ".ci/"):
			text, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				list = append(list, mention{name, i + 1, line})
			}
		}
	}
	slices.SortFunc(list, func(a, b mention) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return list
}

// ofGo returns the comments of a Go file, each as one line, and its strings but for the
// paths of imports.
func ofGo(t *testing.T, name, full string) (list []mention) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, full, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	add := func(p token.Pos, text string) { list = append(list, mention{name, set.Position(p).Line, text}) }
	for _, c := range f.Comments {
		add(c.Pos(), strings.Join(strings.Fields(c.Text()), " "))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			if v, err := strconv.Unquote(s.Value); err == nil {
				add(s.Pos(), v)
			}
		}
		return true
	})
	return list
}
