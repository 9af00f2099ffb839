package sigmf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Frames is the form of the frames that samples carry, as far as who sends and who
// receives them agree on it: what somebody else needs to read them. This package only
// keeps it.
type Frames struct {
	// Run is the number that frames of the run bear.
	Run uint16
	// Devices is how many send, Group the most that share a frame.
	Devices, Group int
	// Base is that of the digits. BlockSymbols is the setting that the length of blocks
	// follows from, and Coefficients the ring elements a device sends in each of a
	// round's transmissions, 1 to 16 of these.
	Base, BlockSymbols int
	Coefficients       []int
	SamplesPerSymbol   int
	// PreambleSymbols is the preamble's length without its guards.
	PreambleSymbols int
	Pulse           Pulse
	// DigitLevel is the amplitude at which the digit 1 of a device of gain 1 arrives.
	DigitLevel float64
	// Alpha is the scale of gains where it is known beforehand, up to the relative error
	// AlphaTolerance; 0 where the receiver finds it.
	Alpha, AlphaTolerance float64
	// CommonPhase is the phase that gains are measured against, in radians; nil where it
	// is that of the preamble.
	CommonPhase *float64
}

// Pulse is the shape of a symbol. Values that a shape has no use for are 0.
type Pulse struct {
	Shape       string // 1 to 32 bytes
	Edge        float64
	Tolerance   float64
	RollOff     float64
	SpanSymbols int
}

// The bounds of a Frames.
const (
	maxShape         = 32
	maxTransmissions = 16
	maxCount         = math.MaxInt32
)

type fileFrames struct {
	Run          int      `json:"run"`
	Devices      int      `json:"devices"`
	Group        int      `json:"group_size"`
	Base         int      `json:"base"`
	BlockSymbols int      `json:"block_symbols"`
	Coefficients []int    `json:"coefficients"`
	Samples      int      `json:"samples_per_symbol"`
	Preamble     int      `json:"preamble_symbols"`
	Pulse        string   `json:"pulse"`
	Edge         float64  `json:"edge_samples,omitempty"`
	Tolerance    float64  `json:"tolerance_samples,omitempty"`
	RollOff      float64  `json:"roll_off,omitempty"`
	Span         int      `json:"span_symbols,omitempty"`
	Level        float64  `json:"digit_level"`
	Alpha        float64  `json:"alpha,omitempty"`
	Error        float64  `json:"alpha_tolerance,omitempty"`
	Phase        *float64 `json:"common_phase,omitempty"`
}

func (f *Frames) file() *fileFrames {
	if f == nil {
		return nil
	}
	return &fileFrames{
		Run: int(f.Run), Devices: f.Devices, Group: f.Group, Base: f.Base, BlockSymbols: f.BlockSymbols,
		Coefficients: f.Coefficients, Samples: f.SamplesPerSymbol, Preamble: f.PreambleSymbols,
		Pulse: f.Pulse.Shape, Edge: f.Pulse.Edge, Tolerance: f.Pulse.Tolerance, RollOff: f.Pulse.RollOff, Span: f.Pulse.SpanSymbols,
		Level: f.DigitLevel, Alpha: f.Alpha, Error: f.AlphaTolerance, Phase: f.CommonPhase,
	}
}

// frames reads ringwave:frames; nil where it is not there.
func (o object) frames() (*Frames, error) {
	const key = "ringwave:frames"
	if _, ok := o.fields[key]; !ok {
		return nil, nil
	}
	in, err := o.object(key)
	if err != nil {
		return nil, err
	}
	f := &Frames{}
	if err := f.parseCounts(in); err != nil {
		return nil, err
	}
	if f.Coefficients, err = in.counts("coefficients", maxTransmissions); err != nil {
		return nil, err
	}
	if len(f.Coefficients) == 0 {
		return nil, in.wrong("coefficients", "missing", "1 to %d integers of 1 or more", maxTransmissions)
	}
	if f.Pulse.Shape, err = in.text("pulse", true); err != nil {
		return nil, err
	}
	if n := len(f.Pulse.Shape); n < 1 || n > maxShape {
		return nil, in.wrong("pulse", f.Pulse.Shape, "1 to %d bytes", maxShape)
	}
	return f, f.parseReals(in)
}

