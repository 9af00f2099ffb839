package external

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"ringwave/learner/external/externaltest"
	"ringwave/learner/model"
)

func TestMain(m *testing.M) {
	if !externaltest.Play() {
		os.Exit(m.Run())
	}
}

// start starts this program as a learner.
func start(t *testing.T, how string, c Config) (*Learner, error) {
	t.Helper()
	c.Command = externaltest.Command(t, how)
	if c.Answer == 0 {
		c.Answer = time.Minute
	}
	c.Devices = 2
	l, err := Start(c)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// play does all that a run does: losses, a step, losses again, an evaluation.
func play(t *testing.T, how string, c Config) (losses []float64, err error) {
	t.Helper()
	l, err := start(t, how, c)
	if err != nil {
		return nil, err
	}
	train, test := l.Samples()
	if train.Len() != 8 || test.Len() != 3 || l.Dim() != 70 || l.Name() != "toy" || test.Row(0)[0] != 8 {
		t.Fatalf("it says %+v", l.says)
	}
	theta := make([]float64, l.Dim())
	l.Init(theta, nil)
	w := l.NewWorker().(model.BatchesWorker)
	for round := 1; round <= 2; round++ {
		batches := []model.Batch{{Samples: []int{0, 5}}, {Samples: []int{7}}}
		w.Batches(model.Point{Theta: theta, Key: 77, Gamma: 0.25, Round: round}, train, batches, model.Want{F: true, Minus: true})
		for _, b := range batches {
			losses = append(losses, b.Plus, b.Minus, b.F)
		}
		if err := l.Err(); err != nil {
			return nil, err
		}
		next := make([]float64, len(theta))
		for j, d := range externaltest.Signs(5, len(theta), 0.1) {
			if next[j] = theta[j] - d; l.Single() {
				next[j] = float64(float32(theta[j]) - float32(d))
			}
		}
		size := 0.1
		if l.Single() {
			size = float64(float32(size))
		}
		if err := l.Follow(round, theta, next, []model.Step{{Key: 5, Size: size}}); err != nil {
			return nil, err
		}
		theta = next
	}
	loss, correct := w.Evaluate(theta, test, 0, 3)
	if err := l.Err(); err != nil {
		return nil, err
	}
	if accuracy := externaltest.Accuracy(theta); correct != int(math.Round(3*accuracy)) {
		t.Errorf("%d of 3 are right, want %v of them", correct, accuracy)
	}
	return append(losses, loss), nil
}

// Losses are the toy's, and what is given another theta has its losses.
func TestLosses(t *testing.T) {
	for _, how := range []string{"", "single"} {
		got, err := play(t, how, Config{})
		if err != nil {
			t.Fatal(err)
		}
		own := externaltest.New(how == "single")
		var want []float64
		zero := make([]float64, 70)
		for range 2 {
			for _, b := range [][]int{{0, 5}, {7}} {
				want = append(want, own.Loss(b, externaltest.Signs(77, 70, 0.25)), own.Loss(b, externaltest.Signs(77, 70, -0.25)), own.Loss(b, zero))
			}
			size := 0.1
			if how == "single" {
				size = float64(float32(size))
			}
			own.Move(5, size)
		}
		want = append(want, 3*own.Loss([]int{8, 9, 10}, zero))
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%q: loss %d is %v, want %v", how, i, got[i], want[i])
			}
		}
	}
}

