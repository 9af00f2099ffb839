package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/learner/experiment/runfolder"
)

// difference returns the most by which a channel of a pixel differs.
func difference(t *testing.T, a, b image.Image) (most int) {
	t.Helper()
	if a.Bounds() != b.Bounds() {
		t.Fatalf("pictures of %v and %v", a.Bounds(), b.Bounds())
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			p, q := color.RGBAModel.Convert(a.At(x, y)).(color.RGBA), color.RGBAModel.Convert(b.At(x, y)).(color.RGBA)
			for _, d := range []int{int(p.R) - int(q.R), int(p.G) - int(q.G), int(p.B) - int(q.B), int(p.A) - int(q.A)} {
				most = max(most, d, -d)
			}
		}
	}
	return most
}

func painted(w, h int, at func(x, y int) color.RGBA) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, at(x, y))
		}
	}
	return m
}

func TestIndexed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var memory canvas
	for name, c := range map[string]struct {
		at      func(x, y int) color.RGBA
		palette bool
		most    int
	}{
		"one colour": {func(x, y int) color.RGBA { return color.RGBA{255, 255, 255, 255} }, true, 0},
		"256 greys":  {func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(x), uint8(x), 255} }, true, 0},
		"shades":     {func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(y / 2), 0, 255} }, true, furthest},
		"a rare one": {func(x, y int) color.RGBA {
			return map[bool]color.RGBA{true: {200, 0, 0, 255}, false: {uint8(x), uint8(x), uint8(x / 2 * 2), 255}}[x*y == 7]
		}, true, furthest},
		"of all kinds": {func(x, y int) color.RGBA {
			return color.RGBA{uint8(x & 15 << 4), uint8(y << 3), uint8(x >> 4 << 4), 255}
		}, false, 0},
		"too many":       {func(x, y int) color.RGBA { return color.RGBA{uint8(rnd.Uint32()), uint8(rnd.Uint32()), 7, 255} }, false, 0},
		"8192 and more":  {func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(y % 33), 9, 255} }, false, 0},
		"8192, and near": {func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(y % 32), 9, 255} }, true, furthest},
	} {
		m := painted(256, 64, c.at)
		got := memory.indexed(m)
		if _, palette := got.(*image.Paletted); palette != c.palette {
			t.Errorf("%s: has a palette: %v, want %v", name, palette, c.palette)
		}
		if d := difference(t, got, m); d > c.most {
			t.Errorf("%s: a channel is off by %d, want %d at most", name, d, c.most)
		}
	}
}

// Plots have a palette, and no pixel is another than SVG's renderer would see.
func TestPlotsHavePalettes(t *testing.T) {
	rows := make([]runfolder.Row, 400)
	for k := range rows {
		x := math.Sin(float64(k))
		rows[k] = runfolder.Row{Round: k + 1, TrainLoss: 2 + x, TestAccuracy: math.NaN(), M: x, MIdeal: x * 1.01, Eps: 0.01 * x, EpsStdPredicted: 0.01, Attempts: 1, Link: &runfolder.LinkRow{Alpha: 5, Quality: 0.9, Misfit: 0.1}}
	}
	var memory canvas
	for _, p := range append(RunPictures("title", rows), LinkPictures("title", rows, RoundGains{})...) {
		s, err := p.sheet()
		if err != nil {
			t.Fatal(err)
		}
		b, err := memory.renderPNG(s)
		if err != nil {
			t.Fatal(err)
		}
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*image.Paletted); !ok {
			t.Errorf("%s.png is a %T", p.Name, m)
		}
		if got, want := m.At(0, 0), color.Gray16Model.Convert(color.White); color.Gray16Model.Convert(got) != want {
			t.Errorf("%s.png has %v at its edge", p.Name, got)
		}
	}
}
