package xmkckks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ringwave/crypto/lockfile"
)

func openJournal(t testing.TB, path string, cfg JournalConfig) *Journal {
	t.Helper()
	j, err := OpenJournal(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// die lets a journal go as a killed process does: nothing more is written.
func (j *Journal) die(t testing.TB) {
	t.Helper()
	j.closed = true
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// The journals of these tests: of keys from the system, and from a seed.
var (
	fromSystem = JournalConfig{Limit: 100, System: true}
	fromSeed   = JournalConfig{Limit: 100}
)

// journalOf makes a journal with the given shares, of a process that was killed,
// and returns its path.
func journalOf(t testing.TB, records ...ShareRecord) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path, fromSeed)
	for _, r := range records {
		if err := j.Answer(r); err != nil {
			t.Fatal(err)
		}
	}
	j.die(t)
	return path
}

// childJournal names the journal that a killed child writes.
const childJournal = "RINGWAVE_TEST_CHILD_JOURNAL"

const childShares = 5

// journalDevice makes the device of the child, and gives what it answers with in
// a round.
func journalDevice(t testing.TB, g Guard) (share func(round uint32) error) {
	c := testContext(t, smallSet(t, 16), Short, 1)
	d := testDevice(t, c, 0, g)
	key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
	c.SetKey(key, d.PublicKey())
	return func(round uint32) error {
		if err := d.Prepare(round, 0); err != nil {
			return err
		}
		if _, err := d.Encrypt(key, []float64{0.5}); err != nil {
			return err
		}
		_, sent := d.Ciphertext()
		c.SetC1(c1, sent)
		_, err := d.Share(c1)
		return err
	}
}

// A process that is killed the moment its share is out has it on record.
func TestJournalSurvivesKill(t *testing.T) {
	if path := os.Getenv(childJournal); path != "" {
		answerAndWait(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "journal")
	cmd := exec.Command(os.Args[0], "-test.run=^TestJournalSurvivesKill$")
	cmd.Env = append(os.Environ(), childJournal+"="+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if killed := cmd.Process.Kill(); killed != nil {
		t.Fatal(killed)
	}
	var exit *exec.ExitError
	if waited := cmd.Wait(); !errors.As(waited, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, not by the kill", waited)
	}
	if err != nil || line != "answered\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}

	j := openJournal(t, path, JournalConfig{Limit: childShares + 1, System: true})
	if j.Settled() {
		t.Error("the journal of a killed process counts as closed")
	}
	if got := j.Answered(0); got != childShares {
		t.Fatalf("the journal counts %d shares, the child gave %d", got, childShares)
	}
	if got := j.NextEpoch(); got != 1 {
		t.Errorf("the next key epoch is %d, expected 1", got)
	}
	// The same device with the same seed, begun anew.
	for round := range uint32(childShares) {
		refused(t, journalDevice(t, j)(round), ErrAnswered, fmt.Sprintf("already answered round %d", round))
	}
	again := journalDevice(t, j)
	allowed(t, again(childShares))
	refused(t, again(childShares+1), ErrExhausted, "start a new key epoch")
}

// answerAndWait is the child: it gives its shares, says so, and waits for the
// kill, or for the parent's end.
func answerAndWait(t *testing.T, path string) {
	j, err := OpenJournal(path, JournalConfig{Limit: childShares + 1, System: true})
	if err != nil {
		t.Fatal(err)
	}
	share := journalDevice(t, j)
	for round := range uint32(childShares) {
		if err := share(round); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("answered")
	io.Copy(io.Discard, os.Stdin)
}

// A record that was cut off anywhere is dropped, and the journal goes on after
// the last whole one.
func TestJournalDropsTornRecord(t *testing.T) {
	path := journalOf(t, share(0, 0, 0, 0, 1), share(0, 0, 1, 0, 2))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for length := range len(data) + 1 {
		torn := filepath.Join(t.TempDir(), "torn")
		if err := os.WriteFile(torn, data[:length], 0o644); err != nil {
			t.Fatal(err)
		}
		whole := max(0, length-len(journalMagic)) / recordSize
		j := openJournal(t, torn, fromSystem)
		if got := j.Answered(0); got != whole {
			t.Fatalf("of %d bytes %d shares are counted, expected %d", length, got, whole)
		}
		allowed(t, j.Answer(share(0, 0, 7, 0, 9)))
		j.die(t)
		j = openJournal(t, torn, fromSystem)
		if got := j.Answered(0); got != whole+1 {
			t.Fatalf("after %d bytes and one share more %d are counted, expected %d", length, got, whole+1)
		}
		refused(t, j.Answer(share(0, 0, 7, 0, 10)), ErrAnswered, "already answered round 7")
		j.Close()
	}
}

func TestJournalRefusesDamage(t *testing.T) {
	path := journalOf(t, share(0, 0, 0, 0, 1), share(0, 0, 1, 0, 2), share(0, 0, 2, 0, 3))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		damaged := slices.Clone(data)
		damaged[i] ^= 0x10
		bad := filepath.Join(t.TempDir(), "damaged")
		if err := os.WriteFile(bad, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenJournal(bad, fromSystem)
		want := "does not begin with RWSHARE3"
		if i >= len(journalMagic) {
			at := len(journalMagic) + (i-len(journalMagic))/recordSize*recordSize
			want = fmt.Sprintf("the record at byte %d is damaged", at)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), bad) {
			t.Fatalf("damage at byte %d: %v", i, err)
		}
		// What cannot be read is left as it is.
		if after, _ := os.ReadFile(bad); !bytes.Equal(after, damaged) {
			t.Fatalf("damage at byte %d: the file was changed", i)
		}
	}
	for _, text := range []string{"x", "RWSHARE1", "a letter to someone else\n"} {
		foreign := filepath.Join(t.TempDir(), "foreign")
		if err := os.WriteFile(foreign, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(foreign, fromSeed); err == nil || !strings.Contains(err.Error(), "not a journal of decryption shares") {
			t.Errorf("a file %q: %v", text, err)
		}
		if after, _ := os.ReadFile(foreign); string(after) != text {
			t.Errorf("the foreign file %q was changed to %q", text, after)
		}
	}
	if _, err := OpenJournal(t.TempDir(), fromSeed); err == nil {
		t.Error("a directory was opened as a journal")
	}
}

// A share that cannot be written down is not given.
func TestJournalWriteErrorGivesNoShare(t *testing.T) {
	check := func(t *testing.T, j *Journal) {
		err := journalDevice(t, j)(0)
		if err == nil || !strings.Contains(err.Error(), "recording a decryption share") {
			t.Errorf("a share was given, or refused for another reason: %v", err)
		}
		if got := j.Answered(0); got != 0 {
			t.Errorf("%d shares are counted that were not given", got)
		}
	}
	t.Run("closed file", func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "journal"), fromSeed)
		j.Close()
		check(t, j)
	})
	t.Run("full disk", func(t *testing.T) {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("this system has no /dev/full: ", err)
		}
		defer f.Close()
		check(t, &Journal{ledger: NewLedger(10), file: f, path: "/dev/full"})
	})
}

