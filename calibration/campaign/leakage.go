package campaign

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
)

// leakage is what a transmitter adds to all that it sends, in parts of full scale.
type leakage struct {
	value  complex128
	stdErr float64 // of a branch
	known  bool
}

// clearOfNoise is by how much what of a gain's power no other gain explains must exceed the
// error of the gain, so that this bends what is told from it by no more than a hundredth.
const clearOfNoise = 100

// leakages tells what devices leak from what the receiver adds. Every burst's window holds
// the receiver's offset and all devices' leakage, through their gains as they are then,
// whoever sends: as gains fade or turn against each other, least squares tell the parts
// from each other. Where they stay the sum is all that is known.
func (c *Config) leakages(blocks []sounder.Block, carriers map[int]Carriers) []leakage {
	n := c.Soundings.Devices
	out := make([]leakage, n)
	var rows [][]complex128
	var sums []complex128
	var errors, count = make([]float64, n+1), 0.0
	for _, b := range blocks {
		for look := range len(b.Records) / n {
			row, noise := c.leakRows(b, look, carriers[b.Session])
			if row == nil {
				continue
			}
			rows = append(rows, row...)
			count++
			for i, r := range b.Records[look*n : (look+1)*n] {
				sums = append(sums, standing(r)...)
				errors[i+1] += noise[i]
			}
		}
	}
	if len(rows) < 4*(n+1) {
		return out
	}
	values, variances, spreads, ok := complexLeastSquares(rows, sums)
	if !ok {
		return out
	}
	for i := range out {
		known := spreads[i+1] > clearOfNoise*errors[i+1]/count
		out[i] = leakage{values[i+1], math.Sqrt(variances[i+1] / 2), known}
	}
	return out
}

// standing returns what a burst's window has beside it: DC, and what stands at the carrier
// where that is told from DC.
func standing(r sounder.Record) []complex128 {
	if e := r.Estimate; !math.IsInf(e.LeakVar, 1) {
		return []complex128{e.DC, e.Leak}
	}
	return []complex128{r.Estimate.DC}
}

// leakRows returns, for each of what stands in the window of each burst of a look, what one
// unit of the receiver's offset and of each device's leakage adds to it; nil where a burst
// was missed. noise is the variance of each gain.
func (c *Config) leakRows(b sounder.Block, look int, carriers Carriers) (rows [][]complex128, noise []float64) {
	n, rate := c.Soundings.Devices, float64(c.SampleRate)
	records := b.Records[look*n : (look+1)*n]
	for _, r := range records {
		if r.Estimate == nil {
			return nil, nil
		}
		noise = append(noise, r.Estimate.GainVar)
	}
	for i := range records {
		mean, carrier := []complex128{1}, []complex128{0}
		told := len(standing(records[i])) > 1
		for j, r := range records {
			f := carriers.Own[j].Offset.Value / rate
			apart := rate * (secondsOf(&c.Soundings, rate, b, look*n+i) - secondsOf(&c.Soundings, rate, b, look*n+j))
			turn := r.Estimate.Gain * cmplx.Rect(1, 2*math.Pi*math.Remainder(f*apart, 1))
			share := meanTurn(f, c.Soundings.Sounding.Fitted())
			if told {
				off := f - carriers.Own[i].Offset.Value/rate
				carrier = append(carrier, turn*complex(meanTurn(off, c.Soundings.Sounding.Fitted()), 0))
				share = 0
			}
			mean = append(mean, turn*complex(share, 0))
		}
		if rows = append(rows, mean); told {
			rows = append(rows, carrier)
		}
	}
	return rows, noise
}

// meanTurn is what a carrier of offset f, in cycles a sample, leaves in the mean of so many
// samples.
func meanTurn(f float64, samples int) float64 {
	d := float64(samples) * math.Sin(math.Pi*f)
	if d == 0 {
		return 1
	}
	return math.Sin(math.Pi*f*float64(samples)) / d
}

// complexLeastSquares solves rows x = sums, and gives of each unknown E|error|^2 and how
// much of its column's mean square no other column explains.
func complexLeastSquares(rows [][]complex128, sums []complex128) (x []complex128, variances, spreads []float64, ok bool) {
	n, p := len(rows), len(rows[0])
	gram, right := mat.NewSymDense(2*p, nil), mat.NewVecDense(2*p, nil)
	for k, row := range rows {
		for i, a := range row {
			ay := cmplx.Conj(a) * sums[k]
			right.SetVec(2*i, right.AtVec(2*i)+real(ay))
			right.SetVec(2*i+1, right.AtVec(2*i+1)+imag(ay))
			for j := i; j < p; j++ {
				addComplex(gram, i, j, cmplx.Conj(a)*row[j])
			}
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) || factor.Cond() > 1e12 {
		return nil, nil, nil, false
	}
	var solved mat.VecDense
	if factor.SolveVecTo(&solved, right) != nil {
		return nil, nil, nil, false
	}
	var inverse mat.SymDense
	if factor.InverseTo(&inverse) != nil {
		return nil, nil, nil, false
	}
	for i := range p {
		x = append(x, complex(solved.AtVec(2*i), solved.AtVec(2*i+1)))
	}
	left := 0.0
	for k, row := range rows {
		e := sums[k]
		for i, a := range row {
			e -= a * x[i]
		}
		left += real(e)*real(e) + imag(e)*imag(e)
	}
	for i := range p {
		variances = append(variances, left/float64(n-p)*inverse.At(2*i, 2*i))
		spreads = append(spreads, 1/inverse.At(2*i, 2*i)/float64(n))
	}
	return x, variances, spreads, true
}

// addComplex adds v to entry i, j of a Hermitian matrix, which is held as the symmetric one
// of real and imaginary parts.
func addComplex(m *mat.SymDense, i, j int, v complex128) {
	add := func(r, c int, v float64) { m.SetSym(r, c, m.At(r, c)+v) }
	add(2*i, 2*j, real(v))
	add(2*i+1, 2*j+1, real(v))
	if i != j {
		add(2*i, 2*j+1, -imag(v))
		add(2*i+1, 2*j, imag(v))
	}
}

// describe sets what is known of it.
func (l leakage) describe(d *calibration.Device) {
	if !l.known {
		return
	}
	i, q := around(real(l.value), l.stdErr*l.stdErr), around(imag(l.value), l.stdErr*l.stdErr)
	d.LeakageI, d.LeakageQ = &i, &q
}