// A program is asked for the losses that are wanted alone, and must give no others.
func TestPartialLosses(t *testing.T) {
	own, zero := externaltest.New(false), make([]float64, 70)
	plus, minus := own.Loss([]int{3}, externaltest.Signs(9, 70, 0.5)), own.Loss([]int{3}, externaltest.Signs(9, 70, -0.5))
	point := model.Point{Theta: zero, Key: 9, Gamma: 0.5, Round: 1}
	for _, want := range []model.Want{{}, {F: true}, {Minus: true}} {
		l, err := start(t, "", Config{})
		if err != nil {
			t.Fatal(err)
		}
		train, _ := l.Samples()
		is := model.Batch{Plus: plus}
		if want.F {
			is.F = own.Loss([]int{3}, zero)
		}
		if want.Minus {
			is.Minus = minus
		}
		got := []model.Batch{{Samples: []int{3}}}
		l.NewWorker().(model.BatchesWorker).Batches(point, train, got, want)
		if got[0].F != is.F || got[0].Plus != is.Plus || got[0].Minus != is.Minus || l.Err() != nil {
			t.Errorf("%+v: %+v, want %+v: %v", want, got[0], is, l.Err())
		}
	}
	for more, want := range map[string]string{
		`"minus":[1]`: "minus is there; allowed is none where none was asked for",
		`"base":[1]`:  "base is there; allowed is none where none was asked for",
	} {
		l, err := start(t, `loss={"id":ID,"plus":[1],`+more+`}`, Config{})
		if err != nil {
			t.Fatal(err)
		}
		train, _ := l.Samples()
		l.NewWorker().(model.BatchesWorker).Batches(point, train, []model.Batch{{Samples: []int{3}}}, model.Want{})
		if err := l.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", more, err)
		}
	}
}

