package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// A message of a remote call is a header of three words, values, each behind a byte that
// says of what type it is, and a word that ends it. Numbers are big-endian.
const (
	headWord    = 0x53525043 // "SRPC"
	tailWord    = 0x43505253 // "CPRS"
	version     = 0x000400   // of SoapyRemote 0.5
	headLength  = 12
	tailLength  = 4
	mantissa    = 53 // bits of a float64's
	steppedFrom = 0x000400
)

// What a server may say at most. A board of many channels names a few dozen of anything.
const (
	maxMessage = 1 << 20 // bytes
	maxText    = 1 << 16 // bytes
	maxList    = 4096    // members
)

// kind is the type of a value.
type kind byte

const (
	kindChar      kind = 0
	kindBool      kind = 1
	kindInt32     kind = 2
	kindInt64     kind = 3
	kindFloat64   kind = 4
	kindText      kind = 6
	kindRange     kind = 7
	kindRanges    kind = 8
	kindTexts     kind = 9
	kindArgs      kind = 11
	kindArgsList  kind = 12
	kindException kind = 13
	kindVoid      kind = 14
	kindCall      kind = 15
	kindSizes     kind = 16
)

// String returns the kind in words.
func (k kind) String() string {
	switch k {
	case kindChar:
		return "a character"
	case kindBool:
		return "a truth value"
	case kindInt32:
		return "an integer"
	case kindInt64:
		return "a long integer"
	case kindFloat64:
		return "a number"
	case kindText:
		return "a text"
	case kindRange:
		return "a range"
	case kindRanges:
		return "a list of ranges"
	case kindTexts:
		return "a list of texts"
	case kindArgs:
		return "arguments"
	case kindArgsList:
		return "a list of arguments"
	case kindException:
		return "an error"
	case kindVoid:
		return "nothing"
	}
	return fmt.Sprintf("a value of type %d", byte(k))
}

// request is a message to a server, as it grows.
type request struct{ b []byte }

// newRequest begins a call.
func newRequest(c call) *request {
	r := &request{make([]byte, headLength, 128)}
	return r.kind(kindCall).integer(int32(c))
}

func (r *request) kind(k kind) *request {
	r.b = append(r.b, byte(k))
	return r
}

func (r *request) integer(v int32) *request {
	r.b = binary.BigEndian.AppendUint32(r.kind(kindInt32).b, uint32(v))
	return r
}

func (r *request) long(v int64) *request {
	r.b = binary.BigEndian.AppendUint64(r.kind(kindInt64).b, uint64(v))
	return r
}

// number adds a float64: an exponent and 53 bits of a fraction.
func (r *request) number(v float64) *request {
	fraction, exponent := math.Frexp(v)
	return r.kind(kindFloat64).integer(int32(exponent)).long(int64(math.Ldexp(fraction, mantissa)))
}

func (r *request) truth(v bool) *request {
	r.b = append(r.kind(kindBool).b, 0)
	if v {
		r.b[len(r.b)-1] = 1
	}
	return r
}

func (r *request) text(s string) *request {
	r.b = append(r.kind(kindText).integer(int32(len(s))).b, s...)
	return r
}

func (r *request) args(a soapy.Args) *request {
	r.kind(kindArgs).integer(int32(len(a)))
	for key, value := range a {
		r.text(key).text(value)
	}
	return r
}

// direction adds SoapySDR's number of a direction.
func (r *request) direction(dir radio.Direction) *request {
	r.b = append(r.kind(kindChar).b, 0)
	if dir == radio.Receive {
		r.b[len(r.b)-1] = 1
	}
	return r
}

func (r *request) channel(at soapy.Channel) *request {
	return r.direction(at.Direction).integer(int32(at.Number))
}

// channels adds a format for a list of one channel.
func (r *request) channels(at soapy.Channel, format string) *request {
	return r.direction(at.Direction).text(format).kind(kindSizes).integer(1).integer(int32(at.Number))
}

// message returns the bytes to send.
func (r *request) message() []byte {
	b := binary.BigEndian.AppendUint32(r.b, tailWord)
	binary.BigEndian.PutUint32(b, headWord)
	binary.BigEndian.PutUint32(b[4:], version)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)))
	return b
}

// head is what stands before the values of a message.
type head struct {
	version uint32
	rest    int // bytes that follow
}

// errNotServer: what answers does not speak the protocol.
var errNotServer = errors.New("it does not speak SoapyRemote's protocol")

