package runfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"ringwave/radio/intake"
	"ringwave/radio/nullable"
)

// Float is a number that a summary may lack: a run that diverged has one, too.
type Float = nullable.Float

// Summary is a run's result, for machines: summary.json.
type Summary struct {
	Dataset      string `json:"dataset"`
	FallbackUsed bool   `json:"fallback_used"` // the data asked for were not there, the built-in ones were used
	// DataUnpublished says that the files go by the name of a published set, but are
	// not, or are not known to be, the published ones.
	DataUnpublished bool `json:"data_unpublished"`

	Model        string `json:"model"`
	Aggregator   string `json:"aggregator"`
	Form         string `json:"form"`
	ParameterSet string `json:"parameter_set"` // empty without encryption
	Randomness   string `json:"randomness"`    // where the randomness came from
	Seed         uint64 `json:"seed"`          // 0 where the randomness did not come from a seed
	Devices      int    `json:"devices"`

	Rounds          int `json:"rounds"`           // asked for
	RoundsCompleted int `json:"rounds_completed"` // reached, skipped ones included
	RoundsRepeated  int `json:"rounds_repeated"`
	RoundsSkipped   int `json:"rounds_skipped"`
	MessagesClipped int `json:"messages_clipped"`
	KeyEpochs       int `json:"key_epochs"`
	SharesAnswered  int `json:"shares_answered"` // attempts that the last key has answered

	// Gains in the rounds completed: null where nothing tells. Devices count from 1.
	ZeroGains          Float `json:"zero_gains"`
	WrongSigns         Float `json:"wrong_signs"`
	DisagreeingDevices []int `json:"disagreeing_devices"` // never null in the file

	TrainLoss    Float   `json:"train_loss"`
	TestAccuracy Float   `json:"test_accuracy"` // 0 to 1; null where never evaluated
	Seconds      float64 `json:"seconds"`       // wall clock, all sittings together

	// The round whose model this is, where samples are held out, and how well it does on them.
	BestRound          int   `json:"best_round,omitempty"`
	ValidationLoss     Float `json:"validation_loss,omitempty"`
	ValidationAccuracy Float `json:"validation_accuracy,omitempty"`

	UplinkBitsPerRound         int64 `json:"uplink_bits_per_round"`          // one device
	UplinkOverheadBitsPerRound int64 `json:"uplink_overhead_bits_per_round"` // of these, not payload
	FloodingBits               Float `json:"flooding_bits"`                  // of advantage, see xmkckks.FloodStd; null without encryption

	// Unusable says why the run has no usable result; empty for one that has.
	Unusable string `json:"unusable"`

	Notes []string `json:"notes"` // sentences for the reader; never null in the file
}

func (s Summary) check() error {
	if a := float64(s.TestAccuracy); a < 0 || a > 1 {
		return fmt.Errorf("test_accuracy is %g, but must be from 0 to 1", a)
	}
	if !(s.Seconds >= 0) || math.IsInf(s.Seconds, 1) {
		return fmt.Errorf("seconds is %g, but must be at least 0 and finite", s.Seconds)
	}
	return nil
}

// WriteSummary replaces summary.json, atomically. It is an error if
// TestAccuracy or Seconds is out of its range.
func (f *Folder) WriteSummary(s Summary) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("writing %s: %w", f.file(SummaryName), err)
	}
	if s.Notes == nil {
		s.Notes = []string{}
	}
	if s.DisagreeingDevices == nil {
		s.DisagreeingDevices = []int{}
	}
	return f.writeJSON(SummaryName, s)
}

// ReadSummary reads a summary.json. Keys that this version does not know are
// ignored, and those it does not find are left zero.
func ReadSummary(path string) (Summary, error) {
	b, err := intake.ReadFile(path, maxJSON)
	if err != nil {
		return Summary{}, fmt.Errorf("reading %s: %w", path, intake.Cause(err))
	}
	var s Summary
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&s); err != nil {
		return Summary{}, fmt.Errorf("reading %s: %w", path, jsonCause(err, b))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Summary{}, fmt.Errorf("reading %s: something follows the JSON object at byte %d, but nothing may", path, d.InputOffset())
	}
	if err := intake.CheckJSON("the summary", b, jsonLimits()); err != nil {
		return Summary{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := s.check(); err != nil {
		return Summary{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, nil
}

// jsonCause puts an error of encoding/json in terms of the file: the key, or
// the line where there is none, and what is allowed there.
func jsonCause(err error, data []byte) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return fmt.Errorf("the file holds a JSON %s, but must hold an object", kind.Value)
		}
		return fmt.Errorf("%s is a JSON %s, but must be %s", kind.Field, kind.Value, allowedFor(kind.Type.Kind()))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", lineAt(data, syntax.Offset), err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON object is cut off")
	}
	return err
}

// allowedFor says what JSON a field of the given kind takes.
func allowedFor(k reflect.Kind) string {
	switch k {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number of at least 0"
	case reflect.Float64:
		return "a number or null"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of strings"
	default:
		return "a string"
	}
}

func lineAt(data []byte, offset int64) int {
	return bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n")) + 1
}

func (f *Folder) writeJSON(name string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // a "<" in a note stays readable
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing %s: %w", f.file(name), err)
	}
	return f.WriteAtomic(name, b.Bytes())
}
