package iq_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/cmplx"
	"testing"

	"ringwave/radio/iq"
)

// kind is a stream of bytes as it is told, and its plain definition.
type kind struct {
	name string
	cfg  iq.Config
	// least and most are the integers that are encoded.
	least, most float64
	// round makes an integer of an amplitude.
	round func(x float32) float64
	// amplitude is what an integer that is received stands for.
	amplitude func(code int) float32
	// code and put read and write an integer.
	code func(src []byte) int
	put  func(dst []byte, code int)
}

func int8s(src []byte) int { return int(int8(src[0])) }

func putByte(dst []byte, code int) { dst[0] = byte(code) }

func times(fullScale float64) func(x float32) float64 {
	return func(x float32) float64 { return math.RoundToEven(float64(x) * fullScale) }
}

func over(fullScale float32) func(code int) float32 {
	return func(code int) float32 { return float32(code) / fullScale }
}

// twelve is of 12 bits within 16 of some order, so many places from the right.
func twelve(format iq.Format, order binary.ByteOrder, places int) kind {
	return kind{
		fmt.Sprintf("%v, 12 bits at %d", order, places),
		iq.Config{Format: format, Step: 1.0 / 2047, Bits: 12, Shift: places}, -2047, 2047, times(2047), over(2047),
		func(src []byte) int {
			code := int(order.Uint16(src)) >> places & 0xfff
			if code >= 0x800 {
				code -= 0x1000
			}
			return code
		},
		func(dst []byte, code int) { order.PutUint16(dst, uint16(code)<<places) },
	}
}

// scaled is of integers that are multiples of step.
func scaled(format iq.Format, step, most float64) kind {
	k := kind{
		fmt.Sprintf("format %d, step %v", format, step), iq.Config{Format: format, Step: step}, -most, most,
		func(x float32) float64 { return math.RoundToEven(float64(x) / step) },
		func(code int) float32 { return float32(float64(code) * step) },
		int8s, putByte,
	}
	if format == iq.CI16LE {
		k.code = func(src []byte) int { return int(int16(binary.LittleEndian.Uint16(src))) }
		k.put = func(dst []byte, code int) { binary.LittleEndian.PutUint16(dst, uint16(code)) }
	}
	return k
}

func kinds() []kind {
	return []kind{
		{
			"8 bits in single precision", iq.Config{Format: iq.CI8, Step: 1.0 / 127, Single: true}, -127, 127,
			func(x float32) float64 { v := x * 127; return math.RoundToEven(float64(v)) }, over(127), int8s, putByte,
		},
		{
			"offset binary", iq.Config{Format: iq.CU8, Step: 1.0 / 128}, 0, 255,
			func(x float32) float64 { return math.Floor(float64(x)*128 + 128) },
			func(code int) float32 { return (float32(code) - 127.5) / 128 },
			func(src []byte) int { return int(src[0]) }, putByte,
		},
		scaled(iq.CI8, 1.0/127, 127), scaled(iq.CI8, 1, 127), scaled(iq.CI8, 0.003, 127),
		scaled(iq.CI16LE, 1.0/32767, 32767), scaled(iq.CI16LE, 1, 32767), scaled(iq.CI16LE, 1e-20/32767, 32767), scaled(iq.CI16LE, 1e20, 32767),
		twelve(iq.CI16LE, binary.LittleEndian, 0), twelve(iq.CI16LE, binary.LittleEndian, 4),
		twelve(iq.CI16BE, binary.BigEndian, 0), twelve(iq.CI16BE, binary.BigEndian, 3),
	}
}

