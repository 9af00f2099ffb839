//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unpackKernel takes the kernel itself out of what boot loaders are given: under
// emulation it would take seconds to do so by itself. What it gives QEMU boots by
// the PVH entry.
func unpackKernel(ctx context.Context, image, dir string) (path string, err error) {
	b, err := os.ReadFile(image)
	if err != nil {
		return "", fmt.Errorf("reading the kernel: %w", err)
	}
	payload, err := payload(b)
	if err != nil {
		return "", badInput{fmt.Errorf("the kernel %s: %w", image, err)}
	}
	path = filepath.Join(dir, "vmlinux")
	f, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("unpacking the kernel: %w", err)
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, "xz", "-dc", "--single-stream")
	cmd.Stdin, cmd.Stdout = bytes.NewReader(payload), f
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("unpacking the kernel with xz: %w: %s", err, said.String())
	}
	return path, nil
}

// payload finds the compressed kernel by the header of x86's boot protocol.
func payload(b []byte) ([]byte, error) {
	const header = 0x250
	if len(b) < header || string(b[0x202:0x206]) != "HdrS" {
		return nil, fmt.Errorf("it is no bzImage; allowed is vmlinuz of x86")
	}
	sectors := int(b[0x1f1])
	offset := int(binary.LittleEndian.Uint32(b[0x248:])) + (sectors+1)*512
	length := int(binary.LittleEndian.Uint32(b[0x24c:]))
	if offset < 0 || length < 6 || offset+length > len(b) {
		return nil, fmt.Errorf("its header names a part that is not there")
	}
	part := b[offset : offset+length]
	if !bytes.HasPrefix(part, []byte("\xfd7zXZ\x00")) {
		return nil, fmt.Errorf("it is not compressed by xz, as Debian's are")
	}
	return part, nil
}

// job is what the machine's first process is to do.
type job struct {
	Args []string
	Env  []string
}

// packInitrd makes the machine's files.
func packInitrd(path string, o options, program []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	a := &archive{dirs: map[string]bool{}, files: map[string]bool{}}
	if err := a.copy("init", self); err != nil {
		return err
	}
	for _, m := range modules() {
		if err := a.copy("modules/"+m, filepath.Join(o.kernel, m)); err != nil {
			return err
		}
	}
	args := append([]string{}, program...)
	args[0] = "/bin/" + filepath.Base(program[0])
	for _, name := range append([]string{program[0]}, o.add...) {
		if err := a.program(name); err != nil {
			return err
		}
	}
	description, err := json.Marshal(job{Args: args, Env: o.env})
	if err != nil {
		return err
	}
	a.add("job", description, 0o644)
	a.end()
	if err := os.WriteFile(path, a.buf.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the machine's files: %w", err)
	}
	return nil
}

// archive is a cpio archive of the kind that kernels unpack ("newc").
type archive struct {
	buf         bytes.Buffer
	dirs, files map[string]bool
	inode       int
}

// The kinds of cpio entries.
const (
	modeDir  = 0o040755
	modeFile = 0o100000
)

// program adds a program to /bin, and its libraries to where it looks for them.
func (a *archive) program(name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return badInput{fmt.Errorf("the program %s: %w", name, err)}
	}
	if err := a.copy("bin/"+filepath.Base(path), path); err != nil {
		return err
	}
	// It fails on programs that need none.
	out, _ := exec.Command("ldd", path).Output()
	for _, library := range libraries(string(out)) {
		if err := a.copy(strings.TrimPrefix(library, "/"), library); err != nil {
			return err
		}
	}
	return nil
}

// libraries reads what ldd prints.
func libraries(out string) (paths []string) {
	for _, line := range strings.Split(out, "\n") {
		fields := strings.Fields(line)
		for i, f := range fields {
			// "name => path (address)", or "path (address)" of the loader.
			if strings.HasPrefix(f, "/") && (i == 0 || fields[i-1] == "=>") {
				paths = append(paths, f)
				break
			}
		}
	}
	return paths
}

func (a *archive) copy(name, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("packing the machine's files: %w", err)
	}
	a.add(name, b, 0o755)
	return nil
}

// add adds a file, and the folders above it, once.
func (a *archive) add(name string, content []byte, mode int) {
	if a.files[name] {
		return
	}
	a.files[name] = true
	for i, c := range name {
		if dir := name[:i]; c == '/' && !a.dirs[dir] {
			a.dirs[dir] = true
			a.entry(dir, modeDir, nil)
		}
	}
	a.entry(name, modeFile|mode, content)
}

func (a *archive) end() { a.entry("TRAILER!!!", 0, nil) }

// entry writes a header of hexadecimal fields, the name and the content, each
// filled up to four bytes.
func (a *archive) entry(name string, mode int, content []byte) {
	a.inode++
	fmt.Fprintf(&a.buf, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
	a.fill()
	a.buf.Write(content)
	a.fill()
}

func (a *archive) fill() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}
