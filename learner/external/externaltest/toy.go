// Package externaltest has a learner for tests: a program that speaks package external's
// protocol, written apart from it, and that can do so badly.
//
// It takes in, by its environment, what to do wrong, and gives the command to start. It knows
// nothing of package external.
package externaltest

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/philox"
)

// variable makes a test's program the learner, which does what it says.
const variable = "RINGWAVE_TEST_LEARNER"

// The toy's size.
const (
	Dim   = 70
	Train = 8
	Test  = 3
)

// Command returns the command that starts this test's program as the learner: its TestMain
// calls Play. The learner does one thing wrong, once, at the first request of a kind, as
// how says with "kind=what"; "" for nothing, "single" for float32. What is a word of bad, or a
// line to print in which ID stands for the request's.
func Command(t *testing.T, how string) []string {
	t.Helper()
	t.Setenv(variable, how)
	t.Setenv(variable+"_ONCE", filepath.Join(t.TempDir(), "once"))
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each program takes a second to end
	return []string{os.Args[0]}
}

// Hangs returns what is closed once a learner that Command has started hangs.
func Hangs(t *testing.T) <-chan struct{} {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv(variable+"_HANGS", l.Addr().String())
	hangs := make(chan struct{})
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			close(hangs)
		}
	}()
	return hangs
}

// Play is the learner until nothing is asked any more, where Command has started this program;
// else it returns false.
func Play() bool {
	how, ok := os.LookupEnv(variable)
	if !ok {
		return false
	}
	kind, what, _ := strings.Cut(how, "=")
	l := New(kind == "single")
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var r request
		check(json.Unmarshal(in.Bytes(), &r))
		a := l.answer(r)
		a["id"] = r.ID
		text, err := json.Marshal(a)
		check(err)
		line := string(text)
		if every, always := strings.CutPrefix(what, "every "); r.Request == kind && (always || first()) {
			line = bad(every, line, r)
		}
		if line != "" {
			fmt.Println(line)
		}
	}
	return true
}

// bad returns the line that is printed in place of another.
func bad(what, line string, r request) string {
	switch what {
	case "die":
		fmt.Fprintln(os.Stderr, "Traceback:\nout of memory")
		os.Exit(3)
	case "hang":
		if to := os.Getenv(variable + "_HANGS"); to != "" {
			_, err := net.Dial("tcp", to)
			check(err)
		}
		select {}
	case "twice":
		return line + "\n" + line
	case "long":
		return strings.Repeat("1", 1<<20+1)
	case "close":
		os.Stdout.Close()
		return ""
	case "half":
		return line[:len(line)/2]
	case "nothing saved":
		check(os.Remove(r.Path))
		return line
	case "too much saved":
		check(os.WriteFile(r.Path, make([]byte, 8*Dim+1), 0o600))
		return line
	case "no number saved":
		l := New(false)
		l.Theta[Dim-1] = math.Inf(1)
		check(os.WriteFile(r.Path, l.bytes(), 0o600))
		return line
	case "nothing":
		return " "
	}
	return strings.ReplaceAll(what, "ID", fmt.Sprint(r.ID))
}

// first reports whether this is the first time, over all starts of the program, by a file that
// its environment names.
func first() bool {
	f, err := os.OpenFile(os.Getenv(variable+"_ONCE"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the toy:", err)
		os.Exit(4)
	}
}

// request is what is asked.
type request struct {
	ID        uint64  `json:"id"`
	Request   string  `json:"request"`
	Gamma     float64 `json:"gamma"`
	Direction uint64  `json:"direction"`
	Minus     bool    `json:"minus"`
	Base      bool    `json:"base"`
	Batches   [][]int `json:"batches"`
	Steps     []struct {
		Direction uint64  `json:"direction"`
		Size      float64 `json:"size"`
	} `json:"steps"`
	Samples []int  `json:"samples"`
	Path    string `json:"path"`
}

// Toy is the model: the loss of sample s at theta is the sum of (theta[j] - s - j)^2/1000.
type Toy struct {
	Theta  []float64
	single bool
}

// New returns the toy at 0.
func New(single bool) *Toy { return &Toy{make([]float64, Dim), single} }

// Signs returns a direction, times a scale.
func Signs(key uint64, n int, scale float64) []float64 {
	g, out := philox.New(key), make([]float64, n)
	var word uint64
	for j := range out {
		if j%64 == 0 {
			word = g.Uint64()
		}
		out[j] = scale * (1 - 2*float64(word>>(j%64)&1))
	}
	return out
}

// Loss returns the mean loss of samples at theta + along.
func (l *Toy) Loss(samples []int, along []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		for j, x := range l.Theta {
			d := x + along[j] - float64(s+j)
			sum += float64(d*d) / 1000
		}
	}
	return sum / float64(len(samples))
}

// Accuracy returns what the toy says is right at theta: another number nearly everywhere.
func Accuracy(theta []float64) float64 {
	sum := 0.0
	for j, x := range theta {
		sum += x * float64(j+1)
	}
	return 0.5 + 0.5*math.Sin(sum)
}

// Move makes a step.
func (l *Toy) Move(key uint64, size float64) {
	for j, d := range Signs(key, Dim, size) {
		if l.Theta[j] -= d; l.single {
			l.Theta[j] = float64(float32(l.Theta[j]))
		}
	}
}

func (l *Toy) losses(batches [][]int, along []float64) (all []float64) {
	for _, b := range batches {
		all = append(all, l.Loss(b, along))
	}
	return all
}

// bytes returns theta as it is saved.
func (l *Toy) bytes() (b []byte) {
	for _, x := range l.Theta {
		if l.single {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

// load takes what bytes gave.
func (l *Toy) load(b []byte) {
	for j := range l.Theta {
		if l.single {
			l.Theta[j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:])))
		} else {
			l.Theta[j] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*j:]))
		}
	}
}

// answer returns the keys of an answer, without its id.
func (l *Toy) answer(r request) map[string]any {
	zero := make([]float64, Dim)
	switch r.Request {
	case "hello":
		return map[string]any{
			"version": 1, "name": "toy", "dim": Dim, "dtype": map[bool]string{true: "float32", false: "float64"}[l.single],
			"train": Train, "test": Test,
		}
	case "loss":
		a := map[string]any{"plus": l.losses(r.Batches, Signs(r.Direction, Dim, r.Gamma))}
		if r.Minus {
			a["minus"] = l.losses(r.Batches, Signs(r.Direction, Dim, -r.Gamma))
		}
		if r.Base {
			a["base"] = l.losses(r.Batches, zero)
		}
		return a
	case "update":
		for _, s := range r.Steps {
			l.Move(s.Direction, s.Size)
		}
	case "evaluate":
		return map[string]any{"loss": l.Loss(r.Samples, zero), "accuracy": Accuracy(l.Theta)}
	case "save":
		check(os.WriteFile(r.Path, l.bytes(), 0o600))
	case "load":
		b, err := os.ReadFile(r.Path)
		check(err)
		l.load(b)
	}
	sum := sha256.Sum256(l.bytes())
	return map[string]any{"digest": hex.EncodeToString(sum[:])}
}
