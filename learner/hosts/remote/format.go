package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"ringwave/radio"
)

// A message is a magic, a version, what it is, its ID, the length of its JSON, the JSON and
// what comes behind: samples, or bytes of an application's own. All numbers have the least
// significant byte first.
const (
	magic       = "RWrr"
	version     = 1
	asks        = 1
	answers     = 2
	headerBytes = len(magic) + 2 + 8 + 4

	maxJSON = 1 << 16
	// MaxSamples is the most that one Write takes: half a second at 2 MS/s.
	MaxSamples  = 1 << 20
	sampleBytes = 8
	maxPayload  = MaxSamples * sampleBytes
	// MaxMessage is the longest message in bytes.
	MaxMessage = headerBytes + maxJSON + maxPayload

	// longest is how long a request may wait at the radio's host.
	longest = time.Minute
	// maxText is the longest sentence of an error, in bytes.
	maxText = 4096
)

// errMessage: bytes are no message of this package.
var errMessage = errors.New("no message of a remote radio")

// ID returns the ID that a request and its answer share; false for other bytes.
func ID(b []byte) (uint64, bool) {
	if len(b) < headerBytes || len(b) > MaxMessage || string(b[:len(magic)]) != magic || b[4] != version {
		return 0, false
	}
	if b[5] != asks && b[5] != answers {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[6:]), true
}

// op is what is asked for.
type op string

// The operations, of devices and then of streams.
const (
	opOpen      op = "open"  // take the radio over
	opLeave     op = "leave" // close it
	opFrequency op = "frequency"
	opRate      op = "rate"
	opGain      op = "gain"
	opClock     op = "clock"
	opLocked    op = "locked"
	opTrigger   op = "trigger"
	opNow       op = "now"
	opTransmit  op = "transmit" // open a stream

	opStart  op = "start"
	opWrite  op = "write"
	opIdle   op = "idle"
	opLosses op = "losses"
	opStatus op = "status"
	opDo     op = "do"
	opClose  op = "close"
)

// request is what a proxy asks for; payload is what comes behind the JSON.
type request struct {
	id      uint64
	payload []byte

	Op op `json:"op"`
	// Session is the ID of the request that took the radio over, Stream the number of the
	// stream within it.
	Session uint64 `json:"session,omitempty"`
	Stream  uint64 `json:"stream,omitempty"`
	// Seen is how many of the stream's events the proxy has.
	Seen uint64 `json:"seen,omitempty"`
	// Wait is how long it may take; 0 is for as long as any.
	Wait time.Duration `json:"wait_ns,omitempty"`

	Value float64           `json:"value,omitempty"` // of a setting
	Name  string            `json:"name,omitempty"`  // of a gain stage, clock, trigger, the application's operation
	Index radio.SampleIndex `json:"index,omitempty"` // of opIdle and of a timed opWrite
	Burst *burst            `json:"burst,omitempty"` // of opWrite
}

// burst is a block to be sent. Its samples are in the payload unless the host has them.
type burst struct {
	Digest  []byte `json:"digest"`
	Samples int    `json:"samples"`
	// From is the first sample that is still to be taken.
	From  int  `json:"from,omitempty"`
	Whole bool `json:"whole,omitempty"` // the samples are here
	Timed bool `json:"timed,omitempty"`
	End   bool `json:"end,omitempty"`
}

// answer is what a host answers.
type answer struct {
	id      uint64
	payload []byte

	// Error is the sentence of what failed, Kinds what errors.Is finds in it.
	Error string   `json:"error,omitempty"`
	Kinds []string `json:"kinds,omitempty"`
	// Took is how long the host was at it before it looked at the stream.
	Took time.Duration `json:"took_ns,omitempty"`

	Device *settings `json:"device,omitempty"`
	Stream *status   `json:"stream,omitempty"`

	Value float64           `json:"value,omitempty"` // that the radio took
	Yes   bool              `json:"yes,omitempty"`
	Index radio.SampleIndex `json:"index,omitempty"`
	Taken int               `json:"taken,omitempty"` // samples of a burst
	// Missing: the samples of the burst are not here, and nothing was done. Again: there was
	// no room for all of it in the time that it had.
	Missing bool `json:"missing,omitempty"`
	Again   bool `json:"again,omitempty"`
}

