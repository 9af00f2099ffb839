package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"ringwave/radio/intake"
)

// verb is what a worker asks of a broker.
type verb string

const (
	grant    verb = "grant"    // may it begin this job?
	result   verb = "result"   // the job's result, behind the request
	failed   verb = "failed"   // the job has none, and why
	returned verb = "returned" // the worker ends, and gives the job back
)

// request is what a worker asks.
type request struct {
	Verb    verb   `json:"verb"`
	Worker  string `json:"worker"`
	Program string `json:"program"`
	Job     string `json:"job"`
	Class   class  `json:"class,omitempty"` // of a job that failed
	Why     string `json:"why,omitempty"`   // a sentence
	Log     string `json:"log,omitempty"`

	result []byte
}

// verdict is what a broker answers.
type verdict string

const (
	begin   verdict = "begin"   // the job is the worker's, with what it is
	drop    verdict = "drop"    // nobody need do it
	later   verdict = "later"   // another worker has it
	refused verdict = "refused" // not this worker, and why
	again   verdict = "again"   // it goes back into the queue
	stored  verdict = "stored"  // the result is on the disk
	broken  verdict = "broken"  // the result is none
)

// answer is what a broker says to a request.
type answer struct {
	Verdict verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	Kind    string  `json:"kind,omitempty"`
	Title   string  `json:"title,omitempty"`

	body []byte
}

// beat is what a worker says of itself, to all brokers.
type beat struct {
	Worker string `json:"worker"`
	Slots  int    `json:"slots"` // how many jobs it does at a time
	Jobs   []held `json:"jobs"`
}

// held is a job that a worker has.
type held struct {
	Sweep string `json:"sweep"`
	Job   string `json:"job"`
	Done  int    `json:"done"` // of Of
	Of    int    `json:"of"`
}

// order is what a broker says to all workers.
type order struct {
	// Over says that the broker has no jobs any more. Stop are jobs that need not be done.
	Over bool     `json:"over,omitempty"`
	Stop []string `json:"stop,omitempty"`
}

const (
	// beatEvery is how often a worker speaks.
	beatEvery = time.Second
	// mostHeader bounds the JSON of a message, in bytes: a log among it.
	mostHeader = 1 << 18
	// mostLog bounds the log of a job, in bytes.
	mostLog = 1 << 15
	// mostWhy bounds a sentence, in bytes.
	mostWhy = 1 << 10
)

// MostSlots bounds how many jobs a worker does at a time.
const MostSlots = 1024

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	jobForm   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	sweepForm = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// The subjects of a sweep.
func askSubject(sweep string) string   { return "rw." + sweep + ".worker.ask" }
func orderSubject(sweep string) string { return "rw." + sweep + ".sweep.all" }

// beatSubject is where all workers speak.
const beatSubject = "rw.any.worker.beat"

// encode returns a header as a line of JSON with bytes behind it.
func encode(header any, rest []byte) ([]byte, error) {
	b, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return append(append(b, '\n'), rest...), nil
}

// decode reads what encode has written, and returns what is behind the header.
func decode(message []byte, header any) ([]byte, error) {
	line, _, ok := bytes.Cut(message[:min(len(message), mostHeader+1)], []byte{'\n'})
	if !ok {
		return nil, fmt.Errorf("a message without a line of at most %d bytes", mostHeader)
	}
	rest := message[len(line)+1:]
	if err := intake.CheckJSON("the message", line, intake.JSONLimits{Depth: 4, Members: 64, Elements: MostSlots}); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, header); err != nil {
		return nil, fmt.Errorf("a message: %w", err)
	}
	return rest, nil
}

func decodeRequest(message []byte) (r request, err error) {
	if r.result, err = decode(message, &r); err != nil {
		return r, err
	}
	if !slices.Contains([]verb{grant, result, failed, returned}, r.Verb) || !nameForm.MatchString(r.Worker) || !jobForm.MatchString(r.Job) {
		return r, errors.New("a request without a verb, a worker and a job")
	}
	if r.Verb == failed && !slices.Contains(classes, r.Class) {
		return r, fmt.Errorf("a failure of the class %.20q", r.Class)
	}
	r.Why, r.Log = intake.Sentence(cut(r.Why, mostWhy)), printable(cut(r.Log, mostLog))
	return r, nil
}

func decodeAnswer(message []byte) (a answer, err error) {
	if a.body, err = decode(message, &a); err != nil {
		return a, err
	}
	if !slices.Contains([]verdict{begin, drop, later, refused, again, stored, broken}, a.Verdict) {
		return a, fmt.Errorf("an answer without a verdict")
	}
	a.Why, a.Title = intake.Sentence(cut(a.Why, mostWhy)), intake.Sentence(cut(a.Title, mostWhy))
	return a, nil
}

func decodeBeat(message []byte) (b beat, err error) {
	if _, err = decode(message, &b); err != nil {
		return b, err
	}
	if !nameForm.MatchString(b.Worker) || b.Slots < 1 || b.Slots > MostSlots || len(b.Jobs) > MostSlots {
		return b, errors.New("a worker without a name and slots")
	}
	for _, h := range b.Jobs {
		if !jobForm.MatchString(h.Job) || !sweepForm.MatchString(h.Sweep) || h.Of < 0 || h.Done < 0 || h.Done > h.Of {
			return b, errors.New("a worker that has what is no job")
		}
	}
	return b, nil
}

// cut returns the end of a text that is longer than most bytes.
func cut(text string, most int) string { return text[max(0, len(text)-most):] }

// printable returns a log without what moves a terminal's cursor.
func printable(text string) string {
	out := make([]rune, 0, len(text))
	for _, r := range text {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && !(r >= 0x80 && r < 0xa0) {
			out = append(out, r)
		}
	}
	return string(out)
}
