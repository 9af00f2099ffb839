package calibration

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"ringwave/radio/intake"
)

// MaxFile bounds a calibration file, in bytes: some thousand devices.
const MaxFile = 1 << 20

// Read reads and checks a calibration file; devices come by index. Whatever is wrong
// with it is an *Error of one sentence: the file, the key, its value and what is
// allowed.
func Read(path string) (File, error) {
	data, err := intake.ReadFile(path, MaxFile)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return File{}, failf("%s: the calibration file: %v", path, excess)
	}
	if err != nil {
		return File{}, failf("%s: the calibration file cannot be read: %v", path, intake.Cause(err))
	}
	return Parse(path, data)
}

// Parse is Read on bytes; name stands for the file in errors.
func Parse(name string, data []byte) (File, error) {
	if len(data) > MaxFile {
		return File{}, failf("%s: the calibration file has more than %d bytes, which is all that is allowed", name, MaxFile)
	}
	f, err := decode(string(data))
	if err != nil {
		return File{}, failf("%s: %v", name, err)
	}
	if err := f.check(); err != nil {
		return File{}, failf("%s: %v", name, err)
	}
	f.Created, f.ValidUntil = f.Created.UTC(), f.ValidUntil.UTC()
	f.Devices = sorted(f.Devices)
	return f, nil
}

// decode reads TOML that has every key of a File and no other.
func decode(text string) (File, error) {
	if err := intake.CheckTOML(text); err != nil {
		return File{}, err
	}
	var raw map[string]any
	if _, err := toml.Decode(text, &raw); err != nil {
		return File{}, tomlCause(err)
	}
	// Before anything else: a file of another format has other keys.
	if v, given := raw["version"].(int64); given && v != Version {
		return File{}, fmt.Errorf("version is %d: this program reads %d; calibrate again", v, Version)
	}
	if err := checkKeys("", raw, reflect.TypeFor[File]()); err != nil {
		return File{}, err
	}
	var f File
	if _, err := toml.Decode(text, &f); err != nil {
		return File{}, tomlCause(err)
	}
	return f, nil
}

// tomlCause puts the library's error, which has the line, into one line.
func tomlCause(err error) error {
	return errors.New(intake.Sentence(strings.TrimPrefix(err.Error(), "toml: ")))
}

// checkKeys compares the keys of a table, by which path leads to it, with those of the
// type that it is read into. What the values are is not looked at.
func checkKeys(path string, table map[string]any, t reflect.Type) error {
	fields := fieldsOf(t)
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("unknown key %s; the nearest known one is %s", path+shown(key), path+intake.Nearest(key, keys))
		}
	}
	for _, f := range fields {
		value, given := table[f.key]
		switch {
		case !given && !f.optional:
			return fmt.Errorf("there is no key %s, but every calibration has it", path+f.key)
		case given:
			if err := checkInner(path, f, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInner looks at what kind of value a key has, and at the tables in it. The library
// would say it of whichever key a map gives first, and not of which table of several.
func checkInner(path string, f field, value any) error {
	name := path + f.key
	of := f.of
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if table, ok := value.(map[string]any); ok && of.Kind() == reflect.Struct && of != timeType {
		return checkKeys(name+".", table, of)
	}
	if tables, ok := value.([]map[string]any); ok && f.isTable() && f.of.Kind() == reflect.Slice {
		for i, table := range tables {
			if err := checkKeys(fmt.Sprintf("%s %d: ", name, i+1), table, f.of.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	if allowed := f.allowed(value); allowed != "" {
		return fmt.Errorf("%s is %s: it must be %s", name, brief(value), allowed)
	}
	return nil
}

// allowed says what the field's value must be, nothing if value is such.
func (f field) allowed(value any) string {
	t := f.of
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		v, ok := value.(time.Time)
		return unless(ok && !zoneless(v), "a date and time such as 2026-01-31T12:00:00Z")
	case t == valueType:
		return "a table {value = ..., low = ..., high = ...}"
	case f.isTable() && t.Kind() == reflect.Slice:
		return fmt.Sprintf("tables under headers [[%s]]", f.key)
	case f.isTable():
		return fmt.Sprintf("a table under the header [%s]", f.key)
	}
	switch t.Kind() {
	case reflect.String:
		_, ok := value.(string)
		return unless(ok, "a string")
	case reflect.Bool:
		_, ok := value.(bool)
		return unless(ok, "true or false")
	case reflect.Float64:
		return unless(isNumber(value), "a number")
	case reflect.Int, reflect.Int64:
		_, ok := value.(int64)
		return unless(ok, "a whole number")
	case reflect.Uint64:
		v, ok := value.(int64)
		return unless(ok && v >= 0, "a whole number of at least 0")
	case reflect.Map:
		table, ok := value.(map[string]any)
		for _, v := range table {
			ok = ok && isNumber(v)
		}
		return unless(ok, "a table of numbers")
	}
	if t.Elem().Kind() == reflect.String {
		return unless(isList(value, func(v any) bool { _, ok := v.(string); return ok }), "a list of strings")
	}
	return unless(isList(value, isNumber), "a list of numbers")
}

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

func isNumber(value any) bool {
	switch value.(type) {
	case float64, int64:
		return true
	}
	return false
}

func isList(value any, of func(any) bool) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(v any) bool { return !of(v) })
}

// brief shows a value of TOML within a sentence.
func brief(value any) string {
	switch v := value.(type) {
	case string:
		return shownText(v)
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	case time.Time:
		if zoneless(v) {
			return "a date or a time without a zone"
		}
		return date(v)
	}
	return fmt.Sprint(value)
}

// zoneless reports whether the date lacked its zone, which the library marks so, or more.
func zoneless(t time.Time) bool { return strings.HasSuffix(t.Location().String(), "-local") }

func shownText(text string) string {
	if len(text) > 80 {
		return fmt.Sprintf("%q, of %d bytes", text[:60]+"...", len(text))
	}
	return fmt.Sprintf("%q", text)
}

// shown quotes a key that would not be one word of a sentence, and cuts one that would
// be no sentence.
func shown(key string) string {
	if len(key) > 80 || !bare(key) {
		return shownText(key)
	}
	return key
}
