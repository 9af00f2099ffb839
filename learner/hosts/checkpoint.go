package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// thetaName is the file of theta in the run's folder, for devices that lack many rounds.
const thetaName = "theta.bin"

// checkpointEvery is of how many rounds theta is kept once.
const checkpointEvery = 100

// mostTheta bounds a checkpoint: the bus carries it in a message with what else that has.
const mostTheta = wire.MaxBody - 1<<12

// thetas keeps theta of every so many rounds. It can be told from another only by the record of
// the next round, which has its digest: until then it waits.
type thetas struct {
	path  string
	state func() (round int, theta []float64) // nil where none is kept

	round int // of the one that waits
	theta []float64
}

// openThetas goes on with those of a run. One that is damaged, or of another run, devices must
// do without: they replay. With momentum theta is not all of a model, and there are none.
func (b *Bench) openThetas(f experiment.FleetRun, run wire.RunID) error {
	if f.Config.Optimizer.Momentum > 0 {
		b.thetas = thetas{}
		return nil
	}
	b.thetas = thetas{path: filepath.Join(f.Dir, thetaName), state: f.State}
	body, err := intake.ReadFile(b.thetas.path, mostTheta)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return intake.PathError(fmt.Errorf("reading %s: %w", b.thetas.path, err))
	}
	t, err := wire.OpenCheckpoint(body, run, b.verify)
	if err == nil && learner.DigestOf(t.Round(), t.Values) != t.Next.Before {
		err = fmt.Errorf("theta is not that of the record of round %d", t.Next.Round)
	}
	switch {
	case err != nil:
		b.o.Say(fmt.Sprintf("%s is not used, and devices replay in its place: %v", b.thetas.path, err))
	case int(t.Next.Round) <= b.known:
		b.server.Offer(t.Round(), body)
	}
	return nil
}

// kept takes in that the sealed record of a round is kept, and theta is that after it.
func (b *Bench) kept(k int, sealed []byte) error {
	t := &b.thetas
	if t.theta != nil && t.round == k-1 {
		body := wire.AppendCheckpoint(nil, sealed, t.theta)
		if err := runfolder.WriteFile(t.path, body); err != nil {
			return intake.PathError(err)
		}
		b.server.Offer(t.round, body)
	}
	t.theta = nil
	if k%checkpointEvery != 0 || t.state == nil {
		return nil
	}
	if round, theta := t.state(); round == k && wire.CheckpointSize(sealed, len(theta)) <= mostTheta {
		t.round, t.theta = round, theta
	}
	return nil
}
