package p676

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The Recommendation's own validation examples, to 1e-6 beyond half a unit
// of the last digit that the file gives ("5.09e-05").
func TestValidationExamples(t *testing.T) {
	f, err := os.Open("testdata/validation-specific-attenuation.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, row := range rows[2:] { // names and units
		v := make([]float64, len(row))
		for i := range row {
			if v[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		a, err := Specific(v[0], Air{PressureHPa: v[1], TemperatureK: v[2], VapourDensity: v[3]})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range []float64{a.Oxygen, a.WaterVapour, a.Total()} {
			want, text := v[4+i], row[4+i]
			excess := math.Max(0, math.Abs(got-want)-lastDigit(text)/2) / want
			worst = math.Max(worst, excess)
			if excess > 1e-6 {
				t.Errorf("%v GHz: %v dB/km, want %s", v[0], got, text)
			}
		}
	}
	t.Logf("%d examples, largest relative difference beyond their rounding %.2g", len(rows)-2, worst)
}

// lastDigit returns the value of one unit of a decimal number's last digit.
func lastDigit(text string) float64 {
	mantissa, exponent, _ := strings.Cut(text, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // none is 0
	return math.Pow(10, float64(e-len(decimals)))
}

// A laboratory's air: 296 K (23 C) and 9.2 g/m^3, rounded to the digits in which
// the figures are given. (At 296.15 K the second is 6.055.)
func TestLaboratory(t *testing.T) {
	for ghz, want := range map[float64]float64{140: 1.06, 300: 6.07} {
		a, err := Specific(ghz, Air{PressureHPa: 1013.25, TemperatureK: 296, VapourDensity: 9.2})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(a.Total()-want) > 0.005 {
			t.Errorf("%v GHz: %.4f dB/km, want %v", ghz, a.Total(), want)
		}
	}
}

func TestRange(t *testing.T) {
	air := Air{PressureHPa: 1013.25, TemperatureK: 288.15, VapourDensity: 7.5}
	for _, ghz := range []float64{0, 0.9, 1001, math.NaN(), math.Inf(1)} {
		if _, err := Specific(ghz, air); err == nil {
			t.Errorf("%v GHz was taken", ghz)
		}
	}
	for _, bad := range []Air{{0, 288, 7}, {1013, 0, 7}, {1013, 288, -1}, {math.NaN(), 288, 7}} {
		if _, err := Specific(100, bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
