package xmkckks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"ringwave/crypto/lockfile"
)

// JournalConfig says what a journal is for.
type JournalConfig struct {
	// Limit is tau, the most shares that one key gives.
	Limit int
	// System says that the secrets come from the system's generator. Each record is
	// then brought to disk before its share leaves, which costs a flush a share, and
	// no round is ever answered again. Secrets that are derived from a seed protect
	// nothing: records are only written, which outlives the process and, up to the
	// last Sync, the machine, and a later process may repeat an answer of this one, bit for bit,
	// once.
	System bool
}

// Journal is a Ledger on disk, for one run: each share is written to a file before
// it is given, so that rounds stay answered when the process is killed. One process
// at a time has it. It is safe for use by several goroutines.
//
// Keys from the system's generator live in memory only: each process begins a new
// key epoch, with Begin. What no file can tell is that it, and all files beside it,
// were put back to what they were before: then a round is answered twice.
type Journal struct {
	ledger  *Ledger
	cfg     JournalConfig
	file    journalFile
	path    string
	end     int64  // the length of the part that is whole
	next    uint32 // one more than the last key epoch in the file
	settled bool   // the last record says that the journal was closed
	failed  error  // of bringing records to disk: nothing is known of them any more
	closed  bool
	scratch [recordSize]byte
}

// journalFile is what a journal needs of a file.
type journalFile interface {
	io.Reader
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

const (
	journalMagic = "RWSHARE3"
	// earlierMagic begins journals whose digests of c~1 are SHA-256: they say nothing to
	// this program, and a round's answer is known by its epoch and attempt.
	earlierMagic = "RWSHARE2"
	// A record is kind, device, epoch, round, attempt, digest and a CRC-32C of these.
	recordSize = 5*4 + len(Digest{}) + 4
)

// The kinds of records.
const (
	kindShare uint32 = 1 + iota
	// kindBegin says that a process has begun a key epoch.
	kindBegin
	// kindClose says that a process has ended in order: all shares that it gave
	// stand before.
	kindClose
	kinds
)

// journalRecord is one record. All but the epoch are zero in one that is of no
// share, and that too in one that closes.
type journalRecord struct {
	kind uint32
	ShareRecord
}

// OpenJournal opens the journal at path, or makes it. A last record that was cut
// off is dropped: its share was never given. Any other damage is an error, and so
// is a journal that another process has, or this one, open.
func OpenJournal(path string, cfg JournalConfig) (*Journal, error) {
	f, err := lockfile.Open(path)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("the journal of decryption shares %s is in use by another process%s: one at a time may give shares", path, lockfile.Hint(path))
	}
	if err != nil {
		return nil, fmt.Errorf("opening the journal of decryption shares: %w", err)
	}
	j := &Journal{ledger: NewLedger(cfg.Limit), cfg: cfg, file: f, path: path}
	if err := j.load(); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *Journal) load() error {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", j.path, err)
	}
	records, whole, err := decodeJournal(data)
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	j.end = int64(whole)
	for _, r := range records {
		j.note(r)
		if r.kind == kindShare {
			j.ledger.record(r.ShareRecord, !j.cfg.System)
		}
	}
	if whole < len(data) {
		j.settled = false // something was written behind the mark
		if err := j.file.Truncate(j.end); err != nil {
			return fmt.Errorf("dropping a cut-off record from %s: %w", j.path, err)
		}
	}
	if whole == 0 {
		if err := j.append([]byte(journalMagic)); err != nil {
			return fmt.Errorf("writing %s: %w", j.path, err)
		}
	}
	return nil
}

// note takes in what any record says of the journal.
func (j *Journal) note(r journalRecord) {
	j.settled = r.kind == kindClose
	if !j.settled {
		j.next = max(j.next, r.Epoch+1)
	}
}

// append writes b behind the part of the file that is whole. What a write that
// failed has left there is overwritten by the next.
func (j *Journal) append(b []byte) error {
	if j.failed != nil {
		return j.failed
	}
	if _, err := j.file.WriteAt(b, j.end); err != nil {
		return err
	}
	j.end += int64(len(b))
	if !j.cfg.System {
		return nil
	}
	j.failed = j.file.Sync()
	return j.failed
}

// add writes a record.
func (j *Journal) add(r journalRecord) error {
	encodeRecord(&j.scratch, r)
	if err := j.append(j.scratch[:]); err != nil {
		return err
	}
	j.note(r)
	return nil
}