// want returns the integer of an amplitude and whether it was beyond the range or NaN.
func (k kind) want(x float32) (code int, clipped, nan bool) {
	v := k.round(x)
	switch {
	case x != x:
		if k.least == 0 {
			return 128, false, true
		}
		return 0, false, true
	case v > k.most:
		return int(k.most), true, false
	case v < k.least:
		return int(k.least), true, false
	}
	return int(v), false, false
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func infinite(x float32) bool { return math.IsInf(float64(x), 0) }

// encodes compares what a codec makes of a sample with the definition, and what it makes
// of that again.
func (k kind) encodes(t *testing.T, c *iq.Codec, i, q float32) {
	t.Helper()
	half := k.cfg.Format.SampleBytes() / 2
	dst, want := make([]byte, 2*half), make([]byte, 2*half)
	a, iClipped, iNaN := k.want(i)
	b, qClipped, qNaN := k.want(q)
	k.put(want, a)
	k.put(want[half:], b)
	counts := iq.Counts{
		Clipped: count(iClipped || qClipped),
		Invalid: count(iNaN || qNaN || infinite(i) || infinite(q)),
		Limited: count(iClipped || qClipped || iNaN || qNaN),
	}
	if got := c.Encode(dst, []complex64{complex(i, q)}); got != counts || string(dst) != string(want) {
		t.Fatalf("%s: %v, %v: % x instead of % x, %+v instead of %+v", k.name, i, q, dst, want, got, counts)
	}
	k.decodes(t, c, dst)
}

// decodes compares what a codec makes of bytes with the definition.
func (k kind) decodes(t *testing.T, c *iq.Codec, src []byte) {
	t.Helper()
	a, b := k.code(src), k.code(src[len(src)/2:])
	atEnd := func(code int) bool { return float64(code) <= k.least || float64(code) >= k.most }
	dst := make([]complex64, 1)
	got := c.Decode(dst, src)
	if want := complex(k.amplitude(a), k.amplitude(b)); dst[0] != want || got != (iq.Counts{Clipped: count(atEnd(a) || atEnd(b))}) {
		t.Fatalf("%s: % x: %v instead of %v, %+v", k.name, src, dst[0], want, got)
	}
}

// At and around each integer and each middle of two, far out, and what is no number,
// alone and beside each other.
func TestEncode(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := []float32{0, 1e30, -1e30, inf, -inf, nan, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for _, k := range kinds() {
		c := iq.New(k.cfg)
		for n := int(2*k.least) - 300; n <= int(2*k.most)+300; n++ {
			v := float32(float64(n) / 2 * k.cfg.Step)
			for _, v := range []float32{v, math.Nextafter32(v, inf), math.Nextafter32(v, -inf)} {
				k.encodes(t, c, v, -v)
			}
		}
		for _, i := range odd {
			for _, q := range append(odd, float32(127.25*k.cfg.Step), float32(-0.75*k.cfg.Step)) {
				k.encodes(t, c, i, q)
				k.encodes(t, c, q, i)
			}
		}
	}
}

// All bytes that I can have, with others as Q.
func TestDecode(t *testing.T) {
	for _, k := range kinds() {
		c := iq.New(k.cfg)
		half := k.cfg.Format.SampleBytes() / 2
		for n := range 1 << (8 * half) {
			i, q := n, n*40503>>3 // a permutation, for short
			src := []byte{byte(i), byte(q)}
			if half == 2 {
				src = []byte{byte(i), byte(i >> 8), byte(q), byte(q >> 8)}
			}
			k.decodes(t, c, src)
		}
	}
}

// Every pair of bytes comes back as it was sent, but -128, which is sent as -127.
func TestEightBitsRoundTrip(t *testing.T) {
	src := make([]byte, 2<<16)
	for i := range 1 << 16 {
		src[2*i], src[2*i+1] = byte(i), byte(i>>8)
	}
	x, back := make([]complex64, 1<<16), make([]byte, 2<<16)
	for _, c := range []struct {
		cfg            iq.Config
		ends, limited  int
		unsent, sentAs byte
	}{
		{iq.Config{Format: iq.CI8, Step: 1.0 / 127, Single: true}, 256*256 - 253*253, 256*256 - 255*255, 0x80, 0x81},
		{iq.Config{Format: iq.CI8, Step: 1.0 / 127}, 256*256 - 253*253, 256*256 - 255*255, 0x80, 0x81},
		{iq.Config{Format: iq.CU8, Step: 1.0 / 128}, 256*256 - 254*254, 0, 0, 0},
	} {
		codec := iq.New(c.cfg)
		if n := codec.Decode(x, src); n.Clipped != c.ends {
			t.Errorf("%+v: %+v, want %d at an end", c.cfg, n, c.ends)
		}
		if n := codec.Encode(back, x); n.Limited != c.limited || n.Clipped != c.limited {
			t.Errorf("%+v: %+v, want %d clipped", c.cfg, n, c.limited)
		}
		for i, b := range src {
			if b == c.unsent {
				b = c.sentAs
			}
			if back[i] != b {
				t.Fatalf("%+v: byte %d: %02x came back as %02x", c.cfg, i, src[i], back[i])
			}
		}
	}
}

// A step is exact where the definition divides by full scale: against rational numbers.
func TestStepIsFullScale(t *testing.T) {
	c := iq.New(iq.Config{Format: iq.CI16LE, Step: 1.0 / 2047, Bits: 12})
	dst := make([]complex64, 1)
	for code := -2048; code < 2048; code++ {
		c.Decode(dst, []byte{byte(code), byte(code >> 8), 0, 0})
		if want, _ := big.NewRat(int64(code), 2047).Float32(); real(dst[0]) != want {
			t.Errorf("%d: %v instead of %v", code, real(dst[0]), want)
		}
	}
}

// Floats are their bits; what is not finite stays when written and is 0 when read.
func TestFloats(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	src := []complex64{complex(0.1, -2e-39), complex(nan, 1), complex(1, -inf), complex(float32(math.Copysign(0, -1)), math.MaxFloat32)}
	raw := make([]byte, 8*len(src))
	c := iq.New(iq.Config{Format: iq.CF32LE})
	if n := c.Encode(raw, src); n != (iq.Counts{Invalid: 2}) {
		t.Errorf("%+v", n)
	}
	for k, x := range src {
		i, q := binary.LittleEndian.Uint32(raw[8*k:]), binary.LittleEndian.Uint32(raw[8*k+4:])
		if i != math.Float32bits(real(x)) || q != math.Float32bits(imag(x)) {
			t.Errorf("%v became %08x, %08x", x, i, q)
		}
	}
	back := make([]complex64, len(src))
	if n := c.Decode(back, raw); n != (iq.Counts{Invalid: 2}) || back[0] != src[0] || back[1] != 0 || back[2] != 0 || back[3] != src[3] {
		t.Errorf("%v, %+v", back, n)
	}
}

// A full-scale tone comes through 8 bits with 6.02 b + 1.76 dB, less 20 log10 of
// 128/127 for the code that is not used.
func TestQuantisationNoiseOfATone(t *testing.T) {
	const n = 1 << 16
	x, back, codes := make([]complex64, n), make([]complex64, n), make([]byte, 2*n)
	for k := range x {
		x[k] = complex64(cmplx.Rect(1, 2*math.Pi*math.Mod(0.1234567891*float64(k), 1)))
	}
	c := iq.New(iq.Config{Format: iq.CI8, Step: 1.0 / 127})
	c.Encode(codes, x)
	c.Decode(back, codes)
	e := 0.0
	for k := range x {
		i, q := float64(real(x[k]-back[k])), float64(imag(x[k]-back[k]))
		e += i*i + q*q
	}
	got, want := -10*math.Log10(e/n), 6.02*8+1.76-20*math.Log10(128.0/127)
	// The formula takes errors for uniform; a tone dwells at its peaks, which here
	// are codes.
	if math.Abs(got-want) > 0.3 {
		t.Errorf("%.2f dB, want %.2f", got, want)
	}
	t.Logf("%.2f dB, predicted %.2f", got, want)
}

// FuzzCodec has floats of any bits, and bytes, of every kind.
func FuzzCodec(f *testing.F) {
	f.Add(uint8(0), uint32(0), uint32(0x7fc00000))
	f.Add(uint8(1), math.Float32bits(0.50000003/127), math.Float32bits(-127.5/127))
	f.Add(uint8(9), math.Float32bits(0.5), math.Float32bits(-1.5))
	all := kinds()
	codecs := make([]*iq.Codec, len(all))
	for k := range all {
		codecs[k] = iq.New(all[k].cfg)
	}
	f.Fuzz(func(t *testing.T, which uint8, i, q uint32) {
		n := int(which) % len(all)
		k, c := all[n], codecs[n]
		k.encodes(t, c, math.Float32frombits(i), math.Float32frombits(q))
		bytes := binary.LittleEndian.AppendUint32(nil, i)
		k.decodes(t, c, bytes[:k.cfg.Format.SampleBytes()])
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, k := range kinds() {
		c := iq.New(k.cfg)
		src, dst := make([]byte, 1<<17*k.cfg.Format.SampleBytes()), make([]complex64, 1<<17)
		for i := range src {
			src[i] = byte(i * 7)
		}
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			for range b.N {
				c.Decode(dst, src)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, k := range kinds() {
		c := iq.New(k.cfg)
		src, dst := make([]complex64, 1<<17), make([]byte, 1<<17*k.cfg.Format.SampleBytes())
		for i := range src {
			src[i] = complex(float32(i%251)/251-0.5, float32(i%127)/127-0.5)
		}
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for range b.N {
				c.Encode(dst, src)
			}
		})
	}
}
