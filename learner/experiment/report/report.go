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
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Verdict is how two figures compare.
type Verdict int

// The verdicts. None is for what is not compared, Setting for what this program was set
// to because the paper says so, CutShort for what a shorter run than the paper's cannot
// say, Undecided for what too few runs cannot.
const (
	None Verdict = iota
	Same
	Differs
	Missing
	CutShort
	Undecided
	Setting
)

// String returns the word that a reader sees.
func (v Verdict) String() string {
	switch v {
	case Same:
		return "same"
	case Differs:
		return "different"
	case Missing:
		return "not run"
	case CutShort:
		return "cut short"
	case Undecided:
		return "undecided"
	case Setting:
		return "setting"
	}
	return ""
}

// Against is what a row's figure was compared with.
type Against int

// What a verdict may rest on: a value of the paper, a statement of it or of theory that
// has no value, such as that a bound holds, or another figure of the same program. A
// row without a verdict, or with Setting, compares nothing.
const (
	Nothing Against = iota
	PaperValue
	Statement
	Control
)

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

// Mark returns a sign for the verdict, for those who look rather than read.
func (v Verdict) Mark() string { return [...]string{"", "✓", "✗", "–", "–", "?", "="}[v] }

// marked returns sign and word.
func (v Verdict) marked() string { return strings.TrimSpace(v.Mark() + " " + v.String()) }

// summarised reports whether any section has findings.
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

// Row is a table's, with what its figures come to, what they were compared with, and
// why.
type Row struct {
	Cells   []string
	Verdict Verdict
	Against Against
	Why     string
}

// Figure is a picture: Base is the path of base.svg and base.png, without suffix,
// relative to the report's folder.
type Figure struct{ Base, Caption string }

func (Paragraph) block() {}
func (List) block()      {}
func (Table) block()     {}
func (Figure) block()    {}

// judged reports whether a table has verdicts.
func (t Table) judged() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Verdict != None })
}

// argued reports whether a table has reasons.
func (t Table) argued() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Why != "" })
}

// check finds rows of the wrong length, and verdicts of which it is not said what they
// rest on: a programmer's slips that a reader would see.
func (r Report) check() error {
	titles := map[string]bool{}
	for _, s := range r.Sections {
		if titles[s.Title] {
			return fmt.Errorf("two sections have the title %q", s.Title)
		}
		titles[s.Title] = true
		for _, b := range s.Blocks {
			if t, ok := b.(Table); ok {
				if err := t.check(); err != nil {
					return fmt.Errorf("section %q, table %q: %w", s.Title, t.Caption, err)
				}
			}
		}
	}
	return nil
}

func (t Table) check() error {
	for k, row := range t.Rows {
		if len(row.Cells) != len(t.Head) {
			return fmt.Errorf("row %d has %d cells under %d heads", k+1, len(row.Cells), len(t.Head))
		}
		if compares := row.Verdict != None && row.Verdict != Setting; compares != (row.Against != Nothing) {
			return fmt.Errorf("row %d has the verdict %q, which rests on %d", k+1, row.Verdict, row.Against)
		}
	}
	return nil
}

// Counts returns how many rows have each verdict, by what it rests on.
func (r Report) Counts() map[Against]map[Verdict]int {
	counts := map[Against]map[Verdict]int{Nothing: {}, PaperValue: {}, Statement: {}, Control: {}}
	for _, s := range r.Sections {
		for _, b := range s.Blocks {
			if t, ok := b.(Table); ok {
				for _, row := range t.Rows {
					counts[row.Against][row.Verdict]++
				}
			}
		}
	}
	return counts
}

// Tally says in sentences what the tables' rows were compared with, and what came of it.
func (r Report) Tally() []string {
	counts := r.Counts()
	var out []string
	for _, kind := range []struct {
		against    Against
		one, other string
	}{
		{PaperValue, "row has a value of the paper, to be compared with one computed or measured here", "rows have a value of the paper, to be compared with one computed or measured here"},
		{Statement, "row has no value of the paper, but a statement of it or of theory", "rows have no value of the paper, but a statement of it or of theory"},
		{Control, "row has no value of the paper: one figure of this program is compared with another", "rows have no value of the paper: one figure of this program is compared with another"},
	} {
		if of := counts[kind.against]; len(of) > 0 {
			out = append(out, number(sum(of), kind.one, kind.other)+": "+verdicts(of)+".")
		}
	}
	if n := counts[Nothing][Setting]; n > 0 {
		out = append(out, number(n, "row is a setting of the paper, which this program was given, and no result.", "rows are settings of the paper, which this program was given, and no results."))
	}
	if n := counts[Nothing][None]; n > 0 {
		out = append(out, number(n, "row compares nothing.", "rows compare nothing."))
	}
	return out
}

func number(n int, one, other string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, other)
}

func sum(of map[Verdict]int) int {
	n := 0
	for _, k := range of {
		n += k
	}
	return n
}

// verdicts lists how many there are of each.
func verdicts(of map[Verdict]int) string {
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[v], v))
	}
	return strings.Join(parts, ", ")
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

// Counted returns a number of things: one run, 2 runs.
func Counted(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
