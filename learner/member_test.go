package learner

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/vector"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// members are the devices of a task, each by itself, with nothing but its own samples.
func members(t testing.TB, cfg Config, task Task) []*Member {
	t.Helper()
	var all []*Member
	for i, shard := range task.Shards {
		m, err := NewMember(cfg, MemberTask{Model: task.Model, Samples: task.Train.Subset(shard), Index: i, Seed: task.Seed})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// elsewhere is an Aggregator of devices that are elsewhere: it asks them for their values
// and has another aggregator take them.
type elsewhere struct {
	t       testing.TB
	members []*Member
	through Aggregator
	values  [][]float64 // of the last round
	record  Record      // of the last round, as far as the devices know it
}

func (e *elsewhere) Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error) {
	if values != nil {
		e.t.Errorf("round %d: the trainer has values of %d devices that are elsewhere", k, len(values))
	}
	e.values, e.record = e.values[:0], Record{}
	for _, m := range e.members {
		own, loss, clipped, overflowed, err := m.Scalars(ctx, k)
		if err != nil {
			return aggregate.Outcome{}, err
		}
		e.values = append(e.values, slices.Clone(own))
		e.record.TrainLoss += loss
		e.record.Clipped += clipped
		e.record.Overflowed += overflowed
	}
	e.record.TrainLoss = overflowed(e.record.TrainLoss/float64(len(e.members)), math.MaxFloat64)
	return e.through.Aggregate(ctx, k, e.values)
}

// rarely skips every fifth round, and those of which M is no finite number.
type rarely struct{ Aggregator }

func (r rarely) Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error) {
	out, err := r.Aggregator.Aggregate(ctx, k, values)
	out.Skipped = k%5 == 0 || slices.ContainsFunc(out.M, func(x float64) bool { return !isFinite(x) })
	return out, err
}