func parseHead(b [headLength]byte) (head, error) {
	if w := binary.BigEndian.Uint32(b[:]); w != headWord {
		return head{}, fmt.Errorf("%w: a message begins with %q; allowed is \"SRPC\"", errNotServer, b[:4])
	}
	n := binary.BigEndian.Uint32(b[8:])
	if n <= headLength+tailLength || n > maxMessage {
		return head{}, fmt.Errorf("a message of %d bytes; allowed is %d to %d", n, headLength+tailLength+1, maxMessage)
	}
	return head{binary.BigEndian.Uint32(b[4:]), int(n) - headLength}, nil
}

// refusal is an exception that a server, or the module of its board, has thrown.
type refusal string

func (r refusal) Error() string { return "it refused: " + string(r) }

// answer takes a message's values apart, in their order. The first error stays.
type answer struct {
	b       []byte
	version uint32
	err     error
}

// newAnswer looks whether a message is whole, and what it says where it is an exception or
// nothing.
func newAnswer(h head, rest []byte) *answer {
	a := &answer{version: h.version}
	if n := len(rest) - tailLength; n < 1 || binary.BigEndian.Uint32(rest[n:]) != tailWord {
		a.err = fmt.Errorf("%w: a message does not end in \"CPRS\"", errNotServer)
		return a
	}
	a.b = rest[:len(rest)-tailLength]
	if kind(a.b[0]) == kindException {
		a.b = a.b[1:]
		if said := a.text(); a.err == nil {
			a.err = refusal(printable(said))
		}
	}
	return a
}

// printable returns what may be printed of a server's words.
func printable(s string) string {
	const most = 1000
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " ..."
	}
	return strings.TrimSpace(s)
}

func (a *answer) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
	a.b = nil
}

// take returns the next n bytes, nil where there are none.
func (a *answer) take(n int) []byte {
	if n > len(a.b) {
		a.fail("an answer that is cut short")
	}
	if a.err != nil {
		return nil
	}
	b := a.b[:n]
	a.b = a.b[n:]
	return b
}

// is reports whether a value of a kind comes next.
func (a *answer) is(want kind) bool {
	b := a.take(1)
	if b == nil {
		return false
	}
	if got := kind(b[0]); got != want {
		a.fail("an answer has %v in place of %v", got, want)
		return false
	}
	return true
}

func (a *answer) integer() int32 {
	if !a.is(kindInt32) {
		return 0
	}
	if b := a.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (a *answer) long() int64 {
	if !a.is(kindInt64) {
		return 0
	}
	if b := a.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (a *answer) number() float64 {
	if !a.is(kindFloat64) {
		return 0
	}
	exponent, fraction := a.integer(), a.long()
	v := math.Ldexp(float64(fraction), int(exponent)-mantissa)
	if math.IsInf(v, 0) {
		a.fail("an answer has a number of 2 to the power of %d; allowed is what a float64 holds", exponent)
		return 0
	}
	return v
}

func (a *answer) truth() bool {
	if !a.is(kindBool) {
		return false
	}
	b := a.take(1)
	return b != nil && b[0] != 0
}

// length returns a list's or a text's, which is within bounds.
func (a *answer) length(of kind, most int) int {
	n := a.integer()
	if n < 0 || int(n) > most {
		a.fail("an answer has %v of length %d; allowed is 0 to %d", of, n, most)
		return 0
	}
	return int(n)
}

func (a *answer) text() string {
	if !a.is(kindText) {
		return ""
	}
	return string(a.take(a.length(kindText, maxText)))
}

// list takes the members of a list. No more is made of them than there are bytes for.
func list[T any](a *answer, of kind, member func() T) (all []T) {
	if !a.is(of) {
		return nil
	}
	for n := a.length(of, maxList); n > 0 && a.err == nil; n-- {
		all = append(all, member())
	}
	return all
}

func (a *answer) texts() []string { return list(a, kindTexts, a.text) }

func (a *answer) args() soapy.Args {
	args := soapy.Args{}
	list(a, kindArgs, func() struct{} {
		key := a.text()
		args[key] = a.text()
		return struct{}{}
	})
	return args
}

func (a *answer) argsList() []soapy.Args { return list(a, kindArgsList, a.args) }

// span takes a range, which has no step where the server is an older one.
func (a *answer) span() (r soapy.Range) {
	if !a.is(kindRange) {
		return r
	}
	r.Min, r.Max = a.number(), a.number()
	if a.version >= steppedFrom {
		r.Step = a.number()
	}
	return r
}

func (a *answer) spans() []soapy.Range { return list(a, kindRanges, a.span) }

// void takes nothing.
func (a *answer) void() struct{} {
	a.is(kindVoid)
	return struct{}{}
}

// end returns the first error; there must be no more values.
func (a *answer) end() error {
	if len(a.b) > 0 {
		a.fail("an answer has %v that was not asked for", kind(a.b[0]))
	}
	return a.err
}
