package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/radio/intake"
)

// sendsOnce reports whether a resumed run must not send again what it has sent. With
// keys from the system's generator it would answer for the same Delta f under other
// keys and other gains, from which the server learns it. Over radios no round is ever
// received as it was, so that devices would refuse. Elsewhere a round that is repeated
// is the same to the bit.
func sendsOnce(c config.Config) bool {
	return c.System().Encrypts && (systemKeys(c) || c.OverRadios())
}

// systemKeys reports whether secrets come from the system's generator.
func systemKeys(c config.Config) bool { return c.Encryption.Randomness == "system" }

// remembered is an aggregator that sends no round twice: it gives what earlier
// processes received, and skips what they may have sent and did not receive.
type remembered struct {
	learner.Aggregator                       // sends the other rounds
	lastRow            int                   // the last round that metrics.csv has
	until              int                   // the last round that is not sent
	rows               map[int]runfolder.Row // received after the checkpoint
	values             map[int][]float64     // M of every direction, if there are several
	messages           *runfolder.Messages   // keeps them; nil for one direction
	sync               bool                  // brings them to disk

	recalled bool // the last round was
}

// Truth returns what is known of the last round; of a recalled one nothing is.
func (r *remembered) Truth() aggregate.Truth {
	s, known := r.Aggregator.(learner.Simulated)
	if r.recalled || !known {
		return aggregate.Truth{}
	}
	return s.Truth()
}

// Aggregate carries round k: learner.Aggregator.
func (r *remembered) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	if r.recalled = k <= r.until; r.recalled {
		return r.recall(k), nil
	}
	out, err := r.Aggregator.Aggregate(ctx, k, delta)
	if err != nil || out.Skipped || r.messages == nil {
		return out, err
	}
	return out, r.keep(k, out.M)
}

// recall returns a round as it was, with what training needs of it. A round that is not
// known counts as skipped, in no attempt.
func (r *remembered) recall(k int) aggregate.Outcome {
	row, received := r.rows[k]
	if !received || row.Skipped {
		return aggregate.Outcome{Attempts: row.Attempts, Skipped: true}
	}
	values := []float64{row.M}
	if r.messages != nil {
		values = r.values[k]
	}
	return aggregate.Outcome{M: values, Attempts: row.Attempts}
}

// keep writes down M of every direction, before metrics.csv says that there is one.
func (r *remembered) keep(k int, values []float64) error {
	if err := r.messages.Add(k, values); err != nil || !r.sync {
		return err
	}
	return r.messages.Sync()
}

// remember makes the experiment's memory of earlier rounds, from a run folder whose
// checkpoint is from, or which is new if that is nil.
func (s *Experiment) remember(from *runfolder.Checkpoint, rows []runfolder.Row) (err error) {
	r := &remembered{sync: systemKeys(s.Config) || s.fleet != nil, rows: map[int]runfolder.Row{}}
	s.remembered = r
	if p := s.Config.Optimizer.PackedDirections; p > 1 {
		if r.messages, r.values, err = s.folder.OpenMessages(s.Config.Optimizer.Rounds, p); err != nil {
			return intake.PathError(err)
		}
	}
	if from == nil {
		return nil
	}
	r.lastRow = from.Round
	for _, row := range rows {
		if row.Round <= from.Round {
			continue
		}
		if err := r.check(row); err != nil {
			return intake.UserError(fmt.Errorf("%s: %w", s.folder.Path(), err))
		}
		r.rows[row.Round], r.lastRow = row, row.Round
	}
	r.until = r.lastRow
	return nil
}

// check refuses a line behind the checkpoint that contradicts itself, and a round whose
// directions are not those of metrics.csv.
func (r *remembered) check(row runfolder.Row) error {
	if want := row.M - row.MIdeal; !row.Skipped && !sameNumber(row.Eps, want) {
		return fmt.Errorf("%s has eps = %v in round %d, but m - m_ideal is %v: the file has been changed or damaged, so the run cannot be resumed", runfolder.MetricsName, row.Eps, row.Round, want)
	}
	if r.messages == nil || row.Skipped {
		return nil
	}
	if v := r.values[row.Round]; v == nil || v[0] != row.M {
		return fmt.Errorf("%s has another M of round %d than %s, or none: a round is not sent twice, so the run cannot be resumed", runfolder.MessagesName, row.Round, runfolder.MetricsName)
	}
	return nil
}

