package report

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Markdown gives the report as Markdown (GitHub's flavour, for its tables), with links
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
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n## %s\n", escape(s.Title))
		for _, block := range s.Blocks {
			b.WriteString("\n")
			writeBlock(&b, block)
		}
	}
	return []byte(b.String()), nil
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
	fmt.Fprintf(b, "%s\n\n", escape(t.Caption))
	head := t.Head
	if t.judged() {
		head = append(head[:len(head):len(head)], "verdict", "why")
	}
	writeRow(b, head)
	fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(head)))
	for _, r := range t.Rows {
		cells := r.Cells
		if t.judged() {
			cells = append(cells[:len(cells):len(cells)], r.Verdict.String(), r.Why)
		}
		writeRow(b, cells)
	}
}

func writeRow(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", strings.ReplaceAll(escape(c), "|", `\|`))
	}
	b.WriteString("\n")
}

// escaper keeps text text.
var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "\n", " ")

func escape(s string) string { return escaper.Replace(s) }
