package chart

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"ringwave/learner/experiment/runfolder"
)

// sheet is what a picture is painted on, and how.
type sheet struct {
	w, h  vg.Length
	paint func(draw.Canvas) error
}

// Picture is a figure that is not drawn yet.
type Picture struct {
	Name  string // of its files, Name.svg and Name.png
	sheet func() (sheet, error)
}

// Picture returns the figure as a picture of a name.
func (f Figure) Picture(name string) Picture { return Picture{name, f.sheet} }

// Picture returns the plots as a picture of a name.
func (m Multiples) Picture(name string) Picture { return Picture{name, m.sheet} }

// Picture returns the map as a picture of a name.
func (h HeatMap) Picture(name string) Picture { return Picture{name, h.sheet} }

// WriteSVG draws the picture as SVG alone, which takes a small part of what its files take.
func (p Picture) WriteSVG(to io.Writer) error {
	s, err := p.sheet()
	if err != nil {
		return fmt.Errorf("drawing %s: %w", p.Name, err)
	}
	b, err := renderSVG(s.w, s.h, s.paint)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", p.Name, err)
	}
	_, err = to.Write(b)
	return err
}

// save draws pictures into dir, as many at once as there are cores, and gives the paths of
// their files.
func save(dir string, pictures []Picture) ([]string, error) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var paths []string
	for _, p := range pictures {
		base := filepath.Join(dir, p.Name)
		group.Go(func() error { return savePicture(base, p.sheet) })
		paths = append(paths, base+".svg", base+".png")
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return paths, nil
}

// savePicture draws a picture twice, and writes base.svg and base.png, each atomically.
func savePicture(base string, make func() (sheet, error)) error {
	s, err := make()
	if err != nil {
		return fmt.Errorf("drawing %s.svg: %w", base, err)
	}
	for _, format := range []struct {
		extension string
		render    func(w, h vg.Length, paint func(draw.Canvas) error) ([]byte, error)
	}{{".svg", renderSVG}, {".png", renderPNG}} {
		b, err := format.render(s.w, s.h, s.paint)
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