// A theta that the program has not got is given to it.
func TestAnotherTheta(t *testing.T) {
	l, err := start(t, "", Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, test := l.Samples()
	theta := make([]float64, 70)
	for j := range theta {
		theta[j] = float64(8 + j) // the minimum of sample 8
	}
	if loss, _ := l.NewWorker().Evaluate(theta, test, 0, 1); loss != 0 {
		t.Errorf("the loss is %v (%v)", loss, l.Err())
	}
}

// Programs that end, hang or close what they speak through are started again, and the course
// is the same.
func TestRestarts(t *testing.T) {
	want, err := play(t, "", Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"loss=die", "update=die", "evaluate=die", "loss=close", "update=hang", "loss=hang"} {
		c := Config{Restarts: 1}
		if strings.HasSuffix(how, "hang") {
			c.Answer = 2 * time.Second
		}
		got, err := play(t, how, c)
		if err != nil {
			t.Errorf("%s: %v", how, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: loss %d is %v, want %v", how, i, got[i], want[i])
			}
		}
	}
	_, err = play(t, "loss=every die", Config{Restarts: 2})
	if err == nil || !strings.Contains(err.Error(), `asked for loss: it has ended with exit status 3; its last words are "out of memory"`) {
		t.Errorf("one that always dies: %v", err)
	}
}

// Each malformed answer is one sentence that names the device, what was asked and what came.
func TestMalformed(t *testing.T) {
	long := strings.Repeat("x", 200)
	cases := []struct{ how, want string }{
		{`hello=die`, `asked for hello: it has ended with exit status 3; its last words are "out of memory"`},
		{`hello=hang`, `asked for hello: it does not answer within 1s`},
		{`hello=close`, `asked for hello: it has ended with signal: killed`},
		{`hello=Hello!`, `it answers "Hello!"; allowed is a JSON object in one line`},
		{`hello=nothing`, `it answers ""; allowed is a JSON object in one line`},
		{`hello=[1]`, `it answers "[1]"; allowed is a JSON object`},
		{`hello=null`, `it answers "null"; allowed is a JSON object`},
		{`hello=half`, `allowed is a JSON object in one line`},
		{`hello=long`, `it answers a line of more than 1048576 bytes`},
		{`hello={"id":ID,"error":"no data"}`, `it says "no data"`},
		{`hello={"id":ID,"error":{"a":1}}`, `it says {"a":1}`},
		{`hello={"id":7}`, `whose id is "7"; allowed is 1`},
		{`hello={"version":1}`, `whose id is ""; allowed is 1`},
		{`hello={"id":ID,"version":2,"name":"a","dim":1,"dtype":"float64","train":8,"test":1}`, `version is 2; allowed is 1`},
		{`hello={"id":ID,"version":1,"name":"","dim":1,"dtype":"float64","train":8,"test":1}`, `name is ""; allowed is 1 to 100 bytes`},
		{`hello={"id":ID,"version":1,"name":"` + long + `","dim":1,"dtype":"float64","train":8,"test":1}`, `allowed is 1 to 100 bytes`},
		{`hello={"id":ID,"version":1,"name":"a","dim":0,"dtype":"float64","train":8,"test":1}`, `dim is 0; allowed is 1 to 67108864`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1e12,"dtype":"float64","train":8,"test":1}`, `dim is a number 1e12; allowed is a whole number`},
		{`hello={"id":ID,"version":1,"name":"a","dim":"1","dtype":"float64","train":8,"test":1}`, `dim is a string; allowed is a whole number`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float16","train":8,"test":1}`, `dtype is "float16"; allowed is "float64" or "float32"`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float64","train":0,"test":1}`, `train is 0; allowed is 1 to 67108864`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float64","train":8,"test":0}`, `test is 0; allowed is 1 to 67108864`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float64","train":8}`, `without "test"`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float64","train":8,"test":null}`, `without "test"`},
		{`hello={"id":ID,"version":1,"name":"a","dim":1,"dtype":"float64","train":8,"test":1,"extra":1}`, `unknown field "extra"`},
		{`save=nothing saved`, `asked for save: it saved nothing at `},
		{`save=too much saved`, `it saved 561 bytes or more; allowed is 560, 70 numbers of float64`},
		{`save=no number saved`, `it saved +Inf as theta[69]; allowed is finite`},
		{`save={"id":ID,"digest":"abc"}`, `the digest is "abc"; allowed is "`},
		{`save={"id":ID}`, `without "digest"`},
		{`loss={"id":ID,"plus":[1,2],"minus":[1]}`, `minus is 1 losses; allowed is 2, one of each batch`},
		{`loss={"id":ID,"plus":[1,2],"minus":[1,2]}`, `base is 0 losses; allowed is 2`},
		{`loss={"id":ID,"plus":[1,2],"minus":[1,NaN],"base":[1,1]}`, `in one line, which has no NaN`},
		{`loss={"id":ID,"plus":[1,2],"minus":[1,-Infinity],"base":[1,1]}`, `in one line, which has no Infinity`},
		{`loss={"id":ID,"plus":[1,2],"minus":[1,1e999],"base":[1,1]}`, `minus is a number 1e999; allowed is a finite number`},
		{`loss={"id":ID,"plus":[1,2],"minus":3,"base":[1,1]}`, `minus is a number; allowed is a list of finite numbers`},
		{`loss={"id":ID,"plus":[1,null],"minus":[1,2],"base":[1,1]}`, `null is no loss; allowed are finite numbers`},
		{`loss={"id":ID,"plus":[1,2]}`, `minus is 0 losses; allowed is 2, one of each batch`},
		{`loss={"id":ID,"minus":[1,2],"base":[1,2]}`, `without "plus"`},
		{`loss=twice`, `it speaks unasked`},
		{`loss=loading 10 %`, `it answers "loading 10 %"; allowed is a JSON object`},
		{`update={"id":ID,"digest":"0000"}`, `asked for update: the digest is "0000"; allowed is "`},
		{`update={"id":ID,"digest":12}`, `digest is a number; allowed is text`},
		{`evaluate={"id":ID,"loss":1,"accuracy":99.5}`, `asked for evaluate: accuracy is 99.5; allowed is 0 to 1`},
		{`evaluate={"id":ID,"loss":1}`, `without "accuracy"`},
	}
	for _, c := range cases {
		cfg := Config{Restarts: 3, Device: 2}
		if strings.HasSuffix(c.how, "hang") {
			cfg.Answer = time.Second
		}
		_, err := play(t, c.how, cfg)
		if err == nil {
			t.Errorf("%s: nothing is said", c.how)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, c.want) && !(c.how == "loss=twice" && strings.Contains(text, "whose id is")) {
			t.Errorf("%s: got %q, want %q in it", c.how, text, c.want)
		}
		if !strings.HasPrefix(text, "the learner of device 2, ") || strings.ContainsAny(text, "\n\r") || len(text) > 1000 {
			t.Errorf("%s: no sentence: %q", c.how, text)
		}
	}
}

