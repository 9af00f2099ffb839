// Package memory says how much memory there is for a process.
//
// It takes in what the system and the Go runtime say, and gives bytes and whose bound
// they are. It knows nothing of what the memory is for.
package memory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"ringwave/radio/intake"
)

// Bound is how much there may be.
type Bound struct {
	Bytes int64
	Of    string // whose it is, within a sentence
}

// Available returns the bound of the process's memory: GOMEMLIMIT where that is set, be
// it more than there is, for that is how a user says what to go by; else the tightest of
// the machine's and its control groups'. Known is false where nobody says one.
func Available() (m Bound, known bool) {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return Bound{limit, "GOMEMLIMIT"}, true
	}
	if runtime.GOOS != "linux" {
		return m, false
	}
	return linux(os.DirFS("/"))
}

// linux returns the tighter of what the machine has and what control groups give, of
// either version, as the file system at root says it.
func linux(root fs.FS) (m Bound, known bool) {
	m.Bytes = math.MaxInt64
	for line := range strings.Lines(read(root, "proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if kb, err := strconv.ParseInt(fields[1], 10, 53); err == nil {
				m, known = Bound{kb << 10, "the machine"}, true
			}
		}
	}
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		// hierarchy:controllers:path, of which version 2 has no controllers.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		folder, name := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			folder, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		if limit, ok := groupLimit(root, folder, fields[2], name); ok && limit < m.Bytes {
			m, known = Bound{limit, "the control group"}, true
		}
	}
	return m, known
}

// groupLimit returns the tightest limit of a control group and those around it. Within a
// container the group's own path need not be there, and the root is the container's.
func groupLimit(root fs.FS, folder, group, name string) (limit int64, known bool) {
	limit = math.MaxInt64
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text := strings.TrimSpace(read(root, path.Join(folder, at, name)))
		// Version 2 says max for none, version 1 a number near 2^63.
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && v > 0 && v < limit && v < 1<<60 {
			limit, known = v, true
		}
		if at == "/" {
			return limit, known
		}
	}
}

// read returns a small file's text, nothing where it cannot be read.
func read(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := intake.Read(f, 1<<20)
	if err != nil {
		return ""
	}
	return string(text)
}
