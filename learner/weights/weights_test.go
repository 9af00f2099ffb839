package weights_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/model"
	"ringwave/learner/weights"
)

var tensors = []model.Tensor{{Name: "weight", Shape: []int{2, 3}}, {Name: "bias", Shape: []int{2}}}

var theta = []float64{1, -2, 0.5, math.Pi, math.NaN(), math.Inf(1), 1e-300, 0}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// A file gives back every bit, whatever stands first in it.
func TestSafetensorsRoundTrip(t *testing.T) {
	data, err := weights.EncodeSafetensors(theta, tensors, map[string]string{"model": "x"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := weights.DecodeSafetensors(data, tensors)
	if err != nil || !same(got, theta) {
		t.Errorf("%v, %v", got, err)
	}
	if n := binary.LittleEndian.Uint64(data); n%8 != 0 || int64(len(data)) > weights.MaxBytes(tensors) {
		t.Errorf("a header of %d bytes in a file of %d", n, len(data))
	}
	// Other writers order tensors by their names, and write float32.
	other := file(`{"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"weight":{"dtype":"F64","shape":[2,3],"data_offsets":[8,56]}}`, 56)
	binary.LittleEndian.PutUint32(other[len(other)-56:], math.Float32bits(1.5))
	got, err = weights.DecodeSafetensors(other, tensors)
	if err != nil || len(got) != 8 || got[6] != 1.5 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := weights.EncodeSafetensors(theta[1:], tensors, nil); err == nil {
		t.Error("seven values were written as eight")
	}
}

// file is a safetensors file of a header and so many bytes of zeros.
func file(header string, body int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, body)...)
}

func TestSafetensorsRefused(t *testing.T) {
	const good = `"weight":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]},"bias":{"dtype":"F64","shape":[2],"data_offsets":[48,64]}`
	if _, err := weights.DecodeSafetensors(file("{"+good+"}", 64), tensors); err != nil {
		t.Fatal(err)
	}
	replaced := func(from, to string) []byte { return file("{"+strings.Replace(good, from, to, 1)+"}", 64) }
	for want, data := range map[string][]byte{
		"7 bytes are no safetensors":         make([]byte, 7),
		"must be at most 1048576":            binary.LittleEndian.AppendUint64(nil, 1<<40),
		"behind it":                          binary.LittleEndian.AppendUint64(nil, 9),
		"the header":                         file(`{"weight":`, 64),
		"no JSON object":                     file(`[1]`, 64),
		"has the shape [3 2]: must be [2 3]": replaced("[2,3]", "[3,2]"),
		`"bias" is missing`:                  replaced(`,"bias"`, `,"basis"`),
		`"more" is not one of`:               file("{"+good+`,"more":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}`, 64),
		`dtype "BF16": must be F64 or F32`:   replaced("F64", "BF16"),
		"lies at bytes 0 to 40 of 64":        replaced("[0,48]", "[0,40]"),
		"lies at bytes 9223372036854775807 to -9223372036854775761": replaced("[0,48]", "[9223372036854775807,-9223372036854775761]"),
		"lies at bytes -8 to 40":                                    replaced("[0,48]", "[-8,40]"),
		"lies at bytes 48 to 64 of 60":                              file("{"+good+"}", 60),
		"not described by dtype":                                    replaced(`"F64"`, "7"),
		`key "weight" is twice`:                                     file("{"+good+`,"weight":{}}`, 64),
	} {
		_, err := weights.DecodeSafetensors(data, tensors)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	data, err := weights.EncodeSafetensors(theta, tensors, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := weights.DecodeSafetensors(data, tensors)
		if err == nil && len(got) != len(theta) {
			t.Errorf("%d values", len(got))
		}
	})
}
