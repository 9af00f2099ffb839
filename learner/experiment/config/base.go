package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"

	"ringwave/radio/intake"
)

// Base is the values of a file, of which configurations are made by changing single keys.
// It has not been checked as a whole: what is made of it is.
type Base struct {
	from  source
	c     Config
	rules map[string]rule
}

// LoadBase reads a file.
func (n Names) LoadBase(path string) (Base, error) {
	data, err := readFile(path)
	if err != nil {
		return Base{}, err
	}
	return n.parseBase(path, data)
}

func (n Names) parseBase(name string, data []byte) (Base, error) {
	b := Base{from: source{name: name, text: string(data)}, c: Default().With(n)}
	if err := b.from.read(&b.c); err != nil {
		return Base{}, err
	}
	b.rules = b.c.allRules()
	return b, nil
}

// Change is a value for a key, section.key, as a decoder of TOML has read it. From is where
// it is from, which errors begin with.
type Change struct {
	Key   string
	Value any
	From  string

	shown string // what a reader sees of the value where that is not the value
}

// setFrom is where changes of the command line are from.
const setFrom = "--set"

// ParseChange reads an override of the form section.key=value. A value that is no TOML is
// taken as a string, so that quotes need not survive a shell.
func ParseChange(text string) (Change, error) {
	key, value, found := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !found || !strings.Contains(key, ".") {
		return Change{}, failf("--set %s: must be section.key=value, such as channel.std=10", cut(text))
	}
	if strings.ContainsAny(key+value, "\n\r") {
		return Change{}, failf("--set %s: must be a single line", cut(key))
	}
	line := "x = " + value
	if err := intake.CheckTOML(line); err != nil {
		return Change{}, failf("--set %s: %v", cut(key), err)
	}
	change := Change{Key: key, Value: value, From: setFrom, shown: cmp.Or(cut(value), `""`)}
	var probe map[string]any
	if _, err := toml.Decode(line, &probe); err == nil {
		change.Value, change.shown = probe["x"], ""
	}
	return change, nil
}

// apply sets the key of a change.
func (d Change) apply(c *Config) error {
	v := c.value(d.Key)
	if !v.IsValid() {
		if d.From == setFrom {
			return unknown("--set "+cut(d.Key), strings.SplitN(d.Key, ".", 2))
		}
		return unknown(d.From, strings.SplitN(d.Key, ".", 2))
	}
	if set(v, d.Value) {
		return nil
	}
	return failf("%s %s = %s: must be %s", d.From, d.Key, cmp.Or(d.shown, show(reflect.ValueOf(d.Value))), c.mustBe(d.Key))
}

// Try returns the value of a change as Text has it, and refuses one that no configuration
// takes, whatever its other values: of a key that there is not, or a value of another type.
func (b Base) Try(d Change) (string, error) {
	if err := d.apply(&b.c); err != nil {
		return "", err
	}
	return Text(b.c.Value(d.Key)), nil
}

// With returns the configuration that has some keys changed, in their order, and checks the
// whole.
func (b Base) With(changes ...Change) (Config, error) {
	c := b.c
	for _, d := range changes {
		if err := d.apply(&c); err != nil {
			return Config{}, err
		}
	}
	if c.Experiment.Aggregator == "ezofl" {
		c.Experiment.Aggregator = Plain // so that both give the same run
	}
	if err := c.validate(c.fields(), b.rules); err != nil {
		return Config{}, b.blame(err, changes)
	}
	return c, nil
}

// blame says where a wrong value comes from: the last change of its key, or the file.
func (b Base) blame(err error, changes []Change) error {
	var w *wrong
	if errors.As(err, &w) {
		for i := len(changes) - 1; i >= 0; i-- {
			if changes[i].Key == w.key {
				return failf("%s %v", changes[i].From, w)
			}
		}
	}
	return b.from.fail(err)
}

// Value returns the value of a key; nil of a key that there is not.
func (c Config) Value(key string) any {
	if v := c.value(key); v.IsValid() {
		return v.Interface()
	}
	return nil
}

// Text writes a key's value in full, as a file has it but for the quotes around a text.
func Text(value any) string {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Float64:
		return number(v.Float())
	case reflect.Slice, reflect.Array:
		var texts []string
		for i := range v.Len() {
			texts = append(texts, Text(v.Index(i).Interface()))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
