package paper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// Cell is one run of a report: all that its result is computed from beside the data.
type Cell struct {
	Config config.Config
	// Goal is the test accuracy at which it may end, GoalLoss the loss of the batches of
	// steadyRounds in a row; 0 for none. There is one of them at most.
	Goal, GoalLoss float64
	// Validate says that accuracies are those on samples held out of the training set,
	// and that the test set is not used.
	Validate bool
}

// MostBytes bounds the result of a run.
func (c Cell) MostBytes() int64 { return mostKept(c.Config.Optimizer.Rounds) }

// CellKey returns the key that a run has on the data that lab finds. Where it is that
// of another machine, both machines compute the same.
func CellKey(lab experiment.Lab, c Cell) (string, error) {
	data, err := dataIn(lab, c.Config)
	if err != nil {
		return "", err
	}
	return c.key(data)
}

// ComputeCell makes a run and returns its result, as JSON. What it has when ctx ends, and
// after every so many seconds, is kept in the file named part, from which it goes on: who
// has the result removes that. Progress, if not nil, hears of the round that it goes on
// from, 0 if from none, and then of each.
func ComputeCell(ctx context.Context, lab experiment.Lab, c Cell, part string, progress func(round int)) ([]byte, error) {
	if !(c.Goal >= 0 && c.Goal <= 1) {
		return nil, intake.UserError(fmt.Errorf("the accuracy at which a run may end is %v; allowed is 0 to 1", c.Goal))
	}
	if !(c.GoalLoss >= 0) || math.IsInf(c.GoalLoss, 0) || c.GoalLoss > 0 && c.Goal > 0 {
		return nil, intake.UserError(fmt.Errorf("the loss at which a run may end is %v; allowed is 0 or more, and 0 where it may end at an accuracy", c.GoalLoss))
	}
	if progress == nil {
		progress = func(int) {}
	}
	out, err := c.run(ctx, lab, part, progress)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// steadyRounds is in how many rounds in a row a loss must be there to count as reached: steps
// that are too large pass it by chance and leave it again.
const steadyRounds = 3

// lossReached returns the last of the first steadyRounds in a row whose losses are the goal or
// less; 0 where there is no goal, or none are.
func (c Cell) lossReached(losses []runfolder.Float) int {
	for k, steady := 0, 0; k < len(losses) && c.GoalLoss > 0; k++ {
		if steady++; !(float64(losses[k]) <= c.GoalLoss) {
			steady = 0
		}
		if steady == steadyRounds {
			return k + 1
		}
	}
	return 0
}

// mostKept bounds a file of the cache, in bytes: a model, and what is kept of each round.
func mostKept(rounds int) int64 { return 4<<20 + 128*int64(rounds) }

// cellVersion is part of a result's key: raise it when what a run computes changes.
const cellVersion = 3

// cellResult is what is kept of one run.
type cellResult struct {
	Dataset  string            `json:"dataset"`
	Accuracy float64           `json:"accuracy"`
	Loss     []runfolder.Float `json:"loss"` // of each round's batches
	Final    runfolder.Float   `json:"final_loss"`
	// Evaluated are the rounds after which the model was tried on the test set,
	// Accuracies what it then got right.
	Evaluated  []int     `json:"evaluated"`
	Accuracies []float64 `json:"accuracies"`
	// Reached is the first round at which the accuracy or loss asked for was there, and the
	// last one run; 0 if it was not, or none was asked for.
	Reached  int  `json:"reached"`
	Repeated int  `json:"repeated"`
	Skipped  int  `json:"skipped"`
	Clipped  int  `json:"clipped"`
	Diverged bool `json:"diverged"`
	// WorstEps is the largest |eps| in predicted deviations, EpsMean2 the mean of
	// (eps/deviation)^2.
	WorstEps runfolder.Float `json:"worst_eps"`
	// LargestEps is the largest |eps| itself, EpsVariance the mean of eps^2.
	LargestEps  runfolder.Float `json:"largest_eps"`
	EpsMean2    runfolder.Float `json:"eps_mean_square"`
	EpsVariance runfolder.Float `json:"eps_variance"`
	// Seconds is wall time, of the sittings that computed it.
	Seconds float64 `json:"seconds"`
}

// accuracyAfter returns the accuracy after a round that was evaluated; NaN for another.
func (c cellResult) accuracyAfter(round int) float64 {
	for k, at := range c.Evaluated {
		if at == round {
			return c.Accuracies[k]
		}
	}
	return math.NaN()
}

// rounds returns the number of rounds run.
func (c cellResult) rounds() int { return len(c.Loss) }

// decode reads the result of a run on a data set, and refuses one that is none of it.
func (c Cell) decode(data []byte, dataset string) (out cellResult, err error) {
	if most := c.MostBytes(); int64(len(data)) > most {
		return out, intake.UserError(fmt.Errorf("it has %d bytes; allowed are %d", len(data), most))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, intake.UserError(fmt.Errorf("it is not the JSON of a run's result: %w", err))
	}
	if _, err := d.Token(); err != io.EOF {
		return out, intake.UserError(errors.New("more follows the JSON of a run's result; allowed is nothing"))
	}
	if out.Dataset != dataset {
		return out, intake.UserError(fmt.Errorf("dataset is %.64q; allowed is %q, that of this report", out.Dataset, dataset))
	}
	return out, intake.UserError(out.misfit(c))
}

// misfit returns what a run cannot have given; nil if it could.
func (out cellResult) misfit(c Cell) error {
	asked, ran := c.Config.Optimizer.Rounds, out.rounds()
	early := out.Diverged || out.Reached > 0
	switch {
	case ran > asked || ran < asked && !early:
		return fmt.Errorf("loss has %d rounds; allowed are %d, or fewer of a run that ended early", ran, asked)
	case out.Skipped < 0 || out.Skipped > asked || out.Repeated < 0 || out.Clipped < 0:
		return fmt.Errorf("repeated, skipped and clipped are %d, %d and %d; allowed are counts, of skipped rounds up to %d", out.Repeated, out.Skipped, out.Clipped, asked)
	case out.Seconds < 0:
		return fmt.Errorf("seconds is %v; allowed is 0 or more", out.Seconds)
	}
	if !out.Diverged {
		for k, loss := range out.Loss {
			if x := float64(loss); math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("the loss of round %d is %v; allowed is a finite number in a run that did not diverge", k+1, x)
			}
		}
	}
	for name, x := range map[string]runfolder.Float{"worst_eps": out.WorstEps, "largest_eps": out.LargestEps, "eps_mean_square": out.EpsMean2, "eps_variance": out.EpsVariance} {
		if x < 0 {
			return fmt.Errorf("%s is %v; allowed is 0 or more, or null", name, float64(x))
		}
	}
	return out.misjudged(c)
}

