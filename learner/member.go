package learner

import (
	"context"
	"errors"
	"fmt"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// MemberTask is what one device trains on.
type MemberTask struct {
	Model model.Model
	// Samples are the device's own, all of them: those of its shard in the shard's order,
	// where a Trainer's device of the same index is to have the same batches.
	Samples *dataset.Set
	// Index is the device's, from 0.
	Index int
	// Seed is that of all devices, and of the RemoteTask.
	Seed keystream.Seed
}

// Member is one device of a Trainer's, in a process of its own: its samples, which it
// tells nobody of, and its replica of the model, which it keeps by Apply and Skip. A round
// is Scalars, and then Apply of what came of all devices' values, or Skip. A Member is
// for one goroutine, and starts others that end within the call that started them.
type Member struct {
	*Replica
	device  *device
	samples *dataset.Set
	values  []float64
	index   int
	model   model.Model

	pool *pool
	done <-chan struct{} // of the Scalars at hand: closed once they are not wanted any more
	// along gets the losses along one direction; it is made once so that a round need
	// not allocate it.
	along func(w model.Worker, p int)
}

// NewMember returns a device before its first round.
func NewMember(cfg Config, task MemberTask) (*Member, error) {
	if err := task.check(); err != nil {
		return nil, fmt.Errorf("setting up a device: %w", err)
	}
	r, err := NewReplica(cfg, task.Model, task.Seed)
	if err != nil {
		return nil, err
	}
	whole := make([]int, task.Samples.Len())
	for j := range whole {
		whole[j] = j
	}
	m := &Member{
		Replica: r, device: newDevice(r.cfg, task.Seed, task.Index, whole), samples: task.Samples, index: task.Index, model: task.Model,
		values: make([]float64, r.cfg.Packed), pool: newPool(task.Model, min(cfg.workers(), r.cfg.Packed)),
	}
	m.along = func(w model.Worker, p int) {
		select {
		case <-m.done:
		default:
			m.device.along(p, w, m.Replica, m.samples)
		}
	}
	return m, nil
}

func (t MemberTask) check() error {
	if t.Model == nil || t.Samples == nil {
		return errors.New("the task lacks its model or samples")
	}
	if t.Index < 0 {
		return fmt.Errorf("the device's index is %d; allowed is 0 or more", t.Index)
	}
	return checkSet("device's", t.Samples, t.Model)
}

// Scalars returns what the device sends in round k, the one after Round's, along each
// direction, the mean loss on its batch, and how many of the values were cut to
// Config.Clip or were no finite number: all as the Trainer's device has them. Asked again
// it returns the same. The next call writes over the values. The error is ctx's where it
// has ended, and wraps ErrDiverged where a value is no finite number.
func (m *Member) Scalars(ctx context.Context, k int) (values []float64, loss float64, clipped, overflowed int, err error) {
	if err := m.next(k); err != nil {
		return nil, 0, 0, 0, err
	}
	m.draw(k)
	d := m.device
	d.draw(uint32(k), 0)
	m.done = ctx.Done()
	m.pool.run(len(m.phi), m.along)
	m.done = nil
	if err := model.Err(m.model); err != nil {
		return nil, 0, 0, 0, fmt.Errorf("round %d: device %d: %w", k, m.index+1, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, 0, 0, fmt.Errorf("round %d: %w", k, err)
	}
	d.settle(m.Replica)
	clipped, overflowed, err = d.scalars(m.values, &m.cfg)
	if err != nil {
		return nil, 0, 0, 0, fmt.Errorf("round %d: device %d: %w", k, m.index+1, err)
	}
	return m.values, d.loss, clipped, overflowed, nil
}
