package bus

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"ringwave/learner/hosts/identity"
)

// Limits bound what a subscription keeps of messages that are not complete.
type Limits struct {
	Message    int           // the longest payload, in bytes
	Sender     int           // bytes of one sender, an eighth more than Message or above
	Unfinished int           // messages of one sender
	Total      int           // bytes of all senders, at least Sender
	Stale      time.Duration // how long the next chunk may take
}

// DefaultLimits are what Dial has where Options say nothing.
func DefaultLimits() Limits {
	return Limits{Message: 64 << 20, Sender: 128 << 20, Unfinished: 32, Total: 512 << 20, Stale: time.Minute}
}

// check refuses limits that nothing fits into.
func (l Limits) check() error {
	if l.Message < 1 || l.Message > 1<<30 || l.Sender < l.needs() || l.Total < l.Sender || l.Unfinished < 1 || l.Stale <= 0 {
		return fmt.Errorf("the limits %+v are no bounds of messages: Message is 1 to 2^30, Sender at least %d, Total at least Sender, the others above 0", l, l.needs())
	}
	return nil
}

// needs returns what the longest message counts for, in the shortest chunks.
func (l Limits) needs() int { return l.Message + overhead + (l.Message/leastChunk+1)*perChunk }

const (
	magic = "rwm1"
	// headerSize is that of what each chunk begins with: the magic, the message's id, the
	// length of the whole, the size of chunks but the last, which of them this is, and
	// SHA-256 of the whole.
	headerSize = 4 + idSize + 3*4 + sha256.Size
	idSize     = 16
	// leastChunk bounds the number of chunks, and with them what is kept beside their bytes.
	leastChunk = 1 << 10
	// mostChunk is short enough that others get their turn on a connection.
	mostChunk = 1 << 18
	// overhead is what a message is counted for besides its bytes.
	overhead = 1 << 8
	// perChunk is what each of its chunks is counted for besides its bytes.
	perChunk = 24 + headerSize
	// remembered is how many complete messages of a sender are known again.
	remembered = 64
	// mostSenders bounds the senders of a subscription.
	mostSenders = 2*identity.MaxDevices + 16
)

// header is what a chunk begins with.
type header struct {
	id           [idSize]byte // random, and counted on: no two messages have the same
	length, size int
	index        int
	digest       [sha256.Size]byte
}

// chunks returns how many the message has.
func (h header) chunks() int { return max(1, (h.length+h.size-1)/h.size) }

// span returns where the chunk is in the message.
func (h header) span() (from, to int) {
	from = h.index * h.size
	return from, min(from+h.size, h.length)
}

// append writes the header behind b.
func (h header) append(b []byte) []byte {
	b = append(append(b, magic...), h.id[:]...)
	for _, n := range []int{h.length, h.size, h.index} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return append(b, h.digest[:]...)
}

// parseChunk returns the header and the bytes of a chunk of a message up to a length.
func parseChunk(data []byte, most int) (h header, chunk []byte, err error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return h, nil, errors.New("it is no chunk of a message")
	}
	rest := data[len(magic):]
	rest = rest[copy(h.id[:], rest):]
	for _, n := range []*int{&h.length, &h.size, &h.index} {
		value := binary.BigEndian.Uint32(rest)
		if int64(value) > int64(most) {
			return h, nil, fmt.Errorf("it is of a message of %d bytes; allowed is at most %d", value, most)
		}
		*n, rest = int(value), rest[4:]
	}
	chunk = rest[copy(h.digest[:], rest):]
	if h.size < 1 || h.size < leastChunk && h.chunks() > 1 || h.index >= h.chunks() {
		return h, nil, fmt.Errorf("it is chunk %d of %d bytes of a message of %d", h.index, h.size, h.length)
	}
	if from, to := h.span(); len(chunk) != to-from {
		return h, nil, fmt.Errorf("it has %d bytes in place of %d", len(chunk), to-from)
	}
	return h, chunk, nil
}

// split calls send with each chunk of a payload, of at most size bytes. What send is given
// is overwritten after it has returned.
func split(payload []byte, id [idSize]byte, size int, send func(chunk []byte) error) error {
	// In a message of one chunk its size is the length, so that there is one way to write it.
	h := header{id: id, length: len(payload), size: max(1, min(size, len(payload))), digest: sha256.Sum256(payload)}
	room := make([]byte, 0, headerSize+h.size)
	for h.index = range h.chunks() {
		from, to := h.span()
		if err := send(append(h.append(room), payload[from:to]...)); err != nil {
			return err
		}
	}
	return nil
}

// assembler puts chunks together, which come in any order, more than once, or never.
type assembler struct {
	limits  Limits
	senders map[string]*sender
	held    int // bytes of all senders
	swept   time.Time
}

// sender is who publishes messages, and what is not complete of them, the oldest first.
type sender struct {
	unfinished []*partial
	held       int
	complete   [remembered][idSize]byte
	next       int // in complete, which is used in turn
}

// partial is a message of which chunks are missing.
type partial struct {
	header
	subject, reply string
	parts          [][]byte
	missing        int
	held           int
	last           time.Time
}

func newAssembler(l Limits) *assembler { return &assembler{limits: l, senders: map[string]*sender{}} }

