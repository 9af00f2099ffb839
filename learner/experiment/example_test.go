package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/model"
	"ringwave/radio"
	"ringwave/radio/boards"
	"ringwave/radio/loopback"
)

// few shortens an experiment, so that the examples take no time.
var few = []string{"task.dataset=strokes", "optimizer.rounds=20", "optimizer.evaluate_every_rounds=20", "task.strokes_train=400", "task.strokes_test=200"}

// folder returns a folder for a run, and what removes it.
func folder() (string, func()) {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// Load a configuration and run it.
func Example() {
	dir, remove := folder()
	defer remove()
	cfg, err := experiment.Load("../../hw-configs/loopback.toml", few...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := experiment.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	result, err := e.Run(context.Background(), dir, experiment.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d rounds of %s, %d skipped\n", result.Round, result.Summary.Aggregator, result.Summary.RoundsSkipped)
	// Output: 20 rounds of xmk-ckks, 0 skipped
}

// Watch the rounds, stop after the fifth, and go on from there.
func ExampleObserver() {
	dir, remove := folder()
	defer remove()
	cfg, err := experiment.Load("../../hw-configs/loopback.toml", few...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := experiment.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	watch := experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 5 {
			stop()
		}
	}}
	_, err = e.Run(ctx, dir, watch)
	fmt.Println("stopped:", errors.Is(err, experiment.ErrInterrupted))
	result, err := experiment.Resume(context.Background(), dir, watch)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rounds:", result.Round)
	// Output:
	// stopped: true
	// rounds: 20
}

// interrupted runs an experiment until it is stopped, which is after its first round, and
// goes on from there.
func interrupted(dir, file string, overrides ...string) (experiment.Result, error) {
	cfg, err := experiment.Load(file, overrides...)
	if err != nil {
		return experiment.Result{}, err
	}
	e, err := experiment.New(cfg)
	if err != nil {
		return experiment.Result{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	watch := experiment.Observer{Round: func(learner.Record) { stop() }}
	if result, err := e.Run(ctx, dir, watch); !errors.Is(err, experiment.ErrInterrupted) {
		return result, err
	}
	again := experiment.Observer{Started: func(e *experiment.Experiment) { fmt.Println("after round", e.Trainer.State().Round) }}
	return experiment.Resume(context.Background(), dir, again)
}

// Run and resume an encrypted run, over ring elements and over a waveform.
func ExampleResume() {
	for _, file := range []string{"../../hw-configs/loopback.toml", "../../hw-configs/waveform-mnist.toml"} {
		dir, remove := folder()
		defer remove()
		result, err := interrupted(dir, file, append(few, "optimizer.rounds=3")...)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d rounds of %s with %s\n", result.Round, result.Summary.Aggregator, result.Summary.ParameterSet)
	}
	// Output:
	// after round 1
	// 3 rounds of xmk-ckks with ringwave-4096-100
	// after round 1
	// 3 rounds of xmk-ckks with lean-2048
}

// ridge is a model of one's own: a line through the classes -1 and 1, by least squares.
type ridge struct{ features int }

func (m ridge) Dim() int                   { return m.features + 1 }
func (m ridge) Features() int              { return m.features }
func (m ridge) Init([]float64, *rand.Rand) {} // theta is 0
func (m ridge) NewWorker() model.Worker    { return m }
func (m ridge) miss(theta, phi []float64, gamma float64, set *dataset.Set, sample int) float64 {
	y := theta[m.features] + gamma*phi[m.features]
	for j, x := range set.Row(sample) {
		y += (theta[j] + gamma*phi[j]) * x
	}
	return y - 2*float64(set.Y[sample]) + 1
}

func (m ridge) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	square := func(gamma float64) (sum float64) {
		for _, sample := range batch {
			miss := m.miss(theta, phi, gamma, set, sample)
			sum += miss * miss / float64(len(batch))
		}
		return sum
	}
	return square(0), square(gamma), square(-gamma)
}

func (m ridge) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	for sample := from; sample < to; sample++ {
		miss := m.miss(theta, theta, 0, set, sample)
		loss += miss * miss
		if miss*miss < 1 {
			correct++
		}
	}
	return loss, correct
}

// Bring a model of one's own: task.model names it.
func ExampleModel() {
	dir, remove := folder()
	defer remove()
	lab := experiment.Lab{Models: []experiment.Model{{
		Name: "ridge",
		New:  func(_ config.Task, set *dataset.Set) (model.Model, error) { return ridge{set.Dim}, nil },
	}}}
	cfg, err := lab.Load("../../hw-configs/loopback.toml", append(few, "task.model=ridge", "optimizer.eta0=0.002")...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := lab.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	result, err := e.Run(context.Background(), dir, experiment.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Summary.Model, "learns:", result.Summary.TestAccuracy > 0.6)
	// Output: ridge learns: true
}

// clouds makes n points around (-1, -1) and (1, 1), in turn.
func clouds(seed keystream.Seed, n int) *dataset.Set {
	set := &dataset.Set{Dim: 2, Shape: []int{2}, Classes: []string{"low", "high"}}
	rnd := rand.New(seed.Stream())
	for k := range n {
		centre := float64(2*(k%2) - 1)
		set.X = append(set.X, centre+rnd.NormFloat64(), centre+rnd.NormFloat64())
		set.Y = append(set.Y, uint8(k%2))
	}
	return set
}

// Bring a data set of one's own: task.dataset names it.
func ExampleDataSet() {
	dir, remove := folder()
	defer remove()
	lab := experiment.Lab{DataSets: []experiment.DataSet{{
		Name: "clouds",
		Load: func(r experiment.Request) (dataset.Task, error) {
			if err := r.Fits(dataset.Extent{Samples: 1500, Features: 2}); err != nil {
				return dataset.Task{}, err
			}
			return dataset.Task{Train: clouds(r.Seed.Derive("train"), 1000), Test: clouds(r.Seed.Derive("test"), 500)}, nil
		},
	}}}
	cfg, err := lab.Load("../../hw-configs/loopback.toml", append(few, "task.dataset=clouds")...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := lab.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	result, err := e.Run(context.Background(), dir, experiment.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Summary.Dataset, "are told apart:", result.Summary.TestAccuracy > 0.8)
	// Output: clouds are told apart: true
}

// mean is a system of one's own: a server that hears every device perfectly.
type mean struct{}

func (mean) Aggregate(_ context.Context, _ int, values [][]float64) (aggregate.Outcome, error) {
	m := make([]float64, len(values[0]))
	for _, delta := range values {
		for p, x := range delta {
			m[p] += x
		}
	}
	return aggregate.Outcome{M: m, Attempts: 1}, nil
}

// Bring a system of one's own: experiment.aggregator names it.
func ExampleSystem() {
	dir, remove := folder()
	defer remove()
	lab := experiment.Lab{Systems: []experiment.System{{
		System: config.System{Name: "perfect", Text: "a server that hears every device perfectly"},
		New: func(experiment.Setting) (learner.Aggregator, []string, error) {
			return mean{}, []string{"perfect: nothing is sent over the air"}, nil
		},
	}}}
	cfg, err := lab.Load("../../hw-configs/loopback.toml", append(few, "experiment.aggregator=perfect")...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := lab.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	result, err := e.Run(context.Background(), dir, experiment.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Summary.Aggregator, result.Summary.Notes[1])
	// Output: perfect perfect: nothing is sent over the air
}

// cable is a radio of one's own: an end of a cable, here of one in memory.
type cable struct{ end }

// end is what a cable can do by itself: it has its sample rate and counts samples.
type end interface {
	radio.Device
	radio.RateControl
	radio.TimeControl
}

const carrier radio.Hertz = 433.92e6

func (cable) Frequencies(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: carrier, Max: carrier}
}

func (cable) Frequency(radio.Direction) radio.Hertz { return carrier }

func (c cable) SetFrequency(_ context.Context, d radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	return c.Frequencies(d).Floor("the cable's carrier", f)
}

// listener is an end that receives.
type listener struct {
	cable
	radio.ReceiveOpener
}

// sender is an end that sends what is permitted.
type sender struct {
	cable
	line   radio.TransmitOpener
	permit radio.TransmitPermit
}

func (s sender) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	if err := s.permit.Frequency(carrier); err != nil {
		return nil, err
	}
	return s.line.OpenTransmitter(ctx)
}

// cables opens cable:0, which receives, and cable:1 and cable:2, which send.
type cables struct {
	memory *loopback.Medium
	permit radio.TransmitPermit
}

func (c cables) Open(_ context.Context, u radio.URI) (radio.Device, error) {
	k := slices.Index([]string{"0", "1", "2"}, u.Name)
	if k < 0 {
		return nil, fmt.Errorf("device %q: allowed are cable:0, cable:1 and cable:2", u)
	}
	if k == 0 {
		d, err := c.memory.Receiver(0)
		if err != nil {
			return nil, err
		}
		return listener{cable{d.(end)}, d.(radio.ReceiveOpener)}, nil
	}
	d, err := c.memory.Transmitter(k - 1)
	if err != nil {
		return nil, err
	}
	return sender{cable{d.(end)}, d.(radio.TransmitOpener), c.permit}, nil
}

// Bring a radio of one's own: the URIs of [radio] begin with its driver's scheme.
func ExampleRadios() {
	dir, remove := folder()
	defer remove()
	memory, err := loopback.New(loopback.Config{Rate: 2e6, Devices: []loopback.Device{{Gain: 0.5}, {Gain: 0.35}}})
	if err != nil {
		log.Fatal(err)
	}
	driver := boards.Driver{Scheme: "cable", NewOpener: func(_ context.Context, p radio.TransmitPermit, _ radio.Guard) radio.Opener {
		return cables{memory, p}
	}}
	lab := experiment.Lab{Radios: experiment.Radios{Drivers: []boards.Driver{driver}}}
	cfg, err := lab.Load("../../hw-configs/virtual-bench.toml", append(few, "optimizer.rounds=3",
		`radio.transmitters=["cable:1", "cable:2"]`, "radio.receiver=cable:0", "radio.clock=shared",
		"radio.trigger=none", "radio.transmit_gains_db=[]", "radio.receive_gains_db=[]")...)
	if err != nil {
		log.Fatal(err)
	}
	e, err := lab.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	result, err := e.Run(context.Background(), dir, experiment.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d rounds over %d cables, %d skipped\n", result.Round, cfg.Devices.Count, result.Summary.RoundsSkipped)
	// Output: 3 rounds over 2 cables, 0 skipped
}
