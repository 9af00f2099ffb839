package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// systemArgs is a small run with keys from the system's generator, key epochs, and
// attempts that fail before the shares and after them.
var systemArgs = append(slices.Clone(small), "--set", "encryption.randomness=system", "--set", "devices.count=3",
	"--set", "encryption.parameter_set=lean-2048", "--set", "encryption.key_epoch_rounds=11", "--set", "optimizer.rounds=200",
	"--set", "channel.drift=within-ciphertext", "--set", "channel.drift_std=0.1", "--set", "channel.drift_probability=0.4", "--set", "optimizer.clip=0.02", "--set", "encryption.delta_max=0.01")

// answersOf counts a journal's shares by device and round.
func answersOf(t *testing.T, dir string) map[[2]uint32]int {
	t.Helper()
	shares := map[[2]uint32]int{}
	for _, r := range journalRecords(t, dir) {
		if binary.LittleEndian.Uint32([]byte(r)) == 1 {
			shares[[2]uint32{binary.LittleEndian.Uint32([]byte(r[4:])), binary.LittleEndian.Uint32([]byte(r[12:]))}]++
		}
	}
	return shares
}

// checkOnce wants that no device has answered twice in a round, that all have answered
// in every round of which there is an M, and that rows are as they were before.
func checkOnce(t *testing.T, dir string, before []byte) {
	t.Helper()
	now := experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	if !bytes.HasPrefix(now, before[:bytes.LastIndexByte(before, '\n')+1]) {
		t.Errorf("lines of metrics.csv have changed from\n%s\nto\n%s", before, now)
	}
	shares := answersOf(t, dir)
	for key, n := range shares {
		if n != 1 {
			t.Errorf("device %d has answered round %d %d times", key[0]+1, key[1], n)
		}
	}
	if !bytes.HasSuffix(now, []byte("\n")) {
		return // it was killed in the middle of a line
	}
	for _, r := range metricsOf(t, dir) {
		for i := range uint32(3) {
			if !r.Skipped && shares[[2]uint32{i, uint32(r.Round)}] != 1 {
				t.Errorf("device %d has not answered round %d, which has an M", i+1, r.Round)
			}
		}
	}
}

// killedBy is killed for any file of the folder.
func killedBy(t *testing.T, file, dir string, at int, args ...string) {
	t.Helper()
	t.Setenv(killFile, file)
	killed(t, dir, int64(at), args...)
}

