package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxLine bounds a line in bytes, its end included.
const MaxLine = 4096

// maxURI bounds a board's URI in bytes, so that its line is never cut.
const maxURI = MaxLine / 2

// maxBoards bounds the boards that a guard watches.
const maxBoards = 256

// maxLimit bounds how long a program may stand still.
const maxLimit = 10 * time.Minute

// The verbs of messages.
const (
	verbHello    = "guard"
	verbWatch    = "watch"
	verbLeave    = "leave"
	verbAlive    = "alive"
	verbWatching = "watching"
	verbRefused  = "refused"
	verbFired    = "fired"
)

// wireVersion is what a guard says first of all.
const wireVersion = 1

// message is a line. Number is what its verb has: a board's, that of a sign of life, or
// the version.
type message struct {
	verb   string
	number uint64
	limit  time.Duration // of watch, whole milliseconds
	text   string        // of watch, refused and fired, on one line
}

// has tells what a verb is followed by.
func has(verb string) (number, limit, text, known bool) {
	switch verb {
	case verbHello, verbLeave, verbAlive, verbWatching:
		return true, false, false, true
	case verbWatch:
		return true, true, true, true
	case verbRefused:
		return true, false, true, true
	case verbFired:
		return false, false, true, true
	}
	return false, false, false, false
}

// String returns the line, without its end. Text is cut where it is too long.
func (m message) String() string {
	line := m.verb
	number, limit, text, _ := has(m.verb)
	if number {
		line += " " + strconv.FormatUint(m.number, 10)
	}
	if limit {
		line += " " + strconv.FormatInt(m.limit.Milliseconds(), 10)
	}
	if text {
		line += " " + oneLine(m.text)
	}
	return line[:min(len(line), MaxLine-1)]
}

// oneLine puts what errors have on several lines on one.
func oneLine(s string) string { return strings.Join(strings.FieldsFunc(s, isEnd), "; ") }

func isEnd(r rune) bool { return r == '\n' || r == '\r' }

var errLine = errors.New("a line that is none of the guard's")

// parse reads a line without its end.
func parse(line string) (m message, err error) {
	fail := func() (message, error) { return message{}, fmt.Errorf("%w: %.80q", errLine, line) }
	verb, rest, _ := strings.Cut(line, " ")
	number, limit, text, known := has(verb)
	if !known || len(line) >= MaxLine || strings.ContainsFunc(line, isEnd) {
		return fail()
	}
	m.verb = verb
	next := func() string {
		word, left, _ := strings.Cut(rest, " ")
		rest = left
		return word
	}
	if number {
		if m.number, err = strconv.ParseUint(next(), 10, 64); err != nil {
			return fail()
		}
	}
	if limit {
		ms, err := strconv.ParseUint(next(), 10, 32)
		if err != nil || ms > uint64(maxLimit.Milliseconds()) {
			return fail()
		}
		m.limit = time.Duration(ms) * time.Millisecond
	}
	if text {
		m.text, rest = rest, ""
	}
	if rest != "" || text && m.text == "" {
		return fail()
	}
	return m, nil
}

// reader reads messages.
type reader struct{ lines *bufio.Reader }

func newReader(r io.Reader) reader { return reader{bufio.NewReaderSize(r, MaxLine)} }

// next returns the next message, or the error of the pipe; a line that is none, or has no
// end, is an error, too, behind which nothing can be read.
func (r reader) next() (message, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return message{}, fmt.Errorf("%w: it is longer than %d bytes", errLine, MaxLine)
	case err != nil:
		return message{}, err
	}
	return parse(string(line[:len(line)-1]))
}

// wholeMilliseconds returns a limit as it goes over the wire, at least a millisecond where
// there is one.
func wholeMilliseconds(d time.Duration) (time.Duration, error) {
	if d < 0 || d > maxLimit {
		return 0, fmt.Errorf("a guard's limit is %v; allowed is 0 to %v", d, maxLimit)
	}
	return time.Duration(math.Ceil(float64(d)/float64(time.Millisecond))) * time.Millisecond, nil
}