// settings is what a radio is, can do and has been set to, in the transmit direction.
type settings struct {
	Info radio.Info `json:"info"`
	// The capabilities.
	Tunes     bool `json:"tunes"`
	Rates     bool `json:"rates"`
	Amplifies bool `json:"amplifies"`
	Clocked   bool `json:"clocked"`
	Triggered bool `json:"triggered"`
	Timed     bool `json:"timed"`

	Frequencies radio.Span[radio.Hertz] `json:"frequencies"`
	Frequency   radio.Hertz             `json:"frequency"`
	SampleRates radio.Span[radio.Hertz] `json:"sample_rates"`
	SampleRate  radio.Hertz             `json:"sample_rate"`
	Stages      []stage                 `json:"stages,omitempty"`
	Clocks      []string                `json:"clocks,omitempty"`
	Clock       string                  `json:"clock,omitempty"`
	Triggers    []string                `json:"triggers,omitempty"`
	Buffer      radio.SampleCount       `json:"buffer,omitempty"`
}

// stage is a gain stage and its gain.
type stage struct {
	radio.GainStage
	Gain radio.Decibels
}

// status is how a stream does.
type status struct {
	Number uint64 `json:"number"`
	// The capabilities.
	Paces  bool `json:"paces"`
	Idles  bool `json:"idles"`
	Checks bool `json:"checks"`
	Counts bool `json:"counts"`

	State    radio.State       `json:"state"`
	Epoch    radio.Epoch       `json:"epoch"`
	Earliest radio.SampleIndex `json:"earliest"`
	Clipped  radio.SampleCount `json:"clipped,omitempty"`
	// Events begin with number First; Left more are to come.
	First  uint64        `json:"first,omitempty"`
	Events []radio.Event `json:"events,omitempty"`
	Left   int           `json:"left,omitempty"`
}

// maxEvents is the most events of one answer.
const maxEvents = 256

// encode puts a message together.
func encode(what byte, id uint64, v any, payload []byte) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a message of a remote radio: %w", err)
	}
	if len(text) > maxJSON || len(payload) > maxPayload {
		return nil, fmt.Errorf("a message of a remote radio has %d bytes of JSON and %d behind; allowed are %d and %d", len(text), len(payload), maxJSON, maxPayload)
	}
	b := make([]byte, 0, headerBytes+len(text)+len(payload))
	b = append(b, magic...)
	b = append(b, version, what)
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return append(b, payload...), nil
}

// decode takes a message apart; payload is a part of b.
func decode(what byte, b []byte, v any) (id uint64, payload []byte, err error) {
	id, ok := ID(b)
	if !ok || b[5] != what {
		return 0, nil, fmt.Errorf("%w: %d bytes with another header", errMessage, len(b))
	}
	n, body := binary.LittleEndian.Uint32(b[headerBytes-4:]), b[headerBytes:]
	if n > maxJSON || int(n) > len(body) || len(body)-int(n) > maxPayload {
		return 0, nil, fmt.Errorf("%w: it has %d bytes behind its header, and says that %d are JSON; allowed are %d, and %d behind", errMessage, len(body), n, maxJSON, maxPayload)
	}
	d := json.NewDecoder(bytes.NewReader(body[:n]))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	if d.InputOffset() != int64(n) {
		return 0, nil, fmt.Errorf("%w: something behind its JSON", errMessage)
	}
	return id, body[n:], nil
}

// parseRequest reads a request.
func parseRequest(b []byte) (*request, error) {
	var r request
	var err error
	if r.id, r.payload, err = decode(asks, b, &r); err != nil {
		return nil, err
	}
	if r.Wait < 0 {
		return nil, fmt.Errorf("%w: it may wait for %v; allowed is 0 or more", errMessage, r.Wait)
	}
	if (r.Op == opWrite) != (r.Burst != nil) {
		return nil, fmt.Errorf("%w: a burst comes with what writes, and with nothing else", errMessage)
	}
	if r.Burst != nil {
		err = r.Burst.check(len(r.payload))
	}
	return &r, err
}

// check says why a burst cannot be, with so many bytes of samples.
func (x *burst) check(bytes int) error {
	want := 0
	if x.Whole {
		want = x.Samples * sampleBytes
	}
	switch {
	case x.Samples < 0 || x.Samples > MaxSamples:
		return fmt.Errorf("%w: a burst of %d samples; allowed is 0 to %d", errMessage, x.Samples, MaxSamples)
	case x.From < 0 || x.From > x.Samples:
		return fmt.Errorf("%w: a burst from sample %d on; allowed is 0 to %d", errMessage, x.From, x.Samples)
	case len(x.Digest) != sha256.Size:
		return fmt.Errorf("%w: a digest of %d bytes; allowed is %d", errMessage, len(x.Digest), sha256.Size)
	case bytes != want:
		return fmt.Errorf("%w: a burst with %d bytes; allowed is %d", errMessage, bytes, want)
	}
	return nil
}

