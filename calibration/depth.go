package calibration

import (
	"fmt"
	"strings"
)

// maxDepth is more than the nesting, and the dots in a key, of any calibration file.
const maxDepth = 4

// checkDepth refuses deep tables before the library reads them: its time grows with the
// square of their depth, to hours within a megabyte.
func checkDepth(text string) error {
	depth, dots := 0, 0
	for at := 0; at < len(text); {
		switch c := text[at]; c {
		case '"', '\'':
			at += stringLength(text[at:])
			continue
		case '#':
			at += lineLength(text[at:])
			continue
		case '{', '[':
			depth, dots = depth+1, 0
		case '}', ']':
			depth--
		case '=', ',', '\n':
			dots = 0
		case '.':
			dots++
		}
		if depth > maxDepth || dots > maxDepth {
			return fmt.Errorf("line %d: tables are nested more than %d deep, which is all that is allowed", 1+strings.Count(text[:at], "\n"), maxDepth)
		}
		at++
	}
	return nil
}

func lineLength(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// stringLength gives the length of the string of TOML that text begins with, all of it
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
			return at + len(quote)
		}
	}
	return len(text)
}
