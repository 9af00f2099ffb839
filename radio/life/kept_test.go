package life

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No type of the module keeps a context, whatever its file's build tags: that is what lives
// are for.
func TestNoTypeKeepsAContext(t *testing.T) {
	const root = "../.."
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		read++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, where := range kept(t, path, string(text)) {
			t.Errorf("%s: a type keeps a context; keep a life in its place", where)
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Fatalf("%d files: %v", read, err)
	}
}

// kept returns where the types of a file have a context, but as what their functions take
// and return.
func kept(t *testing.T, path, text string) (where []string) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	called := ""
	for _, spec := range file.Imports {
		if spec.Path.Value == `"context"` {
			called = "context"
			if spec.Name != nil {
				called = spec.Name.Name
			}
		}
	}
	if called == "" {
		return nil
	}
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == called && n.Sel.Name == "Context" {
				where = append(where, files.Position(n.Pos()).String())
			}
		case *ast.Ident:
			if called == "." && n.Name == "Context" {
				where = append(where, files.Position(n.Pos()).String())
			}
		}
		return true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			ast.Inspect(n.Type, look)
			return false
		case *ast.StructType: // without a name
			ast.Inspect(n, look)
			return false
		}
		return true
	})
	return where
}

func TestKeptIsFound(t *testing.T) {
	for _, x := range []struct {
		text  string
		lines []int
	}{
		{"import \"context\"\ntype a struct {\n\tb int\n\tctx context.Context\n}", []int{5}},
		{"import \"context\"\ntype a struct{ context.Context }", []int{3}},
		{"import \"context\"\ntype a struct{ m map[string][]context.Context; c chan context.Context }", []int{3, 3}},
		{"import \"context\"\ntype a context.Context\ntype b = context.Context\ntype c []context.Context", []int{3, 4, 5}},
		{"import \"context\"\ntype a interface{ context.Context }", []int{3}},
		{"import \"context\"\ntype a[T any] struct{ of b[context.Context] }", []int{3}},
		{"import \"context\"\nfunc f() {\n\ttype a struct{ c *context.Context }\n\tvar _ struct{ c context.Context }\n}", []int{4, 5}},
		{"import other \"context\"\ntype a struct{ c other.Context }", []int{3}},
		{"import . \"context\"\ntype a struct{ c Context }", []int{3}},
		{"import \"context\"\ntype a struct {\n\tstop context.CancelFunc\n\tf func(context.Context) context.Context\n}", nil},
		{"import \"context\"\ntype a interface{ F(ctx context.Context) }\nfunc f(ctx context.Context) { var _ = ctx }", nil},
		{"import \"ringwave/context\"\ntype a struct{ c context.Context }", nil},
	} {
		var want []string
		for _, line := range x.lines {
			want = append(want, fmt.Sprintf("a:%d", line))
		}
		got := kept(t, "a", "package a\n"+x.text)
		for i := range got {
			got[i] = got[i][:strings.LastIndex(got[i], ":")]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want %q", x.text, got, want)
		}
	}
}
