package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func some(t *testing.T) (Report, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "plots"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plots", "loss.svg"), []byte("<svg/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	return Report{
		Title: "A & B <c>", Lead: []string{"Lead_in."},
		Sections: []Section{{"One", []Finding{{"accuracy", "9 %", "8 %", Differs}, {"bytes", "1|0", "10", Same}}, []Block{
			Paragraph("a < b"), List{"first", "sec*ond"},
			Table{"Caption.", []string{"x", "y"}, []Row{{[]string{"1|2", "3"}, Same, PaperValue, ""}, {[]string{"4", "5"}, Differs, Control, "because"}}},
			Table{"Plain.", []string{"x"}, []Row{{Cells: []string{"6"}}}},
			Figure{"plots/loss", "The loss."},
		}}},
	}, dir
}

// The page stands alone, is well formed, and holds texts as texts.
func TestHTML(t *testing.T) {
	r, dir := some(t)
	data, err := r.HTML(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := r.HTML(dir)
	if !bytes.Equal(data, again) {
		t.Error("the same report gives other bytes")
	}
	text := string(data)
	for _, want := range []string{"A &amp; B &lt;c&gt;", "a &lt; b", `class="verdict differs">✗ different`, `<a href="#s1">One</a>`, `<td class="n">3</td>`, `<td class="why">because</td>`, "data:image/svg&#43;xml;base64,PHN2Zy8", "<caption>Plain.</caption>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, never := range []string{"http:", "https:", "<script", "src=\"plots"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in the page, which must need nothing else", never)
		}
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A picture and its caption are as wide as each other: their figure's width is the only
// one that is bounded.
func TestCaptionsAreAsWideAsFigures(t *testing.T) {
	for _, part := range []struct {
		of   string
		want bool
	}{{"figure {", true}, {"figure img {", false}, {"figcaption {", false}} {
		_, rule, found := strings.Cut(pageText, part.of)
		rule, _, _ = strings.Cut(rule, "}")
		if !found || strings.Contains(rule, "max-width") != part.want {
			t.Errorf("%s%s}: a width of its own, want %v", part.of, rule, part.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	r, _ := some(t)
	data, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	const want = `# A & B &lt;c>

Lead\_in.

## Summary

- 1 row has a value of the paper, to be compared with one computed or measured here: 1 same.
- 1 row has no value of the paper: one figure of this program is compared with another: 1 different.
- 1 row compares nothing.

| section | figure | paper | here | verdict |
|---|---|---|---|---|
| [One](#one) | accuracy | 9 % | 8 % | ✗ different |
|  | bytes | 1\|0 | 10 | ✓ same |

## One

a &lt; b

- first
- sec\*ond

*Caption.*

| x | y | verdict | why |
|---|---|---|---|
| 1\|2 | 3 | ✓ same |  |
| 4 | 5 | ✗ different | because |

*Plain.*

| x |
|---|
| 6 |

![The loss.](plots/loss.png)
`
	if string(data) != want {
		t.Errorf("got\n%s", data)
	}
	if c := r.Counts(); c[PaperValue][Same] != 1 || c[Control][Differs] != 1 || c[Nothing][None] != 1 {
		t.Errorf("verdicts %v", c)
	}
}

// What is counted as the paper's is what was compared with a value of it: no setting, no
// control and nothing that was not run.
func TestTally(t *testing.T) {
	var rows []Row
	add := func(n int, v Verdict, a Against) {
		for range n {
			rows = append(rows, Row{Cells: []string{"1"}, Verdict: v, Against: a})
		}
	}
	add(3, Same, PaperValue)
	add(2, Differs, PaperValue)
	add(1, CutShort, PaperValue)
	add(4, Same, Statement)
	add(5, Same, Control)
	add(6, Setting, Nothing)
	add(7, None, Nothing)
	r := Report{Sections: []Section{{Title: "One", Blocks: []Block{Table{"T.", []string{"x"}, rows}}}}}
	want := []string{
		"6 rows have a value of the paper, to be compared with one computed or measured here: 3 same, 2 different, 1 cut short.",
		"4 rows have no value of the paper, but a statement of it or of theory: 4 same.",
		"5 rows have no value of the paper: one figure of this program is compared with another: 5 same.",
		"6 rows are settings of the paper, which this program was given, and no results.",
		"7 rows compare nothing.",
	}
	if got := r.Tally(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRefusals(t *testing.T) {
	r, dir := some(t)
	r.Sections[0].Blocks = append(r.Sections[0].Blocks, Figure{"plots/absent", ""})
	if _, err := r.HTML(dir); err == nil {
		t.Error("a picture that is not there is taken")
	}
	r.Sections = append(r.Sections, Section{Title: "One"})
	if _, err := r.Markdown(); err == nil {
		t.Error("two sections of one title, which links cannot tell apart, are taken")
	}
	r.Sections = r.Sections[:1]
	r.Sections[0].Blocks = []Block{Table{"T.", []string{"x", "y"}, []Row{{Cells: []string{"1"}}}}}
	if _, err := r.Markdown(); err == nil {
		t.Error("a short row is taken")
	}
	for _, row := range []Row{{Verdict: Same}, {Verdict: Setting, Against: PaperValue}, {Against: Control}} {
		row.Cells = []string{"1"}
		r.Sections[0].Blocks = []Block{Table{"T.", []string{"x"}, []Row{row}}}
		if _, err := r.Markdown(); err == nil {
			t.Errorf("a row with the verdict %q that rests on %d is taken", row.Verdict, row.Against)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{
		{2.69e-17, 2, "2.7 × 10⁻¹⁷"}, {-1.234e20, 3, "-1.23 × 10²⁰"}, {0.00123, 2, "0.0012"}, {0.09996, 3, "0.100"},
		{31.4159, 3, "31.4"}, {31.4159, 2, "31"}, {446464, 3, "4.46 × 10⁵"}, {12345, 2, "12345"}, {0, 3, "0"}, {1, 3, "1.00"},
		{math.NaN(), 2, "–"}, {math.Inf(-1), 2, "-∞"}, {math.Inf(1), 2, "+∞"},
	} {
		if got := Number(c.x, c.digits); got != c.want {
			t.Errorf("%v with %d digits is %q, want %q", c.x, c.digits, got, c.want)
		}
	}
}

// The names are those that GitHub gives such headings.
func TestAnchor(t *testing.T) {
	for title, want := range map[string]string{
		"Parameter sets and overhead: Table II":   "parameter-sets-and-overhead-table-ii",
		"MNIST 0 against 1: Fig. 2 and Table III": "mnist-0-against-1-fig-2-and-table-iii",
		"CIFAR-10, d = 61,241":                    "cifar-10-d--61241",
	} {
		if got := anchor(title); got != want {
			t.Errorf("%q has the anchor %q, want %q", title, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "one run", 2: "2 runs"} {
		if got := Counted(n, "run"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
