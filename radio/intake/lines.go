package intake

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// LineLimits bound a text of lines.
type LineLimits struct {
	Bytes int // of a line, its end included
	Lines int64
}

// Lines goes through a text line by line and keeps one of them at a time. A last line
// without an end is none.
type Lines struct {
	from *bufio.Reader
	most LineLimits
	n    int64
	end  int64
	over bool // all has been read
	cut  bool
	err  error
}

// NewLines returns the lines that r gives.
func NewLines(r io.Reader, most LineLimits) *Lines {
	return &Lines{from: bufio.NewReaderSize(r, most.Bytes), most: most}
}

// Next returns the next line without its end, until the next call. There is none behind
// the last, and none behind an error.
func (l *Lines) Next() (line []byte, ok bool) {
	if l.err != nil || l.over {
		return nil, false
	}
	line, err := l.from.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		l.over, l.cut = true, len(line) > 0
		return nil, false
	case errors.Is(err, bufio.ErrBufferFull), err == nil && len(line) > l.most.Bytes:
		l.err = &Excess{fmt.Sprintf("line %d", l.n+1), fmt.Sprintf("longer than %d bytes", l.most.Bytes), fmt.Sprintf("at most %d bytes", l.most.Bytes)}
	case err != nil:
		l.err = err
	case l.n == l.most.Lines:
		l.err = &Excess{"the number of lines", fmt.Sprintf("more than %d", l.most.Lines), fmt.Sprintf("at most %d", l.most.Lines)}
	}
	if l.err != nil {
		return nil, false
	}
	l.n++
	l.end += int64(len(line))
	return line[:len(line)-1], true
}

// Number returns that of the line that Next gave last, from 1.
func (l *Lines) Number() int64 { return l.n }

// End returns where that line ends, in bytes from the beginning.
func (l *Lines) End() int64 { return l.end }

// Cut reports, behind the last line, whether something follows it that has no end.
func (l *Lines) Cut() bool { return l.cut }

// Err returns why there is no next line, nil where that is the text's end. That there is
// too much is an *Excess.
func (l *Lines) Err() error { return l.err }
