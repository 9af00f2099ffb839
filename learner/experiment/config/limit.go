package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// limit is what values a key may have; none of them is excluded by the zero limit. Of a
// list or a pair it holds for each value.
type limit struct {
	text  string   // what follows the type; with the names of other keys
	words []string // the only texts
	// low and high bound a number, both included, where high is something.
	low, high bound
	check     func(c *Config, x float64) bool // of a number; nil for all
	checkText func(s string) bool
	most      int  // the values of a list; 0 for any number
	each      bool // a list has a value a device, or none
}

// bound is an end of a range, which may depend on other keys.
type bound struct {
	name string
	of   func(c *Config) float64
	is   float64 // where of is nil
}

func at(x float64) bound { return bound{name: number(x), is: x} }

func (b bound) value(c *Config) float64 {
	if b.of == nil {
		return b.is
	}
	return b.of(c)
}

// text returns the bound, with its number where c is known.
func (b bound) text(c *Config) string {
	if c == nil || b.of == nil {
		return b.name
	}
	return b.name + ", " + number(b.of(c))
}

// within returns the limit of numbers from low to high.
func within(low, high bound) limit {
	return limit{low: low, high: high, check: func(c *Config, x float64) bool { return x >= low.value(c) && x <= high.value(c) }}
}

// whole is the limit of whole numbers, which a file has without an exponent.
func whole(low, high int) limit {
	return within(bound{name: strconv.Itoa(low), is: float64(low)}, bound{name: strconv.Itoa(high), is: float64(high)})
}

func numbers(low, high float64) limit { return within(at(low), at(high)) }

func atLeast(low float64) limit {
	return limit{text: "of at least " + number(low), check: func(_ *Config, x float64) bool { return x >= low }}
}

// above0 allows what is finite and positive.
func above0() limit {
	return limit{text: "above 0", check: func(_ *Config, x float64) bool { return x > 0 && !math.IsInf(x, 0) }}
}

func numbersAbove(low, high float64) limit {
	return limit{text: "above " + number(low) + " and up to " + number(high), check: func(_ *Config, x float64) bool { return x > low && x <= high }}
}

// or returns l with one value more.
func or(l limit, value float64, text string) limit {
	inner := l.check
	l.check = func(c *Config, x float64) bool { return x == value || inner(c, x) }
	l.text += ", or " + number(value) + " for " + text
	return l
}

func orZero(l limit, text string) limit { return or(l, 0, text) }

func orNoGain(l limit) limit { return or(l, noGain, "none yet") }

// converter is a resolution: with one bit there is no code for 0, which is sent between
// frames.
func converter() limit { return orZero(whole(2, 24), "no converter") }

// text returns the limit of texts by their length in bytes.
func text(low, high int) limit {
	l := limit{checkText: func(s string) bool { return len(s) >= low && len(s) <= high }}
	switch {
	case high < math.MaxInt:
		l.text = fmt.Sprintf("of %d to %d characters", low, high)
	case low > 0:
		l.text = "that is not empty"
	}
	return l
}

func oneOf(words ...string) limit {
	return limit{words: words, checkText: func(s string) bool { return slices.Contains(words, s) }}
}

// depends reports whether the limit goes by other keys.
func (l limit) depends() bool { return l.each || l.low.of != nil || l.high.of != nil }

// perDevice is the limit of a list with a value a device, or none.
func perDevice(l limit) limit {
	l.each = true
	return l
}

// list is the limit of a list of at most so many values.
func list(most int, l limit) limit {
	l.most = most
	return l
}

// phrase returns what follows the type of a value. c may be nil.
func (l limit) phrase(c *Config) string {
	text := l.text
	if l.high.name != "" {
		text = "from " + l.low.text(c) + " to " + l.high.text(c) + l.text
	}
	switch {
	case l.each && c != nil:
		text += fmt.Sprintf("; one a device (devices.count = %d), or none", c.Devices.Count)
	case l.each:
		text += "; one a device, or none"
	case l.most > 0 && l.most < math.MaxInt:
		text += fmt.Sprintf("; at most %d", l.most)
	}
	return text
}

// column returns the range as a table has it.
func (l limit) column() string {
	if len(l.words) > 0 {
		return inWords(l.words)
	}
	return strings.TrimPrefix(strings.TrimPrefix(l.phrase(nil), "that is "), "of ")
}