// Keys from the system, killed at random moments, between rounds and within them, and
// resumed: no device answers a round twice, what was received stays as it is, and the
// run ends. That its model is the one that the messages make, a resume from the first
// checkpoint shows, which steps through all of them again.
// Longer, or of more branches, than most because it is one history, of which each step goes on from the last.
func TestSystemKeysSendNothingTwice(t *testing.T) {
	for _, directions := range []int{1, 3} {
		t.Run(strconv.Itoa(directions), func(t *testing.T) {
			args := append(slices.Clone(systemArgs), "--set", "optimizer.packed_directions="+strconv.Itoa(directions))
			dir := filepath.Join(t.TempDir(), "killed")
			rnd := rand.New(rand.NewPCG(11, uint64(directions)))
			var first, before []byte
			for k := range 6 {
				begin := []string{"run", "--resume", dir}
				if k == 0 {
					begin = append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)
				}
				// About 85 bytes of metrics.csv, or 120 of the journal, are a round.
				if file, at := runfolder.MetricsName, len(before)+200+rnd.IntN(300); k%2 == 0 {
					killedBy(t, file, dir, at, begin...)
				} else {
					file, at = experiment.JournalName, len(experimenttest.ReadFile(t, dir, experiment.JournalName))+200+rnd.IntN(500)
					killedBy(t, file, dir, at, begin...)
				}
				checkOnce(t, dir, before)
				before = experimenttest.ReadFile(t, dir, runfolder.MetricsName)
				if k == 0 {
					first = experimenttest.ReadFile(t, dir, runfolder.CheckpointName)
				}
			}
			mustRun(t, "run", "--resume", dir)
			checkOnce(t, dir, before)
			rows := metricsOf(t, dir)
			skipped := 0
			for k, r := range rows {
				if r.Round != k+1 {
					t.Errorf("line %d is of round %d", k+2, r.Round)
				}
				if r.Skipped && r.Attempts == 0 {
					skipped++
				}
			}
			s := summaryOf(t, dir)
			if len(rows) != 200 || s.RoundsCompleted != 200 || skipped == 0 || skipped > 6 || s.KeyEpochs < 7 || s.RoundsRepeated == 0 || s.MessagesClipped == 0 {
				t.Errorf("%d rows, %d rounds, %d skipped by resumes, %d repeated, %d key epochs, %d clipped", len(rows), s.RoundsCompleted, skipped, s.RoundsRepeated, s.KeyEpochs, s.MessagesClipped)
			}
			t.Logf("%d rounds of 200 skipped by 6 kills, %d in all", skipped, s.RoundsSkipped)

			final := experimenttest.ReadFile(t, dir, runfolder.CheckpointName)
			if err := os.WriteFile(filepath.Join(dir, runfolder.CheckpointName), first, 0o644); err != nil {
				t.Fatal(err)
			}
			mustRun(t, "run", "--resume", dir)
			again := summaryOf(t, dir)
			if again.RoundsSkipped != s.RoundsSkipped || again.RoundsRepeated != s.RoundsRepeated || again.MessagesClipped != s.MessagesClipped {
				t.Errorf("stepping through the messages counts %+v, the run %+v", again, s)
			}
			if a, b := theta(t, final), theta(t, experimenttest.ReadFile(t, dir, runfolder.CheckpointName)); !slices.Equal(a, b) {
				t.Error("stepping through the messages gives another model than the run")
			}
			if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName)[:len(before)], before) || len(metricsOf(t, dir)) != 200 {
				t.Error("stepping through the messages has changed metrics.csv")
			}
		})
	}
}

func theta(t *testing.T, checkpoint []byte) []float64 {
	t.Helper()
	c, err := runfolder.DecodeCheckpoint(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return c.Theta
}

// stopped runs until some rounds are in metrics.csv, and stops in order.
func stopped(t *testing.T, dir string, size int64, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go cancelAfter(filepath.Join(dir, runfolder.MetricsName), size, cancel)
	var out, errs bytes.Buffer
	if status := execute(ctx, args, &out, &errs); status != exitInterrupted {
		t.Fatalf("status %d: %s", status, errs.String())
	}
}

// A run that was stopped in order loses no round by being resumed; one that was killed
// loses the one in flight, answered or not.
func TestRoundInFlightIsSkipped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	many := append(slices.Clone(systemArgs), "--set", "optimizer.rounds=400")
	stopped(t, dir, 600, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, many...)...)
	last := len(metricsOf(t, dir))
	stopped(t, dir, int64(len(experimenttest.ReadFile(t, dir, runfolder.MetricsName))+300), "run", "--resume", dir)
	if r := metricsOf(t, dir)[last]; r.Round != last+1 || r.Attempts == 0 {
		t.Errorf("stopped in order after round %d, the next is %+v", last, r)
	}
	// As if the record of a share had not come to the disk.
	path := filepath.Join(dir, experiment.JournalName)
	data := experimenttest.ReadFile(t, path)
	last = len(metricsOf(t, dir))
	if err := os.WriteFile(path, data[:len(data)-40], 0o644); err != nil {
		t.Fatal(err)
	}
	stopped(t, dir, int64(len(experimenttest.ReadFile(t, dir, runfolder.MetricsName))+300), "run", "--resume", dir)
	if r := metricsOf(t, dir)[last]; r.Round != last+1 || r.Attempts != 0 || !r.Skipped {
		t.Errorf("without its mark, after round %d, the next is %+v", last, r)
	}
	if n := len(answersOf(t, dir)); answersOf(t, dir)[[2]uint32{0, uint32(last + 1)}] != 0 || n == 0 {
		t.Errorf("round %d was answered: it was to be skipped", last+1)
	}
}