// hear gives the members what a round came to.
func hear(t testing.TB, all []*Member, r Record, m []float64) {
	t.Helper()
	for _, member := range all {
		err := error(nil)
		if r.Skipped {
			err = member.Skip(r.Round)
		} else {
			err = member.Apply(r.Round, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sameBits reports whether the numbers are the same to the bit, the sign of 0 included.
func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// images is a set of random samples of LeNet's size.
func images(n int) *dataset.Set {
	rnd := rand.New(rand.NewPCG(5, 6))
	set := &dataset.Set{Dim: 3 * 32 * 32, Shape: []int{3, 32, 32}, Classes: []string{"a", "b"}}
	for i := range n {
		set.Y = append(set.Y, uint8(i%2))
		for range set.Dim {
			set.X = append(set.X, rnd.NormFloat64()+float64(i%2)/4)
		}
	}
	return set
}

// lockstep checks that Members and a trainer that has no sample do in every round what one
// trainer does that has all. It returns how many values were cut, and how many were no
// number.
func lockstep(t *testing.T, cfg Config, task Task) (clipped, overflowed int) {
	t.Helper()
	seen := &watched{}
	task.Aggregator = rarely{seen}
	whole := newTrainer(t, cfg, task)
	far := &elsewhere{t: t, members: members(t, cfg, task)}
	sum := &Plain{}
	far.through = rarely{sum}
	server, err := NewRemote(cfg, RemoteTask{Model: task.Model, Test: task.Test, Aggregator: far, Seed: task.Seed})
	if err != nil {
		t.Fatal(err)
	}
	for !whole.Done() {
		want, err := whole.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := server.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hear(t, far.members, got, sum.sum)
		for i, values := range far.values {
			if !sameBits(values, seen.seen[i]) {
				t.Fatalf("round %d: device %d sends %v by itself, and %v in one process", want.Round, i+1, values, seen.seen[i])
			}
		}
		if far.record.TrainLoss != want.TrainLoss || far.record.Clipped != want.Clipped || far.record.Overflowed != want.Overflowed {
			t.Fatalf("round %d: devices know %+v, one process %+v", want.Round, far.record, want)
		}
		checkRemote(t, got, want)
		clipped += want.Clipped
		overflowed += want.Overflowed
		for i, m := range far.members {
			if m.Digest() != whole.Digest() {
				t.Fatalf("round %d: theta of device %d differs", want.Round, i+1)
			}
		}
		if server.Digest() != whole.Digest() || !sameBits(server.State().Theta, whole.State().Theta) {
			t.Fatalf("round %d: theta of the server differs", want.Round)
		}
	}
	if _, err := server.Step(t.Context()); !errors.Is(err, ErrDone) {
		t.Errorf("after the last round: %v", err)
	}
	if w, g := whole.Final(), server.Final(); !math.IsNaN(g.TrainLoss) || !math.IsNaN(g.TrainAccuracy) || g.TestLoss != w.TestLoss || g.TestAccuracy != w.TestAccuracy {
		t.Errorf("the results are %+v and %+v", g, w)
	}
	return clipped, overflowed
}

// checkRemote checks what a trainer without devices knows of a round against one that
// knows all.
func checkRemote(t *testing.T, got, want Record) {
	t.Helper()
	if !math.IsNaN(got.TrainLoss) || !want.Skipped && !math.IsNaN(got.MIdeal) {
		t.Fatalf("round %d: the server knows the loss %v and M without noise %v", want.Round, got.TrainLoss, got.MIdeal)
	}
	known := want
	known.TrainLoss, known.MIdeal, known.Eps, known.EpsStdPredicted, known.EpsSquare = 0, 0, 0, 0, 0
	known.Clipped, known.Overflowed = 0, 0
	got.TrainLoss, got.MIdeal, got.Eps, got.EpsStdPredicted, got.EpsSquare = 0, 0, 0, 0, 0
	if got != known {
		t.Fatalf("the server's record is %+v, want %+v", got, known)
	}
}

// TestMembersInLockstep is what devices in processes of their own are to be: the same, to
// the bit, as in one.
func TestMembersInLockstep(t *testing.T) {
	train, test := strokes(t, 300, 60)
	all := methods()
	maps.Copy(all, map[string]func(c *Config){
		"plain":     func(*Config) {},
		"packed":    func(c *Config) { c.Packed = 5 },
		"pairs":     func(c *Config) { c.Packed, c.PairLoss = 3, true },
		"one-point": func(c *Config) { c.Estimator, c.Clip = OnePoint, 0.7 },
		"gaussian":  func(c *Config) { c.Directions, c.Packed, c.Workers = Gaussian, 2, 3 },
		"sphere":    func(c *Config) { c.Directions, c.Gamma = Sphere, HorizonLaw{X0: 0.05, K: 40} },
		"overflow": func(c *Config) {
			c.Gamma, c.Overflow = PowerLaw{X0: 1e307}, true // losses near the largest number
		},
	})
	for name, change := range all {
		for _, partition := range []string{"iid", "dirichlet"} {
			t.Run(name+"/"+partition, func(t *testing.T) {
				cfg := paperConfig()
				cfg.Rounds, cfg.BatchSize, cfg.EvalEvery = 40, 20, 7
				change(&cfg)
				task := newTask(t, train, test, 7, nil, keystream.FromInteger(4))
				if partition == "dirichlet" {
					var err error
					if task.Shards, err = dataset.Dirichlet(train.Y, 7, 0.3, task.Seed); err != nil {
						t.Fatal(err)
					}
				}
				clipped, overflowed := lockstep(t, cfg, task)
				if (clipped > 0) != (name == "one-point") || (overflowed > 0) != (name == "overflow") {
					t.Errorf("%d values were cut and %d no number: that is not tested", clipped, overflowed)
				}
			})
		}
	}
	t.Run("lenet", func(t *testing.T) {
		set := images(40)
		cfg := paperConfig()
		cfg.Rounds, cfg.BatchSize, cfg.EvalEvery, cfg.Packed = 6, 8, 3, 2
		shards, err := dataset.IID(set.Len(), 3, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		path, err := vector.Choose("")
		if err != nil {
			t.Fatal(err)
		}
		task := Task{Model: model.NewLeNet(path, 2), Train: set, Test: set, Shards: shards, Seed: keystream.FromInteger(2)}
		lockstep(t, cfg, task)
		// Nothing but a point's serial tells a worker here that theta has moved.
		cfg.EvalEvery, cfg.Packed, cfg.PairLoss = 6, 1, true
		lockstep(t, cfg, task)
		cfg.Packed, cfg.PairLoss, cfg.Estimator = 3, false, OneSided
		lockstep(t, cfg, task)
	})
}

// history is what a run came to, round by round.
func history(t testing.TB, trainer *Trainer, heard *watched, rounds int) [][]float64 {
	t.Helper()
	var all [][]float64
	for range rounds {
		r, err := trainer.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := slices.Clone(heard.sum)
		if r.Skipped {
			m = nil
		}
		all = append(all, m)
	}
	return all
}

// A device that joins late, or comes back, has the model from M_k alone, and goes on as
// if it had been there.
func TestReplay(t *testing.T) {
	train, test := strokes(t, 300, 60)
	for _, packed := range []int{1, 3} {
		cfg := paperConfig()
		cfg.Rounds, cfg.BatchSize, cfg.Packed, cfg.Directions = 301, 20, packed, Gaussian
		heard := &watched{}
		task := newTask(t, train, test, 3, rarely{heard}, keystream.FromInteger(9))
		trainer := newTrainer(t, cfg, task)
		all := history(t, trainer, heard, 300)
		for _, from := range []int{0, 120, 300} {
			late := members(t, cfg, task)[1]
			if err := late.Replay(rounds(all, 0, from)); err != nil {
				t.Fatal(err)
			}
			if err := late.Replay(rounds(all, from, 300)); err != nil {
				t.Fatal(err)
			}
			if _, theta := late.State(); late.Digest() != trainer.Digest() || !sameBits(theta, trainer.State().Theta) {
				t.Errorf("%d directions: theta differs after 300 rounds, of which %d were heard before", packed, from)
			}
		}
		late := members(t, cfg, task)[1]
		if err := late.Replay(rounds(all, 0, 300)); err != nil {
			t.Fatal(err)
		}
		history(t, trainer, heard, 1)
		if values, _, _, _, err := late.Scalars(t.Context(), 301); err != nil || !sameBits(values, heard.seen[1]) {
			t.Errorf("%d directions: who replayed sends %v in round 301, want %v (%v)", packed, values, heard.seen[1], err)
		}
	}
}

// rounds gives those after from up to to.
func rounds(all [][]float64, from, to int) func(yield func(int, []float64) bool) {
	return func(yield func(int, []float64) bool) {
		for k := from; k < to; k++ {
			if !yield(k+1, all[k]) {
				return
			}
		}
	}
}

// What is heard twice, out of order or damaged does not move theta.
func TestReplicaRefuses(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Rounds, cfg.Packed = 3, 2
	m := members(t, cfg, newTask(t, train, test, 3, nil, keystream.FromInteger(1)))[0]
	if err := m.Apply(1, []float64{1, -1}); err != nil {
		t.Fatal(err)
	}
	want := m.Digest()
	gap := func(yield func(int, []float64) bool) { yield(3, []float64{1, 1}) }
	for text, do := range map[string]func() error{
		"round 1 of a model that is after round 1; allowed is round 2": func() error { return m.Apply(1, []float64{1, -1}) },
		"round 3 of a model that is after round 1; allowed is round 2": func() error { return m.Skip(3) },
		"replaying round 3: round 3 of a model that is after round 1":  func() error { return m.Replay(gap) },
		"1 values of M for 2 directions":                               func() error { return m.Apply(2, []float64{1}) },
		"0 values of M for 2 directions":                               func() error { return m.Apply(2, []float64{}) },
		"the aggregated M is NaN":                                      func() error { return m.Apply(2, []float64{1, math.NaN()}) },
		"round 1 of a model that is after round 1":                     func() error { _, _, _, _, err := m.Scalars(t.Context(), 1); return err },
		"the round is 4; allowed is 0 to 3":                            func() error { return m.Restore(4, make([]float64, train.Dim+1)) },
		"theta has 2 values; allowed is 785":                           func() error { return m.Restore(1, make([]float64, 2)) },
		"theta[0] is +Inf": func() error {
			return m.Restore(1, slices.Repeat([]float64{math.Inf(1)}, train.Dim+1))
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
	if m.Digest() != want || m.Round() != 1 {
		t.Error("what was refused has changed the replica")
	}
	if err := errors.Join(m.Skip(2), m.Skip(3)); err != nil || !m.Done() {
		t.Errorf("the last rounds: %v, done %v", err, m.Done())
	}
	if err := m.Apply(4, []float64{1, 1}); !errors.Is(err, ErrDone) {
		t.Errorf("a round after the last: %v", err)
	}
}

// The digest is what its documentation says, and tells thetas apart that are equal as
// numbers.
func TestDigest(t *testing.T) {
	for _, d := range []int{1, digestChunk - 1, digestChunk, 2*digestChunk + 3} {
		m, err := model.NewLogistic(d)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReplica(paperConfig(), m, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		theta := make([]float64, d+1)
		for j := range theta {
			theta[j] = math.Sin(float64(j + 1))
		}
		if err := r.Restore(7, theta); err != nil {
			t.Fatal(err)
		}
		plain := binary.BigEndian.AppendUint64(nil, 7)
		for _, x := range theta {
			plain = binary.BigEndian.AppendUint64(plain, math.Float64bits(x))
		}
		want := sha256.Sum256(plain)
		if got := r.Digest(); got != want || r.Digest() != want {
			t.Errorf("%d values: the digest is %x, want %x", d+1, got, want)
		}
		for j := range theta {
			theta[j] = 0
		}
		if err := r.Restore(7, theta); err != nil {
			t.Fatal(err)
		}
		zero := r.Digest()
		theta[d] = math.Copysign(0, -1)
		if err := r.Restore(7, theta); err != nil {
			t.Fatal(err)
		}
		if minus := r.Digest(); minus == zero {
			t.Errorf("%d values: -0 has the digest of 0", d+1)
		}
	}
}

// Asked again in a round, for another attempt, a device answers the same; the number of
// its cores changes nothing.
func TestMemberAnswersTheSame(t *testing.T) {
	train, test := strokes(t, 300, 60)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Packed = 20, 6
	task := newTask(t, train, test, 3, nil, keystream.FromInteger(1))
	var want []float64
	for _, workers := range []int{1, 2, 3, 8} {
		cfg.Workers = workers
		m := members(t, cfg, task)[2]
		if err := m.Apply(1, []float64{1, 2, 3, 4, 5, 6}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			values, loss, _, _, err := m.Scalars(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			got := append(slices.Clone(values), loss)
			if want == nil {
				want = got
			}
			if !sameBits(got, want) {
				t.Errorf("%d workers: %v, want %v", workers, got, want)
			}
		}
	}
}

func TestMemberErrors(t *testing.T) {
	train, test := strokes(t, 60, 30)
	whole := newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(1))
	good := MemberTask{Model: whole.Model, Samples: train, Seed: whole.Seed}
	for _, x := range []struct {
		want  string
		spoil func(c *Config, task *MemberTask)
	}{
		{"lacks its model or samples", func(_ *Config, task *MemberTask) { task.Model = nil }},
		{"lacks its model or samples", func(_ *Config, task *MemberTask) { task.Samples = nil }},
		{"the device's index is -1", func(_ *Config, task *MemberTask) { task.Index = -1 }},
		{"the device's set has no sample", func(_ *Config, task *MemberTask) { task.Samples = train.Subset(nil) }},
		{"the device's set has 60 samples of 3 ", func(_ *Config, task *MemberTask) { s := *train; s.Dim = 3; task.Samples = &s }},
		{"the number of rounds is 0", func(c *Config, _ *MemberTask) { c.Rounds = 0 }},
	} {
		c, task := paperConfig(), good
		x.spoil(&c, &task)
		if _, err := NewMember(c, task); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %q in it", err, x.want)
		}
	}
	remote := RemoteTask{Model: whole.Model, Aggregator: &Plain{}, Seed: whole.Seed}
	for _, x := range []struct {
		want  string
		spoil func(task *RemoteTask)
	}{
		{"lacks its model or aggregator", func(task *RemoteTask) { task.Model = nil }},
		{"lacks its model or aggregator", func(task *RemoteTask) { task.Aggregator = nil }},
		{"the test set has no sample", func(task *RemoteTask) { task.Test = train.Subset(nil) }},
	} {
		task := remote
		x.spoil(&task)
		if _, err := NewRemote(paperConfig(), task); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %q in it", err, x.want)
		}
	}
	if _, err := NewReplica(paperConfig(), nil, whole.Seed); err == nil {
		t.Error("a replica of no model was made")
	}
}

// A device stops with its context, and says that it diverges; both leave it as it was.
func TestMemberStops(t *testing.T) {
	train, test := strokes(t, 60, 30)
	task := newTask(t, train, test, 3, nil, keystream.FromInteger(1))
	cfg := paperConfig()
	cfg.Gamma = PowerLaw{X0: 1e306}
	m := members(t, cfg, task)[1]
	want := m.Digest()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, _, err := m.Scalars(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled context", err)
	}
	if err := m.Restore(0, slices.Repeat([]float64{1e307}, train.Dim+1)); err != nil {
		t.Fatal(err)
	}
	_, _, _, _, err := m.Scalars(t.Context(), 1)
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "round 1: device 2: Delta f is") {
		t.Errorf("got %v", err)
	}
	if err := m.Restore(0, make([]float64, train.Dim+1)); err != nil || m.Digest() != want {
		t.Errorf("theta is not that of before (%v)", err)
	}
}

// ending is a model whose first losses end a context.
type ending struct {
	model.Model
	end   func()
	calls int
}

func (e *ending) NewWorker() model.Worker { return &endingWorker{e.Model.NewWorker(), e} }

type endingWorker struct {
	model.Worker
	*ending
}

func (w *endingWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	w.end()
	w.calls++
	return w.Worker.Losses(theta, phi, gamma, set, batch)
}

// A device need not go through all directions before it stops.
func TestMemberStopsBetweenDirections(t *testing.T) {
	train, test := strokes(t, 60, 30)
	ctx, cancel := context.WithCancel(t.Context())
	task := newTask(t, train, test, 3, nil, keystream.FromInteger(1))
	m := &ending{Model: task.Model, end: cancel}
	task.Model = m
	cfg := paperConfig()
	cfg.Packed, cfg.Workers = 100, 1
	device := members(t, cfg, task)[0]
	if _, _, _, _, err := device.Scalars(ctx, 1); !errors.Is(err, context.Canceled) || m.calls != 1 {
		t.Errorf("got %v after the losses along %d directions", err, m.calls)
	}
}

// Without a test set a server never evaluates.
func TestRemoteWithoutTestSet(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Rounds, cfg.EvalEvery = 4, 1
	task := newTask(t, train, test, 3, nil, keystream.FromInteger(1))
	server, err := NewRemote(cfg, RemoteTask{Model: task.Model, Aggregator: constant(0.5), Seed: task.Seed})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runAll(t, server) {
		if r.Evaluated || r.M != 0.5 || !math.IsNaN(r.TrainLoss) {
			t.Errorf("the record is %+v", r)
		}
	}
	f := server.Final()
	for _, x := range []float64{f.TrainLoss, f.TrainAccuracy, f.TestLoss, f.TestAccuracy} {
		if !math.IsNaN(x) {
			t.Errorf("the result is %+v", f)
		}
	}
	second, err := NewRemote(cfg, RemoteTask{Model: task.Model, Aggregator: constant(0.5), Seed: task.Seed})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Restore(server.State()); err != nil || second.Digest() != server.Digest() || !second.Done() {
		t.Errorf("restored: %v", err)
	}
}

// A device's round allocates nothing, its digest included.
func TestMemberAllocations(t *testing.T) {
	train, test := strokes(t, 300, 60)
	ctx := context.Background()
	for _, workers := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		cfg := paperConfig()
		cfg.BatchSize, cfg.Packed, cfg.Workers = 20, 3, workers
		m := members(t, cfg, newTask(t, train, test, 3, nil, keystream.FromInteger(1)))[0]
		k, sum := 0, []float64{1, 2, 3}
		allocs := testing.AllocsPerRun(50, func() {
			k++
			if _, _, _, _, err := m.Scalars(ctx, k); err != nil {
				t.Fatal(err)
			}
			m.Digest()
			if err := m.Apply(k, sum); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("with %d workers a round allocates %v times", workers, allocs)
		}
	}
}

// BenchmarkMember is one device's round of the paper's MNIST experiment.
func BenchmarkMember(b *testing.B) {
	train, test := strokes(b, 12665, 1)
	for _, packed := range []int{1, 16} {
		b.Run(fmt.Sprintf("packed=%d", packed), func(b *testing.B) {
			cfg := paperConfig()
			cfg.Rounds, cfg.Packed = math.MaxInt32, packed
			m := members(b, cfg, newTask(b, train, test, 10, nil, keystream.FromInteger(1)))[0]
			sum := make([]float64, packed)
			b.ReportAllocs()
			for b.Loop() {
				k := m.Round() + 1
				if _, _, _, _, err := m.Scalars(context.Background(), k); err != nil {
					b.Fatal(err)
				}
				if err := m.Apply(k, sum); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
