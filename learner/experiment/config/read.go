package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"ringwave/radio/intake"
)

// maxFile bounds a configuration file, which is written by hand.
const maxFile = 1 << 20

// Error says what is wrong with a configuration: it is the user's to mend.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func failf(format string, args ...any) error {
	return intake.UserError(&Error{intake.Sentence(fmt.Sprintf(format, args...))})
}

// Load reads a file, applies overrides of the form section.key=value in their
// order, and checks the whole.
func Load(path string, overrides []string) (Config, error) { return Names{}.Load(path, overrides) }

// Load is the function Load for a program that knows more names.
func (n Names) Load(path string, overrides []string) (Config, error) {
	data, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	return n.Parse(path, data, overrides)
}

// readFile returns a configuration file's bytes, of which there may be so many.
func readFile(path string) ([]byte, error) {
	data, err := intake.ReadFile(path, maxFile)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return nil, failf("%s: the configuration: %v", path, excess)
	}
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, failf("%s: the configuration cannot be read: %v", path, err)
	}
	return data, nil
}

// Parse is Load on bytes; name stands for the file in errors.
func Parse(name string, data []byte, overrides []string) (Config, error) {
	return Names{}.Parse(name, data, overrides)
}

// Parse is the function Parse for a program that knows more names.
func (n Names) Parse(name string, data []byte, overrides []string) (Config, error) {
	var changes []Change
	for _, o := range overrides {
		change, err := ParseChange(o)
		if err != nil {
			return Config{}, err
		}
		changes = append(changes, change)
	}
	base, err := n.parseBase(name, data)
	if err != nil {
		return Config{}, err
	}
	return base.With(changes...)
}

// Check refuses what Load refuses, in a configuration that a program has made or changed
// itself.
func (c Config) Check() error {
	if err := c.validate(c.fields(), c.allRules()); err != nil {
		return failf("the configuration: %v", err)
	}
	return nil
}

// source is where the values of a configuration come from.
type source struct {
	name, text string
	meta       toml.MetaData
	values     map[string]toml.Primitive // of the file, by section.key
}

// read takes the file's values into c. The library's own way would take keys of another
// case, too, and speak of Go's types.
func (s *source) read(c *Config) error {
	if err := intake.CheckTOML(s.text); err != nil {
		return failf("%s: %v", s.name, err)
	}
	var all map[string]toml.Primitive
	var err error
	if s.meta, err = toml.Decode(s.text, &all); err != nil {
		return s.broken(c, err)
	}
	if err := s.sort(all); err != nil {
		return err
	}
	for _, f := range c.fields() {
		value, given := s.values[f.name]
		if !given {
			continue
		}
		var data any
		if err := s.meta.PrimitiveDecode(value, &data); err != nil {
			return failf("%s: reading %s: %v", s.name, f.name, err)
		}
		if !set(f.value, data) {
			return s.fail(&wrong{f.name, fmt.Sprintf("%s = %s: must be %s", f.name, show(reflect.ValueOf(data)), c.mustBe(f.name))})
		}
	}
	return nil
}

// sort puts the sections' values by their keys, and refuses, in the file's order, what is
// no section and no key.
func (s *source) sort(all map[string]toml.Primitive) error {
	s.values = map[string]toml.Primitive{}
	keys := Keys()
	for _, key := range s.meta.Keys() {
		section := key[0]
		value, there := all[section]
		if !there {
			continue // it has been sorted
		}
		if !slices.Contains(sections(), section) {
			return unknown(s.name, key[:min(len(key), 2)])
		}
		delete(all, section)
		values, data := s.table(value)
		if _, is := data.(map[string]any); !is {
			return failf("%s: %s = %s: must be a section, [%s] with keys", s.place(value), section, show(reflect.ValueOf(data)), section)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			full := toml.Key{section, name}
			if !slices.Contains(keys, full.String()) {
				return unknown(s.name, full)
			}
			s.values[full.String()] = values[name]
		}
	}
	return nil
}

// here is a value for which the library says where it is.
type here struct{}

func (*here) UnmarshalTOML(any) error { return errors.New("here") }

// table returns what a value is, and if it is a table its values.
func (s *source) table(value toml.Primitive) (values map[string]toml.Primitive, data any) {
	// Neither fails: any takes all, and of what is no table a map takes nothing.
	_ = s.meta.PrimitiveDecode(value, &data)
	_ = s.meta.PrimitiveDecode(value, &values)
	return values, data
}