func (f *Frames) parseCounts(in object) error {
	run := 0
	for _, c := range []struct {
		key         string
		to          *int
		least, most int64
		optional    bool
	}{
		{"run", &run, 0, math.MaxUint16, false},
		{"devices", &f.Devices, 1, maxCount, false}, {"group_size", &f.Group, 1, maxCount, false},
		{"base", &f.Base, 2, maxCount, false}, {"block_symbols", &f.BlockSymbols, 1, maxCount, false},
		{"samples_per_symbol", &f.SamplesPerSymbol, 1, maxCount, false}, {"preamble_symbols", &f.PreambleSymbols, 1, maxCount, false},
		{"span_symbols", &f.Pulse.SpanSymbols, 0, maxCount, true},
	} {
		v, ok, err := in.integer(c.key, c.most)
		if err != nil {
			return err
		}
		if !ok && c.optional {
			continue
		}
		if !ok || v < c.least {
			return in.wrong(c.key, in.raw(c.key), "an integer from %d to %d", c.least, c.most)
		}
		*c.to = int(v)
	}
	f.Run = uint16(run)
	return nil
}

func (f *Frames) parseReals(in object) error {
	for _, c := range []struct {
		key string
		to  *float64
	}{
		{"edge_samples", &f.Pulse.Edge}, {"tolerance_samples", &f.Pulse.Tolerance}, {"roll_off", &f.Pulse.RollOff},
		{"alpha", &f.Alpha}, {"alpha_tolerance", &f.AlphaTolerance},
	} {
		v, _, err := in.number(c.key)
		if err != nil {
			return err
		}
		if !(v >= 0) {
			return in.wrong(c.key, v, "a number of 0 or more")
		}
		*c.to = v
	}
	level, _, err := in.number("digit_level")
	if err != nil {
		return err
	}
	if !(level > 0) {
		return in.wrong("digit_level", in.raw("digit_level"), "a number above 0")
	}
	f.DigitLevel = level
	phase, ok, err := in.number("common_phase")
	if ok && err == nil {
		f.CommonPhase = &phase
	}
	return err
}

// counts reads a list of integers of 1 or more; nil where it is not there.
func (o object) counts(key string, most int) ([]int, error) {
	raw, ok := o.fields[key]
	if !ok {
		return nil, nil
	}
	var list []int32
	allowed := json.Unmarshal(raw, &list) == nil && len(list) >= 1 && len(list) <= most && !bytes.Contains(raw, []byte("null"))
	counts := make([]int, len(list))
	for i, n := range list {
		allowed = allowed && n >= 1
		counts[i] = int(n)
	}
	if !allowed {
		return nil, o.wrong(key, string(raw), "1 to %d integers of 1 or more", most)
	}
	return counts, nil
}

// check says what of f could not be read back.
func (f *Frames) check(base string) error {
	raw, err := json.Marshal(f.file())
	if err != nil { // of a number that is none
		return &FormatError{base, "the form of frames", err.Error(), "finite numbers"}
	}
	o := object{file: base, fields: map[string]json.RawMessage{"ringwave:frames": raw}}
	_, err = o.frames()
	return err
}

// check says what of t could not be read back.
func (t *Tag) check(base string) error {
	if len(t.Phase) > maxPhase || t.Device < -1 || t.Group < -1 || len(t.Transmitters) > maxTransmitters {
		return &FormatError{base, "a tag", fmt.Sprintf("phase %q, device %d, group %d, %d transmitters", t.Phase, t.Device, t.Group, len(t.Transmitters)),
			fmt.Sprintf("a phase of at most %d bytes, -1 for no device or group, and at most %d transmitters", maxPhase, maxTransmitters)}
	}
	factors := len(t.Factors) <= maxTransmitters
	for _, c := range t.Factors {
		factors = factors && c >= 1 && c <= maxCount
	}
	if !(t.Alpha >= 0) || math.IsInf(t.Alpha, 0) || !factors {
		return &FormatError{base, "a tag", fmt.Sprintf("alpha %v and %d factors", t.Alpha, len(t.Factors)),
			fmt.Sprintf("an alpha of 0 or more, and at most %d factors of 1 to %d", maxTransmitters, maxCount)}
	}
	return nil
}
