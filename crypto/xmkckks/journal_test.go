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
)

func openJournal(t testing.TB, path string, limit int) *Journal {
	t.Helper()
	j, err := OpenJournal(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// journalOf makes a journal with the given shares and gives its path.
func journalOf(t testing.TB, records ...ShareRecord) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path, 100)
	for _, r := range records {
		if err := j.Answer(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
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
		if _, err := d.Encrypt(key, 0.5); err != nil {
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

	j := openJournal(t, path, childShares+1)
	if got := j.Answered(0); got != childShares {
		t.Fatalf("the journal counts %d shares, the child gave %d", got, childShares)
	}
	if got := j.NextEpoch(); got != 1 {
		t.Errorf("the next key epoch is %d, expected 1", got)
	}
	// The same device with the same seed, begun anew.
	for round := range uint32(childShares) {
		refused(t, journalDevice(t, j)(round), ErrAnswered, "already answered round 4")
	}
	again := journalDevice(t, j)
	allowed(t, again(childShares))
	refused(t, again(childShares+1), ErrExhausted, "start a new key epoch")
}

// answerAndWait is the child: it gives its shares, says so, and waits for the
// kill, or for the parent's end.
func answerAndWait(t *testing.T, path string) {
	j, err := OpenJournal(path, childShares+1)
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
		j := openJournal(t, torn, 100)
		if got := j.Answered(0); got != whole {
			t.Fatalf("of %d bytes %d shares are counted, expected %d", length, got, whole)
		}
		allowed(t, j.Answer(share(0, 0, 7, 0, 9)))
		j.Close()
		j = openJournal(t, torn, 100)
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
		_, err := OpenJournal(bad, 100)
		want := "does not begin with RWSHARE1"
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
	for _, text := range []string{"x", "RWSHARE2", "a letter to someone else\n"} {
		foreign := filepath.Join(t.TempDir(), "foreign")
		if err := os.WriteFile(foreign, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(foreign, 1); err == nil || !strings.Contains(err.Error(), "not a journal of decryption shares") {
			t.Errorf("a file %q: %v", text, err)
		}
		if after, _ := os.ReadFile(foreign); string(after) != text {
			t.Errorf("the foreign file %q was changed to %q", text, after)
		}
	}
	if _, err := OpenJournal(t.TempDir(), 1); err == nil {
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
		j := openJournal(t, filepath.Join(t.TempDir(), "journal"), 10)
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

// A disk that was full in the middle of a record leaves a piece of it. The next
// record takes its place: behind it, the journal could not be read again.
func TestJournalGoesOnAfterTornWrite(t *testing.T) {
	path := journalOf(t, share(0, 0, 0, 0, 1))
	j := openJournal(t, path, 10)
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
	if _, err := j.file.Seek(int64(recordSize/2), io.SeekCurrent); err != nil {
		t.Fatal(err)
	}
	allowed(t, j.Answer(share(0, 0, 1, 0, 2)))
	j.Close()
	if got := openJournal(t, path, 10).Answered(0); got != 2 {
		t.Errorf("%d shares are counted, expected 2", got)
	}
}

func TestJournalRewind(t *testing.T) {
	// Rounds 0 to 5, round 4 with two attempts, two devices.
	var records []ShareRecord
	for round := range uint32(6) {
		for device := range uint32(2) {
			records = append(records, share(device, 0, round, 0, byte(10*round+device)))
			if round == 4 {
				records = append(records, share(device, 0, round, 1, byte(10*round+device+5)))
			}
		}
	}
	open := func(limit int, round uint32) *Journal {
		j := openJournal(t, journalOf(t, records...), limit)
		j.Rewind(round)
		return j
	}

	t.Run("repeats once", func(t *testing.T) {
		j := open(7, 2)
		size := fileSize(t, j.path)
		refused(t, j.Answer(share(0, 0, 2, 0, 20)), ErrAnswered, "already answered round 2")
		for _, r := range records {
			if r.Round <= 2 || r.Device != 0 {
				continue
			}
			allowed(t, j.Answer(r))
			if j.Answer(r) == nil {
				t.Fatalf("%+v was repeated twice", r)
			}
		}
		if got := j.Answered(0); got != 7 {
			t.Errorf("%d attempts are counted after the repetition, expected 7", got)
		}
		if got := fileSize(t, j.path); got != size {
			t.Errorf("the repetition has grown the journal from %d to %d bytes", size, got)
		}
		// The seventh was the last that the key may answer.
		refused(t, j.Answer(share(0, 0, 6, 0, 60)), ErrExhausted, "7 attempts")
	})
	t.Run("another c1", func(t *testing.T) {
		j := open(100, 2)
		refused(t, j.Answer(share(0, 0, 3, 0, 99)), ErrAnswered, "answered another c1 in round 3, attempt 0")
		refused(t, j.Answer(share(0, 0, 5, 0, 30)), ErrAnswered, "answered another c1 in round 5")
		allowed(t, j.Answer(share(0, 0, 3, 0, 30)))
	})
	t.Run("same c1 under another label", func(t *testing.T) {
		j := open(100, 2)
		refused(t, j.Answer(share(0, 0, 9, 0, 40)), ErrAnswered, "answered this c1 in round 4")
		refused(t, j.Answer(share(0, 0, 9, 0, 10)), ErrAnswered, "round 9 brings it again")
		// Another device's digests bind that device alone.
		allowed(t, j.Answer(share(0, 0, 9, 0, 41)))
	})
	// What was answered and is not repeated counts all the same: the flooding was
	// made for so many answers, not for so many in one process.
	t.Run("leaving out repetitions", func(t *testing.T) {
		j := open(8, 2)
		allowed(t, j.Answer(share(0, 0, 6, 0, 60)))
		refused(t, j.Answer(share(0, 0, 7, 0, 70)), ErrExhausted, "8 attempts")
		// The repetitions themselves are free.
		allowed(t, j.Answer(share(0, 0, 3, 0, 30)))
		refused(t, j.Answer(share(0, 0, 7, 0, 70)), ErrExhausted, "8 attempts")
	})
	// A repetition out of order does not make a later attempt answerable anew.
	t.Run("repetition out of order", func(t *testing.T) {
		j := open(100, 2)
		allowed(t, j.Answer(share(0, 0, 5, 0, 50)))
		allowed(t, j.Answer(share(0, 0, 3, 0, 30)))
		refused(t, j.Answer(share(0, 0, 5, 0, 77)), ErrAnswered, "already answered round 5")
	})
	// Nor does an attempt that the first run did not make, and whose record
	// stands behind later ones in the file.
	t.Run("new attempt between repetitions", func(t *testing.T) {
		j := open(100, 2)
		allowed(t, j.Answer(share(0, 0, 3, 1, 77)))
		j.Close()
		j = openJournal(t, j.path, 100)
		refused(t, j.Answer(share(0, 0, 5, 0, 78)), ErrAnswered, "already answered round 5")
		refused(t, j.Answer(share(0, 0, 4, 2, 79)), ErrAnswered, "already answered round 5")
		allowed(t, j.Answer(share(0, 0, 6, 0, 80)))
	})
	// What this process has answered is remembered as what an earlier one did.
	t.Run("after own answers", func(t *testing.T) {
		j := openJournal(t, journalOf(t, records...), 100)
		allowed(t, j.Answer(share(0, 0, 6, 0, 60)))
		j.Rewind(2)
		refused(t, j.Answer(share(0, 0, 6, 0, 61)), ErrAnswered, "answered another c1 in round 6")
		allowed(t, j.Answer(share(0, 0, 6, 0, 60)))
	})
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestJournalNextEpoch(t *testing.T) {
	for _, x := range []struct {
		records []ShareRecord
		want    uint32
	}{
		{nil, 0},
		{[]ShareRecord{share(0, 0, 0, 0, 1)}, 1},
		{[]ShareRecord{share(0, 3, 0, 0, 1), share(1, 2, 0, 0, 1)}, 4},
	} {
		if got := openJournal(t, journalOf(t, x.records...), 10).NextEpoch(); got != x.want {
			t.Errorf("after %v the next epoch is %d, expected %d", x.records, got, x.want)
		}
	}
}

// Several devices of one process answer at once.
func TestJournalServesGoroutines(t *testing.T) {
	const devices, rounds = 8, 25
	path := journalOf(t)
	j := openJournal(t, path, rounds)
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
	j = openJournal(t, path, rounds)
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
		if whole == 0 {
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
