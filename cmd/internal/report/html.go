package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// view is what the page's template sees.
type view struct {
	Title    string
	Lead     []string
	Sections []sectionView
}

type sectionView struct {
	ID, Title string
	Blocks    []blockView
}

// blockView has one field that is set.
type blockView struct {
	Paragraph string
	List      []string
	Table     *Table
	Judged    bool
	Picture   template.URL
	Caption   string
}

// Class names a verdict for the page's style.
func (v Verdict) Class() string { return [...]string{"none", "same", "differs", "missing"}[v] }

// HTML gives the report as one page; dir is the folder that the pictures lie in, which
// become part of the page.
func (r Report) HTML(dir string) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	v := view{Title: r.Title, Lead: r.Lead}
	for k, s := range r.Sections {
		sv := sectionView{ID: fmt.Sprintf("s%d", k+1), Title: s.Title}
		for _, b := range s.Blocks {
			bv, err := viewOf(b, dir)
			if err != nil {
				return nil, fmt.Errorf("section %q: %w", s.Title, err)
			}
			sv.Blocks = append(sv.Blocks, bv)
		}
		v.Sections = append(v.Sections, sv)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("writing the report's page: %w", err)
	}
	return b.Bytes(), nil
}

func viewOf(b Block, dir string) (blockView, error) {
	switch b := b.(type) {
	case Paragraph:
		return blockView{Paragraph: string(b)}, nil
	case List:
		return blockView{List: b}, nil
	case Table:
		return blockView{Table: &b, Judged: b.judged()}, nil
	case Figure:
		svg, err := os.ReadFile(filepath.Join(dir, b.Base+".svg"))
		if err != nil {
			return blockView{}, fmt.Errorf("the figure %s: %w", b.Base, err)
		}
		// Ours, and an image: a browser runs nothing that is in it.
		return blockView{Picture: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)), Caption: b.Caption}, nil
	}
	return blockView{}, fmt.Errorf("a block of type %T", b)
}
