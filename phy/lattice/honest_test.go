package lattice

import (
	"math"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/zq"
)

// linear reports whether y is any integer superposition of the digits, as a linear
// check would, and which one.
func (s *superposition) linear(y []int32) ([]int32, bool) {
	gain := make([]int32, len(s.digits))
	for i, d := range s.digits {
		num, den := 0.0, 0.0
		for k, v := range d {
			num += float64(v) * float64(y[k])
			den += float64(v) * float64(v)
		}
		gain[i] = int32(math.Round(num / den))
	}
	for k, v := range y {
		for i, d := range s.digits {
			v -= gain[i] * int32(d[k])
		}
		if v != 0 {
			return nil, false
		}
	}
	return gain, true
}

// What a linear check accepts is what round(alpha h_i) gives, also where teeth
// merge: devices as weak as the noise, and pairs of nearly the same gain.
func TestAcceptedIntegersAreTheRoundedGains(t *testing.T) {
	accepted, wrong := 0, 0
	for _, base := range []int{3, 5} {
		for _, snr := range []float64{25, 30, 40} {
			s := newSuperposition(blocks{
				gains: devices(3, 0.3), snrDB: snr, base: base, symbols: 2048, trials: 1, seed: 3,
			})
			for trial := range 1500 {
				for i := range s.h {
					s.h[i] = s.cfg.gains[i].draw(s.rnd)
				}
				switch offset := s.noise * 6 * s.rnd.Float64(); trial % 3 {
				case 0:
					s.h[2] = offset
				case 1:
					s.h[2] = s.h[1] + offset
				case 2:
					s.h[2], s.h[0] = s.h[1]-offset, s.noise*3
				}
				s.transmit()
				res, err := s.receiver.Search(s.y, func(y []int32) bool { _, ok := s.linear(y); return ok })
				if err != nil {
					continue
				}
				accepted++
				gain, _ := s.linear(res.Y)
				for i, h := range s.h {
					if float64(gain[i]) != math.RoundToEven(res.Alpha*h) {
						wrong++
						break
					}
				}
			}
		}
	}
	if wrong > 0 || accepted < 3000 {
		t.Errorf("%d of 9000 accepted, %d of them wrong", accepted, wrong)
	}
}

// ringBlock is a block of demo-1024: 1024 coefficients and their checks, a device.
type ringBlock struct {
	mod     *zq.Modulus
	codec   *digit.Codec
	check   *frame.Check
	weights frame.Weights
	x       []zq.Vector
	y       zq.Vector
}

func newRingBlock(t *testing.T, devices int) *ringBlock {
	t.Helper()
	const n = 1024
	mod, err := zq.NewModulus([]uint64{0x7fff801})
	if err != nil {
		t.Fatal(err)
	}
	b := &ringBlock{mod: mod, weights: frame.NewWeights(keystream.FromInteger(8), 0)}
	if b.codec, err = digit.New(mod, 3); err != nil {
		t.Fatal(err)
	}
	if b.check, err = frame.NewCheck(mod, n, 0, 0); err != nil {
		t.Fatal(err)
	}
	for range devices {
		b.x = append(b.x, mod.NewVector(n+b.check.Len()))
	}
	b.y = mod.NewVector(n + b.check.Len())
	return b
}

// split returns the payload and the check coefficients of a vector.
func (b *ringBlock) split(v zq.Vector) (payload, chk zq.Vector) {
	for j := range v {
		n := len(v[j]) - b.check.Len()
		payload, chk = append(payload, v[j][:n]), append(chk, v[j][n:])
	}
	return payload, chk
}

// send draws elements, adds their checks and superposes their digits.
func (b *ringBlock) send(s *superposition, round uint32) {
	b.check.Draw(b.weights.Of(frame.Header{Round: round}))
	p := b.mod.Primes()[0]
	for k := range s.y {
		s.y[k] = float32(s.noise * s.rnd.NormFloat64())
	}
	for i, x := range b.x {
		for k := range x[0] {
			x[0][k] = s.rnd.Uint64N(p)
		}
		payload, chk := b.split(x)
		b.check.Sums(chk, payload, zq.Vector{nil})
		b.codec.Split(s.digits[i], x)
		for k, d := range s.digits[i] {
			s.y[k] += float32(s.h[i]) * float32(d)
		}
	}
}

// accept is the linear check on received integers.
func (b *ringBlock) accept(y []int32) bool {
	b.codec.Join(b.y, y)
	payload, chk := b.split(b.y)
	return b.check.Verify(payload, nil, chk)
}

// No wrong block passes the linear check: at SNRs that fail between 1 % and
// 50 % of the blocks, 2000 each (400 in short tests), all that is accepted is
// sum_i round(alpha h_i) x_i mod q and not zero.
func TestNoWrongBlockIsAccepted(t *testing.T) {
	for _, set := range []struct {
		devices int
		snrdB   float64
	}{{2, 26}, {3, 29}, {3, 32}, {4, 38}} {
		b := newRingBlock(t, set.devices)
		s := newSuperposition(blocks{
			gains: devices(set.devices, 0.3), snrDB: set.snrdB, base: 3,
			symbols: b.y.Len() * b.codec.Digits(), trials: 1, seed: 5,
		})
		blocks := 2000
		if testing.Short() {
			blocks = 400
		}
		accepted := 0
		want := b.mod.NewVector(b.y.Len())
		for round := range uint32(blocks) {
			for i, g := range s.cfg.gains {
				s.h[i] = g.draw(s.rnd)
			}
			b.send(s, round)
			res, err := s.receiver.Search(s.y, b.accept)
			if err != nil {
				continue
			}
			accepted++
			want.Clear()
			zeros := 0
			for i, h := range s.h {
				integer := int64(math.RoundToEven(res.Alpha * h))
				b.mod.AddScaled(want, integer, b.x[i])
				if integer == 0 {
					zeros++
				}
			}
			b.codec.Join(b.y, res.Y)
			if zeros == len(s.h) || !b.y.Equal(want) {
				t.Fatalf("N = %d, %v dB: a wrong block was accepted at alpha = %v", set.devices, set.snrdB, res.Alpha)
			}
		}
		failed := 1 - float64(accepted)/float64(blocks)
		t.Logf("N = %d, %v dB: %.3f of %d blocks failed, none was wrong", set.devices, set.snrdB, failed, blocks)
		if failed < 0.01 || failed > 0.5 {
			t.Errorf("N = %d, %v dB: %.3f of the blocks failed: not the range that this test is about", set.devices, set.snrdB, failed)
		}
	}
}
