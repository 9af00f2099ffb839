// Package external has models that are programs of one's own, in any language.
//
// It takes in a command and starts it; the program says how many parameters and samples it
// has, and gives losses where it is told the direction by its key. It gives a model.Model and
// sets of samples, of which only the numbers are known here. It knows nothing of rings,
// devices on other hosts, or what the program learns.
//
// The protocol, version 1, is lines of JSON: learner/README.md, "A model of your own". A copy
// of theta is kept here: a program that ends, or is late, is started again and gets it back.
package external

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// Version is that of the protocol.
const Version = 1

// Bounds of what a program may say of itself: each costs some times 8 bytes here.
const (
	maxDim     = 1 << 26
	maxSamples = 1 << 26
)

// Config says what to start, and for whom.
type Config struct {
	// Command is the program and its arguments, one or more.
	Command []string
	// Answer is how long it may take to answer.
	Answer time.Duration
	// Restarts is how often it is started again, in all.
	Restarts int
	// Device is that of which the program has the samples, from 1; 0 for all Devices.
	Device, Devices int
	// Seed is for what the program draws.
	Seed uint64
	// Data, if not "", is the program's RINGWAVE_DATA, the folder of data sets.
	Data string
}

// Learner is a program that learns. It is a model.Follower whose Workers are for several
// goroutines, of which one at a time asks. Its one feature of a sample is the sample's number:
// training samples are the first ones.
type Learner struct {
	cfg     Config
	initial []float64
	says    hello

	words       record        // what programs printed on standard error
	interrupted chan struct{} // closed when the run is to stop
	interrupt   sync.Once

	mu       sync.Mutex
	program  *program // nil where it has ended
	theta    []float64
	restarts int
	why      string // the last one
	err      error  // that ended the run
}

