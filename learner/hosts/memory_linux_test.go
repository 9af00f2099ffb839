package hosts_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/secret/secrettest"
	"ringwave/learner/experiment"
	"ringwave/learner/hosts"
	"ringwave/learner/hosts/identity"
)

// A child process is the host that this names: "server" or the number of a device. It says
// where it is a line each, and goes on with a line that it is told.
const childHost, childDir = "RINGWAVE_TEST_HOST", "RINGWAVE_TEST_DIR"

// Of the run whose memory is searched.
const scannedDevices, scannedRounds, scannedImages = 2, 6, 40

// asHost is a child process.
func asHost(host, dir string) error {
	answers := bufio.NewReader(os.Stdin)
	wait := func(where string) error {
		fmt.Println(where)
		_, err := answers.ReadString('\n')
		return err
	}
	say := func(text string) { fmt.Fprintln(os.Stderr, text) }
	if host != "server" {
		index, err := strconv.Atoi(host)
		if err != nil {
			return err
		}
		o := hosts.DeviceOptions{
			Identity: filepath.Join(dir, "bench", fmt.Sprintf("device-%03d.identity", index)), State: filepath.Join(dir, "state-"+host),
			Own: true, Set: ownFiles(dir, index), Version: "v", Say: say,
		}
		o.Reveal(func(seed []byte) { fmt.Println("seed", hex.EncodeToString(seed)) })
		o.Round = func(k, rounds int, _ float64) {
			if k == rounds {
				_ = wait("holding") // it goes on, whatever came
			}
		}
		return hosts.RunDevice(context.Background(), o)
	}
	kept := keptUntilExit(dir)
	bench, err := hosts.NewBench(context.Background(), hosts.BenchOptions{Folder: filepath.Join(dir, "bench"), Air: true, Version: "v", Deadline: time.Minute, Silence: time.Minute, Say: say})
	if err != nil {
		return err
	}
	c, err := experiment.Load(filepath.Join(dir, "config.toml"))
	if err != nil {
		return err
	}
	e, err := experiment.Lab{Fleet: bench}.New(c)
	if err != nil {
		return err
	}
	if _, err := e.Run(context.Background(), filepath.Join(dir, "run"), experiment.Observer{}); err != nil {
		return err
	}
	defer runtime.KeepAlive(kept)
	if err := errors.Join(wait("ended"), bench.Close()); err != nil {
		return err
	}
	return wait("closed")
}

// keptUntilExit is what the server's process holds until it exits, so that a search has to find it.
func keptUntilExit(dir string) []byte {
	sum := sha256.Sum256([]byte(dir))
	return sum[:]
}

// ownFiles are a device's, and 0 the server's test set.
func ownFiles(dir string, index int) []string {
	part := "train"
	if index == 0 {
		part = "test"
	}
	return []string{
		fmt.Sprintf("task.%s_images=%s", part, filepath.Join(dir, fmt.Sprint("images-", index))),
		fmt.Sprintf("task.%s_labels=%s", part, filepath.Join(dir, fmt.Sprint("labels-", index))),
	}
}

// writeOwn writes images of noise, and returns their bytes.
func writeOwn(dir string, index int) (pixels []byte, err error) {
	rnd := rand.New(rand.NewPCG(uint64(index), 5))
	head := func(dims ...uint32) []byte {
		b := []byte{0, 0, 8, byte(len(dims))}
		for _, d := range dims {
			b = binary.BigEndian.AppendUint32(b, d)
		}
		return b
	}
	labels := head(scannedImages)
	for i := range scannedImages {
		labels = append(labels, byte(i%2))
	}
	for range scannedImages * 28 * 28 {
		pixels = append(pixels, byte(1+rnd.IntN(255)))
	}
	return pixels, errors.Join(
		os.WriteFile(filepath.Join(dir, fmt.Sprint("images-", index)), append(head(scannedImages, 28, 28), pixels...), 0o600),
		os.WriteFile(filepath.Join(dir, fmt.Sprint("labels-", index)), labels, 0o600))
}

// child is one of them, as the test sees it.
type child struct {
	*exec.Cmd
	in    io.Writer
	lines chan string
}

func startChild(t *testing.T, host, dir string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1"), lines: make(chan string, 1000)}
	c.Env, c.Stderr = append(os.Environ(), childHost+"="+host, childDir+"="+dir), os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	c.in = in
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	return c
}

// reaches waits for a line that begins so, and returns the rest.
func (c *child) reaches(t *testing.T, where string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				t.Fatalf("a host has ended before %q", where)
			}
			if rest, found := strings.CutPrefix(line, where); found {
				return strings.TrimSpace(rest)
			}
		case <-deadline:
			t.Fatalf("a host does not reach %q", where)
		}
	}
}

func (c *child) goOn(t *testing.T) {
	t.Helper()
	_, err := fmt.Fprintln(c.in)
	must(t, err)
}