// line returns the line of a value, 0 if that is not known.
func (s *source) line(value toml.Primitive) int {
	var at toml.ParseError
	if errors.As(s.meta.PrimitiveDecode(value, &here{}), &at) && at.Position.Line > 0 {
		return at.Position.Line
	}
	// A key that is only a part of others, rounds of rounds.x, stands where these do.
	least := 0
	values, _ := s.table(value)
	for _, inner := range values {
		if n := s.line(inner); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// place returns the file and line of a value, as a sentence begins with them.
func (s *source) place(value toml.Primitive) string {
	if n := s.line(value); n > 0 {
		return fmt.Sprintf("%s: line %d", s.name, n)
	}
	return s.name
}

// fail says where a wrong value comes from.
func (s *source) fail(err error) error {
	var w *wrong
	if !errors.As(err, &w) {
		return failf("%s: %v", s.name, err)
	}
	if value, given := s.values[w.key]; given {
		return failf("%s: %v", s.place(value), w)
	}
	return failf("%s: %v", s.name, w)
}

// broken says what is wrong with a text that is no TOML, and what the key at hand must be:
// most often quotes are missing.
func (s *source) broken(c *Config, err error) error {
	var at toml.ParseError
	if !errors.As(err, &at) {
		return failf("%s: not TOML: %s", s.name, strings.TrimPrefix(err.Error(), "toml: "))
	}
	line, why := at.Position.Line, at.Message
	if strings.Contains(why, `'\n'`) { // the library found the end of the line before
		line--
	}
	key, raw := s.given(line)
	if !c.value(key).IsValid() {
		return failf("%s: line %d: not TOML: %s", s.name, at.Position.Line, why)
	}
	must := c.mustBe(key)
	switch {
	case strings.Contains(why, "already"):
		must = "given once"
	case !strings.Contains(why, "is out of range for"): // a number that no machine has
		must += " (not TOML: " + why + ")"
	}
	return failf("%s: line %d: %s = %s: must be %s", s.name, line, key, raw, must)
}

// given returns the key that a line gives, and its value as it stands there.
func (s *source) given(line int) (key, raw string) {
	lines := strings.Split(s.text, "\n")
	if line < 1 || line > len(lines) {
		return "", ""
	}
	key, raw, _ = strings.Cut(lines[line-1], "=")
	key = strings.TrimSpace(key)
	for i := line - 1; i >= 0 && !strings.Contains(key, "."); i-- {
		if header := strings.TrimSpace(lines[i]); strings.HasPrefix(header, "[") {
			section, _, _ := strings.Cut(header[1:], "]")
			key = strings.TrimSpace(section) + "." + key
		}
	}
	return key, cut(strings.TrimSpace(raw))
}

// unknown proposes the right spelling of a key or of a section.
func unknown(name string, key []string) error {
	shown := toml.Key(key).String()
	if strings.HasPrefix(name, "--set ") {
		shown = strings.Join(key, ".")
	}
	near := nearest(key)
	verb := "one is "
	if len(near) > 1 {
		verb = "ones are "
	}
	return failf("%s: unknown key %s; the nearest known %s%s", name, cut(shown), verb, strings.Join(near, " and "))
}

// nearest returns the keys that a wrong one may stand for: those of the same name in other
// sections, else the one with the fewest edits.
func nearest(key []string) []string {
	section, name := "", key[len(key)-1]
	if len(key) > 1 {
		section = key[0]
	}
	if near := intake.Nearest(name, sections()); section == "" && strings.EqualFold(near, name) {
		return []string{near}
	}
	var same []string
	for _, k := range Keys() {
		s, n, _ := strings.Cut(k, ".")
		if strings.EqualFold(s, section) && strings.EqualFold(n, name) {
			return []string{k}
		}
		if strings.EqualFold(n, name) {
			same = append(same, k)
		}
	}
	if len(same) > 0 {
		return same
	}
	if section == "" {
		return []string{intake.Nearest(name, sections())}
	}
	return []string{nearestName(section, name)}
}

// nearestName returns the key whose name is nearest, and of equally near ones that of the
// nearest section.
func nearestName(section, name string) string {
	own := intake.Nearest(section, sections())
	known := map[string]string{} // the key of each name
	var names []string
	for _, k := range Keys() {
		s, n, _ := strings.Cut(k, ".")
		if _, there := known[n]; !there || s == own {
			known[n] = k
		}
		if s == own { // of equals the first is taken
			names = append(names, n)
		}
	}
	return known[intake.Nearest(name, append(names, slices.Sorted(maps.Keys(known))...))]
}
