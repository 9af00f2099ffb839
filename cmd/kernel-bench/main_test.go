//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLibraries(t *testing.T) {
	out := `	linux-vdso.so.1 (0x00007ffe0a5f2000)
	libusb-1.0.so.0 => /lib/x86_64-linux-gnu/libusb-1.0.so.0 (0x00007f1f8a2b5000)
	libmissing.so => not found
	/lib64/ld-linux-x86-64.so.2 (0x00007f1f8a2ec000)
`
	want := []string{"/lib/x86_64-linux-gnu/libusb-1.0.so.0", "/lib64/ld-linux-x86-64.so.2"}
	if got := libraries(out); !slices.Equal(got, want) {
		t.Errorf("libraries are %q, want %q", got, want)
	}
	if got := libraries("\tnot a dynamic executable\n"); len(got) != 0 {
		t.Errorf("a static program has libraries %q", got)
	}
}

// TestPayload: the header of Documentation/arch/x86/boot.rst in Linux's source.
func TestPayload(t *testing.T) {
	content := []byte("\xfd7zXZ\x00 and so on")
	image := make([]byte, 4096)
	copy(image[0x202:], "HdrS")
	image[0x1f1] = 3 // sectors of 512 bytes after the first
	binary.LittleEndian.PutUint32(image[0x248:], 100)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(content)))
	copy(image[4*512+100:], content)
	if got, err := payload(image); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the payload is %q, %v", got, err)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"bzImage":  func(b []byte) []byte { b[0x202] = 0; return b },
		"no bzI":   func(b []byte) []byte { return b[:100] },
		"not ther": func(b []byte) []byte { b[0x24f] = 0x7f; return b },
		"xz":       func(b []byte) []byte { b[4*512+100] = 0; return b },
	} {
		if _, err := payload(change(slices.Clone(image))); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error with %q", err, name)
		}
	}
}

