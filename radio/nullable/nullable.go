// Package nullable has numbers for JSON that may be none: NaN and the infinities, which
// JSON cannot hold, are null there. It knows nothing of what the numbers are.
package nullable

import (
	"encoding/json"
	"math"
)

// Float is a number that JSON cannot always hold: NaN and the infinities are written as
// null, and null is read as NaN.
type Float float64

// MarshalJSON returns the number, or null.
func (f Float) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number or null.
func (f *Float) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Float(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}