// finds returns the names of what is in the process's memory.
func (c *child) finds(t *testing.T, needles *secrettest.Needles) []string {
	t.Helper()
	found, err := needles.FindIn(strconv.Itoa(c.Process.Pid))
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the memory of a child cannot be read here: %v", err)
	}
	must(t, err)
	return secrettest.Names(found)
}

// The server's process never has a device's seed, key or image in its memory: not while the
// run goes on, not at its end, not behind it. The same search finds them where they are.
// Longer than most because it is one history of a few processes.
func TestMemoryOfTheServer(t *testing.T) {
	if host := os.Getenv(childHost); host != "" {
		if err := asHost(host, os.Getenv(childDir)); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	folder, err := identity.Create(filepath.Join(dir, "bench"), identity.Options{Devices: scannedDevices, URL: "tls://" + l.Addr().String()})
	must(t, err)
	c, err := experiment.Load("../../hw-configs/hosts.toml", append(ownFiles(dir, 0), "task.dataset=idx", "task.fallback=", "task.train_images=not/here", "task.train_labels=nor/this",
		"encryption.parameter_set=lean-2048", "encryption.delta_max=4", "optimizer.batch_size=16",
		fmt.Sprintf("devices.count=%d", scannedDevices), fmt.Sprintf("optimizer.rounds=%d", scannedRounds))...)
	must(t, err)
	text, err := c.Encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "config.toml"), text, 0o644))
	_, err = writeOwn(dir, 0)
	must(t, err)
	pixels := map[int][]byte{}
	for i := 1; i <= scannedDevices; i++ {
		pixels[i], err = writeOwn(dir, i)
		must(t, err)
	}

	server := startChild(t, "server", dir)
	var needles secrettest.Needles
	var devices []*child
	want := map[int][]string{}
	for i := 1; i <= scannedDevices; i++ {
		d := startChild(t, fmt.Sprint(i), dir)
		devices = append(devices, d)
		seed, err := hex.DecodeString(d.reaches(t, "seed"))
		must(t, err)
		want[i] = addSecrets(t, &needles, dir, i, c, seed, pixels[i])
	}
	id, err := identity.Load(folder.IdentityPath(identity.Server, 0))
	must(t, err)
	const own, kept = "own secret", "what it keeps"
	needles.Add(own, id.Secret())
	needles.Add(kept, keptUntilExit(dir))

	for i, d := range devices {
		d.reaches(t, "holding")
		if got := d.finds(t, &needles); !slices.Equal(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s == own || strings.HasSuffix(s, "bytes") }), want[i+1]) {
			t.Errorf("device %d holds %v; expected are %v", i+1, got, want[i+1])
		}
	}
	look := func(when string, want ...string) {
		if got := server.finds(t, &needles); !slices.Equal(got, want) {
			t.Errorf("%s: in the server's memory are %v; expected are %v", when, got, want)
		}
	}
	look("in the last round", own, kept)
	for _, d := range devices {
		d.goOn(t)
	}
	server.reaches(t, "ended")
	look("at the end", kept)
	server.goOn(t)
	server.reaches(t, "closed")
	look("once all is closed", kept)
	server.goOn(t)
	for _, c := range append(devices, server) {
		for range c.lines {
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// addSecrets adds what only a device should have, and returns what its process surely has.
func addSecrets(t *testing.T, needles *secrettest.Needles, dir string, i int, c experiment.Config, seed, pixels []byte) (held []string) {
	t.Helper()
	add := func(what string, secret []byte) {
		name := fmt.Sprintf("device %d: %s", i, what)
		needles.Add(name, secret)
		if !strings.HasSuffix(what, "bytes") {
			held = append(held, name)
		}
	}
	add("seed", seed)
	common, err := experiment.Lab{}.Common(c, "")
	must(t, err)
	root := keystream.Seed(seed)
	epoch := root.DeriveSecret("key epoch", 0)
	s := make([]int8, common.Context.Params.N)
	common.Context.Params.Secret.Sample(s, epoch.DeriveStream("s and e"))
	pattern := make([]byte, 64)
	for k := range pattern {
		pattern[k] = byte(s[k])
	}
	add("s", pattern)
	with, err := c.Encode()
	must(t, err)
	own, err := experiment.Lab{}.Parse("the run's", with, ownFiles(dir, i))
	must(t, err)
	shard, err := experiment.Lab{}.LoadShard(own, i-1, true)
	must(t, err)
	for _, row := range []int{0, 7, scannedImages - 1} {
		var values []byte
		for _, x := range shard.Train.Row(row)[400:416] {
			values = binary.LittleEndian.AppendUint64(values, math.Float64bits(x))
		}
		add(fmt.Sprintf("image %d", row), values)
		add(fmt.Sprintf("image %d, its bytes", row), pixels[row*28*28+400:][:64])
	}
	slices.Sort(held)
	return held
}