// disk is a journal's file that counts what was brought to disk.
type disk struct {
	journalFile
	written, synced int
	fails           error // of the next Sync
}

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	d.written++
	return d.journalFile.WriteAt(b, at)
}

func (d *disk) Sync() error {
	if d.fails != nil {
		return d.fails
	}
	d.synced = d.written
	return d.journalFile.Sync()
}

// Where keys come from the system a share leaves only once its record is on the
// disk, and after a flush that failed none leaves at all; seeds are not flushed.
func TestJournalSyncsBeforeTheShare(t *testing.T) {
	for _, cfg := range []JournalConfig{fromSystem, fromSeed} {
		path := filepath.Join(t.TempDir(), "journal")
		j := openJournal(t, path, cfg)
		d := &disk{journalFile: j.file}
		j.file = d
		answer := journalDevice(t, j)
		for round := range uint32(3) {
			if err := answer(round); err != nil {
				t.Fatal(err)
			}
			// The share is out, and nothing was written for it that is not synced.
			if want := map[bool]int{true: int(round) + 1}[cfg.System]; d.synced != want || d.written != int(round)+1 {
				t.Errorf("System = %v, round %d: %d records written and %d synced, want %d", cfg.System, round, d.written, d.synced, want)
			}
		}
		if !cfg.System {
			if err := j.Sync(); err != nil || d.synced != 3 {
				t.Errorf("Sync brought %d of 3 records to disk: %v", d.synced, err)
			}
			d.fails = errors.New("no disk")
			if err := j.Sync(); !errors.Is(err, d.fails) || !strings.Contains(err.Error(), path) {
				t.Errorf("Sync with no disk: %v", err)
			}
			continue
		}
		d.fails = errors.New("no disk")
		if err := answer(3); !errors.Is(err, d.fails) {
			t.Errorf("a share was given without its record: %v", err)
		}
		// What is on the disk after that, nobody knows.
		d.fails = nil
		if err := answer(4); err == nil || !strings.Contains(err.Error(), "no disk") {
			t.Errorf("a share was given after a flush that failed: %v", err)
		}
		if err := j.Close(); err == nil {
			t.Error("a journal that could not be written was closed as if it could")
		}
		j = openJournal(t, path, cfg)
		if j.Settled() || j.NextEpoch() != 1 {
			t.Errorf("settled %v, next epoch %d", j.Settled(), j.NextEpoch())
		}
		refused(t, journalDevice(t, j)(3), ErrAnswered, "already answered round 3")
	}
}

