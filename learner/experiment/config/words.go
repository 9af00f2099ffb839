package config

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ringwave/radio/intake"
)

// Find returns the keys of which one of the words is the beginning, or else those that
// have one in their name or meaning; all where there is no word. That there is none is
// the user's to mend.
func Find(words ...string) ([]Key, error) {
	keys := Describe()
	if len(words) == 0 {
		return keys, nil
	}
	where := func(has func(k Key, word string) bool) (found []Key) {
		for _, k := range keys {
			if slices.ContainsFunc(words, func(w string) bool { return has(k, strings.ToLower(w)) }) {
				found = append(found, k)
			}
		}
		return found
	}
	found := where(func(k Key, word string) bool { return strings.HasPrefix(k.Name, word) })
	if len(found) == 0 {
		found = where(func(k Key, word string) bool {
			return strings.Contains(k.Name, word) || strings.Contains(strings.ToLower(k.Meaning), word)
		})
	}
	if len(found) == 0 {
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
		return nil, intake.UserError(fmt.Errorf("no key has %s in its name or meaning", strings.Join(quoted, " or ")))
	}
	return found, nil
}

// WriteKeys writes what there is to know of keys, for people to read.
func WriteKeys(w io.Writer, keys []Key) error {
	for i, k := range keys {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		facts := []string{k.Type}
		if len(k.Words) > 0 {
			facts = nil // the range says more
		}
		if k.Range != "" {
			facts = append(facts, k.Range)
		}
		text := strings.Join(facts, " ")
		if k.Unit != "" {
			text += " [" + k.Unit + "]"
		}
		if _, err := fmt.Fprintf(w, "%s%s = %s\n  %s\n  %s\n", gap, k.Name, k.DefaultText(), text, k.Meaning); err != nil {
			return err
		}
	}
	return nil
}

// LoadUnpermitted loads a configuration that may lack the permit to send, and returns it
// without: it is for showing, which sends nothing.
func LoadUnpermitted(path string, overrides []string) (Config, error) {
	c, err := Load(path, overrides)
	if err == nil {
		return c, nil
	}
	permitted, permittedErr := Load(path, append(slices.Clone(overrides), "radio.transmit=true"))
	if permittedErr != nil {
		return c, err
	}
	permitted.Radio.Transmit = false
	return permitted, nil
}

// Marked returns a configuration as a file has it, with the default behind what differs
// from it.
func (c Config) Marked() (string, error) {
	given, err := c.Encode()
	if err != nil {
		return "", err
	}
	byDefault, err := Default().Encode()
	if err != nil {
		return "", err
	}
	defaults := strings.Split(string(byDefault), "\n")
	lines := strings.Split(string(given), "\n")
	for i := range lines { // all keys are there in both, in one order and a line each
		if name, value, _ := strings.Cut(defaults[i], " = "); lines[i] != defaults[i] {
			lines[i] = fmt.Sprintf("%-40s # default: %s", lines[i], value)
			if !strings.HasPrefix(lines[i], name+" = ") {
				return "", fmt.Errorf("marking what differs: %s stands where the default has %s", lines[i], name)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}
