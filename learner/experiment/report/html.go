package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// view is what the page's template sees.
type view struct {
	Title    string
	Lead     []string
	Summary  bool
	Tally    []string
	Sections []sectionView
}

type sectionView struct {
	ID, Title string
	Findings  []Finding
	Blocks    []blockView
}

// blockView has one field that is set.
type blockView struct {
	Paragraph string
	List      []string
	Table     *tableView
	Picture   template.URL
	Caption   string
}

// tableView is a table with the alignment of its columns, and of those that stay empty
// throughout none.
type tableView struct {
	Caption        string
	Head           []cellView
	Rows           []rowView
	Judged, Argued bool
}

type rowView struct {
	Cells   []cellView
	Verdict Verdict
	Why     string
}

type cellView struct {
	Text    string
	Numeric bool // of the column
}

func viewOfTable(t Table) *tableView {
	v := &tableView{Caption: t.Caption, Judged: t.judged(), Argued: t.argued()}
	numeric := make([]bool, len(t.Head))
	for k, head := range t.Head {
		numeric[k] = t.numeric(k)
		v.Head = append(v.Head, cellView{head, numeric[k]})
	}
	for _, row := range t.Rows {
		rv := rowView{Verdict: row.Verdict, Why: row.Why}
		for k, cell := range row.Cells {
			rv.Cells = append(rv.Cells, cellView{cell, numeric[k]})
		}
		v.Rows = append(v.Rows, rv)
	}
	return v
}

// numeric reports whether a column has figures, which are set flush right, and no words.
func (t Table) numeric(column int) bool {
	figures := false
	for _, row := range t.Rows {
		cell := row.Cells[column]
		if cell == "" || cell == "–" {
			continue
		}
		if strings.IndexFunc(cell, unicode.IsDigit) > 1 || !strings.ContainsAny(cell[:1], "0123456789-+.") || len(cell) > 40 {
			return false
		}
		figures = true
	}
	return figures
}

// Class names a verdict for the page's style.
func (v Verdict) Class() string {
	return [...]string{"none", "same", "differs", "missing", "missing", "undecided", "missing"}[v]
}

// HTML returns the report as one page; dir is the folder that the pictures lie in, which
// become part of the page.
func (r Report) HTML(dir string) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	v := view{Title: r.Title, Lead: r.Lead, Summary: r.summarised(), Tally: r.Tally()}
	for k, s := range r.Sections {
		sv := sectionView{ID: fmt.Sprintf("s%d", k+1), Title: s.Title, Findings: s.Findings}
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
		return blockView{Table: viewOfTable(b)}, nil
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