// A disk that was full in the middle of a record leaves a piece of it. The next
// record takes its place: behind it, the journal could not be read again.
func TestJournalGoesOnAfterTornWrite(t *testing.T) {
	path := journalOf(t, share(0, 0, 0, 0, 1))
	j := openJournal(t, path, fromSeed)
	// The piece that such a write leaves, put there by another hand.
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Write(make([]byte, recordSize/2)); err != nil {
		t.Fatal(err)
	}
	other.Close()
	// What write(2) does to the offset when it writes a part.
	if _, err := j.file.(*lockfile.File).Seek(int64(recordSize/2), io.SeekCurrent); err != nil {
		t.Fatal(err)
	}
	allowed(t, j.Answer(share(0, 0, 1, 0, 2)))
	j.Close()
	if got := openJournal(t, path, fromSeed).Answered(0); got != 2 {
		t.Errorf("%d shares are counted, expected 2", got)
	}
}

// sixRounds returns the shares of two devices in rounds 0 to 5, round 4 at its second attempt,
// with a key epoch of three.
func sixRounds() (records []ShareRecord) {
	for round := range uint32(6) {
		for device := range uint32(2) {
			r := share(device, round/3, round, 0, byte(10*round+device))
			if round == 4 {
				r.Attempt = 1
			}
			records = append(records, r)
		}
	}
	return records
}

// What an earlier process answered with keys from the seed, this one may answer
// once more, bit for bit, and nothing else: it gives what was given.
func TestJournalRepeatsOfSeeds(t *testing.T) {
	records := sixRounds()
	open := func(limit int) *Journal {
		return openJournal(t, journalOf(t, records...), JournalConfig{Limit: limit})
	}

	t.Run("once", func(t *testing.T) {
		j := open(4)
		size := fileSize(t, j.path)
		for _, r := range records[4:] { // as if a checkpoint stood behind round 1
			allowed(t, j.Answer(r))
			refused(t, j.Answer(r), ErrAnswered, fmt.Sprintf("already answered round %d", r.Round))
		}
		if got := j.Answered(0); got != 3 {
			t.Errorf("%d shares are counted after the repetition, expected 3", got)
		}
		if got := fileSize(t, j.path); got != size {
			t.Errorf("the repetition has grown the journal from %d to %d bytes", size, got)
		}
		// One more is the last that the key may give.
		allowed(t, j.Answer(share(0, 1, 6, 0, 60)))
		refused(t, j.Answer(share(0, 1, 7, 0, 70)), ErrExhausted, "4 shares")
	})
	t.Run("out of order", func(t *testing.T) {
		j := open(100)
		for k := len(records) - 1; k >= 0; k-- {
			allowed(t, j.Answer(records[k]))
		}
		refused(t, j.Answer(share(0, 1, 5, 0, 77)), ErrAnswered, "already answered round 5")
	})
	t.Run("not identical", func(t *testing.T) {
		j := open(100)
		refused(t, j.Answer(share(0, 1, 3, 0, 99)), ErrAnswered, "already answered round 3 (key epoch 1, attempt 0, c1 1e000000), and is asked again (key epoch 1, attempt 0, c1 63000000)")
		refused(t, j.Answer(share(0, 1, 4, 0, 40)), ErrAnswered, "already answered round 4")
		refused(t, j.Answer(share(0, 2, 3, 0, 30)), ErrAnswered, "already answered round 3")
		refused(t, j.Answer(share(1, 1, 3, 0, 30)), ErrAnswered, "already answered round 3")
		allowed(t, j.Answer(share(0, 1, 3, 0, 30)))
	})
	t.Run("same c1 under another label", func(t *testing.T) {
		j := open(100)
		refused(t, j.Answer(share(0, 1, 9, 0, 40)), ErrAnswered, "round 9 brings it again")
		// Another device's digests bind that device alone.
		allowed(t, j.Answer(share(0, 1, 9, 0, 41)))
	})
}

