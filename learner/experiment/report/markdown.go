package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// Markdown returns the report as Markdown (GitHub's flavour, for its tables), with links
// to the pictures.
func (r Report) Markdown() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", escape(r.Title))
	for _, p := range r.Lead {
		fmt.Fprintf(&b, "\n%s\n", escape(p))
	}
	if r.summarised() {
		r.writeSummary(&b)
	}
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n## %s\n", escape(s.Title))
		for _, block := range s.Blocks {
			b.WriteString("\n")
			writeBlock(&b, block)
		}
	}
	return []byte(b.String()), nil
}

// writeSummary puts the findings of all sections into one table, with links.
func (r Report) writeSummary(b *strings.Builder) {
	b.WriteString("\n## Summary\n\n")
	if tally := r.Tally(); len(tally) > 0 {
		writeBlock(b, List(tally))
		b.WriteString("\n")
	}
	writeRow(b, []string{"section", "figure", "paper", "here", "verdict"})
	fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", 5))
	for _, s := range r.Sections {
		link := fmt.Sprintf("[%s](#%s)", escape(s.Title), anchor(s.Title))
		for _, f := range s.Findings {
			fmt.Fprintf(b, "| %s |", strings.ReplaceAll(link, "|", `\|`))
			writeCells(b, []string{f.What, f.Paper, f.Here, f.Verdict.marked()})
			link = ""
		}
	}
}

// anchor returns the name by which GitHub lets a heading be linked to.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

func writeBlock(b *strings.Builder, block Block) {
	switch block := block.(type) {
	case Paragraph:
		fmt.Fprintf(b, "%s\n", escape(string(block)))
	case List:
		for _, s := range block {
			fmt.Fprintf(b, "- %s\n", escape(s))
		}
	case Figure:
		fmt.Fprintf(b, "![%s](%s.png)\n", escape(block.Caption), filepath.ToSlash(block.Base))
	case Table:
		writeTable(b, block)
	}
}

func writeTable(b *strings.Builder, t Table) {
	fmt.Fprintf(b, "*%s*\n\n", escape(t.Caption))
	head := t.Head[:len(t.Head):len(t.Head)]
	if t.judged() {
		head = append(head, "verdict")
	}
	if t.argued() {
		head = append(head, "why")
	}
	writeRow(b, head)
	fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(head)))
	for _, r := range t.Rows {
		cells := r.Cells[:len(r.Cells):len(r.Cells)]
		if t.judged() {
			cells = append(cells, r.Verdict.marked())
		}
		if t.argued() {
			cells = append(cells, r.Why)
		}
		writeRow(b, cells)
	}
}

func writeRow(b *strings.Builder, cells []string) {
	b.WriteString("|")
	writeCells(b, cells)
}

// writeCells ends a row.
func writeCells(b *strings.Builder, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", strings.ReplaceAll(escape(c), "|", `\|`))
	}
	b.WriteString("\n")
}

// escaper keeps text text.
var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "\n", " ")

func escape(s string) string { return escaper.Replace(s) }
