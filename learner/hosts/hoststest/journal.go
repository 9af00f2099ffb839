package hoststest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"ringwave/crypto/xmkckks"
)

// The format of a journal, as its file has it.
const (
	journalMagic = "RWSHARE3"
	recordSize   = 40
	kindShare    = 1
)

// Shares returns the decryption shares that a device's journal has, without those that were
// cut off. It reads the file by itself, so that what a journal believes is not asked.
func Shares(path string) (shares []xmkckks.ShareRecord, err error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil // it never came so far
	}
	if err != nil {
		return nil, err
	}
	data, ok := bytes.CutPrefix(data, []byte(journalMagic))
	if !ok {
		return nil, fmt.Errorf("%s does not begin with %s", path, journalMagic)
	}
	for ; len(data) >= recordSize; data = data[recordSize:] {
		if binary.LittleEndian.Uint32(data) != kindShare {
			continue
		}
		r := xmkckks.ShareRecord{
			Device: binary.LittleEndian.Uint32(data[4:]), Epoch: binary.LittleEndian.Uint32(data[8:]),
			Round: binary.LittleEndian.Uint32(data[12:]), Attempt: binary.LittleEndian.Uint32(data[16:]),
		}
		copy(r.Digest[:], data[20:])
		shares = append(shares, r)
	}
	return shares, nil
}

// Once reports the first share of a device that is a second one: of its round, or for a c~1
// that it has answered.
func Once(shares []xmkckks.ShareRecord) error {
	rounds, digests := map[uint32]bool{}, map[xmkckks.Digest]bool{}
	for _, r := range shares {
		if rounds[r.Round] || digests[r.Digest] {
			return fmt.Errorf("device %d has given two shares in round %d, or for c~1 %v", r.Device+1, r.Round, r.Digest)
		}
		rounds[r.Round], digests[r.Digest] = true, true
	}
	return nil
}