// mustBe returns what a value of a type must be, after "must be".
func (l limit) mustBe(c *Config, t reflect.Type) string {
	if len(l.words) > 0 {
		return inWords(l.words)
	}
	name := typeName(t)
	switch {
	case name == "number", name == "whole number", strings.HasPrefix(name, "list"):
		name = "a " + name
	}
	return strings.TrimSpace(name + " " + strings.TrimSuffix(l.phrase(c), " "))
}

func inWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if n := len(quoted) - 1; n > 0 {
		return strings.Join(quoted[:n], ", ") + " or " + quoted[n]
	}
	return strings.Join(quoted, "")
}

// allows reports whether a key may have a value, as far as the limit knows.
func (l limit) allows(c *Config, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return l.check == nil || l.check(c, float64(v.Int()))
	case reflect.Float64:
		return l.check == nil || l.check(c, v.Float())
	case reflect.String:
		return l.checkText == nil || l.checkText(v.String())
	case reflect.Slice:
		if n := v.Len(); l.each && n != 0 && n != c.Devices.Count || l.most > 0 && n > l.most {
			return false
		}
		return l.allowsEach(c, v)
	case reflect.Array:
		return l.allowsEach(c, v)
	}
	return true
}

func (l limit) allowsEach(c *Config, v reflect.Value) bool {
	for i := range v.Len() {
		if !l.allows(c, v.Index(i)) {
			return false
		}
	}
	return true
}

// typeName returns what a type is called by those who write configurations.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Array:
		return "two " + typeName(t.Elem()) + "s"
	}
	return "text"
}

// set returns v what a decoder of TOML has read; false where the type is another.
func set(v reflect.Value, data any) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		x, ok := data.(int64)
		if ok = ok && !v.OverflowInt(x); ok {
			v.SetInt(x)
		}
		return ok
	case reflect.Float64:
		x, ok := data.(float64)
		if n, isWhole := data.(int64); isWhole {
			x, ok = float64(n), true
		}
		v.SetFloat(x)
		return ok
	case reflect.Slice, reflect.Array:
		return setEach(v, data)
	}
	x := reflect.ValueOf(data)
	if x.Kind() != v.Kind() {
		return false
	}
	v.Set(x)
	return true
}

func setEach(v reflect.Value, data any) bool {
	values, ok := data.([]any)
	if !ok || v.Kind() == reflect.Array && v.Len() != len(values) {
		return false
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(values), len(values)))
	}
	for i, x := range values {
		if !set(v.Index(i), x) {
			return false
		}
	}
	return true
}

// The most of a value that a sentence has.
const (
	maxShownText   = 80
	maxShownValues = 12
)

// show writes a value as a file has it, of long ones the beginning.
func show(v reflect.Value) string {
	if t, isTime := v.Interface().(time.Time); isTime {
		return t.Format(time.RFC3339)
	}
	switch v.Kind() {
	case reflect.Float64:
		return number(v.Float())
	case reflect.String:
		return strconv.Quote(cut(v.String()))
	case reflect.Interface:
		return show(v.Elem())
	case reflect.Map:
		return "{...}"
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 {
			return "[ ]"
		}
		var texts []string
		for i := range min(v.Len(), maxShownValues) {
			texts = append(texts, show(v.Index(i)))
		}
		if v.Len() > maxShownValues {
			texts = append(texts, fmt.Sprintf("... %d values", v.Len()))
		}
		return "[" + cut(strings.Join(texts, ", ")) + "]"
	}
	return fmt.Sprint(v.Interface())
}

func cut(s string) string {
	if len(s) <= maxShownText {
		return s
	}
	for s = s[:maxShownText]; !utf8.ValidString(s) && len(s) > maxShownText-utf8.UTFMax; {
		s = s[:len(s)-1]
	}
	return s + "..."
}

// number writes a number as a file has it.
func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'f', -1, 64), "+"))
	}
	plain := strconv.FormatFloat(x, 'f', -1, 64)
	if digits := strings.TrimRight(plain, "0"); x != 0 && x == math.Trunc(x) && len(plain)-len(digits) >= 5 {
		return fmt.Sprintf("%se%d", digits, len(plain)-len(digits))
	}
	if math.Abs(x) >= 1e-4 || x == 0 {
		return plain
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
