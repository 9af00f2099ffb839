package config

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/radio/intake"
)

// badValue is a value that a key may not have, as a file has it.
type badValue struct{ key, value string }

// badValues returns for each key values of every other type, and values of its own that
// are just outside of its range, or far.
func badValues() (all []badValue) {
	c := Default()
	rules := c.allRules()
	others := map[string][]string{
		"whole number":  {`"3"`, "1.5", "1e3", "true", "[1]", "{a = 1}", "2020-01-01", "07:32:00", "nan", "-inf", "-9223372036854775808", "99999999999999999999", "three", "3 4", "-", "0x"},
		"number":        {`"3"`, "true", "[1.0]", "{a = 1}", "2020-01-01T07:32:00Z", "nan", "inf", "-inf", "-1e301", "1e999", "three", "1.", ".5"},
		"text":          {"3", "1.5", "true", `["a"]`, "{a = 1}", "2020-01-01", "nan", "word", `"open`},
		"true or false": {`"true"`, "1", "0.0", "[true]", "{a = 1}", "2020-01-01", "True", "yes"},
		"list":          {`"x"`, "1", "true", "[[1]]", "[{a = 1}]", "{a = 1}", "2020-01-01", "[true]", "[1, nan]", "[1, \"x\"]", "[1, 2", "[word]"},
	}
	for _, f := range c.fields() {
		kind := typeName(f.value.Type())
		if k := f.value.Kind(); k == reflect.Slice || k == reflect.Array {
			kind = "list"
		}
		for _, value := range others[kind] {
			all = append(all, badValue{f.name, value})
		}
		all = append(all, beyond(f, rules[f.name].limit)...)
	}
	return all
}

// beyond returns what is just outside of a limit.
func beyond(f field, l limit) (all []badValue) {
	c := Default()
	switch f.value.Kind() {
	case reflect.Int, reflect.Int64:
		if l.high.name != "" && !l.check(&c, l.low.value(&c)-1) { // 0 may be allowed below
			all = append(all, badValue{f.name, strconv.Itoa(int(l.low.value(&c)) - 1)})
		}
		if l.high.name != "" {
			all = append(all, badValue{f.name, strconv.Itoa(int(l.high.value(&c)) + 1)})
		}
	case reflect.Float64:
		if l.high.name != "" {
			for _, x := range []float64{math.Nextafter(l.low.value(&c), math.Inf(-1)), math.Nextafter(l.high.value(&c), math.Inf(1))} {
				if !l.check(&c, x) { // 0 may be allowed below the range
					all = append(all, badValue{f.name, strconv.FormatFloat(x, 'e', -1, 64)})
				}
			}
		}
	case reflect.String:
		for _, w := range append(slices.Clone(l.words), "nonesuch", " ") {
			if upper := strings.ToUpper(w); len(l.words) > 0 && upper != w || w == " " && len(l.words) > 0 {
				all = append(all, badValue{f.name, strconv.Quote(upper)})
			}
		}
	case reflect.Array:
		all = append(all, badValue{f.name, "[1]"}, badValue{f.name, "[1, 2, 3]"}, badValue{f.name, "[]"}, badValue{f.name, "[-1, 1]"})
	case reflect.Slice:
		if l.each && f.value.Type().Elem().Kind() != reflect.String {
			all = append(all, badValue{f.name, "[1]"}, badValue{f.name, "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1e30]"}, badValue{f.name, "[" + strings.Repeat("1, ", 2_000) + "]"})
		}
	}
	return all
}

// goWords is what a sentence for those who write configurations must not have.
var goWords = regexp.MustCompile(`int64|float64|\[\]|map\[|interface|struct|toml:|destination|incompatible|%!`)

// wantSentence wants one short sentence that is the user's to mend and begins so.
func wantSentence(t *testing.T, what string, err error, begins ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: taken", what)
		return
	}
	text := err.Error()
	if !intake.IsUserError(err) {
		t.Errorf("%s: not the user's to mend: %v", what, err)
	}
	if strings.Contains(text, "\n") || len(text) >= 1000 {
		t.Errorf("%s: no short sentence: %q", what, text)
	}
	if !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(text, b) }) || !strings.Contains(text, ": must be ") {
		t.Errorf("%s: %q; it must begin with one of %q and say what it must be", what, text, begins)
	}
	if word := goWords.FindString(strings.TrimPrefix(text, "bad.toml:")); word != "" {
		t.Errorf("%s: %q has %q", what, text, word)
	}
}

// Whatever is wrong with a key's value, in a file or on the command line, is said in one
// sentence with the place, the key, the value and what it must be.
func TestBadConfigurations(t *testing.T) {
	all := badValues()
	if len(all) < 1000 {
		t.Fatalf("there are %d bad values only", len(all))
	}
	for _, b := range all {
		section, name, _ := strings.Cut(b.key, ".")
		what := b.key + " = " + cut(b.value)
		_, err := Parse("bad.toml", []byte("[task]\ndataset = \"idx\"\n["+section+"]\n\n"+name+" = "+b.value+"\n"), nil)
		if section == "task" {
			_, err = Parse("bad.toml", []byte("[task]\n\n\n\n"+name+" = "+b.value+"\n"), nil)
		}
		wantSentence(t, what, err, "bad.toml: line 5: "+b.key+" = ")
		if strings.HasPrefix(b.value, `"`) || typeName(value(b.key).Type()) == "text" {
			continue // what is no TOML is text there
		}
		_, err = Parse("bad.toml", nil, []string{b.key + "=" + b.value})
		wantSentence(t, "--set "+what, err, "--set "+b.key+" = ")
	}
}

func value(key string) reflect.Value {
	c := Default()
	return c.value(key)
}

// Every key has a rule, every rule a key, and every default is in its range.
func TestEveryKeyIsDescribed(t *testing.T) {
	c := Default()
	rules := c.allRules()
	for _, k := range Describe() {
		r, there := rules[k.Name]
		if !there || k.Meaning == "" || k.Type == "" {
			t.Errorf("%s: the rule is %+v", k.Name, r)
		}
		delete(rules, k.Name)
		if k.Range == "" && !slices.Contains([]string{"true or false", "text", "list of texts"}, k.Type) {
			t.Errorf("%s, a %s, has no range", k.Name, k.Type)
		}
		_, name, _ := strings.Cut(k.Name, ".")
		for suffix, unit := range map[string]string{"_hz": "Hz", "_db": "dB", "_rad": "rad", "_seconds": "s", "_samples": "samples", "_rounds": "rounds", "_bits": "bits", "_deg": "degrees", "_m": "m", "_dbi": "dBi", "_dbm": "dBm"} {
			if strings.HasSuffix(name, suffix) && k.Unit != unit {
				t.Errorf("%s has the unit %q", k.Name, k.Unit)
			}
		}
	}
	for name, r := range c.allRules() {
		for _, end := range []bound{r.limit.low, r.limit.high} {
			if end.name != "" && !r.limit.check(&c, end.value(&c)) {
				t.Errorf("%s: %s, an end of its range, is not allowed", name, end.text(&c))
			}
		}
	}
	for name := range rules {
		t.Errorf("there is a rule for %s, and no such key", name)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
