// Package p676 gives the attenuation of radio waves by oxygen and water vapour,
// line by line: Recommendation ITU-R P.676-12, Annex 1, 1 to 1000 GHz.
//
// It takes in a frequency and the state of the air and gives dB/km. It knows
// nothing of links. On a bench it hardly matters: 0.06 dB over 10 m at 300 GHz.
package p676

import (
	"fmt"
	"math"
)

// Air is the state of the atmosphere.
type Air struct {
	// PressureHPa is the pressure of dry air, p.
	PressureHPa float64
	// TemperatureK is the temperature, T.
	TemperatureK float64
	// VapourDensity is the density of water vapour, rho, in g/m^3.
	VapourDensity float64
}

// The range of the Recommendation's line-by-line method.
const (
	MinGHz = 1
	MaxGHz = 1000
)

// Attenuation is a specific attenuation in dB/km.
type Attenuation struct{ Oxygen, WaterVapour float64 }

// Total returns the sum, in dB/km.
func (a Attenuation) Total() float64 { return a.Oxygen + a.WaterVapour }

// Specific returns the specific attenuation at a frequency from 1 to 1000 GHz
// (Eqs. 1 to 9 of Annex 1).
func Specific(ghz float64, air Air) (Attenuation, error) {
	if !(ghz >= MinGHz && ghz <= MaxGHz) {
		return Attenuation{}, fmt.Errorf("gas absorption at %v GHz: the line-by-line method covers %d to %d GHz", ghz, MinGHz, MaxGHz)
	}
	if !(air.PressureHPa > 0 && air.PressureHPa <= 2000) || !(air.TemperatureK >= 150 && air.TemperatureK <= 400) || !(air.VapourDensity >= 0 && air.VapourDensity <= 500) {
		return Attenuation{}, fmt.Errorf("gas absorption in air of %v hPa, %v K and %v g/m3: allowed are above 0 to 2000 hPa, 150 to 400 K and 0 to 500 g/m3", air.PressureHPa, air.TemperatureK, air.VapourDensity)
	}
	s := state{
		f: ghz, p: air.PressureHPa, theta: 300 / air.TemperatureK,
		e: air.VapourDensity * air.TemperatureK / 216.7,
	}
	return Attenuation{
		Oxygen:      0.1820 * ghz * (s.oxygen() + s.dryContinuum()),
		WaterVapour: 0.1820 * ghz * s.waterVapour(),
	}, nil
}

// state is what every line needs: frequency in GHz, dry pressure and partial
// pressure of vapour in hPa, theta = 300/T.
type state struct{ f, p, e, theta float64 }

// oxygen returns the sum over oxygen's lines of strength times shape.
func (s state) oxygen() float64 {
	sum := 0.0
	for _, l := range oxygenLines() {
		strength := l.c[0] * 1e-7 * s.p * math.Pow(s.theta, 3) * math.Exp(l.c[1]*(1-s.theta))
		width := l.c[2] * 1e-4 * (s.p*math.Pow(s.theta, 0.8-l.c[3]) + 1.1*s.e*s.theta)
		width = math.Sqrt(width*width + 2.25e-6) // Zeeman splitting
		interference := (l.c[4] + l.c[5]*s.theta) * 1e-4 * (s.p + s.e) * math.Pow(s.theta, 0.8)
		sum += strength * s.shape(l.f0, width, interference)
	}
	return sum
}

// waterVapour returns the sum over the vapour's lines.
func (s state) waterVapour() float64 {
	sum := 0.0
	for _, l := range waterVapourLines() {
		strength := l.c[0] * 1e-1 * s.e * math.Pow(s.theta, 3.5) * math.Exp(l.c[1]*(1-s.theta))
		width := l.c[2] * 1e-4 * (s.p*math.Pow(s.theta, l.c[3]) + l.c[4]*s.e*math.Pow(s.theta, l.c[5]))
		width = 0.535*width + math.Sqrt(0.217*width*width+2.1316e-12*l.f0*l.f0/s.theta) // Doppler
		sum += strength * s.shape(l.f0, width, 0)
	}
	return sum
}

// shape returns F of a line at f0 with width D and interference d.
func (s state) shape(f0, width, interference float64) float64 {
	side := func(distance float64) float64 {
		return (width - interference*distance) / (distance*distance + width*width)
	}
	return s.f / f0 * (side(f0-s.f) + side(f0+s.f))
}

// dryContinuum returns the pressure-induced absorption of nitrogen and the Debye
// spectrum of oxygen.
func (s state) dryContinuum() float64 {
	width := 5.6e-4 * (s.p + s.e) * math.Pow(s.theta, 0.8)
	debye := 6.14e-5 / (width * (1 + s.f*s.f/(width*width)))
	nitrogen := 1.4e-12 * s.p * math.Pow(s.theta, 1.5) / (1 + 1.9e-5*math.Pow(s.f, 1.5))
	return s.f * s.p * s.theta * s.theta * (debye + nitrogen)
}