// TestArchive reads an archive by the layout of the kernel's
// driver-api/early-userspace/buffer-format.rst.
func TestArchive(t *testing.T) {
	a := &archive{dirs: map[string]bool{}, files: map[string]bool{}}
	a.add("init", []byte("first"), 0o755)
	a.add("lib/x/a.so", []byte{1, 2, 3, 4}, 0o644)
	a.add("lib/x/a.so", []byte("twice"), 0o644)
	a.add("lib/b.so", nil, 0o644)
	a.end()
	var got []string
	b := a.buf.Bytes()
	for {
		if string(b[:6]) != "070701" {
			t.Fatalf("a header begins with %q", b[:6])
		}
		var fields [13]int
		for i := range fields {
			if _, err := fmt.Sscanf(string(b[6+8*i:14+8*i]), "%x", &fields[i]); err != nil {
				t.Fatal(err)
			}
		}
		size, length := fields[6], fields[11]
		name := string(b[110 : 110+length-1])
		b = b[(110+length+3)/4*4:]
		if name == "TRAILER!!!" {
			break
		}
		got = append(got, fmt.Sprintf("%s %o %q", name, fields[1], b[:size]))
		b = b[(size+3)/4*4:]
	}
	want := []string{
		`init 100755 "first"`, `lib 40755 ""`, `lib/x 40755 ""`,
		`lib/x/a.so 100644 "\x01\x02\x03\x04"`, `lib/b.so 100644 ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive has\n%q, want\n%q", got, want)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "requires at least 1 arg"},
		{"--kernel /nowhere -- true", "--kernel"},
		{"--memory 1 -- true", "--memory is 1"},
		{"--timeout 0s -- true", "--timeout is 0s"},
		{"--nothing", "unknown flag"},
	} {
		var stdout, stderr bytes.Buffer
		status := execute(context.Background(), strings.Fields(c.args), &stdout, &stderr)
		if status != exitBadInput || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: status %d and %q, want %d and %q", c.args, status, stderr.String(), exitBadInput, c.want)
		}
	}
}

// machine makes the programs of a virtual machine, and gives the folder with them
// and that of the kernel. It skips where something is not there, or fails where a
// bench is required.
func machine(t *testing.T, tools ...string) (bin, kernel string) {
	t.Helper()
	if os.Getenv("RINGWAVE_LONG") != "1" && os.Getenv("RINGWAVE_REQUIRE_BENCH") != "1" {
		t.Skip("boots a virtual machine; RINGWAVE_LONG=1 does it")
	}
	kernel = os.Getenv("RINGWAVE_LINUX")
	if kernel == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		kernel = filepath.Join(cache, "ringwave/kernel")
	}
	_, err := os.Stat(filepath.Join(kernel, "vmlinuz"))
	need(t, "no kernel: run scripts/kernel-bench once", err)
	for _, tool := range append([]string{"qemu-system-x86_64", "xz", "ldd"}, tools...) {
		_, err := exec.LookPath(tool)
		need(t, "a tool is not installed", err)
	}
	// The first process of the machine must be static, which a test need not be.
	bin = t.TempDir()
	build(t, "CGO_ENABLED=0", "build", "-o", bin+"/", "ringwave/cmd/kernel-bench", "ringwave/cmd/virtual-bench")
	return bin, kernel
}

func need(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)", what, err)
}

// build runs go.
func build(t *testing.T, env string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestKernel is the whole way: Debian's tools, libusb, a real kernel and the
// emulated boards.
func TestKernel(t *testing.T) {
	bin, kernel := machine(t, "hackrf_transfer", "hackrf_info")
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	script := `hackrf_info
head -c 3000000 /dev/urandom > /tmp/sent
hackrf_transfer -d 01 -r /tmp/got -s 8000000 -n 2000000 > /tmp/rx.log 2>&1 &
hackrf_transfer -d 00 -t /tmp/sent -s 8000000 > /tmp/tx.log 2>&1
wait
cmp -n 3000000 /tmp/sent /tmp/got && echo the file arrived > /out
exit 7`
	left := filepath.Join(bin, "left")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kernel-bench"), "--kernel", kernel, "--out", left,
		"--add", "hackrf_info,hackrf_transfer,sh,head,cmp", "--",
		filepath.Join(bin, "virtual-bench"), "--kernel", "-n", "1", "--lock-step", "--await", "1,rx", "--", "sh", "-c", script)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v, want status 7\n%s", err, out)
	}
	if n := strings.Count(string(out), "Found HackRF"); n != 2 {
		t.Errorf("hackrf_info found %d boards, want 2\n%s", n, out)
	}
	if b, err := os.ReadFile(left); err != nil || string(b) != "the file arrived\n" {
		t.Errorf("the machine left %q, %v\n%s", b, err, out)
	}
}

// TestDrivers: the tests of the HackRF driver through libusb and a real kernel. They
// take three minutes, and four with RINGWAVE_LONG=1.
func TestDrivers(t *testing.T) {
	bin, kernel := machine(t, "gcc", "pkg-config")
	need(t, "libusb's headers are not installed", exec.Command("pkg-config", "--exists", "libusb-1.0").Run())
	build(t, "CGO_ENABLED=1", "test", "-c", "-tags", "usb", "-o", filepath.Join(bin, "hackrf.test"), "ringwave/radio/hackrf")
	args := []string{
		"--kernel", kernel, "--timeout", "470s", "--env", "RINGWAVE_TEST_KERNEL=1", "--",
		filepath.Join(bin, "hackrf.test"), "-test.v", "-test.run=^TestKernel$",
	}
	if os.Getenv("RINGWAVE_LONG") != "1" {
		// Plugging boards in is what takes the time: those that do it most often.
		args = append(args, "-test.skip=^TestKernel$/^OpenFaults$|^TestKernel$/^CloseFlushes$/_(1|100|8192|16384)$")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kernel-bench"), args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKernel (") {
		t.Errorf("%v\n%s", err, out)
	}
}