// What was answered counts and is remembered, by whichever process, and keys from the
// system are never those of before.
func TestJournalCountsAnswers(t *testing.T) {
	records := sixRounds()
	open := func(limit int) *Journal {
		return openJournal(t, journalOf(t, records...), JournalConfig{Limit: limit})
	}
	// What was answered counts, repeated or not: the flooding was made for so many
	// shares, not for so many in one process.
	t.Run("leaving out repetitions", func(t *testing.T) {
		j := open(4)
		allowed(t, j.Answer(share(0, 1, 6, 0, 60)))
		refused(t, j.Answer(share(0, 1, 7, 0, 70)), ErrExhausted, "4 shares")
		allowed(t, j.Answer(share(0, 1, 3, 0, 30)))
		refused(t, j.Answer(share(0, 1, 7, 0, 70)), ErrExhausted, "4 shares")
	})
	// What this process has answered is remembered as what an earlier one did.
	t.Run("own answers", func(t *testing.T) {
		j := open(100)
		allowed(t, j.Answer(share(0, 1, 6, 0, 60)))
		refused(t, j.Answer(share(0, 1, 6, 0, 60)), ErrAnswered, "already answered round 6")
		j.die(t)
		j = openJournal(t, j.path, fromSeed)
		refused(t, j.Answer(share(0, 1, 6, 0, 61)), ErrAnswered, "already answered round 6")
		allowed(t, j.Answer(share(0, 1, 6, 0, 60)))
	})
	// Keys from the system are never those of before.
	t.Run("not with keys from the system", func(t *testing.T) {
		j := openJournal(t, journalOf(t, records...), fromSystem)
		for _, r := range records {
			refused(t, j.Answer(r), ErrAnswered, fmt.Sprintf("already answered round %d", r.Round))
		}
		allowed(t, j.Answer(share(0, 2, 6, 0, 60)))
	})
}

// One process at a time has a journal, and that once.
func TestJournalIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path, fromSystem)
	allowed(t, j.Answer(share(0, 0, 0, 0, 1)))
	_, err := OpenJournal(path, fromSystem)
	if err == nil || !strings.Contains(err.Error(), path+" is in use by another process") {
		t.Errorf("a second open: %v", err)
	}
	allowed(t, j.Answer(share(0, 0, 1, 0, 2)))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	refused(t, openJournal(t, path, fromSystem).Answer(share(0, 5, 1, 0, 3)), ErrAnswered, "already answered round 1")
}

// A journal tells whether the process before closed it; any record voids that, and
// so does a piece of one.
func TestJournalSettled(t *testing.T) {
	for _, cfg := range []JournalConfig{fromSystem, fromSeed} {
		path := filepath.Join(t.TempDir(), "journal")
		reopen := func() *Journal { t.Helper(); return openJournal(t, path, cfg) }
		settled := func(j *Journal, want bool) {
			t.Helper()
			if j.Settled() != want {
				t.Errorf("System = %v: settled is %v, want %v", cfg.System, j.Settled(), want)
			}
		}
		j := reopen()
		settled(j, false)
		allowed(t, j.Answer(share(0, 0, 1, 0, 1)))
		j.Close()
		j = reopen()
		settled(j, true)
		// Nothing has happened: it is as it was, by a kill or not.
		size := fileSize(t, path)
		j.Close()
		if fileSize(t, path) != size {
			t.Error("closing it again has changed the journal")
		}
		j = reopen()
		j.die(t)
		j = reopen()
		settled(j, true)
		allowed(t, j.Answer(share(0, 0, 2, 0, 2)))
		settled(j, false)
		j.die(t)
		j = reopen()
		settled(j, false)
		j.Close()
		j = reopen()
		settled(j, true)
		if _, err := j.Begin(); err != nil {
			t.Fatal(err)
		}
		j.die(t)
		j = reopen()
		settled(j, false)
		j.Close()
		// A share may have left whose record was cut off to a piece by another hand.
		other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		other.Close()
		settled(reopen(), false)
	}
}

