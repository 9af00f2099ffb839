package experiment_test

import (
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// examplesFile has the examples, which stand nowhere twice.
const examplesFile = "example_test.go"

// The examples are programs of another module, which has this one by a replace line: each
// is built there, with what it needs of the file and no more, and prints what it says.
func TestExamplesInAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program an example")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	examples := doc.Examples(parsed(t, files))
	module := newModule(t, root)
	for _, e := range examples {
		if e.Play == nil {
			t.Fatalf("Example%s is no program of its own", e.Name)
		}
		var source strings.Builder
		if err := format.Node(&source, files, e.Play); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(module, "example"+e.Name, "main.go"), source.String())
	}
	bin := t.TempDir()
	if out, err := command(module, "go", "build", "-o", bin+string(filepath.Separator), "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, e := range examples {
		t.Run("Example"+e.Name, func(t *testing.T) {
			out, err := command(".", filepath.Join(bin, "example"+e.Name)).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(e.Output) {
				t.Errorf("%v; printed\n%s\nin place of\n%s", err, out, e.Output)
			}
		})
	}
	if want := []string{"", "DataSet", "Model", "Observer", "Radios", "Resume", "System"}; !slices.Equal(names(examples), want) {
		t.Errorf("the examples are %q, in place of %q", names(examples), want)
	}
}

// An encrypted run takes no more than fifteen lines, and going on with it after an
// interruption no others.
func TestRunAndResumeAreFewLines(t *testing.T) {
	files := token.NewFileSet()
	for _, d := range parsed(t, files).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "interrupted" {
			continue
		}
		if lines := files.Position(f.Body.Rbrace).Line - files.Position(f.Body.Lbrace).Line - 1; lines > 15 {
			t.Errorf("%d lines", lines)
		}
		return
	}
	t.Errorf("%s has no such function", examplesFile)
}

// learner/README.md names examples that there are.
func TestReadmeNamesExamples(t *testing.T) {
	there := names(doc.Examples(parsed(t, token.NewFileSet())))
	named := regexp.MustCompile("`Example(\\w*)`").FindAllStringSubmatch(read(t, "../README.md"), -1)
	if len(named) == 0 {
		t.Fatal("it names none")
	}
	for _, m := range named {
		if !slices.Contains(there, m[1]) {
			t.Errorf("there is no Example%s", m[1])
		}
	}
}

func parsed(t *testing.T, files *token.FileSet) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(files, examplesFile, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newModule makes a module that needs what this one does, and this one.
func newModule(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	own := read(t, filepath.Join(root, "go.mod"))
	_, needs, ok := strings.Cut(own, "module ringwave\n")
	if !ok {
		t.Fatal("go.mod has another module")
	}
	write(t, filepath.Join(dir, "go.mod"), "module elsewhere\n"+needs+"\nrequire ringwave v0.0.0\n\nreplace ringwave => "+root+"\n")
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	return dir
}

// command is a program that finds all it needs on this machine.
func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=mod")
	return cmd
}

func names(examples []*doc.Example) (all []string) {
	for _, e := range examples {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
