package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"git.sr.ht/~sbinet/gg"
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
	b, err := renderSVG(s)
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
	// What is no longer needed is room: a system clears new pages, one by one.
	runtime.GC()
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(pictures)) {
		group.Go(func() error {
			var memory canvas
			for {
				k := int(next.Add(1)) - 1
				if k >= len(pictures) {
					return nil
				}
				if err := memory.save(filepath.Join(dir, pictures[k].Name), pictures[k].sheet); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range pictures {
		base := filepath.Join(dir, p.Name)
		paths = append(paths, base+".svg", base+".png")
	}
	return paths, nil
}

// canvas is the memory of pictures that are drawn one after the other: some megabytes each,
// which a system clears page by page where they are new.
type canvas struct {
	pixels  []uint8 // of a picture
	ids     []uint16
	indices []uint8 // with a palette
	encoder *png.EncoderBuffer
}

// Get returns what the last encoder used: a png.EncoderBufferPool.
func (c *canvas) Get() *png.EncoderBuffer { return c.encoder }

// Put keeps what an encoder used.
func (c *canvas) Put(b *png.EncoderBuffer) { c.encoder = b }

// grown returns memory of n values, whose content is left over from before.
func grown[T any](memory *[]T, n int) []T {
	*memory = slices.Grow((*memory)[:0], n)[:n]
	return *memory
}

// savePicture is canvas.save for one picture.
func savePicture(base string, make func() (sheet, error)) error { return new(canvas).save(base, make) }

// save draws a picture twice, and writes base.svg and base.png, each atomically.
func (c *canvas) save(base string, make func() (sheet, error)) error {
	s, err := make()
	if err != nil {
		return fmt.Errorf("drawing %s.svg: %w", base, err)
	}
	for _, format := range []struct {
		extension string
		render    func(sheet) ([]byte, error)
	}{{".svg", renderSVG}, {".png", c.renderPNG}} {
		b, err := format.render(s)
		if err != nil {
			return fmt.Errorf("drawing %s%s: %w", base, format.extension, err)
		}
		if err := runfolder.WriteFile(base+format.extension, b); err != nil {
			return err
		}
	}
	return nil
}

func renderSVG(s sheet) ([]byte, error) {
	c := vgsvg.New(s.w, s.h)
	all := draw.New(c)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	if err := s.paint(all); err != nil {
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

func (c *canvas) renderPNG(s sheet) ([]byte, error) {
	dots := func(l vg.Length) int { return int(l/vg.Inch*dotsPerInch + 0.5) }
	width, height := dots(s.w), dots(s.h)
	m := &image.RGBA{Pix: grown(&c.pixels, 4*width*height), Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}
	// As vgimg does it, which would draw on a copy.
	context := gg.NewContextForRGBA(m)
	context.SetLineCapButt()
	context.InvertY()
	on := vgimg.NewWith(vgimg.UseDPI(dotsPerInch), vgimg.UseImageWithContext(m, context)) // white
	if err := s.paint(draw.NewCanvas(on, s.w, s.h)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	// Most of a picture is one colour: a quick search finds that as well.
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: c}
	if err := encoder.Encode(&b, c.indexed(m)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