// A program that does not answer is not waited for once the run is to stop.
func TestInterrupt(t *testing.T) {
	hangs := externaltest.Hangs(t)
	l, err := start(t, "loss=hang", Config{Answer: time.Hour, Restarts: 3})
	if err != nil {
		t.Fatal(err)
	}
	train, _ := l.Samples()
	go func() {
		<-hangs
		l.Interrupt()
	}()
	l.NewWorker().(model.BatchesWorker).Batches(model.Point{Theta: make([]float64, l.Dim()), Gamma: 1}, train, []model.Batch{{Samples: []int{1}}}, model.Want{Minus: true})
	if err := l.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	_, err := Start(Config{Command: []string{"/no/such/program"}, Answer: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("got %v", err)
	}
	if want := `["/no/such/program"]: cannot be started: no such file or directory`; err != nil && !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Start(Config{Command: []string{"/no/python3 learner.py"}, Answer: time.Minute}); err == nil || !strings.Contains(err.Error(), `each argument is a text of its own: ["python3", "learner.py"]`) {
		t.Errorf("all in one text: %v", err)
	}
	if _, err := Start(Config{}); err == nil {
		t.Error("an empty command is taken")
	}
	var gone *goneError
	if errors.As(err, &gone) {
		t.Error("a program that is not there would be started again")
	}
}

// FuzzDecode has answers of all kinds: none panics, and what is taken has what was asked for.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":1,"plus":[1],"minus":[2]}`))
	f.Add([]byte(`{"id":1,"digest":"ab"}`))
	f.Add([]byte(`{"id":1,"version":1,"name":"a","dim":1,"dtype":"float64","train":8,"test":1}`))
	f.Add([]byte(`{"id":1,"loss":1,"accuracy":0.5}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, answer := range []any{&hello{}, &lossAnswer{}, &digestAnswer{}, &evaluateAnswer{}} {
			err := decode(line, 1, answer)
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%d bytes say what is wrong", len(err.Error()))
			}
			if losses, ok := answer.(*lossAnswer); ok && err == nil && losses.Plus == nil {
				t.Errorf("%q has no losses", line)
			}
		}
	})
}

// What a program says before there is anywhere to write it to is written once there is, and no
// more than is meant to be.
func TestRecord(t *testing.T) {
	var r record
	var out strings.Builder
	early := strings.Repeat("e", recordEarly)
	for _, text := range []string{early[:10], early, "lost"} {
		if n, err := r.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	r.begin(&out)
	if _, err := r.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != early+"later" {
		t.Errorf("%d bytes", len(got))
	}
	for range 3 {
		if n, err := r.Write(make([]byte, recordMost/2)); n != recordMost/2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.Len() != recordMost {
		t.Errorf("%d bytes are kept, of %d", out.Len(), recordMost)
	}
}

// The lines that the README shows are of this protocol: each question has its answer, and digests
// are those of theta, 0 at first.
func TestREADMEsLines(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, `{"id":`) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 8 {
		t.Fatalf("%d lines", len(lines))
	}
	theta, says := make([]float64, 3), hello{}
	for k := 0; k < len(lines); k += 2 {
		var r request
		d := json.NewDecoder(strings.NewReader(lines[k]))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v", lines[k], err)
		}
		answer := map[string]any{"hello": &says, "loss": &lossAnswer{}}[r.Request]
		if answer == nil {
			answer = &digestAnswer{}
		}
		if err := decode([]byte(lines[k+1]), r.ID, answer); err != nil {
			t.Fatalf("%s: %v", lines[k+1], err)
		}
		switch a := answer.(type) {
		case *hello:
			err = a.check(Config{Devices: r.Devices})
		case *lossAnswer:
			err = a.check(r)
		case *digestAnswer:
			for _, s := range r.Steps {
				for j, phi := range externaltest.Signs(s.Key, len(theta), s.Size) {
					theta[j] = float64(float32(theta[j] - phi))
				}
			}
			if want := digestOf(theta, says); a.Digest != want {
				t.Errorf("%s: the digest is to be %s", lines[k+1], want)
			}
		}
		if err != nil {
			t.Errorf("%s: %v", lines[k+1], err)
		}
	}
}
