package intake

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

var some = JSONLimits{Depth: 3, Members: 4, Elements: 5}

func TestCheckJSON(t *testing.T) {
	many := strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20)
	for text, want := range map[string]string{
		`{"a": [{"b": 1}], "c": "[[[[", "d": "{\"e\": [", "f": [1, 2, 3, 4, 5]}`: "",
		`"x"`: "", `1`: "", `[[], {}, [], [], []]`: "",
		`[[[[1]]]]`:               "the nesting of the text is deeper than 3; allowed is a depth of 3",
		`{"a": {"b": {"c": {}}}}`: "the nesting of the text is deeper than 3",
		many[:9]:                  "the text is no JSON at byte 9", many: "the nesting of the text is deeper than 3; allowed is a depth of 3",
		`{"a": [0, 1, 2, 3, 4, 5]}`:             "the length of a is more than 5; allowed is at most 5",
		`{"a": [[0, 1, 2, 3, 4, 5]]}`:           "the length of a is more than 5; allowed is at most 5",
		`[0, 1, 2, 3, 4, 5]`:                    "the length of an array is more than 5; allowed is at most 5",
		`{"a":1,"b":2,"c":3,"d":4,"e":5}`:       "the number of keys of an object is more than 4; allowed is at most 4",
		`{"x":{"a":1,"b":2,"c":3,"d":4,"e":5}}`: "the number of keys of x is more than 4; allowed is at most 4",
		`{"a": 1, "a": 2}`:                      `key "a" is twice in one object; allowed is once`,
		`{"a": 1, "\u0061": 2}`:                 `key "a" is twice in one object; allowed is once`,
		`{"a": [1, {"b": 0, "b": 1}]}`:          `key "b" is twice in one object; allowed is once`,
		`{"a": "a", "b": "a", "c": {"a": 1}}`:   "",
		`{"a"`:                                  "the text is no JSON at byte ", ``: "the text is no JSON at byte 0; allowed is JSON", `{} {}`: "the text is no JSON at byte 4",
	} {
		err := CheckJSON("the text", []byte(text), some)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// What passes is JSON within the limits by what the decoder makes of it.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": [{"b": 1}], "c": "[[[["}`, `[1, "\"", {"\u0061": {}}]`, `{"a": {}, "a": []}`, `[1E700]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := CheckJSON("the text", data, some)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		var value any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // of any size
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if d := jsonDepth(t, value); d > some.Depth {
			t.Fatalf("%d deep", d)
		}
	})
}

func jsonDepth(t *testing.T, value any) (depth int) {
	switch v := value.(type) {
	case map[string]any:
		if depth = 1; len(v) > some.Members {
			t.Fatalf("%d members", len(v))
		}
		for _, inner := range v {
			depth = max(depth, 1+jsonDepth(t, inner))
		}
	case []any:
		if depth = 1; len(v) > some.Elements {
			t.Fatalf("%d elements", len(v))
		}
		for _, inner := range v {
			depth = max(depth, 1+jsonDepth(t, inner))
		}
	}
	return depth
}