// misjudged returns what cannot be of the accuracies and the round in which the goal was
// reached, if there is one; nil if all can.
func (out cellResult) misjudged(c Cell) error {
	if len(out.Evaluated) != len(out.Accuracies) {
		return fmt.Errorf("%d rounds were evaluated, with %d accuracies; allowed is one of each", len(out.Evaluated), len(out.Accuracies))
	}
	before, reached := 0, 0
	for k, round := range out.Evaluated {
		accuracy := out.Accuracies[k]
		if round <= before || round > out.rounds() {
			return fmt.Errorf("round %d was evaluated after round %d of %d; allowed are rounds run, in order", round, before, out.rounds())
		}
		if before = round; !(accuracy >= 0 && accuracy <= 1) {
			return fmt.Errorf("the accuracy of round %d is %v; allowed is 0 to 1", round, accuracy)
		}
		if c.Goal > 0 && accuracy >= c.Goal && reached == 0 {
			reached = round
		}
	}
	if c.GoalLoss > 0 {
		reached = c.lossReached(out.Loss)
	}
	switch {
	case !(out.Accuracy >= 0 && out.Accuracy <= 1):
		return fmt.Errorf("accuracy is %v; allowed is 0 to 1", out.Accuracy)
	case out.Reached != reached || reached > 0 && reached != out.rounds():
		return fmt.Errorf("the accuracy %v or loss %v was reached in round %d of %d; allowed is %d, by the accuracies and losses, and that as the last round", c.Goal, c.GoalLoss, out.Reached, out.rounds(), reached)
	}
	return nil
}

// dataInUse says what a configuration's data are on this machine: the set, which may be
// the fallback, and the checksums of its files.
type dataInUse struct {
	name     string
	fallback bool
	warning  string // the files are not the published ones
	tests    int    // images of the test set
	sums     string
}

// dataIn looks a configuration's data up.
func dataIn(lab experiment.Lab, c config.Config) (d dataInUse, err error) {
	t, err := lab.LoadTask(c, seedOf("task"), nil)
	if err != nil {
		return d, err
	}
	defer t.Close()
	d = dataInUse{name: t.Name, fallback: t.FallbackUsed, warning: t.Unpublished(), tests: t.Test.Len()}
	for _, f := range t.Files {
		d.sums += f.SHA256
	}
	return d, nil
}

