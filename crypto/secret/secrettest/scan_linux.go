package secrettest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Needles are the secrets to look for. They are kept masked, so that a search does
// not find them here. The zero value is ready for use.
type Needles struct {
	mask    uint64
	needles []needle
}

type needle struct {
	name   string
	masked []uint64
}

// Add adds the words of 64 bits of a secret, of which the first must not be 0. They are looked for
// as they are, and as a program keeps them that reads them as big-endian words of 32
// bits. The secret is not changed.
func (n *Needles) Add(name string, secret []byte) {
	for n.mask == 0 {
		n.mask = rand.Uint64()
	}
	asBytes, asWords := needle{name: name}, needle{name: name}
	for ; len(secret) >= 8; secret = secret[8:] {
		asBytes.masked = append(asBytes.masked, binary.LittleEndian.Uint64(secret)^n.mask)
		first, second := uint64(binary.BigEndian.Uint32(secret)), uint64(binary.BigEndian.Uint32(secret[4:]))
		asWords.masked = append(asWords.masked, (first|second<<32)^n.mask)
	}
	n.needles = append(n.needles, asBytes, asWords)
}

const (
	// blockSize is how much memory is read at a time.
	blockSize = 1 << 20
	pageSize  = 1 << 12
	// largest is the size above which a mapping is the race detector's shadow, which
	// holds no values.
	largest = 1 << 30
)

// Find returns how often each needle that is there is in the process's writable
// private memory, by name.
func (n *Needles) Find() (map[string]int, error) { return n.FindIn("self") }

// FindIn is Find in the memory of another process, by its number. It goes on meanwhile.
func (n *Needles) FindIn(process string) (map[string]int, error) {
	mappings, err := writable(process)
	if err != nil {
		return nil, fmt.Errorf("listing the process's memory: %w", err)
	}
	memory, err := os.Open("/proc/" + process + "/mem")
	if err != nil {
		return nil, fmt.Errorf("opening the process's memory: %w", err)
	}
	defer memory.Close()
	// What is read is not read again: a shared mapping is none of those searched.
	buffer, err := syscall.Mmap(-1, 0, blockSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("making room for a search: %w", err)
	}
	defer syscall.Munmap(buffer)

	found, overlap := map[string]int{}, n.longest()-1
	for _, m := range mappings {
		for at := m.from; at < m.to; at += blockSize - overlap {
			size := min(blockSize, m.to-at)
			read, err := memory.ReadAt(buffer[:size], at)
			if err != nil && err != io.EOF && read == 0 {
				break // unmapped since, or not to be read
			}
			last := at+size == m.to
			n.search(buffer[:read], overlap, last, found)
			if last {
				break
			}
		}
	}
	return found, nil
}

// longest returns the length of the longest needle in bytes.
func (n *Needles) longest() int64 {
	longest := 1
	for _, x := range n.needles {
		longest = max(longest, 8*len(x.masked))
	}
	return int64(longest)
}

// search counts the needles in b. Those in its last overlap bytes alone are left to
// the next block, unless b is the last.
//
//go:norace
func (n *Needles) search(b []byte, overlap int64, last bool, found map[string]int) {
	end := len(b) - 7
	if !last {
		end = min(end, len(b)-int(overlap))
	}
	var first [1 << 12]bool // by the first word's low bits
	for _, x := range n.needles {
		first[x.masked[0]%uint64(len(first))] = true
	}
	for i := 0; i < end; i++ {
		if i%pageSize == 0 && i+pageSize <= len(b) && *(*[pageSize]byte)(b[i:]) == [pageSize]byte{} {
			i += pageSize - 8 // no needle begins with a word of zeros
			continue
		}
		w := binary.LittleEndian.Uint64(b[i:]) ^ n.mask
		if !first[w%uint64(len(first))] {
			continue
		}
		for k := range n.needles {
			if x := &n.needles[k]; x.masked[0] == w && n.at(x, b[i:]) {
				found[x.name]++
			}
		}
	}
}

// at reports whether the needle is at the start of b.
func (n *Needles) at(x *needle, b []byte) bool {
	if len(b) < 8*len(x.masked) {
		return false
	}
	for k, w := range x.masked {
		if binary.LittleEndian.Uint64(b[8*k:])^n.mask != w {
			return false
		}
	}
	return true
}

type mapping struct{ from, to int64 }

// writable returns a process's private mappings that it can write to.
func writable(process string) ([]mapping, error) {
	f, err := os.Open("/proc/" + process + "/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mapping
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uint64
		var access string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &access); err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if strings.HasPrefix(access, "rw") && strings.HasSuffix(access, "p") && to <= 1<<63-1 && to-from <= largest {
			all = append(all, mapping{int64(from), int64(to)})
		}
	}
	return all, nil
}

// Names returns the names of what was found, in order.
func Names(found map[string]int) []string {
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
