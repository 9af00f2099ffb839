package chart

import (
	"bytes"
	"fmt"
	"image/png"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"ringwave/learner/experiment/runfolder"
)

// savePicture draws a picture of the given size twice, and writes base.svg and base.png,
// each atomically.
func savePicture(base string, w, h vg.Length, paint func(draw.Canvas) error) error {
	for _, format := range []struct {
		extension string
		render    func(w, h vg.Length, paint func(draw.Canvas) error) ([]byte, error)
	}{{".svg", renderSVG}, {".png", renderPNG}} {
		b, err := format.render(w, h, paint)
		if err != nil {
			return fmt.Errorf("drawing %s%s: %w", base, format.extension, err)
		}
		if err := runfolder.WriteFile(base+format.extension, b); err != nil {
			return err
		}
	}
	return nil
}

func renderSVG(w, h vg.Length, paint func(draw.Canvas) error) ([]byte, error) {
	c := vgsvg.New(w, h)
	if err := paint(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// The font is rarely installed under this name; these have its widths.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;")), nil
}

func renderPNG(w, h vg.Length, paint func(draw.Canvas) error) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dotsPerInch))
	if err := paint(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	// Most of a picture is one colour: a quick search finds that as well, and encoding is
	// half of what a plot takes.
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, c.Image()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
