package calibration

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

const header = `# Calibration of a Ringwave bench. Gains are received per sent amplitude, in parts of
# full scale. Every estimate comes with its interval of 95 %; nan is what is not known.
# Whatever reads this file checks every key, and refuses it for another bench.

`

// Text returns the file as TOML: keys in their fixed order, devices by index, floats with
// at most nine significant digits but for settings, which are exact. Equal content gives
// equal bytes. Nothing is checked.
func (f File) Text() []byte {
	f.Created, f.ValidUntil = f.Created.UTC(), f.ValidUntil.UTC()
	f.Devices = sorted(f.Devices)
	var b bytes.Buffer
	b.WriteString(header)
	writeTable(&b, "", reflect.ValueOf(f))
	return b.Bytes()
}

// Encode is Text of a file that Parse would take; the error says why it would not.
func (f File) Encode() ([]byte, error) {
	text := f.Text()
	if _, err := Parse("the calibration", text); err != nil {
		return nil, err
	}
	return text, nil
}

func sorted(devices []Device) []Device {
	devices = slices.Clone(devices)
	slices.SortStableFunc(devices, func(a, b Device) int { return a.Index - b.Index })
	return devices
}

// writeTable writes a struct's keys, then its tables under their own headers.
func writeTable(b *bytes.Buffer, name string, table reflect.Value) {
	var tables []field
	for _, f := range fieldsOf(table.Type()) {
		v := table.FieldByIndex(f.index)
		switch {
		case f.isTable():
			tables = append(tables, f)
			continue
		case f.optional && v.IsZero():
			continue
		}
		if f.note != "" {
			fmt.Fprintf(b, "# %s\n", f.note)
		}
		fmt.Fprintf(b, "%s = %s\n", f.key, format(v, f.exact))
	}
	for _, f := range tables {
		v := table.FieldByIndex(f.index)
		if v.Kind() == reflect.Struct {
			fmt.Fprintf(b, "\n[%s]\n", f.key)
			writeTable(b, f.key, v)
			continue
		}
		for i := range v.Len() {
			fmt.Fprintf(b, "\n[[%s]]\n", f.key)
			writeTable(b, f.key, v.Index(i))
		}
	}
}

// field is a key of a table.
type field struct {
	key, note       string
	optional, exact bool
	index           []int
	of              reflect.Type
}

// isTable reports whether the field has a header of its own.
func (f field) isTable() bool {
	return f.of.Kind() == reflect.Struct && f.of != valueType && f.of != timeType ||
		f.of.Kind() == reflect.Slice && f.of.Elem().Kind() == reflect.Struct
}

var (
	valueType = reflect.TypeFor[Value]()
	timeType  = reflect.TypeFor[time.Time]()
)

// fieldsOf returns the keys of a struct, those of embedded ones in their place.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		key, option, _ := strings.Cut(f.Tag.Get("toml"), ",")
		fields = append(fields, field{key: key, note: f.Tag.Get("note"), optional: option == "omitempty", exact: option == "exact", index: f.Index, of: f.Type})
	}
	return fields
}

// format writes a value as TOML.
func format(v reflect.Value, exact bool) string {
	if v.Type() == timeType {
		return v.Interface().(time.Time).Format(time.RFC3339)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return format(v.Elem(), exact)
	case reflect.Float64:
		return formatFloat(v.Float(), exact)
	case reflect.String:
		return quote(v.String())
	case reflect.Slice:
		return formatList(v)
	case reflect.Map:
		return formatMap(v.Interface().(map[string]float64))
	case reflect.Struct:
		var parts []string
		for _, f := range fieldsOf(v.Type()) {
			parts = append(parts, f.key+" = "+format(v.FieldByIndex(f.index), f.exact))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v.Interface()) // whole numbers and truth
}

// formatList writes numbers in one line, and sentences in one each.
func formatList(v reflect.Value) string {
	var parts []string
	for i := range v.Len() {
		parts = append(parts, format(v.Index(i), false))
	}
	if len(parts) == 0 || v.Type().Elem().Kind() != reflect.String {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "[\n  " + strings.Join(parts, ",\n  ") + ",\n]"
}

func formatMap(m map[string]float64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		key := k
		if !bare(k) {
			key = quote(k)
		}
		parts = append(parts, key+" = "+formatFloat(m[k], false))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// bare reports whether TOML takes a key without quotes.
func bare(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// significant is how many digits an estimate is written with: more than any has, and
// fewer than would show in which order a machine added.
const significant = 9

// rounded returns v as the file has it.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', significant-1, 64), 64)
	if err != nil {
		return v // rounded up to beyond the largest number
	}
	return r
}

// formatFloat writes v in TOML: always so that it is not taken for a whole number.
func formatFloat(v float64, exact bool) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case v == 0:
		return "0.0" // of either sign
	}
	if !exact {
		v = rounded(v)
	}
	if m := math.Abs(v); m < 1e-4 || m >= 1e15 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quote writes a basic string of TOML. What is not UTF-8 becomes U+FFFD.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
