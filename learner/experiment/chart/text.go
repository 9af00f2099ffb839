package chart

import (
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// raise, in a tick label, begins the exponent. It cannot come from a user:
// plain takes control characters out of texts.
const raise = '\x01'

// exponents is a text handler that draws what follows raise smaller and
// higher. The fonts lack several of Unicode's superscript digits.
type exponents struct {
	text.Plain
}

const exponentSize = 0.72 // of the font size

func split(txt string) (base, exponent string) {
	base, exponent, _ = strings.Cut(txt, string(raise))
	return base, exponent
}

func small(f font.Font) font.Font {
	f.Size *= exponentSize
	return f
}

// Box implements text.Handler.
func (h exponents) Box(txt string, f font.Font) (width, height, depth vg.Length) {
	base, exponent := split(txt)
	width, height, depth = h.Plain.Box(base, f)
	if exponent == "" {
		return width, height, depth
	}
	w, _, _ := h.Plain.Box(exponent, small(f))
	return width + w, height, depth
}

// Draw implements text.Handler, for a text of one line that is not rotated.
func (h exponents) Draw(c vg.Canvas, txt string, sty text.Style, pt vg.Point) {
	base, exponent := split(txt)
	if exponent == "" {
		h.Plain.Draw(c, txt, sty, pt)
		return
	}
	whole, _, _ := h.Box(txt, sty.Font)
	pt.X += vg.Length(sty.XAlign) * whole
	sty.XAlign, sty.Handler = text.XLeft, h.Plain
	h.Plain.Draw(c, base, sty, pt)

	width, _, _ := h.Plain.Box(base, sty.Font)
	pt.X += width
	pt.Y += sty.Font.Size * 0.33
	// Aligned by the base's height, so that both have one baseline.
	pt.Y += (sty.Height(base) - text.Style{Font: small(sty.Font), Handler: h.Plain}.Height(exponent)) * vg.Length(sty.YAlign)
	sty.Font = small(sty.Font)
	h.Plain.Draw(c, exponent, sty, pt)
}

// lines is a text in lines that fit a width.
type lines struct {
	list  []string
	style text.Style
}

// The most lines that texts around a figure have; more are cut.
const (
	mostTitleLines = 2
	mostNoteLines  = 6
)

// texts returns the title and the note of a figure of a width.
func texts(title, note string, width vg.Length) (head, foot lines) {
	head = wrap(title, textStyle(titleSize, text.XCenter, text.YTop), width, mostTitleLines)
	foot = wrap(note, textStyle(noteSize, text.XLeft, text.YTop), width, mostNoteLines)
	return head, foot
}

// wrap breaks txt between words, into most lines at most, of which the last is cut where
// it is too long.
func wrap(txt string, style text.Style, width vg.Length, most int) lines {
	l := lines{style: style}
	words := strings.Fields(plain(txt))
	for len(words) > 0 {
		n := 1
		for n < len(words) && style.Width(strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		if len(l.list)+1 == most {
			n = len(words)
		}
		l.list = append(l.list, shorten(strings.Join(words[:n], " "), width, style))
		words = words[n:]
	}
	return l
}

const (
	lineStep = 1.3 // of the font size, from line to line
	textGap  = vg.Length(5)
)

// height returns the room that the lines take, with the gap to the figure.
func (l lines) height() vg.Length {
	if len(l.list) == 0 {
		return 0
	}
	return vg.Length(len(l.list))*lineStep*l.style.Font.Size + textGap
}

// draw draws the lines from the top down, by the style's alignment at x.
func (l lines) draw(c draw.Canvas, x, top vg.Length) {
	for k, line := range l.list {
		c.FillText(l.style, vg.Point{X: x, Y: top - vg.Length(k)*lineStep*l.style.Font.Size}, line)
	}
}

// drawTexts draws title and note at the top and the bottom of c, and gives what is left
// of it.
func drawTexts(c draw.Canvas, title, note string) draw.Canvas {
	head, foot := texts(title, note, c.Size().X)
	head.draw(c, c.Center().X, c.Max.Y)
	foot.draw(c, c.Min.X, c.Min.Y+foot.height()-textGap)
	return draw.Crop(c, 0, 0, foot.height(), -head.height())
}
