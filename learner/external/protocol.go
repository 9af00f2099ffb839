package external

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// request is what a program is asked, a line. A field that is of no use to the request is left
// out.
type request struct {
	// ID is what the answer must repeat, so that none is taken for that of another request.
	ID      uint64 `json:"id"`
	Request string `json:"request"`

	// Of hello.
	Version int     `json:"version,omitempty"`
	Device  *int    `json:"device,omitempty"`
	Devices int     `json:"devices,omitempty"`
	Seed    *uint64 `json:"seed,omitempty"`

	// Of loss and update.
	Round int `json:"round,omitempty"`
	// Of loss: the losses of each batch at theta + gamma Phi, with minus at theta - gamma Phi
	// and with base at theta, too.
	Gamma     float64 `json:"gamma,omitempty"`
	Direction *uint64 `json:"direction,omitempty"`
	Minus     *bool   `json:"minus,omitempty"`
	Base      *bool   `json:"base,omitempty"`
	Batches   [][]int `json:"batches,omitempty"`
	// Of update: theta - size Phi, one after the other.
	Steps []step `json:"steps,omitempty"`

	// Of evaluate.
	Samples []int `json:"samples,omitempty"`
	// Of save and load.
	Path string `json:"path,omitempty"`
}

// step is a direction's key and the size of a step along it.
type step struct {
	Key  uint64  `json:"direction"`
	Size float64 `json:"size"`
}

// hello is what a program says of itself.
type hello struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Dim     int    `json:"dim"`
	Dtype   string `json:"dtype"`
	Train   int    `json:"train"`
	Test    int    `json:"test"`
}

func (h hello) single() bool { return h.Dtype == "float32" }

// size returns the bytes of a parameter.
func (h hello) size() int {
	if h.single() {
		return 4
	}
	return 8
}

// check refuses what no learner is like.
func (h hello) check(c Config) error {
	least := 1
	if c.Device == 0 {
		least = c.Devices
	}
	switch {
	case h.Version != Version:
		return wrong("version", h.Version, fmt.Sprint(Version))
	case len(h.Name) == 0 || len(h.Name) > 100:
		return wrong("name", fmt.Sprintf("%.100q", h.Name), "1 to 100 bytes")
	case h.Dim < 1 || h.Dim > maxDim:
		return wrong("dim", h.Dim, fmt.Sprintf("1 to %d", maxDim))
	case h.Dtype != "float64" && h.Dtype != "float32":
		return wrong("dtype", fmt.Sprintf("%.100q", h.Dtype), `"float64" or "float32"`)
	case h.Train < least || h.Train > maxSamples:
		return wrong("train", h.Train, fmt.Sprintf("%d to %d, the samples to train on", least, maxSamples))
	case h.Test < 1 || h.Test > maxSamples:
		return wrong("test", h.Test, fmt.Sprintf("1 to %d, the samples to test on", maxSamples))
	}
	return nil
}

// losses are numbers: null, which some languages write for NaN, is none.
type losses []float64

// UnmarshalJSON refuses what is no list of numbers.
func (l *losses) UnmarshalJSON(text []byte) error {
	if bytes.Contains(text, []byte("null")) {
		return errors.New("null is no loss; allowed are finite numbers")
	}
	return json.Unmarshal(text, (*[]float64)(l))
}

// lossAnswer has a loss of each batch, at the points that were asked for.
type lossAnswer struct {
	Plus  losses `json:"plus"`
	Minus losses `json:"minus"`
	Base  losses `json:"base"`
}

// check refuses another number of losses than that of batches, and losses that were not asked
// for.
func (a lossAnswer) check(r request) error {
	for _, of := range []struct {
		name   string
		some   losses
		wanted bool
	}{{"plus", a.Plus, true}, {"minus", a.Minus, *r.Minus}, {"base", a.Base, *r.Base}} {
		if !of.wanted && of.some != nil {
			return fmt.Errorf("%s is there; allowed is none where none was asked for", of.name)
		}
		if of.wanted && len(of.some) != len(r.Batches) {
			return wrong(of.name, fmt.Sprintf("%d losses", len(of.some)), fmt.Sprintf("%d, one of each batch", len(r.Batches)))
		}
	}
	return nil
}

// digestAnswer has the SHA-256 of theta.
type digestAnswer struct {
	Digest string `json:"digest"`
}

// evaluateAnswer has the mean loss over the samples, and the share of right answers.
type evaluateAnswer struct {
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
}

func (a evaluateAnswer) check() error {
	if a.Accuracy < 0 || a.Accuracy > 1 {
		return wrong("accuracy", a.Accuracy, "0 to 1")
	}
	return nil
}

func wrong(key string, value any, allowed string) error {
	return fmt.Errorf("%s is %v; allowed is %s", key, value, allowed)
}

// shown is how much of an answer an error shows.
const shown = 120

// decode reads an answer, all of whose keys must be there that the type has, unless they are
// optional.
func decode(line []byte, id uint64, answer any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil || keys == nil {
		return fmt.Errorf("it answers %s; allowed is a JSON object in one line%s", excerpt(line), hint(line))
	}
	if said, there := keys["error"]; there {
		return fmt.Errorf("it says %.500s", said)
	}
	if got := string(keys["id"]); got != fmt.Sprint(id) {
		return fmt.Errorf("it answers %s, whose id is %.20q; allowed is %d, that of the request", excerpt(line), got, id)
	}
	delete(keys, "id")
	for _, key := range wanted(answer) {
		if value, there := keys[key]; !there || string(value) == "null" {
			return fmt.Errorf("it answers %s, without %q", excerpt(line), key)
		}
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("it answers %s: %w", excerpt(line), err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(answer); err != nil {
		return fmt.Errorf("it answers %s: %s", excerpt(line), reason(err))
	}
	return nil
}

// wanted returns the keys that an answer must have.
func wanted(answer any) []string {
	switch answer.(type) {
	case *hello:
		return []string{"version", "name", "dim", "dtype", "train", "test"}
	case *lossAnswer:
		return []string{"plus"}
	case *evaluateAnswer:
		return []string{"loss", "accuracy"}
	}
	return []string{"digest"}
}

// reason says what is wrong with a key.
func reason(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		allowed := map[string]string{"int": "a whole number", "float64": "a finite number", "string": "text"}[kind.Type.String()]
		return fmt.Sprintf("%s is a %s; allowed is %s", kind.Field, kind.Value, cmp.Or(allowed, "a list of finite numbers"))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// hint says what JSON lacks that languages write all the same.
func hint(line []byte) string {
	for _, name := range []string{"NaN", "Infinity"} {
		if bytes.Contains(line, []byte(name)) {
			return ", which has no " + name + ": a loss that overflows is training that has diverged, of which smaller optimizer.eta0 or gamma0 are the cure"
		}
	}
	return ""
}

// excerpt shows the beginning of a line.
func excerpt(line []byte) string {
	if len(line) > shown {
		return fmt.Sprintf("%q…", line[:shown])
	}
	return fmt.Sprintf("%q", line)
}
