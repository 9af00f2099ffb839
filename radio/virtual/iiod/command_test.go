package iiod

import (
	"strings"
	"testing"
)

// FuzzCommand: whatever a client says, it is taken apart or refused.
func FuzzCommand(f *testing.F) {
	for _, line := range []string{
		"OPEN iio:device3 1024 00000003 CYCLIC", "READ d INPUT c a", "WRITE d DEBUG a 10", "SET d BUFFERS_COUNT 4",
		"READBUF d 100", "TIMEOUT 100", "print", "EXIT", "SETTRIG d t",
	} {
		f.Add(line)
	}
	b := newBoard(Config{})
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parseCommand(line)
		if err != nil {
			return
		}
		if c.number < 0 || c.number > maxTransfer || c.verb != strings.ToUpper(c.verb) {
			t.Errorf("%+v", c)
		}
		// Neither may a value do harm, or be read back as something longer than a line.
		_ = b.write(c, []byte(line))
		if v, err := b.read(c); err == nil && len(v) > 1000 {
			t.Errorf("%q", v)
		}
	})
}