// key names what a run is computed from.
func (c Cell) key(data dataInUse) (string, error) {
	c.Config.Experiment.Name = "" // it changes nothing
	encoded, err := c.Config.Encode()
	if err != nil {
		return "", err
	}
	encoded = fmt.Appendf(encoded, "\nversion %d\ndata %s %s", cellVersion, data.name, data.sums)
	if c.Goal > 0 {
		encoded = fmt.Appendf(encoded, "\nuntil accuracy %v", c.Goal)
	}
	if c.GoalLoss > 0 {
		encoded = fmt.Appendf(encoded, "\nuntil loss %v", c.GoalLoss)
	}
	if c.Validate {
		encoded = fmt.Appendf(encoded, "\nvalidation, 1 of %d", experiment.ValidationFolds)
	}
	sum := sha256.Sum256(encoded)
	return fmt.Sprintf("%x", sum[:16]), nil
}

// tally is a run on its way: what it came to so far, and all that it needs to go on.
type tally struct {
	Result cellResult    `json:"result"`
	State  learner.State `json:"state"`
	// Rounds counts those of which eps has a predicted deviation; Squares is the sum
	// of (eps/deviation)^2 over them, EpsSquares that of eps^2.
	Rounds     int             `json:"rounds"`
	Squares    runfolder.Float `json:"squares"`
	EpsSquares runfolder.Float `json:"eps_squares"`
}

// tallyEvery is the time after which a run on its way is kept.
const tallyEvery = 20 * time.Second

// loadTally returns what an earlier sitting kept of a run, or a beginning.
func loadTally(path string, rounds int) tally {
	var t tally
	data, err := intake.ReadFile(path, mostKept(rounds))
	if err != nil || json.Unmarshal(data, &t) != nil || t.State.Round > rounds || t.State.Round != t.Result.rounds() {
		return tally{}
	}
	return t
}

// save keeps a run on its way.
func (t tally) save(path string, state learner.State) error {
	t.State = state
	data, err := json.Marshal(t)
	if err != nil {
		return nil // a model that is no longer finite is not worth going on with
	}
	return runfolder.WriteFile(path, data)
}

// add counts a round.
func (t *tally) add(record learner.Record) {
	out := &t.Result
	out.Loss = append(out.Loss, runfolder.Float(record.TrainLoss))
	if record.Evaluated {
		out.Evaluated, out.Accuracies = append(out.Evaluated, record.Round), append(out.Accuracies, record.TestAccuracy)
	}
	if !(record.EpsStdPredicted > 0) || record.Skipped {
		return
	}
	x := record.Eps / record.EpsStdPredicted
	square := record.EpsSquare
	if square == 0 { // of a trainer that has no directions
		square = x * x
	}
	t.Rounds++
	t.Squares += runfolder.Float(square)
	t.EpsSquares += runfolder.Float(record.Eps * record.Eps)
	out.WorstEps = runfolder.Float(math.Max(float64(out.WorstEps), math.Abs(x)))
	out.LargestEps = runfolder.Float(math.Max(float64(out.LargestEps), math.Abs(record.Eps)))
}

// run trains without a folder. What it has when it is interrupted, and after every
// so many seconds, is kept in the file named part, from which it goes on.
func (c Cell) run(ctx context.Context, lab experiment.Lab, part string, progress func(round int)) (out cellResult, err error) {
	began := time.Now()
	s, err := lab.New(c.Config)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c.Validate {
		s.Task.Validated(seedOf("validation"))
	}
	t := loadTally(part, c.Config.Optimizer.Rounds)
	if err := s.StartInMemory(t.State); err != nil {
		return out, err
	}
	progress(t.State.Round)
	before := t.Result.Seconds
	kept := began
	for !s.Trainer.Done() && t.Result.Reached == 0 {
		record, err := s.Step(ctx)
		if diverged(err) {
			t.Result.Diverged = true
			break
		}
		t.Result.Seconds = before + time.Since(began).Seconds()
		if err != nil {
			return out, errors.Join(err, t.save(part, s.Trainer.State()))
		}
		t.add(record)
		if c.Goal > 0 && record.Evaluated && record.TestAccuracy >= c.Goal || c.lossReached(t.Result.Loss[max(0, len(t.Result.Loss)-steadyRounds):]) > 0 {
			t.Result.Reached = record.Round
		}
		progress(record.Round)
		if time.Since(kept) < tallyEvery {
			continue
		}
		kept = time.Now()
		if err := t.save(part, s.Trainer.State()); err != nil {
			return out, err
		}
	}
	result, state := s.Trainer.Final(), s.Trainer.State()
	out = t.Result
	out.Dataset = s.Task.Name
	out.Accuracy, out.Final = result.TestAccuracy, runfolder.Float(result.TrainLoss)
	out.Repeated, out.Skipped, out.Clipped = state.Repeated, state.Skipped, state.Clipped
	n := runfolder.Float(t.Rounds)
	out.EpsMean2, out.EpsVariance = t.Squares/n, t.EpsSquares/n
	out.Seconds = before + time.Since(began).Seconds()
	return out, nil
}
