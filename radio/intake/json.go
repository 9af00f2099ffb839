package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// JSONLimits bound a text of JSON.
type JSONLimits struct {
	Depth    int // of objects and arrays in each other
	Members  int // of an object
	Elements int // of an array
}

// CheckJSON refuses what is no JSON, what goes beyond the limits, and an object with the
// same key twice: JSON leaves open which one counts, and readers differ. The error is an
// *Excess, in which what names the text. It takes memory for the keys of the objects that
// it is in.
func CheckJSON(what string, data []byte, most JSONLimits) error {
	if !json.Valid(data) {
		return invalid(what, data, most)
	}
	c := jsonChecker{what: what, data: data, most: most}
	for c.at < len(data) {
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

// invalid says where data end to be JSON, or to be of a depth that the decoder takes.
func invalid(what string, data []byte, most JSONLimits) error {
	var text json.RawMessage
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(data, &text), &syntax) {
		return &Excess{what, "no JSON", "JSON"}
	}
	if strings.Contains(syntax.Error(), "max depth") {
		return tooDeep(what, most)
	}
	return &Excess{what, fmt.Sprintf("no JSON at byte %d", syntax.Offset), "JSON"}
}

func tooDeep(what string, most JSONLimits) error {
	return &Excess{"the nesting of " + what, fmt.Sprintf("deeper than %d", most.Depth), fmt.Sprintf("a depth of %d", most.Depth)}
}

// jsonChecker goes through a text that is JSON.
type jsonChecker struct {
	what string
	data []byte
	at   int
	most JSONLimits
	open []jsonLevel
}

// jsonLevel is an object or an array.
type jsonLevel struct {
	name   string          // the key that it is the value of, "" without one
	keys   map[string]bool // nil in an array
	last   string          // key
	value  bool            // the next string of an object is a value and not a key
	commas int
}

func (c *jsonChecker) step() error {
	var top *jsonLevel
	if len(c.open) > 0 {
		top = &c.open[len(c.open)-1]
	}
	switch b := c.data[c.at]; b {
	case '"':
		n := jsonString(c.data[c.at:])
		text := c.data[c.at : c.at+n]
		c.at += n
		if top == nil || top.keys == nil || top.value {
			return nil
		}
		return c.key(top, text)
	case '{', '[':
		return c.enter(b, top)
	case '}', ']':
		c.open = c.open[:len(c.open)-1]
	case ',':
		top.commas++
		top.value = false
		if top.keys == nil && top.commas >= c.most.Elements {
			return &Excess{"the length of " + named(top.name, "an array"), fmt.Sprintf("more than %d", c.most.Elements), fmt.Sprintf("at most %d", c.most.Elements)}
		}
	}
	c.at++
	return nil
}

// key takes in a key of the innermost object.
func (c *jsonChecker) key(top *jsonLevel, text []byte) error {
	key := string(text[1 : len(text)-1])
	if bytes.IndexByte(text, '\\') >= 0 {
		if err := json.Unmarshal(text, &key); err != nil {
			return &Excess{"a key", "no string of JSON", "one"}
		}
	}
	if top.keys[key] {
		return &Excess{"key " + strconv.Quote(cut(key)), "twice in one object", "once"}
	}
	if len(top.keys) == c.most.Members {
		return &Excess{"the number of keys of " + named(top.name, "an object"), fmt.Sprintf("more than %d", c.most.Members), fmt.Sprintf("at most %d", c.most.Members)}
	}
	top.keys[key], top.value, top.last = true, true, key
	return nil
}

func (c *jsonChecker) enter(bracket byte, top *jsonLevel) error {
	if len(c.open) == c.most.Depth {
		return tooDeep(c.what, c.most)
	}
	level := jsonLevel{}
	if top != nil {
		level.name = top.last
		if top.keys == nil {
			level.name = top.name
		}
	}
	if bracket == '{' {
		level.keys = map[string]bool{}
	}
	c.open = append(c.open, level)
	c.at++
	return nil
}

func named(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return cut(name)
}

func cut(key string) string {
	if len(key) > maxShown {
		return key[:maxShown] + "..."
	}
	return key
}

// jsonString returns the length of the string that data begins with, quotes included.
func jsonString(data []byte) int {
	for at := 1; at < len(data); at++ {
		switch data[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(data)
}
