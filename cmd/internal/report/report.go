// Package report writes a report of tables, figures and verdicts twice: as one HTML
// file that opens from disk, pictures included, and as Markdown beside it.
//
// It takes in sections of plain text, numbers already formatted, and paths of pictures
// (as chart draws them), and gives the two files' bytes, the same for the same content.
// What the sections found comes first, in one table. It knows nothing of what is
// reported.
package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

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

// Section has blocks under a heading; titles differ. Findings are its lines in the
// summary.
type Section struct {
	Title    string
	Findings []Finding
	Blocks   []Block
}

// Finding is a line of the summary: what was compared, the paper's figure and the one
// that came out.
type Finding struct {
	What, Paper, Here string
	Verdict           Verdict
}

// Mark gives a sign for the verdict, for those who look rather than read.
func (v Verdict) Mark() string { return [...]string{"", "✓", "✗", "–"}[v] }

// marked gives sign and word.
func (v Verdict) marked() string { return strings.TrimSpace(v.Mark() + " " + v.String()) }

// summarised tells whether any section has findings.
func (r Report) summarised() bool {
	for _, s := range r.Sections {
		if len(s.Findings) > 0 {
			return true
		}
	}
	return false
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
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Verdict != None })
}

// argued tells whether a table has reasons.
func (t Table) argued() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Why != "" })
}

// check finds rows of the wrong length: a programmer's slip that a reader would see.
func (r Report) check() error {
	titles := map[string]bool{}
	for _, s := range r.Sections {
		if titles[s.Title] {
			return fmt.Errorf("two sections have the title %q", s.Title)
		}
		titles[s.Title] = true
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

// Number writes x with so many significant digits, as a paper has it: powers of ten
// where there would be zeros to count, a dash where there is no number.
func Number(x float64, digits int) string {
	if math.IsNaN(x) {
		return "–"
	}
	if math.IsInf(x, 0) {
		return strings.Replace(fmt.Sprint(x), "Inf", "∞", 1)
	}
	text := strconv.FormatFloat(x, 'e', digits-1, 64)
	mantissa, power, _ := strings.Cut(text, "e")
	exponent, err := strconv.Atoi(power)
	if err != nil || x == 0 {
		return "0"
	}
	if exponent >= -3 && exponent < max(5, digits) {
		return strconv.FormatFloat(x, 'f', max(0, digits-1-exponent), 64)
	}
	return mantissa + " × 10" + Superscript(exponent)
}

// Superscript writes a power.
func Superscript(n int) string { return superscript.Replace(strconv.Itoa(n)) }

var superscript = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
