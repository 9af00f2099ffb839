package chart

import (
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
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
