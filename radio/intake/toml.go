package intake

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// maxDepth is more than the nesting, and the dots in a key, of any file of this
	// program.
	maxDepth = 4
	// maxKey bounds a key with its dots, in bytes: the decoder keeps all of a table's
	// header with every key in it.
	maxKey = 128
	// maxKeys bounds the keys of a text, each part between dots counted: of each the
	// decoder keeps some hundred bytes. A calibration of a thousand devices has fewer.
	maxKeys = 1 << 17
	// maxString bounds a value, in bytes: a path, a URI, a sentence.
	maxString = 1 << 14
)

// CheckTOML refuses text of TOML that a decoder takes long for: its time and memory grow
// with the square of the depth of tables and the length of keys, to hours within a
// megabyte. Whether it is TOML at all is for the decoder to say.
func CheckTOML(text string) error {
	s := scanner{text: text, key: true}
	for s.at < len(text) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// scanner goes through a text of TOML.
type scanner struct {
	text string
	at   int
	open []byte // the brackets around at, of which '[' is a header's too
	// key says that what is at hand is a key. It began at start and has a size, and dots.
	key               bool
	start, size, dots int
	keys              int // that began so far
}

func (s *scanner) step() error {
	switch c := s.text[s.at]; c {
	case '"', '\'':
		n := stringLength(s.text[s.at:])
		if !s.key && n > maxString {
			return s.excess("the length of a string", fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d bytes", maxString))
		}
		err := s.grow(n)
		s.at += n
		return err
	case '#':
		s.begin(false)
		s.at += lineLength(s.text[s.at:])
		return nil
	case '{', '[':
		s.open = append(s.open, c)
		// A bracket where a key would be is a header's.
		s.begin(s.key || c == '{')
	case '}', ']':
		if len(s.open) > 0 {
			s.open = s.open[:len(s.open)-1]
		}
		s.begin(false)
	case '=':
		s.begin(false)
	case ',':
		s.begin(s.within() == '{')
	case '\n':
		s.begin(s.within() != '[')
	case '.':
		if s.key {
			s.dots++
			s.keys++
		}
	case ' ', '\t', '\r':
	default:
		if err := s.grow(1); err != nil {
			return err
		}
	}
	if depth := max(len(s.open), s.dots); depth > maxDepth {
		return s.excess("the nesting of tables and lists", fmt.Sprintf("%d deep or more", depth), fmt.Sprintf("a depth of %d", maxDepth))
	}
	s.at++
	return nil
}

// within returns the innermost bracket, 0 for none.
func (s *scanner) within() byte {
	if len(s.open) == 0 {
		return 0
	}
	return s.open[len(s.open)-1]
}

// begin says that a key begins behind what is at hand, or that none does.
func (s *scanner) begin(key bool) { s.key, s.size, s.dots = key, 0, 0 }

// grow counts n bytes at hand to the key, blanks around it left out.
func (s *scanner) grow(n int) error {
	if !s.key {
		return nil
	}
	if s.size == 0 {
		s.start = s.at
		s.keys++
	}
	if s.keys > maxKeys {
		return s.excess("the number of keys", fmt.Sprintf("more than %d", maxKeys), fmt.Sprintf("at most %d", maxKeys))
	}
	if s.size += n; s.size <= maxKey {
		return nil
	}
	return s.excess("the length of the key "+strconv.Quote(cut(s.text[s.start:s.at+n])), fmt.Sprintf("%d bytes or more", s.size), fmt.Sprintf("at most %d bytes", maxKey))
}

func (s *scanner) excess(what, value, allowed string) error {
	return &Excess{fmt.Sprintf("line %d: %s", s.line(), what), value, allowed}
}

func (s *scanner) line() int {
	return 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n")
}

func lineLength(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// stringLength returns the length of the string of TOML that text begins with, all of it
// where the string has no end.
func stringLength(text string) int {
	quote := text[:1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(text, three) {
		quote = three
	}
	for at := len(quote); at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote[0] == '"':
			at++
		case text[at] == '\n' && len(quote) == 1: // the library will say so
			return at
		case strings.HasPrefix(text[at:], quote):
			at += len(quote)
			// Up to two quotes before the last three are the string's own.
			for n := 0; n < 2 && len(quote) == 3 && at < len(text) && text[at] == quote[0]; n++ {
				at++
			}
			return at
		}
	}
	return len(text)
}