// A journal remembers which rounds have which devices' shares.
func TestJournalHasAnswered(t *testing.T) {
	path := journalOf(t, share(0, 0, 3, 0, 1), share(1, 0, 3, 0, 2), share(0, 0, 5, 1, 3))
	j := openJournal(t, path, fromSystem)
	for _, x := range []struct {
		device int
		round  uint32
		want   bool
	}{{0, 3, true}, {1, 3, true}, {0, 5, true}, {1, 5, false}, {0, 4, false}, {2, 3, false}} {
		if got := j.HasAnswered(x.device, x.round); got != x.want {
			t.Errorf("device %d, round %d: %v", x.device+1, x.round, got)
		}
	}
	if last, any := j.LastRound(); last != 5 || !any {
		t.Errorf("the last round is %d, %v", last, any)
	}
	if _, any := openJournal(t, journalOf(t), fromSystem).LastRound(); any {
		t.Error("an empty journal has a last round")
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The next key epoch is one that nobody has used: after a restart, and in the
// process itself.
func TestJournalNextEpoch(t *testing.T) {
	for _, x := range []struct {
		records []ShareRecord
		want    uint32
	}{
		{nil, 0},
		{[]ShareRecord{share(0, 0, 0, 0, 1)}, 1},
		{[]ShareRecord{share(0, 3, 0, 0, 1), share(1, 2, 0, 0, 1)}, 4},
	} {
		path := filepath.Join(t.TempDir(), "journal")
		j := openJournal(t, path, fromSystem)
		for _, r := range x.records {
			allowed(t, j.Answer(r))
		}
		if got := j.NextEpoch(); got != x.want {
			t.Errorf("after %v the next epoch is %d, expected %d", x.records, got, x.want)
		}
		j.die(t)
		// Every start begins one, whether it comes to a share or not.
		for start := range uint32(3) {
			j = openJournal(t, path, fromSystem)
			if got := j.NextEpoch(); got != x.want+start {
				t.Errorf("after %v and %d starts the next epoch is %d, expected %d", x.records, start, got, x.want+start)
			}
			if epoch, err := j.Begin(); err != nil || epoch != x.want+start {
				t.Errorf("after %v and %d starts epoch %d begins (%v), expected %d", x.records, start, epoch, err, x.want+start)
			}
			j.Close()
		}
	}
}

// Several devices of one process answer at once.
func TestJournalServesGoroutines(t *testing.T) {
	const devices, rounds = 8, 25
	path := journalOf(t)
	j := openJournal(t, path, JournalConfig{Limit: rounds, System: true})
	var wg sync.WaitGroup
	for i := range uint32(devices) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := range uint32(rounds) {
				if err := j.Answer(share(i, 0, k, 0, byte(k))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	j.Close()
	j = openJournal(t, path, fromSystem)
	for i := range devices {
		if got := j.Answered(i); got != rounds {
			t.Errorf("device %d: %d shares are counted, expected %d", i+1, got, rounds)
		}
	}
}

// Whatever a file holds, it is read as whole records or refused, and what is
// read is what stands there.
func FuzzJournal(f *testing.F) {
	data, err := os.ReadFile(journalOf(f, share(0, 0, 0, 0, 1), share(1, 2, 3, 4, 5)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(data[:3])
	f.Add([]byte("RWSHARE3"))
	f.Add([]byte("RWSHARE2"))
	damaged := slices.Clone(data)
	damaged[20] ^= 1
	f.Add(damaged)
	f.Fuzz(func(t *testing.T, data []byte) {
		records, whole, err := decodeJournal(data)
		if err != nil {
			if len(records) != 0 || whole != 0 {
				t.Fatalf("%d records and %d bytes beside the error %v", len(records), whole, err)
			}
			return
		}
		if rest := len(data) - whole; rest < 0 || rest >= recordSize {
			t.Fatalf("%d of %d bytes are whole", whole, len(data))
		}
		if whole == 0 || bytes.HasPrefix(data, []byte(earlierMagic)) {
			return
		}
		again := []byte(journalMagic)
		for _, r := range records {
			var b [recordSize]byte
			encodeRecord(&b, r)
			again = append(again, b[:]...)
		}
		if !bytes.Equal(again, data[:whole]) {
			t.Fatalf("%x was read as %x", data[:whole], again)
		}
	})
}

// A journal of an earlier program, whose digests were others, is read: rounds stay
// answered, and what a seed's keys have answered may be repeated in its attempt alone.
func TestEarlierJournal(t *testing.T) {
	path := journalOf(t, share(0, 0, 5, 1, 7))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte(earlierMagic), data[len(journalMagic):]...)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, path, fromSeed)
	refused(t, j.Answer(share(0, 0, 5, 2, 7)), ErrAnswered, "already answered round 5")
	refused(t, j.Answer(share(0, 0, 4, 0, 9)), ErrAnswered, "already answered")
	allowed(t, j.Answer(share(0, 0, 5, 1, 8)))
	refused(t, j.Answer(share(0, 0, 5, 1, 8)), ErrAnswered, "already answered round 5")
	allowed(t, j.Answer(share(0, 0, 6, 0, 7)))
	refused(t, j.Answer(share(0, 0, 7, 0, 7)), ErrAnswered, "already answered this c1")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(after, data[:len(data)-recordSize]) {
		t.Errorf("the file was changed: %v", err)
	}
	j = openJournal(t, path, JournalConfig{Limit: 100, System: true})
	refused(t, j.Answer(share(0, 0, 6, 0, 7)), ErrAnswered, "already answered round 6")
}