// decodeJournal returns the records in data and the length of the part that is
// whole.
func decodeJournal(data []byte) (records []journalRecord, whole int, err error) {
	magic := string(data[:min(len(data), len(journalMagic))])
	if !strings.HasPrefix(journalMagic, magic) && !strings.HasPrefix(earlierMagic, magic) {
		return nil, 0, errors.New("not a journal of decryption shares of this version: it does not begin with " + journalMagic)
	}
	if len(magic) < len(journalMagic) {
		return nil, 0, nil
	}
	whole = len(journalMagic)
	for len(data)-whole >= recordSize {
		r, ok := decodeRecord(data[whole : whole+recordSize])
		if !ok {
			return nil, 0, fmt.Errorf("the record at byte %d is damaged (its CRC-32C does not match, or its kind is unknown)", whole)
		}
		if magic == earlierMagic {
			r.Digest = Digest{}
		}
		records = append(records, r)
		whole += recordSize
	}
	return records, whole, nil
}

// checksum is CRC-32C; the standard library keeps its table.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodeRecord(b *[recordSize]byte, r journalRecord) {
	for i, x := range []uint32{r.kind, r.Device, r.Epoch, r.Round, r.Attempt} {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	copy(b[20:], r.Digest[:])
	binary.LittleEndian.PutUint32(b[recordSize-4:], checksum(b[:recordSize-4]))
}

func decodeRecord(b []byte) (r journalRecord, ok bool) {
	for i, x := range []*uint32{&r.kind, &r.Device, &r.Epoch, &r.Round, &r.Attempt} {
		*x = binary.LittleEndian.Uint32(b[4*i:])
	}
	copy(r.Digest[:], b[20:])
	ok = binary.LittleEndian.Uint32(b[recordSize-4:]) == checksum(b[:recordSize-4])
	return r, ok && r.kind >= kindShare && r.kind < kinds
}

// Answer writes the share down, or says why it must not be given.
func (j *Journal) Answer(r ShareRecord) error {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	repeated, err := j.ledger.admit(r)
	if err != nil {
		return err
	}
	if repeated {
		j.ledger.repeat(r)
		return nil
	}
	if err := j.add(journalRecord{kindShare, r}); err != nil {
		return fmt.Errorf("recording a decryption share in %s: %w", j.path, err)
	}
	j.ledger.record(r, false)
	return nil
}

// Begin begins the first key epoch that nothing in the journal has used, and
// returns it: where keys come from the system's generator, those of a new process
// are others.
func (j *Journal) Begin() (epoch uint32, err error) {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	epoch = j.next
	if err := j.add(journalRecord{kindBegin, ShareRecord{Epoch: epoch}}); err != nil {
		return 0, fmt.Errorf("recording a key epoch in %s: %w", j.path, err)
	}
	return epoch, nil
}

// Sync brings all records to disk, so that they outlive the machine, too.
func (j *Journal) Sync() error {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	if j.failed == nil && !j.cfg.System { // of the system's keys each record is there
		j.failed = j.file.Sync()
	}
	if j.failed != nil {
		return fmt.Errorf("bringing %s to disk: %w", j.path, j.failed)
	}
	return nil
}

// Answered returns the number of shares that a device's current key has given.
func (j *Journal) Answered(device int) int { return j.ledger.Answered(device) }

// HasAnswered reports whether a device has given its share in a round.
func (j *Journal) HasAnswered(device int, round uint32) bool {
	return j.ledger.HasAnswered(device, round)
}

// LastRound returns the last round that any device has answered, and whether there
// is one.
func (j *Journal) LastRound() (last uint32, any bool) { return j.ledger.LastRound() }

// NextEpoch returns the first key epoch that nothing in the journal has used.
func (j *Journal) NextEpoch() uint32 {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	return j.next
}

// Settled reports whether the last process that had the journal closed it, so that
// no share can be missing from its end.
func (j *Journal) Settled() bool {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	return j.settled
}

// Close writes down that all shares stand in the file, and closes it.
func (j *Journal) Close() error {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	var err error
	if !j.settled {
		if err = j.add(journalRecord{kind: kindClose}); err != nil {
			err = fmt.Errorf("closing %s: %w", j.path, err)
		}
	}
	return errors.Join(err, j.file.Close())
}