// senderOf returns who may publish a subject: a device by its index, which it cannot
// choose, and of all others the role.
func senderOf(subject string) string {
	words := strings.SplitN(subject, ".", 5)
	if len(words) > 4 && words[0] == "rw" && (words[2] == string(identity.Device) || words[2] == string(identity.Air)) {
		return words[2] + "." + words[3]
	}
	if len(words) > 2 && words[0] == "rw" {
		return words[2]
	}
	return words[0]
}

// take takes in a chunk, whose bytes it keeps, and returns the message that it completes;
// nil if it completes none. The error says what was dropped.
func (a *assembler) take(subject, reply string, data []byte, now time.Time) (*Message, error) {
	stale := a.sweep(now)
	h, chunk, err := parseChunk(data, a.limits.Message)
	if err != nil {
		return nil, fmt.Errorf("what came for %.80q is dropped: %w", subject, err)
	}
	from, err := a.from(senderOf(subject))
	if err != nil || from.knows(h.id) {
		return nil, errors.Join(err, stale)
	}
	p, err := from.find(h, subject, reply)
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &partial{header: h, subject: subject, reply: reply, parts: make([][]byte, h.chunks()), missing: h.chunks()}
		from.unfinished = append(from.unfinished, p)
		a.hold(from, p, overhead+h.chunks()*perChunk)
	}
	p.last = now
	if p.parts[h.index] != nil {
		return nil, stale // a repetition
	}
	p.parts[h.index], p.missing = chunk, p.missing-1
	if p.parts[h.index] == nil {
		p.parts[h.index] = []byte{} // of an empty message
	}
	a.hold(from, p, len(chunk))
	if p.missing > 0 {
		return nil, errors.Join(stale, a.bound(from, p))
	}
	a.drop(from, p)
	m, err := from.finish(p)
	return m, errors.Join(stale, err)
}

// from returns a sender.
func (a *assembler) from(name string) (*sender, error) {
	s := a.senders[name]
	if s == nil && len(a.senders) == mostSenders {
		return nil, fmt.Errorf("a message of %.80q is dropped: there are %d other senders", name, mostSenders)
	}
	if s == nil {
		s = &sender{}
		a.senders[name] = s
	}
	return s, nil
}

// knows reports whether a message was complete lately.
func (s *sender) knows(id [idSize]byte) bool {
	for _, other := range s.complete {
		if other == id {
			return true
		}
	}
	return false
}

// find returns the unfinished message that a chunk is of, nil if it is a new one's.
func (s *sender) find(h header, subject, reply string) (*partial, error) {
	for _, p := range s.unfinished {
		if p.id != h.id {
			continue
		}
		if p.length != h.length || p.size != h.size || p.digest != h.digest || p.subject != subject || p.reply != reply {
			return nil, fmt.Errorf("a chunk for %.80q is dropped: it does not fit to what came before of its message", subject)
		}
		return p, nil
	}
	return nil, nil
}

// finish puts a message together whose chunks are all there.
func (s *sender) finish(p *partial) (*Message, error) {
	s.complete[s.next] = p.id
	s.next = (s.next + 1) % remembered
	payload := p.parts[0]
	if len(p.parts) > 1 {
		payload = make([]byte, 0, p.length)
		for _, part := range p.parts {
			payload = append(payload, part...)
		}
	}
	if sha256.Sum256(payload) != p.digest {
		return nil, fmt.Errorf("a message for %.80q is dropped: its %d bytes are not those of its checksum", p.subject, p.length)
	}
	return &Message{Subject: p.subject, Reply: p.reply, Payload: payload, Digest: p.digest}, nil
}

// hold counts bytes that are kept.
func (a *assembler) hold(s *sender, p *partial, n int) {
	p.held += n
	s.held += n
	a.held += n
}

// drop takes a message from those that are unfinished.
func (a *assembler) drop(s *sender, p *partial) {
	for i, other := range s.unfinished {
		if other == p {
			s.unfinished = append(s.unfinished[:i:i], s.unfinished[i+1:]...)
			a.hold(s, p, -p.held)
			return
		}
	}
}

// bound drops what is beyond the limits: of the sender its oldest messages, and of all that
// of the sender who has the most, which may be another. The one at hand, p, goes last.
func (a *assembler) bound(s *sender, p *partial) (err error) {
	for s.held > a.limits.Sender || len(s.unfinished) > a.limits.Unfinished {
		err = a.evict(s, "its sender has too much that is unfinished", err)
	}
	for a.held > a.limits.Total {
		most := s
		for _, other := range a.senders {
			if other.held > most.held {
				most = other
			}
		}
		err = a.evict(most, "there is too much that is unfinished", err)
	}
	return err
}

// evict drops a sender's oldest message.
func (a *assembler) evict(s *sender, why string, before error) error {
	p := s.unfinished[0]
	a.drop(s, p)
	return errors.Join(before, fmt.Errorf("a message for %.80q is dropped with %d of %d chunks missing: %s", p.subject, p.missing, p.chunks(), why))
}

// sweep drops what has waited too long for its next chunk.
func (a *assembler) sweep(now time.Time) (err error) {
	if now.Sub(a.swept) < a.limits.Stale/4 {
		return nil
	}
	a.swept = now
	for _, s := range a.senders {
		for i := 0; i < len(s.unfinished); {
			p := s.unfinished[i]
			if now.Sub(p.last) < a.limits.Stale {
				i++
				continue
			}
			a.drop(s, p)
			err = errors.Join(err, fmt.Errorf("a message for %.80q is dropped: %d of its %d chunks have not come within %v", p.subject, p.missing, p.chunks(), a.limits.Stale))
		}
	}
	return err
}
