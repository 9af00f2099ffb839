package intake

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines are those with an end, up to the bounds, however the reader gives them.
func TestLines(t *testing.T) {
	limits := LineLimits{Bytes: 20, Lines: 3}
	long := strings.Repeat("x", 19)
	for text, want := range map[string]struct {
		lines []string
		end   int64
		cut   bool
		err   string
	}{
		"": {}, "a": {cut: true}, "a\n": {lines: []string{"a"}, end: 2}, "a\n\nb": {lines: []string{"a", ""}, end: 3, cut: true},
		"a\r\nb\nc\n":             {lines: []string{"a\r", "b", "c"}, end: 7},
		"a\nb\nc\nd":              {lines: []string{"a", "b", "c"}, end: 6, cut: true},
		"a\nb\nc\nd\n":            {lines: []string{"a", "b", "c"}, end: 6, err: "the number of lines is more than 3; allowed is at most 3"},
		long + "\n":               {lines: []string{long}, end: 20},
		"a\n" + long + "x\n":      {lines: []string{"a"}, end: 2, err: "line 2 is longer than 20 bytes; allowed is at most 20 bytes"},
		strings.Repeat(long, 999): {err: "line 1 is longer than 20 bytes; allowed is at most 20 bytes"},
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			l := NewLines(r, limits)
			var got []string
			for line, ok := l.Next(); ok; line, ok = l.Next() {
				got = append(got, string(line))
			}
			if !slices.Equal(got, want.lines) || l.End() != want.end || l.Cut() != want.cut || l.Number() != int64(len(got)) {
				t.Errorf("%.20q: %q, %d lines to %d, cut %v", text, got, l.Number(), l.End(), l.Cut())
			}
			var excess *Excess
			if err := l.Err(); (err != nil) != (want.err != "") || err != nil && (!errors.As(err, &excess) || err.Error() != want.err) {
				t.Errorf("%.20q: %v, want %s", text, err, want.err)
			}
			if line, ok := l.Next(); ok {
				t.Errorf("%.20q: %q behind the last line", text, line)
			}
		}
	}
	// Buffers are no shorter than 16 bytes: the bound is.
	if l := NewLines(strings.NewReader("abcdef\n"), LineLimits{3, 3}); l.Err() == nil {
		if _, ok := l.Next(); ok || l.Err() == nil {
			t.Error("a line of 7 bytes is within 3")
		}
	}
	broken := errors.New("broken")
	l := NewLines(io.MultiReader(bytes.NewReader([]byte("a\nb")), iotest.ErrReader(broken)), limits)
	for _, ok := l.Next(); ok; _, ok = l.Next() {
	}
	if l.Number() != 1 || !errors.Is(l.Err(), broken) || l.Cut() {
		t.Errorf("%d lines, %v", l.Number(), l.Err())
	}
}
