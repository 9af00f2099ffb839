// Package report writes a report of tables, figures and verdicts twice: as one HTML
// file that opens from disk, pictures included, and as Markdown beside it.
//
// It takes in sections of plain text, numbers already formatted, and paths of pictures
// (as chart draws them), and gives the two files' bytes, the same for the same content.
// It knows nothing of what is reported.
package report

import "fmt"

// Verdict is how two figures compare.
type Verdict int

// The verdicts. None is for what is not compared.
const (
	None Verdict = iota
	Same
	Differs
	Missing
)

// String gives the word that a reader sees.
func (v Verdict) String() string {
	switch v {
	case Same:
		return "same"
	case Differs:
		return "different"
	case Missing:
		return "not run"
	}
	return ""
}

// Report is the whole. Texts are plain, without markup of any kind.
type Report struct {
	Title string
	// Lead are the paragraphs before the first section.
	Lead     []string
	Sections []Section
}

// Section has blocks under a heading.
type Section struct {
	Title  string
	Blocks []Block
}

// Block is a Paragraph, a List, a Table or a Figure.
type Block interface{ block() }

// Paragraph is text.
type Paragraph string

// List are sentences, a point each.
type List []string

// Table has a head and rows as long as it. The caption is a sentence.
type Table struct {
	Caption string
	Head    []string
	Rows    []Row
}

// Row is a table's, with what its figures come to and why.
type Row struct {
	Cells   []string
	Verdict Verdict
	Why     string
}

// Figure is a picture: Base is the path of base.svg and base.png, without suffix,
// relative to the report's folder.
type Figure struct{ Base, Caption string }

func (Paragraph) block() {}
func (List) block()      {}
func (Table) block()     {}
func (Figure) block()    {}

// judged tells whether a table has verdicts.
func (t Table) judged() bool {
	for _, r := range t.Rows {
		if r.Verdict != None || r.Why != "" {
			return true
		}
	}
	return false
}

// check finds rows of the wrong length: a programmer's slip that a reader would see.
func (r Report) check() error {
	for _, s := range r.Sections {
		for _, b := range s.Blocks {
			t, ok := b.(Table)
			if !ok {
				continue
			}
			for k, row := range t.Rows {
				if len(row.Cells) != len(t.Head) {
					return fmt.Errorf("section %q, table %q: row %d has %d cells under %d heads", s.Title, t.Caption, k+1, len(row.Cells), len(t.Head))
				}
			}
		}
	}
	return nil
}

// Counts gives how many rows have each verdict.
func (r Report) Counts() map[Verdict]int {
	counts := map[Verdict]int{}
	for _, s := range r.Sections {
		for _, b := range s.Blocks {
			if t, ok := b.(Table); ok {
				for _, row := range t.Rows {
					counts[row.Verdict]++
				}
			}
		}
	}
	return counts
}
