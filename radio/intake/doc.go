// Package intake bounds text from outside before a decoder takes it in.
//
// It takes in files and texts of TOML, JSON and lines, and gives the text, or one
// sentence that says what there is too much of. Decoders of either take time and memory that
// grow with the square of some nesting, or keep every key of millions. It knows nothing
// of what keys mean; it finds the known one that a wrong one may stand for.
package intake

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Excess is more than is allowed, or what may not be at all.
type Excess struct {
	Where   string // the line, the key
	Value   string // what was found there
	Allowed string // what may be there
}

// Error returns one sentence with the place, the value and what is allowed.
func (e *Excess) Error() string {
	return fmt.Sprintf("%s is %s; allowed is %s", e.Where, e.Value, e.Allowed)
}

// ReadFile returns the content of a file of at most the given number of bytes; of a
// longer one it reads no more. That there is more is an *Excess.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	// What a file says of its size spares copies; what it gives is what counts.
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if info.Size() > most {
			return nil, tooLong(most)
		}
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	return read(&b, f, most)
}

// Read is ReadFile of what is open.
func Read(r io.Reader, most int64) ([]byte, error) { return read(&bytes.Buffer{}, r, most) }

func read(b *bytes.Buffer, r io.Reader, most int64) ([]byte, error) {
	if _, err := b.ReadFrom(io.LimitReader(r, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, tooLong(most)
	}
	return b.Bytes(), nil
}

func tooLong(most int64) error {
	return &Excess{"the length", fmt.Sprintf("more than %d bytes", most), fmt.Sprintf("at most %d bytes", most)}
}

// maxSentence bounds a message, in bytes: a value from outside may be in it.
const maxSentence = 1000

// Sentence returns text as one line of bounded length. What is too long is cut in its
// middle: it begins with the key and ends with what is allowed.
func Sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxSentence {
		return text
	}
	head, tail := text[:maxSentence*2/3], text[len(text)-maxSentence/3:]
	return strings.ToValidUTF8(head, "") + "…" + strings.ToValidUTF8(tail, "")
}

// maxShown bounds a key within a sentence.
const maxShown = 80

// Nearest returns the known key with the fewest edits to the given one, of which a
// letter in another case is the least.
func Nearest(key string, known []string) string {
	// The distance to what is much longer says nothing and takes long.
	key = key[:min(len(key), maxShown)]
	best, least := "", -1
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(key), strings.ToLower(k))
		if least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}
