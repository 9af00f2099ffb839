package console

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ringwave/radio/intake"
)

// Console is where a command speaks of its work, beside its results and errors.
type Console struct {
	w       io.Writer
	columns func() int // of the terminal that w is; nil where it is none
	Quiet   bool
	Verbose bool // a line for every unit
}

// Writer returns where the console speaks.
func (c *Console) Writer() io.Writer { return c.w }

// Say prints a line; on a terminal its words go on in the next one where they would not
// fit.
func (c *Console) Say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if c.columns != nil {
		line = Fold(line, c.columns())
	}
	fmt.Fprintln(c.w, line)
}

// Fold returns text with its words in lines of so many columns at most, longer words
// aside. Further lines are indented.
func Fold(text string, columns int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		width := len([]rune(word))
		switch {
		case i == 0:
		case used+1+width > columns:
			b.WriteString("\n  ")
			used = 2
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += width
	}
	return b.String()
}

// AddFlags adds the flags that say how much a command speaks.
func AddFlags(root *cobra.Command) {
	root.PersistentFlags().BoolP("quiet", "q", false, "print nothing but results and errors")
	root.PersistentFlags().BoolP("verbose", "v", false, "print a line for every round, block, point or run")
}

// CheckFlags refuses flags that contradict each other.
func CheckFlags(cmd *cobra.Command, _ []string) error {
	if speaks(cmd, "quiet") && speaks(cmd, "verbose") {
		return intake.UserError(fmt.Errorf("--quiet and --verbose contradict each other: give one of them"))
	}
	return nil
}

func speaks(cmd *cobra.Command, flag string) bool {
	on, err := cmd.Flags().GetBool(flag)
	return err == nil && on
}

// New returns the console of a command: standard error, as its flags have it.
func New(cmd *cobra.Command) *Console {
	c := &Console{w: cmd.ErrOrStderr(), Quiet: speaks(cmd, "quiet"), Verbose: speaks(cmd, "verbose")}
	if c.Quiet {
		c.w = io.Discard
	}
	if f, ok := c.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.columns = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
			return 80
		}
	}
	return c
}

// Progress shows how far a long command is: a line that is drawn over on a terminal, and
// elsewhere, or with --verbose, lines one below the other.
type Progress struct {
	*Console
	unit  string // what is counted, as "round"
	of    int
	Every bool // each unit has a line, not only every tenth

	first    float64 // the share of the work that was behind when it began
	began    time.Time
	said     int // tenths of the work that the last line told of
	counted  int // units that it told of
	drawn    int // columns of the line that is drawn, 0 for none
	drawnAt  time.Time
	lastText string
}

// between is the least time between two drawings of a line.
const between = 100 * time.Millisecond

// Progress begins to tell of so many units, of which some are done: a share of the work.
func (c *Console) Progress(unit string, of, done int, share float64) *Progress {
	return &Progress{Console: c, unit: unit, of: of, Every: c.Verbose, first: share, began: time.Now(), said: tenths(share), counted: done}
}

// tenths returns how many whole tenths a share has, rounding aside.
func tenths(share float64) int { return int(math.Floor(10*share + 1e-9)) }

// Report tells that a number of units is done, and a share of the work, from 0 to 1.
func (p *Progress) Report(done int, share float64, text string) {
	if p.columns != nil && !p.Verbose {
		p.draw(done, share, text)
		return
	}
	if done == p.counted || !p.Every && tenths(share) == p.said && done != p.of {
		return
	}
	p.said, p.counted = tenths(share), done
	line := fmt.Sprintf("%s %d of %d%s%s", p.unit, done, p.of, behind(text), p.left(share))
	if p.columns != nil {
		line = fit(fmt.Sprintf("%s %d of %d%s", p.unit, done, p.of, behind(text)), p.left(share), p.columns()-1)
	}
	fmt.Fprintln(p.w, line)
}

// behind returns text as it stands behind other text.
func behind(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

// left says how long the rest will take, where anything is known of that.
func (p *Progress) left(share float64) string {
	if share <= p.first {
		return ""
	}
	left := time.Duration(float64(time.Since(p.began)) / (share - p.first) * (1 - share))
	if left >= time.Minute {
		return fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return fmt.Sprintf(", about %v left", left.Round(between))
}

// fit returns head and tail in so many columns; head is cut if they are too long.
func fit(head, tail string, columns int) string {
	room := columns - len([]rune(tail))
	if letters := []rune(head); len(letters) > room {
		const gap = "..."
		head = string(letters[:max(0, room-len(gap))]) + gap
	}
	if letters := []rune(head + tail); len(letters) > columns {
		return string(letters[:max(0, columns)])
	}
	return head + tail
}

// The columns of a bar: it is left out where there is no room for the fewest.
const (
	fewestBar = 6
	mostBar   = 30
)

// draw writes the line with the bar over the one before.
func (p *Progress) draw(done int, share float64, text string) {
	if now := time.Now(); done != p.of && text == p.lastText && now.Sub(p.drawnAt) < between {
		return
	} else {
		p.drawnAt, p.lastText = now, text
	}
	columns := p.columns() - 1 // a full line would wrap
	head := fmt.Sprintf("%s %d of %d", p.unit, done, p.of)
	line := fit(head+behind(text), p.left(share), columns)
	if bar := min(mostBar, columns-len([]rune(head+behind(text)+p.left(share)))-len(" []")); bar >= fewestBar {
		full := int(math.Round(float64(bar) * min(1, max(0, share))))
		line = fmt.Sprintf("%s [%s%s]%s%s", head, strings.Repeat("#", full), strings.Repeat(" ", bar-full), behind(text), p.left(share))
	}
	width := len([]rune(line))
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", max(0, min(p.drawn, columns)-width)))
	p.drawn = width
}

// Stop ends the line that is drawn, if there is one. What is reported after it begins
// another.
func (p *Progress) Stop() {
	if p != nil && p.drawn > 0 {
		fmt.Fprintln(p.w)
		p.drawn = 0
	}
}

// Steps returns what hears how many of some units are done: first of those that were
// before.
func (c *Console) Steps(unit string) (heard func(done, total int), stop func()) {
	var p *Progress
	return func(done, total int) {
		share := float64(done) / float64(max(total, 1))
		if p == nil {
			p = c.Progress(unit, total, done, share)
			return
		}
		p.of = total // which may grow
		p.Report(done, share, "")
	}, func() { p.Stop() }
}
