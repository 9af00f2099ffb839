package nullable_test

import (
	"encoding/json"
	"math"
	"testing"

	"ringwave/radio/nullable"
)

// Numbers are written as encoding/json does, and those that it refuses as null.
func TestFloat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		text string
	}{
		{0, "0"}, {math.Copysign(0, -1), "-0"}, {-1.5, "-1.5"}, {1e-9, "1e-9"}, {1e21, "1e+21"}, {math.MaxFloat64, "1.7976931348623157e+308"},
		{math.NaN(), "null"}, {math.Inf(1), "null"}, {math.Inf(-1), "null"},
	} {
		text, err := json.Marshal(nullable.Float(c.v))
		if err != nil || string(text) != c.text {
			t.Errorf("%v is written as %s, %v; want %s", c.v, text, err, c.text)
		}
		var read nullable.Float
		if err := json.Unmarshal(text, &read); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		want := c.v
		if c.text == "null" {
			want = math.NaN()
		}
		if math.Float64bits(float64(read)) != math.Float64bits(want) {
			t.Errorf("%s is read as %v, want %v", text, read, want)
		}
	}
	read := nullable.Float(1)
	if err := json.Unmarshal([]byte(`"NaN"`), &read); err == nil {
		t.Errorf("a text is read as %v", read)
	}
}