// With keys from the system a journal that was deleted, cut, put back or is open
// elsewhere ends in one sentence and not in a share.
// Longer, or of more branches, than most because it is a table of what is done to a journal.
func TestJournalTamperedWith(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	many := append(slices.Clone(systemArgs), "--set", "optimizer.rounds=400", "--set", "channel.drift=none",
		"--set", "optimizer.checkpoint_every_rounds=400") // but for those at the begin and end of a process
	stopped(t, dir, 600, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, many...)...)
	path := filepath.Join(dir, experiment.JournalName)
	old, oldMetrics := experimenttest.ReadFile(t, path), experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	// The next process is killed while its fifth round, or one soon after, is in flight.
	killedBy(t, experiment.JournalName, dir, len(old)+40+4*3*40, "run", "--resume", dir)
	now, metrics := experimenttest.ReadFile(t, path), experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	whole := now[:8+(len(now)-8)/40*40]
	shares := slices.DeleteFunc(journalRecords(t, dir), func(r string) bool { return binary.LittleEndian.Uint32([]byte(r)) != 1 })

	refuses := func(name, says string) {
		t.Helper()
		status, _, errs := run(t, "run", "--resume", dir)
		line := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]
		if status != exitBadInput || !strings.Contains(line, says) || !strings.Contains(line, path) {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
		if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), metrics) {
			t.Errorf("%s: metrics.csv has changed", name)
		}
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refuses("deleted", "is missing")
	if _, err := os.Stat(path); err == nil {
		t.Error("a new journal was made")
	}
	write(nil)
	refuses("emptied", "no decryption share of device 1 in round 1, which metrics.csv has")
	write(old[:len(old)-40-40])
	refuses("cut", "no decryption share of device")
	write(old)
	refuses("put back", "no ")
	// The same where no round was received in the meantime, so that metrics.csv has no
	// more than it had: only the key epoch tells.
	if err := os.WriteFile(filepath.Join(dir, runfolder.MetricsName), oldMetrics, 0o644); err != nil {
		t.Fatal(err)
	}
	before := metrics
	metrics = oldMetrics
	refuses("put back, nothing received since", "no key epoch 1, in which the checkpoint was written")
	metrics = before
	if err := os.WriteFile(filepath.Join(dir, runfolder.MetricsName), metrics, 0o644); err != nil {
		t.Fatal(err)
	}
	write(whole)
	j, err := xmkckks.OpenJournal(path, xmkckks.JournalConfig{Limit: 1, System: true})
	if err != nil {
		t.Fatal(err)
	}
	refuses("open elsewhere", "in use by another process")
	// What a killed process leaves.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	write(whole)
	// Lines of metrics.csv that are gone are rounds that are skipped, as they were sent.
	metrics = oldMetrics
	if err := os.WriteFile(filepath.Join(dir, runfolder.MetricsName), metrics, 0o644); err != nil {
		t.Fatal(err)
	}
	stopped(t, dir, int64(len(before)+600), "run", "--resume", dir)
	last := 0
	for _, r := range shares {
		last = max(last, int(binary.LittleEndian.Uint32([]byte(r[12:]))))
	}
	rows, known := metricsOf(t, dir), bytes.Count(oldMetrics, []byte("\n"))-1
	if last <= known || len(rows) <= last {
		t.Fatalf("%d rounds were known, %d sent, and there are %d", known, last, len(rows))
	}
	for _, r := range rows[known:last] {
		if !r.Skipped || r.Attempts != 0 {
			t.Errorf("round %d was sent again: %+v", r.Round, r)
		}
	}
	after := answersOf(t, dir)
	for key, n := range after {
		if n != 1 {
			t.Errorf("device %d has answered round %d %d times", key[0]+1, key[1], n)
		}
	}
	if len(after) <= len(shares) {
		t.Error("the run did not go on")
	}
}