// lastIndex leaves room to add to any index.
const lastIndex = radio.Forever / 4

// parseAnswer reads an answer, and makes what is to be printed printable.
func parseAnswer(b []byte) (*answer, error) {
	var a answer
	var err error
	if a.id, a.payload, err = decode(answers, b, &a); err != nil {
		return nil, err
	}
	a.Error = printable(a.Error)
	if a.Took < 0 || a.Took > 2*longest {
		return nil, fmt.Errorf("%w: it took %v; allowed is 0 to %v", errMessage, a.Took, 2*longest)
	}
	if a.Taken < 0 || a.Taken > MaxSamples {
		return nil, fmt.Errorf("%w: %d samples were taken; allowed is 0 to %d", errMessage, a.Taken, MaxSamples)
	}
	if a.Device != nil {
		if err := a.Device.check(); err != nil {
			return nil, err
		}
	}
	if a.Stream != nil {
		return &a, a.Stream.check()
	}
	return &a, nil
}

// check says why settings cannot be, and makes their names printable.
func (s *settings) check() error {
	i := &s.Info
	for _, text := range []*string{&i.URI, &i.Driver, &i.Model, &i.Serial, &i.Firmware, &i.Revision, &s.Clock} {
		*text = printable(*text)
	}
	for _, list := range [][]string{i.Notes, s.Clocks, s.Triggers} {
		for k := range list {
			list[k] = printable(list[k])
		}
	}
	for k := range s.Stages {
		s.Stages[k].Name = printable(s.Stages[k].Name)
	}
	if s.Rates && !(s.SampleRate > 0) || s.SampleRate < 0 || s.Buffer < 0 {
		return fmt.Errorf("%w: a sample rate of %v and a buffer of %d samples; allowed are numbers above 0 and from 0 on", errMessage, s.SampleRate, s.Buffer)
	}
	return nil
}

// check says why a status cannot be.
func (s *status) check() error {
	switch {
	case s.State < radio.Ready || s.State > radio.Closed:
		return fmt.Errorf("%w: a stream is in state %d; allowed is %d to %d", errMessage, s.State, radio.Ready, radio.Closed)
	case s.Earliest < 0 || s.Earliest > lastIndex || s.Clipped < 0:
		return fmt.Errorf("%w: a stream is at index %d and has clipped %d samples; allowed is 0 to %d, and 0 or more", errMessage, s.Earliest, s.Clipped, lastIndex)
	case len(s.Events) > maxEvents || s.Left < 0 || s.Left > 0 && len(s.Events) == 0:
		return fmt.Errorf("%w: a stream tells of %d events and of %d to come; allowed is up to %d, and that some come before others", errMessage, len(s.Events), s.Left, maxEvents)
	}
	for _, e := range s.Events {
		if e.Kind < radio.Underrun || e.Kind > radio.EventsLost || e.Count < 0 {
			return fmt.Errorf("%w: an event of kind %d and %d samples; allowed is a kind of %d to %d, and 0 or more", errMessage, e.Kind, e.Count, radio.Underrun, radio.EventsLost)
		}
	}
	return nil
}

// printable returns text without what a terminal might obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// appendSamples appends samples as they travel.
func appendSamples(b []byte, x []complex64) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(real(v)))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(imag(v)))
	}
	return b
}

// samples reads what appendSamples wrote: all must be finite.
func samples(b []byte) ([]complex64, error) {
	x := make([]complex64, len(b)/sampleBytes)
	for k := range x {
		re := math.Float32frombits(binary.LittleEndian.Uint32(b[k*sampleBytes:]))
		im := math.Float32frombits(binary.LittleEndian.Uint32(b[k*sampleBytes+4:]))
		if !finite(re) || !finite(im) {
			return nil, fmt.Errorf("sample %d of a burst is %v; allowed are finite numbers", k, complex(re, im))
		}
		x[k] = complex(re, im)
	}
	return x, nil
}

// finite reports whether x is neither infinite nor NaN.
func finite(x float32) bool {
	const exponent = 0xff << 23
	return math.Float32bits(x)&exponent != exponent
}

// digest returns the SHA-256 of samples as they travel.
func digest(x []complex64) [sha256.Size]byte {
	h := sha256.New()
	buf := make([]byte, 0, 1<<15)
	for len(x) > 0 {
		k := min(len(x), cap(buf)/sampleBytes)
		h.Write(appendSamples(buf, x[:k]))
		x = x[k:]
	}
	return [sha256.Size]byte(h.Sum(nil))
}