// sameNumber reports whether two numbers are equal or both missing.
func sameNumber(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// validationOf returns what a line says of samples that are held out; missing numbers where it
// says nothing.
func validationOf(r runfolder.Row) runfolder.ValidationRow {
	if r.Validation == nil {
		return runfolder.ValidationRow{Loss: math.NaN(), Accuracy: math.NaN()}
	}
	return *r.Validation
}

// checkRecalled refuses a line behind the checkpoint that says other than the same round
// did when it was stepped through again. The line after a damaged M is such a one.
func checkRecalled(now, line runfolder.Row) error {
	for _, x := range []struct {
		column    string
		now, line float64
	}{
		{"train_loss", now.TrainLoss, line.TrainLoss}, {"test_accuracy", now.TestAccuracy, line.TestAccuracy},
		{"eta", now.Eta, line.Eta}, {"gamma", now.Gamma, line.Gamma},
		{"validation_loss", validationOf(now).Loss, validationOf(line).Loss}, {"validation_accuracy", validationOf(now).Accuracy, validationOf(line).Accuracy},
	} {
		if !sameNumber(x.now, x.line) {
			return fmt.Errorf("%s has %s = %v in round %d, but the lines before give %v: the file has been changed or damaged, so the run cannot be resumed", runfolder.MetricsName, x.column, x.line, line.Round, x.now)
		}
	}
	return nil
}

// checkJournal refuses a journal of which answers are missing. Devices would answer
// again or, with keys from a seed, the record would say less than was given.
func (s *Experiment) checkJournal(rows []runfolder.Row) error {
	path := filepath.Join(s.folder.Path(), JournalName)
	for _, row := range rows {
		for i := range s.Config.Devices.Count {
			if !row.Skipped && !s.journal.HasAnswered(i, uint32(row.Round)) {
				return intake.UserError(fmt.Errorf("%s: no decryption share of device %d in round %d, which %s has: the journal was cut or put back, and devices might answer twice; start a new run", path, i+1, row.Round, runfolder.MetricsName))
			}
		}
	}
	return nil
}

// checkEpoch refuses a journal that lacks the checkpoint's key epoch. Then it sets the
// rounds that may have been sent although metrics.csv does not have them: those of which
// there is an answer, and the round after the last unless the journal says that the
// process ended in order.
func (s *Experiment) checkEpoch(from *runfolder.Checkpoint) error {
	path, j := filepath.Join(s.folder.Path(), JournalName), s.journal
	if systemKeys(s.Config) && j.NextEpoch() <= from.KeyEpoch {
		return intake.UserError(fmt.Errorf("%s: no key epoch %d, in which the checkpoint was written: the journal was cut or put back, and devices might answer twice; start a new run", path, from.KeyEpoch))
	}
	r := s.remembered
	if !j.Settled() {
		r.until++
	}
	if last, any := j.LastRound(); any {
		r.until = max(r.until, int(last))
	}
	r.until = min(r.until, s.Config.Optimizer.Rounds)
	return nil
}

// requireJournal refuses to go on without the record of shares, and with one that is
// longer than the run's can be: it would all be read.
func (s *Experiment) requireJournal(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return intake.UserError(fmt.Errorf("%s is missing: without the record of decryption shares devices might answer twice; start a new run", path))
	}
	if err != nil {
		return intake.PathError(fmt.Errorf("looking at the record of decryption shares: %w", err))
	}
	most := journalRecordBytes * (int64(s.Config.Devices.Count)*int64(s.Config.Optimizer.Rounds) + maxSittings)
	if size := info.Size(); size > most || !info.Mode().IsRegular() {
		return intake.UserError(fmt.Errorf("%s has %d bytes; allowed is a regular file of at most %d bytes, a share of each of the %d devices in each of the %d rounds", path, size, most, s.Config.Devices.Count, s.Config.Optimizer.Rounds))
	}
	return nil
}

// journalRecordBytes is no less than a record of the journal takes, and maxSittings no less
// than how often a run is begun and resumed.
const (
	journalRecordBytes = 64
	maxSittings        = 1 << 16
)

// openJournal opens the record of decryption shares and returns the key epoch of the
// first round that is sent, and that round. Keys from a seed are those of before.
// Keys from the system died with the process that held them: a new epoch begins.
func (s *Experiment) openJournal(from *runfolder.Checkpoint) (epoch uint32, first int, err error) {
	path := filepath.Join(s.folder.Path(), JournalName)
	if from != nil {
		if err := s.requireJournal(path); err != nil {
			return 0, 0, err
		}
	}
	s.journal, err = xmkckks.OpenJournal(path, xmkckks.JournalConfig{Limit: setup.SharesPerKey(s.Config), System: systemKeys(s.Config)})
	if err != nil {
		return 0, 0, intake.PathError(err)
	}
	first = 1
	var rows []runfolder.Row
	if from != nil {
		first = from.Round + 1
		if rows, err = runfolder.ReadMetrics(filepath.Join(s.folder.Path(), runfolder.MetricsName), s.Config.Optimizer.Rounds); err != nil {
			return 0, 0, intake.PathError(err)
		}
		if err := s.checkJournal(rows); err != nil {
			return 0, 0, err
		}
	}
	if sendsOnce(s.Config) {
		if err := s.remember(from, rows); err != nil {
			return 0, 0, err
		}
		if from != nil {
			if err := s.checkEpoch(from); err != nil {
				return 0, 0, err
			}
		}
		first = s.remembered.until + 1
	}
	if systemKeys(s.Config) {
		s.keyEpoch, err = s.journal.Begin()
		return s.keyEpoch, first, err
	}
	if e := s.Config.Encryption.KeyEpochRounds; e > 0 {
		epoch = uint32((first - 1) / e)
	}
	return epoch, first, nil
}

// recall takes the trainer from the checkpoint through the rounds that metrics.csv has,
// and saves where it then is, before anything is sent.
func (s *Experiment) recall(ctx context.Context, from *runfolder.Checkpoint) error {
	clipped := from.Clipped
	for range s.remembered.lastRow - from.Round {
		record, err := s.Step(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return ErrInterrupted
		}
		if err != nil {
			return err
		}
		s.held.after(record, func() []float64 { return s.Trainer.State().Theta })
		if s.fleet != nil {
			if err := s.fleet.keep(); err != nil {
				return err
			}
		}
		line, now := s.remembered.rows[record.Round], row(record)
		if slices.Contains(s.formerEnds, record.Round) && !record.Evaluated {
			now.TestAccuracy, now.Validation = line.TestAccuracy, line.Validation // of a last round, which it no longer is
		}
		if err := checkRecalled(now, line); err != nil {
			return intake.UserError(fmt.Errorf("%s: %w", s.folder.Path(), err))
		}
		clipped += line.Clipped
	}
	state := s.Trainer.State()
	state.Clipped = clipped
	if err := s.Trainer.Restore(state); err != nil {
		return intake.UserError(err)
	}
	return s.checkpoint()
}
