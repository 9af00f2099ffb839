package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestLinux(t *testing.T) {
	const meminfo = "MemTotal:       16000000 kB\nMemFree: 5 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Bound
		known bool
	}{
		"nothing is known":  {nil, Bound{}, false},
		"the machine":       {map[string]string{"proc/meminfo": meminfo}, Bound{16000000 << 10, "the machine"}, true},
		"odd files":         {map[string]string{"proc/meminfo": "MemTotal: lots kB\n\nMemTotal:\n", "proc/self/cgroup": "x\n::\n0::/\n"}, Bound{}, false},
		"version 2":         {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n"}, Bound{1000000, "the control group"}, true},
		"the group around":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000000\n"}, Bound{2000000, "the control group"}, true},
		"a container":       {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/memory.max": "3000000\n"}, Bound{3000000, "the control group"}, true},
		"no limit":          {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, Bound{16000000 << 10, "the machine"}, true},
		"a larger limit":    {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99000000000\n"}, Bound{16000000 << 10, "the machine"}, true},
		"version 1":         {map[string]string{"proc/self/cgroup": "3:cpu:/c\n4:hugetlb,memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4000000\n"}, Bound{4000000, "the control group"}, true},
		"version 1, no end": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, Bound{16000000 << 10, "the machine"}, true},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		got, known := linux(root)
		if known != c.known || known && got != c.want {
			t.Errorf("%s: %+v, %v", name, got, known)
		}
	}
}

func TestGoLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	if m, known := Available(); !known || m != (Bound{1 << 20, "GOMEMLIMIT"}) {
		t.Errorf("%+v, %v", m, known)
	}
	debug.SetMemoryLimit(1 << 62) // more than any machine has
	if m, known := Available(); !known || m != (Bound{1 << 62, "GOMEMLIMIT"}) {
		t.Errorf("%+v, %v", m, known)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if m, known := Available(); runtime.GOOS == "linux" && (!known || m.Bytes < 1<<20 || m.Of == "GOMEMLIMIT") {
		t.Errorf("%+v, %v", m, known)
	}
}
