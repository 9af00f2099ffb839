package xmkckks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Journal is a Ledger on disk: each share is written to a file before it is
// given, so that neither the guard nor the count of answered attempts is lost
// when the process is killed. It is safe for use by several goroutines.
//
// The write is not forced to the disk: a power failure may lose the last
// records. Keys from the system's generator are never stored and die with the
// process, so no key outlives a record; keys from a seed are no secrets.
type Journal struct {
	ledger  *Ledger
	file    *os.File
	path    string
	end     int64  // the length of the part that is whole
	next    uint32 // one more than the last key epoch in the file
	scratch [recordSize]byte
}

const (
	journalMagic = "RWSHARE1"
	// A record is device, epoch, round, attempt, digest and a CRC-32C of these.
	recordSize = 4*4 + len(Digest{}) + 4
)

// OpenJournal opens the journal at path, or makes it. A last record that was cut
// off is dropped: its share was never given. Any other damage is an error.
func OpenJournal(path string, limit int) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the journal of decryption shares: %w", err)
	}
	j := &Journal{ledger: NewLedger(limit), file: f, path: path}
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
		j.ledger.record(r)
		j.next = max(j.next, r.Epoch+1)
	}
	if whole < len(data) {
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

// append writes b behind the part of the file that is whole. What a write that
// failed has left there is overwritten by the next.
func (j *Journal) append(b []byte) error {
	if _, err := j.file.WriteAt(b, j.end); err != nil {
		return err
	}
	j.end += int64(len(b))
	return nil
}

// decodeJournal gives the records in data and the length of the part that is
// whole.
func decodeJournal(data []byte) (records []ShareRecord, whole int, err error) {
	if len(data) < len(journalMagic) {
		if string(data) != journalMagic[:len(data)] {
			return nil, 0, errors.New("not a journal of decryption shares: it does not begin with " + journalMagic)
		}
		return nil, 0, nil
	}
	if string(data[:len(journalMagic)]) != journalMagic {
		return nil, 0, errors.New("not a journal of decryption shares: it does not begin with " + journalMagic)
	}
	whole = len(journalMagic)
	for len(data)-whole >= recordSize {
		r, ok := decodeRecord(data[whole : whole+recordSize])
		if !ok {
			return nil, 0, fmt.Errorf("the record at byte %d is damaged (its CRC-32C does not match)", whole)
		}
		records = append(records, r)
		whole += recordSize
	}
	return records, whole, nil
}

// checksum is CRC-32C; the standard library keeps its table.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodeRecord(b *[recordSize]byte, r ShareRecord) {
	for i, x := range []uint32{r.Device, r.Epoch, r.Round, r.Attempt} {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	copy(b[16:], r.Digest[:])
	binary.LittleEndian.PutUint32(b[recordSize-4:], checksum(b[:recordSize-4]))
}

func decodeRecord(b []byte) (r ShareRecord, ok bool) {
	for i, x := range []*uint32{&r.Device, &r.Epoch, &r.Round, &r.Attempt} {
		*x = binary.LittleEndian.Uint32(b[4*i:])
	}
	copy(r.Digest[:], b[16:])
	return r, binary.LittleEndian.Uint32(b[recordSize-4:]) == checksum(b[:recordSize-4])
}

// Answer writes the share down, or says why it must not be given.
func (j *Journal) Answer(r ShareRecord) error {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	repeated, err := j.ledger.admit(r)
	if err != nil {
		return err
	}
	if !repeated {
		encodeRecord(&j.scratch, r)
		if err := j.append(j.scratch[:]); err != nil {
			return fmt.Errorf("recording a decryption share in %s: %w", j.path, err)
		}
		j.next = max(j.next, r.Epoch+1)
	}
	j.ledger.record(r)
	return nil
}

// Rewind takes the ledger back to the end of a round, for a run whose secrets
// are derived from a seed. What was answered later may be answered again, once:
// the same attempt at the same c~1, to which the seed gives the same e* and so
// the same share bit for bit. Such a repetition tells nobody anything new, and
// is not counted twice. Anything else stays refused.
func (j *Journal) Rewind(round uint32) error {
	l := j.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	data := make([]byte, j.end)
	if _, err := j.file.ReadAt(data, 0); err != nil {
		return fmt.Errorf("reading %s: %w", j.path, err)
	}
	records, _, err := decodeJournal(data)
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	l.devices = map[uint32]*answers{}
	for _, r := range records {
		if r.Round <= round {
			l.record(r)
			continue
		}
		a := l.device(r.Device)
		if a.replay == nil {
			a.replay = map[attemptKey]Digest{}
		}
		a.replay[attemptKey{r.Epoch, r.Round, r.Attempt}] = r.Digest
	}
	return nil
}

// NextEpoch gives the first key epoch that no device of the journal has used.
func (j *Journal) NextEpoch() uint32 {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	return j.next
}

// Answered gives the number of attempts that a device's current key has
// answered.
func (j *Journal) Answered(device int) int { return j.ledger.Answered(device) }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
