package xmkckks

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"ringwave/crypto/keystream"
	"ringwave/phy/zq"
)

// Digest identifies a broadcast c~1 to a device that has answered it: GHASH over its
// residues, as AES-GCM computes it over additional data, under a key that follows from the
// public seed. Two c~1 that were made without regard to that key have the same digest with
// a probability below 2^-112. Who makes two that have, as a server could, gains nothing:
// the second is refused like a repeated one.
type Digest [16]byte

// String returns the beginning of the digest, for messages.
func (d Digest) String() string { return hex.EncodeToString(d[:4]) }

// newDigests returns what computes digests under a key: the tag of an empty message.
func newDigests(key *keystream.Seed) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// digester computes digests without allocating.
type digester struct {
	tags  cipher.AEAD
	nonce [12]byte // always 0: the key serves for digests alone, which are no secrets
	bytes []byte   // of a vector
	tag   []byte
}

func (c *Context) newDigester() digester {
	return digester{
		tags: c.digests, bytes: make([]byte, 8*len(c.Params.Primes)*c.Params.N), tag: make([]byte, 0, len(Digest{})),
	}
}

// vector returns the digest of a vector of n coefficients.
func (h *digester) vector(v zq.Vector) (d Digest) {
	bytes := h.bytes
	for _, residues := range v {
		for ; len(residues) >= 4; residues = residues[4:] { // n is a multiple of 4
			words, to := (*[4]uint64)(residues), (*[32]byte)(bytes)
			for i, x := range words {
				binary.LittleEndian.PutUint64(to[8*i:], x)
			}
			bytes = bytes[32:]
		}
	}
	copy(d[:], h.tags.Seal(h.tag, h.nonce[:], nil, h.bytes))
	return d
}

// ShareRecord is one decryption share about to be given.
type ShareRecord struct {
	Device, Epoch, Round, Attempt uint32
	Digest                        Digest
}

// Guard decides whether a decryption share may be given, and remembers it before
// it is. A device gives one share a round, whatever the attempt, the key epoch or
// the participants: a second one answers for the same Delta f under other gains,
// and N of them give every Delta f_i. For the same c~1 with fresh e*, or for one
// nearby, it leaks s.
type Guard interface {
	Answer(ShareRecord) error
}

// The reasons for which a guard refuses.
var (
	// ErrAnswered says that a share was given before, in this round or a later one,
	// or for this c~1.
	ErrAnswered = errors.New("decryption share refused")
	// ErrExhausted says that the key has given as many shares as its flooding is
	// made for.
	ErrExhausted = errors.New("decryption share refused: the key has given all the shares its flooding is made for")
)

// reservedAnswers is the number of answers of a device for which a ledger takes
// memory at once, so that recording them allocates nothing.
const reservedAnswers = 512

// Ledger is a Guard in memory for one run of any number of devices. It is safe for
// use by several goroutines.
type Ledger struct {
	mu      sync.Mutex
	limit   int
	devices map[uint32]*answers
}

// answer is a share that was given in a round.
type answer struct {
	epoch, attempt uint32
	digest         Digest
	// repeatable answers were given by an earlier process, whose secrets come from
	// the seed: this process may give the same one again, once.
	repeatable bool
}

// answers is what a ledger remembers of one device.
type answers struct {
	epoch, last uint32 // key epoch and round of the last answer
	count       int    // answers of the key of that epoch
	rounds      map[uint32]answer
	digests     map[Digest]struct{} // answered under that key
}

// NewLedger returns an empty ledger that lets each key give at most limit shares
// (tau).
func NewLedger(limit int) *Ledger {
	return &Ledger{limit: limit, devices: map[uint32]*answers{}}
}

// Answer records a share, or says why it must not be given.
func (l *Ledger) Answer(r ShareRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.admit(r); err != nil {
		return err
	}
	l.record(r, false)
	return nil
}

func (l *Ledger) device(i uint32) *answers {
	a := l.devices[i]
	if a == nil {
		reserved := min(l.limit, reservedAnswers)
		a = &answers{rounds: make(map[uint32]answer, reserved), digests: make(map[Digest]struct{}, reserved)}
		l.devices[i] = a
	}
	return a
}

// admit reports whether r repeats, bit for bit, an answer that an earlier process
// has given, or says why r must not be answered.
func (l *Ledger) admit(r ShareRecord) (repeated bool, err error) {
	a := l.device(r.Device)
	if before, ok := a.rounds[r.Round]; ok {
		if before.digest == (Digest{}) { // of an earlier program's journal, which has others
			before.digest = r.Digest
		}
		if before == (answer{r.Epoch, r.Attempt, r.Digest, true}) {
			return true, nil
		}
		return false, fmt.Errorf("%w: device %d has already answered round %d (key epoch %d, attempt %d, c1 %v), and is asked again (key epoch %d, attempt %d, c1 %v)",
			ErrAnswered, r.Device+1, r.Round, before.epoch, before.attempt, before.digest, r.Epoch, r.Attempt, r.Digest)
	}
	if len(a.rounds) == 0 {
		return false, l.withinLimit(r, 0)
	}
	if r.Epoch < a.epoch {
		return false, fmt.Errorf("%w: device %d has left key epoch %d", ErrAnswered, r.Device+1, r.Epoch)
	}
	if r.Round < a.last {
		return false, fmt.Errorf("%w: device %d has already answered round %d, and is asked for round %d", ErrAnswered, r.Device+1, a.last, r.Round)
	}
	if r.Epoch > a.epoch {
		return false, l.withinLimit(r, 0)
	}
	if _, dup := a.digests[r.Digest]; dup {
		return false, fmt.Errorf("%w: device %d has already answered this c1; round %d brings it again", ErrAnswered, r.Device+1, r.Round)
	}
	return false, l.withinLimit(r, a.count)
}

// withinLimit refuses a share of a key that has given count.
func (l *Ledger) withinLimit(r ShareRecord, count int) error {
	if count >= l.limit {
		return fmt.Errorf("%w (device %d, %d shares): start a new key epoch", ErrExhausted, r.Device+1, l.limit)
	}
	return nil
}

// record counts a share that is not yet counted.
func (l *Ledger) record(r ShareRecord, repeatable bool) {
	a := l.device(r.Device)
	if len(a.rounds) > 0 && r.Epoch != a.epoch {
		a.count = 0
		clear(a.digests)
	}
	a.epoch, a.last = r.Epoch, r.Round
	a.count++
	a.rounds[r.Round] = answer{r.Epoch, r.Attempt, r.Digest, repeatable}
	if r.Digest != (Digest{}) {
		a.digests[r.Digest] = struct{}{}
	}
}

// repeat takes note that an earlier process's answer is given again, which tells
// nobody anything new and is not counted twice.
func (l *Ledger) repeat(r ShareRecord) {
	l.device(r.Device).rounds[r.Round] = answer{r.Epoch, r.Attempt, r.Digest, false}
}

// Answered returns the number of shares that a device's current key has given.
func (l *Ledger) Answered(device int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.device(uint32(device)).count
}

// HasAnswered reports whether a device has given its share in a round.
func (l *Ledger) HasAnswered(device int, round uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.device(uint32(device)).rounds[round]
	return ok
}

// LastRound returns the last round that any device has answered, and whether there
// is one.
func (l *Ledger) LastRound() (last uint32, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.devices {
		if len(a.rounds) > 0 {
			last, any = max(last, a.last), true
		}
	}
	return last, any
}