// Start starts the program and asks it who it is. The caller closes the Learner.
func Start(c Config) (*Learner, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("starting a learner: the command is empty; allowed is a program and its arguments")
	}
	l := &Learner{cfg: c, interrupted: make(chan struct{})}
	if err := l.begin(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// begin starts the program for the first time.
func (l *Learner) begin() error {
	p, says, err := l.start()
	if err != nil {
		return err
	}
	l.program, l.says = p, says
	var digest digestAnswer
	err = inFile(func(path string) (err error) {
		if err = l.ask(request{Request: "save", Path: path}, &digest); err == nil {
			if l.initial, err = readTheta(path, says); err != nil {
				err = l.saidOf("save", err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	l.theta = slices.Clone(l.initial)
	return l.checkDigest("save", digest, l.theta)
}

// start starts the program and returns what it says of itself.
func (l *Learner) start() (*program, hello, error) {
	p, err := startProgram(l.cfg, &l.words)
	if err != nil {
		return nil, hello{}, l.said(err)
	}
	says := hello{}
	err = p.ask(request{
		Request: "hello", Version: Version, Device: &l.cfg.Device, Devices: l.cfg.Devices, Seed: &l.cfg.Seed,
	}, &says, l.cfg.Answer, l.interrupted)
	if err == nil {
		err = says.check(l.cfg)
	}
	if err != nil {
		p.end()
		return nil, hello{}, l.saidOf("hello", err)
	}
	return p, says, nil
}

// Name returns what the program calls itself.
func (l *Learner) Name() string { return l.says.Name }

// Dim returns the number of its parameters.
func (l *Learner) Dim() int { return l.says.Dim }

// Features returns 1: a sample is a number.
func (l *Learner) Features() int { return 1 }

// Single reports whether its theta is float32.
func (l *Learner) Single() bool { return l.says.single() }

// Init sets theta to the program's first; it draws nothing.
func (l *Learner) Init(theta []float64, _ *rand.Rand) { copy(theta, l.initial) }

// NewWorker returns a Worker.
func (l *Learner) NewWorker() model.Worker { return worker{l} }

// Samples returns the training and the test set.
func (l *Learner) Samples() (train, test *dataset.Set) {
	return numbered(0, l.says.Train), numbered(l.says.Train, l.says.Test)
}

// numbered returns the set of some samples' numbers.
func numbered(from, n int) *dataset.Set {
	s := &dataset.Set{X: make([]float64, n), Y: make([]uint8, n), Dim: 1, Shape: []int{1}, Classes: []string{"0", "1"}}
	for i := range s.X {
		s.X[i] = float64(from + i)
	}
	return s
}

// Err returns why the program gives no losses any more.
func (l *Learner) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Interrupt has a request at hand, and those to come, take two seconds at the most: the run is
// to stop. It may be called from any goroutine.
func (l *Learner) Interrupt() { l.interrupt.Do(func() { close(l.interrupted) }) }

// Digest returns a digest of what the program says of itself and of its first theta: another
// learner has another one.
func (l *Learner) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %s", l.says, digestOf(l.initial, l.says)))
	return hex.EncodeToString(sum[:])
}

// Restarts returns how often the program was started again, and why it was last.
func (l *Learner) Restarts() (n int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.restarts, l.cfg.Restarts), l.why
}

// Record has what the program prints on standard error written to w, what it has printed so far,
// too, up to recordMost bytes in all.
func (l *Learner) Record(w io.Writer) { l.words.begin(w) }

// Follow has the program make steps.
func (l *Learner) Follow(round int, theta, next []float64, steps []model.Step) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := request{Request: "update", Round: round, Steps: make([]step, len(steps))}
	for i, s := range steps {
		r.Steps[i] = step(s)
	}
	var answer digestAnswer
	if err := l.at(theta, r, &answer); err != nil {
		return err
	}
	l.theta = append(l.theta[:0], next...)
	return l.fatal(l.checkDigest("update", answer, next))
}

// at asks with theta as it is given, and remembers an error.
func (l *Learner) at(theta []float64, r request, answer any) error {
	if l.err != nil {
		return l.err
	}
	if !slices.Equal(theta, l.theta) {
		l.theta = append(l.theta[:0], theta...)
		if err := l.load(); err != nil && !l.mayRestart(err) {
			return l.fatal(err)
		}
	}
	return l.fatal(l.insist(r, answer))
}

// fatal remembers an error.
func (l *Learner) fatal(err error) error {
	var gone *goneError
	if errors.As(err, &gone) && l.cfg.Restarts > 0 {
		err = fmt.Errorf("%w, after %d starts", err, l.restarts)
	}
	if err != nil && l.err == nil {
		l.err = err
	}
	return err
}

// insist asks, and starts the program again where it ended or was late.
func (l *Learner) insist(r request, answer any) error {
	for {
		if l.program != nil {
			err := l.ask(r, answer)
			if err == nil || !l.mayRestart(err) {
				return err
			}
		}
		if err := l.restart(); err != nil && !l.mayRestart(err) {
			return err
		}
	}
}

// mayRestart ends a program that ended or was late, and counts. What is wrong with answers a
// second start does not mend.
func (l *Learner) mayRestart(err error) bool {
	var gone *goneError
	if !errors.As(err, &gone) {
		return false
	}
	if l.program != nil {
		l.program.end()
		l.program = nil
	}
	l.restarts++
	l.why = gone.Error()
	return l.restarts <= l.cfg.Restarts
}

// restart starts the program anew and gives theta back.
func (l *Learner) restart() error {
	p, says, err := l.start()
	if err != nil {
		return err
	}
	l.program = p
	if says != l.says {
		return l.saidOf("hello", fmt.Errorf("%+v; allowed is what it said at first, %+v", says, l.says))
	}
	return l.load()
}

// load gives the program theta.
func (l *Learner) load() error {
	if l.program == nil {
		return nil // which it gets when it is started
	}
	var answer digestAnswer
	err := inFile(func(path string) error {
		if err := writeTheta(path, l.theta, l.says); err != nil {
			return fmt.Errorf("handing theta to the learner: %w", err)
		}
		return l.ask(request{Request: "load", Path: path}, &answer)
	})
	if err != nil {
		return err
	}
	return l.checkDigest("load", answer, l.theta)
}

// ask asks once.
func (l *Learner) ask(r request, answer any) error {
	if err := l.program.ask(r, answer, l.cfg.Answer, l.interrupted); err != nil {
		return l.saidOf(r.Request, err)
	}
	return nil
}

// checkDigest refuses a theta that is another than the one here.
func (l *Learner) checkDigest(what string, a digestAnswer, theta []float64) error {
	if want := digestOf(theta, l.says); strings.ToLower(a.Digest) != want {
		return l.saidOf(what, fmt.Errorf("the digest is %.80q; allowed is %q, the SHA-256 of theta as it must be now, %s, little-endian (what differs may be Phi, whose bits are read from the lowest and are +1 where they are 0, the type that a step is rounded to, or a theta that something else than update has changed)", a.Digest, want, l.says.Dtype))
	}
	return nil
}

// who names the program and its device.
func (l *Learner) who() string {
	of := "all devices"
	if l.cfg.Device > 0 {
		of = fmt.Sprintf("device %d", l.cfg.Device)
	}
	return fmt.Sprintf("the learner of %s, %s", of, listed(l.cfg.Command))
}

// listed returns a command as a configuration has it.
func listed(command []string) string {
	quoted := make([]string, len(command))
	for i, c := range command {
		quoted[i] = strconv.Quote(c)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (l *Learner) said(err error) error { return fmt.Errorf("%s: %w", l.who(), err) }

func (l *Learner) saidOf(request string, err error) error {
	return fmt.Errorf("%s, asked for %s: %w", l.who(), request, err)
}

// Close ends the program.
func (l *Learner) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.program != nil {
		l.program.end()
		l.program = nil
	}
	if l.err == nil {
		l.err = errors.New("the learner is closed")
	}
	return nil
}
