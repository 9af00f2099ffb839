package console

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// onTerminal returns a console of so many columns, and what was written to it.
func onTerminal(columns int) (*Console, *bytes.Buffer) {
	var b bytes.Buffer
	return &Console{w: &b, columns: func() int { return columns }}, &b
}

// Whatever is reported, no line is as long as the terminal is wide: it would wrap, and
// each drawing would leave a line behind. A shorter line covers a longer one.
func TestProgressFitsTheTerminal(t *testing.T) {
	texts := []string{"", "loss 0.6931, accuracy not evaluated yet", "N = 4, sigma = 0.05, 55 dB: 100.0 % at once, and a good deal more that nobody has room for"}
	for _, columns := range []int{2, 10, 24, 40, 60, 79, 80, 81, 120, 200} {
		for _, verbose := range []bool{false, true} {
			c, b := onTerminal(columns)
			c.Verbose = verbose
			p := c.Progress("round", 1_000_000, 0, 0)
			p.began = p.began.Add(-100 * time.Hour)
			for i := range 1000 {
				p.drawnAt = time.Time{}
				p.Report(1000*(i+1), float64(i+1)/1000, texts[i%len(texts)])
			}
			p.Stop()
			for line := range strings.SplitSeq(strings.ReplaceAll(b.String(), "\r", "\n"), "\n") {
				if n := len([]rune(line)); n >= columns && n > 0 {
					t.Fatalf("%d columns, verbose %v: a line of %d: %q", columns, verbose, n, line)
				}
			}
			if !strings.HasSuffix(b.String(), "\n") {
				t.Errorf("%d columns, verbose %v: the last line has no end", columns, verbose)
			}
			if drawn := strings.Contains(b.String(), "\r"); drawn == verbose {
				t.Errorf("%d columns, verbose %v: drawn over: %v", columns, verbose, drawn)
			}
		}
	}
	c, b := onTerminal(80)
	p := c.Progress("round", 4, 0, 0)
	p.Report(1, 0.25, "a text that is long")
	p.drawnAt = time.Time{}
	p.Report(2, 0.5, "")
	lines := strings.Split(b.String(), "\r")
	if len(lines) != 3 || len(lines[2]) < len(lines[1]) || !strings.HasPrefix(lines[1], "round 1 of 4 [#######                     ], a text that is long, about ") {
		t.Errorf("drawn: %q", lines)
	}
}

// Elsewhere there is a line every tenth, with --verbose one for each unit.
func TestProgressLines(t *testing.T) {
	for _, c := range []struct {
		verbose bool
		of      int
		want    []int
	}{
		{false, 40, []int{4, 8, 12, 16, 20, 24, 28, 32, 36, 40}},
		{false, 3, []int{1, 2, 3}},
		{true, 12, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	} {
		var b bytes.Buffer
		p := (&Console{w: &b, Verbose: c.verbose}).Progress("round", c.of, 0, 0)
		for i := range c.of {
			p.Report(i+1, float64(i+1)/float64(c.of), "text")
		}
		p.Stop()
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%+v: %d lines:\n%s", c, len(lines), b.String())
		}
		for i, n := range c.want {
			if want := fmt.Sprintf("round %d of %d, text, about ", n, c.of); !strings.HasPrefix(lines[i], want) {
				t.Errorf("line %d is %q, want %q...", i, lines[i], want)
			}
		}
	}
}

// What is behind before the beginning says nothing of how fast it goes.
func TestProgressOfWhatGoesOn(t *testing.T) {
	var b bytes.Buffer
	p := (&Console{w: &b}).Progress("round", 100, 90, 0.9)
	p.began = p.began.Add(-time.Hour)
	p.Report(95, 0.95, "")
	p.Report(100, 1, "")
	if got, want := b.String(), "round 100 of 100, about 0s left\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if left := p.left(0.95); left != ", about 1h0m0s left" {
		t.Errorf("half of it in an hour leaves %q", left)
	}
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"a few words":                 "a few\n  words",
		"averyveryverylongword and b": "averyveryverylongword\n  and b",
		"":                            "",
		"  a b":                       "  a b",
	} {
		if got := Fold(text, 8); got != want {
			t.Errorf("%q folds to %q, want %q", text, got, want)
		}
	}
}
