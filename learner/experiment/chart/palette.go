package chart

import (
	"cmp"
	"encoding/binary"
	"image"
	"image/color"
	"slices"
)

// A picture has few colours, and shades of them along its edges. With a palette it takes a
// quarter of the memory to encode, and half of the file.
const (
	// mostColors bounds the colours of which a palette is made.
	mostColors = 1 << 13
	// paletteSize is that of PNG.
	paletteSize = 256
	// frequent is how many colours of a palette are those that most pixels have. The others
	// are those furthest from all that are there already.
	frequent = 128
	// furthest is how far a pixel's red, green or blue may be from what it was, of 255.
	furthest = 24
)

// pixel is a colour: red, green, blue and opacity, from the lowest byte.
type pixel uint32

func (p pixel) channel(k int) int32 { return int32(p >> (8 * k) & 255) }

// indexed returns a picture with a palette whose pixels are as those of the given one, to
// within furthest, or the given one where none will do. It must be opaque. The result is good
// until the next call.
func (c *canvas) indexed(m *image.RGBA) image.Image {
	ids := grown(&c.ids, len(m.Pix)/4)
	colors, counts := colorsOf(m, ids)
	if len(colors) > mostColors {
		return m
	}
	palette, nearest, ok := paletteOf(colors, counts)
	if !ok {
		return m
	}
	p := &image.Paletted{Pix: grown(&c.indices, len(ids)), Stride: m.Rect.Dx(), Rect: m.Rect, Palette: palette}
	for i, id := range ids {
		p.Pix[i] = nearest[id]
	}
	return p
}

// colorsOf returns the colours of a picture and how many pixels have each, and sets ids to
// the number of each pixel's colour. It ends when there are more than mostColors.
func colorsOf(m *image.RGBA, ids []uint16) (colors []pixel, counts []int) {
	const slots = 4 * mostColors // of a table of the numbers, from 1 on, which has room
	table := make([]uint16, slots)
	number := func(c pixel) uint16 {
		at := uint32(c) * 2654435769 % slots // by the golden ratio: neighbours lie apart
		for table[at] != 0 && colors[table[at]-1] != c {
			at = (at + 1) % slots
		}
		if table[at] == 0 {
			colors, counts = append(colors, c), append(counts, 0)
			table[at] = uint16(len(colors))
		}
		return table[at] - 1
	}
	var last pixel
	var id uint16
	for i := range ids {
		c := pixel(binary.LittleEndian.Uint32(m.Pix[4*i:]))
		if i == 0 || c != last {
			if last, id = c, number(c); len(colors) > mostColors {
				break
			}
		}
		ids[i] = id
		counts[id]++
	}
	return colors, counts
}

// paletteOf returns a palette and which of it is nearest to each colour. It reports whether
// all are near enough.
func paletteOf(colors []pixel, counts []int) (palette color.Palette, nearest []uint8, ok bool) {
	order := make([]int, len(colors))
	for i := range order {
		order[i] = i
	}
	// Numbers are as their colours came: equal counts keep their order.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	nearest = make([]uint8, len(colors))
	distances := make([]int32, len(colors)) // squared
	for i := range distances {
		distances[i] = 3 * 256 * 256
	}
	for len(palette) < min(paletteSize, len(colors)) {
		next := 0
		if len(palette) < frequent {
			next = order[len(palette)]
		} else if next = furthestOf(distances); distances[next] == 0 {
			break
		}
		c := colors[next]
		red, green, blue := c.channel(0), c.channel(1), c.channel(2)
		for i, other := range colors {
			r, g, b := other.channel(0)-red, other.channel(1)-green, other.channel(2)-blue
			if d := r*r + g*g + b*b; d < distances[i] {
				distances[i], nearest[i] = d, uint8(len(palette))
			}
		}
		palette = append(palette, color.RGBA{uint8(red), uint8(green), uint8(blue), 255})
	}
	return palette, nearest, slices.Max(distances) <= furthest*furthest
}

// furthestOf returns the first of the largest.
func furthestOf(distances []int32) (at int) {
	for i, d := range distances {
		if d > distances[at] {
			at = i
		}
	}
	return at
}
