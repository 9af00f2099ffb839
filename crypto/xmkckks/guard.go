package xmkckks

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"ringwave/phy/zq"
)

// Digest identifies a broadcast c~1: the first 128 bits of SHA-256 over its
// residues.
type Digest [16]byte

// hasher computes digests without allocating.
type hasher struct {
	h     hash.Hash
	block []byte
	sum   []byte
}

func newHasher() hasher {
	return hasher{h: sha256.New(), block: make([]byte, 4096), sum: make([]byte, 0, sha256.Size)}
}

func (h *hasher) vector(v zq.Vector) (d Digest) {
	h.h.Reset()
	fill := 0
	for _, residues := range v {
		for _, x := range residues {
			binary.LittleEndian.PutUint64(h.block[fill:], x)
			if fill += 8; fill == len(h.block) {
				h.h.Write(h.block)
				fill = 0
			}
		}
	}
	h.h.Write(h.block[:fill])
	copy(d[:], h.h.Sum(h.sum[:0]))
	return d
}

// ShareRecord is one decryption share about to be given.
type ShareRecord struct {
	Device, Epoch, Round, Attempt uint32
	Digest                        Digest
}

// Guard decides whether a decryption share may be given, and remembers it before
// it is. Answering the same c~1 twice with fresh e*, or a slightly different
// one, leaks s.
type Guard interface {
	Answer(ShareRecord) error
}

// The reasons for which a guard refuses.
var (
	// ErrAnswered says that a share was given before, for this attempt, a later
	// one, or this c~1.
	ErrAnswered = errors.New("decryption share refused")
	// ErrExhausted says that the key has answered as many attempts as its
	// flooding is made for.
	ErrExhausted = errors.New("decryption share refused: the key has answered all the attempts its flooding is made for")
)

// reservedAnswers is the number of answers of a key for which a ledger takes
// memory at once, so that recording them allocates nothing.
const reservedAnswers = 512

// Ledger is a Guard in memory for any number of devices. It is safe for use by
// several goroutines.
type Ledger struct {
	mu      sync.Mutex
	limit   int
	devices map[uint32]*answers
}

// attemptKey names an attempt under a key.
type attemptKey struct{ epoch, round, attempt uint32 }

// answers is what a ledger remembers of one device in its current epoch.
type answers struct {
	epoch          uint32
	any            bool
	round, attempt uint32 // the last answered
	count          int
	digests        map[Digest]struct{}
	// replay holds answers that were given before the program died and may be
	// given again, the same bits to the same c~1: see Journal.Rewind.
	replay map[attemptKey]Digest
}

// NewLedger makes an empty ledger that lets each key answer at most limit
// attempts (tau).
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
	l.record(r)
	return nil
}

func (l *Ledger) device(i uint32) *answers {
	a := l.devices[i]
	if a == nil {
		a = &answers{digests: make(map[Digest]struct{}, min(l.limit, reservedAnswers))}
		l.devices[i] = a
	}
	return a
}

// admit tells whether r may be answered, and whether it repeats, bit for bit, an
// answer that was already given.
func (l *Ledger) admit(r ShareRecord) (repeated bool, err error) {
	a := l.device(r.Device)
	if before, ok := a.replay[attemptKey{r.Epoch, r.Round, r.Attempt}]; ok {
		if before != r.Digest {
			return false, fmt.Errorf("%w: device %d answered another c1 in round %d, attempt %d, before the run was resumed", ErrAnswered, r.Device+1, r.Round, r.Attempt)
		}
		return true, nil
	}
	count := 0 // attempts that the key has answered, those not yet repeated included
	for key, digest := range a.replay {
		if key.epoch != r.Epoch {
			continue
		}
		if digest == r.Digest {
			return false, fmt.Errorf("%w: device %d answered this c1 in round %d before the run was resumed; round %d brings it again", ErrAnswered, r.Device+1, key.round, r.Round)
		}
		count++
	}
	if a.any && r.Epoch < a.epoch {
		return false, fmt.Errorf("%w: device %d has left key epoch %d", ErrAnswered, r.Device+1, r.Epoch)
	}
	if a.any && r.Epoch == a.epoch {
		if !later(r.Round, r.Attempt, a.round, a.attempt) {
			return false, fmt.Errorf("%w: device %d has already answered round %d, attempt %d, and is asked for round %d, attempt %d",
				ErrAnswered, r.Device+1, a.round, a.attempt, r.Round, r.Attempt)
		}
		if _, dup := a.digests[r.Digest]; dup {
			return false, fmt.Errorf("%w: device %d has already answered this c1; round %d brings it again", ErrAnswered, r.Device+1, r.Round)
		}
		count += a.count
	}
	if count >= l.limit {
		return false, fmt.Errorf("%w (device %d, %d attempts): start a new key epoch", ErrExhausted, r.Device+1, l.limit)
	}
	return false, nil
}

// record counts an admitted share. After a Rewind shares may come out of their
// order: the last attempt answered never goes back.
func (l *Ledger) record(r ShareRecord) {
	a := l.device(r.Device)
	delete(a.replay, attemptKey{r.Epoch, r.Round, r.Attempt})
	switch {
	case !a.any || r.Epoch > a.epoch:
		a.any, a.epoch, a.round, a.attempt, a.count = true, r.Epoch, r.Round, r.Attempt, 0
		clear(a.digests)
	case r.Epoch < a.epoch:
		return
	case later(r.Round, r.Attempt, a.round, a.attempt):
		a.round, a.attempt = r.Round, r.Attempt
	}
	a.count++
	a.digests[r.Digest] = struct{}{}
}

// Answered gives the number of attempts that a device's current key has
// answered.
func (l *Ledger) Answered(device int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.device(uint32(device)).count
}
