package sigmf

import (
	"bytes"
	"encoding/json"
	"math/big"
	"time"

	"ringwave/radio"
)

const (
	// Version is the version of SigMF that is written.
	Version = "1.2.5"
	// ExtensionName and ExtensionVersion declare our namespace.
	ExtensionName    = "ringwave"
	ExtensionVersion = "1.3.0"
	// maxRate and maxFrequency bound core:sample_rate and core:frequency in Hz
	// (SigMF 1.2.5, schema of the metadata file).
	maxRate      radio.Hertz = 1e12
	maxFrequency radio.Hertz = 1e12
	// maxPhase bounds ringwave:phase, maxTransmitters the transmitters of a tag.
	maxPhase        = 16
	maxTransmitters = 1 << 10
)

// Metadata is the content of a .sigmf-meta file as far as this package knows it.
type Metadata struct {
	Datatype    Datatype
	Version     string      // of SigMF
	SampleRate  radio.Hertz // 1 Hz to 1 THz, 0 if not known
	SHA512      string      // of the dataset, 128 hexadecimal digits, or empty
	Hardware    string
	Author      string
	Description string
	Recorder    string
	// Scale is the amplitude of one integer step, 0 if not known.
	Scale radio.Amplitude
	// ClipLevel is that of the receiver (radio.Ranged), 0 if it has none.
	ClipLevel radio.Amplitude
	// Primes are the factors of the modulus q of the ring elements that samples carry;
	// nil if there are none, or not known.
	Primes []uint64
	// FrameFormat is that of the frames that samples carry; 0 if there are none, or if
	// they are of the first format, before there was this field.
	FrameFormat uint8
	// Frames is their form; nil if there are none, or it is not known.
	Frames *Frames
	// Samples is the number of samples in the dataset, -1 if not known.
	Samples radio.SampleCount
	// Clipped is the number of samples that did not fit the datatype.
	Clipped  radio.SampleCount
	Captures []Capture
	// Annotations count samples in the dataset.
	Annotations []DatasetAnnotation
}

// Capture is a segment of the dataset without gaps, of one epoch.
type Capture struct {
	// Start is the position in the dataset, Index that on the stream's clock.
	Start radio.SampleCount
	Index radio.SampleIndex
	// Frequency is the centre in Hz, from -1 THz to 1 THz; nil if not known.
	Frequency *radio.Hertz
	// Time is that of the first sample in UTC; zero if not known.
	Time time.Time
	// Epoch is 0 if not known.
	Epoch        radio.Epoch
	GapEstimated bool
}

// DatasetAnnotation is an annotation with the samples of the dataset it is for.
type DatasetAnnotation struct {
	Start, Count radio.SampleCount // Count is -1 where it goes on to the end
	// Span is what the annotation is for by the stream's clock, where the samples of
	// the dataset do not tell: some at its edges were lost. nil elsewhere.
	Span *Span
	// Band is what it is about of the spectrum, at the frequencies that Capture.Frequency
	// counts; nil if that is not said.
	Band      *radio.Span[radio.Hertz]
	Label     string
	Comment   string
	Generator string
	Tag       *Tag
	// Clipped, Invalid and Overrun are what a receiver reported.
	Clipped, Invalid radio.SampleCount
	Overrun          bool
}

// Span is a stretch of a stream's clock.
type Span struct {
	First radio.SampleIndex
	Count radio.SampleCount
}

// Tag says what part of a run samples are.
type Tag struct {
	Round, Attempt uint32
	Again          uint8  // how often the transmission was sent before in this attempt
	Phase          string // which transmission, at most 16 bytes
	Device, Group  int    // -1 for none
	Epoch          radio.Epoch
	// Transmitters are the epochs of the devices that send, at most 1,024; nil if
	// not known.
	Transmitters []radio.Epoch
	// Alpha is the scale of the gains that was found, 0 for none. Factors are the
	// integers by which what the groups sent was brought to one scale, at most 1,024 of 1
	// or more; nil for none.
	Alpha   float64
	Factors []int
}

// The files' form. Keys are in the order of the specification, which JSON does
// not need and people like.
type fileMeta struct {
	Global      fileGlobal       `json:"global"`
	Captures    []fileCapture    `json:"captures"`
	Annotations []fileAnnotation `json:"annotations"`
}

type fileGlobal struct {
	Datatype    Datatype        `json:"core:datatype"`
	SampleRate  radio.Hertz     `json:"core:sample_rate,omitempty"`
	Version     string          `json:"core:version"`
	NumChannels int             `json:"core:num_channels"`
	SHA512      string          `json:"core:sha512,omitempty"`
	Author      string          `json:"core:author,omitempty"`
	Description string          `json:"core:description,omitempty"`
	Hardware    string          `json:"core:hw,omitempty"`
	Recorder    string          `json:"core:recorder,omitempty"`
	Extensions  []fileExtension `json:"core:extensions"`

	Scale     radio.Amplitude    `json:"ringwave:scale,omitempty"`
	ClipLevel radio.Amplitude    `json:"ringwave:clip_level,omitempty"`
	Modulus   string             `json:"ringwave:modulus,omitempty"`
	Primes    []uint64           `json:"ringwave:primes,omitempty"`
	Format    uint8              `json:"ringwave:frame_format,omitempty"`
	Frames    *fileFrames        `json:"ringwave:frames,omitempty"`
	Samples   *radio.SampleCount `json:"ringwave:samples,omitempty"`
	Clipped   radio.SampleCount  `json:"ringwave:clipped,omitempty"`
}

type fileExtension struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Optional bool   `json:"optional"`
}

type fileCapture struct {
	Start        radio.SampleCount `json:"core:sample_start"`
	Index        radio.SampleIndex `json:"core:global_index"`
	Frequency    *radio.Hertz      `json:"core:frequency,omitempty"`
	Time         string            `json:"core:datetime,omitempty"`
	Epoch        radio.Epoch       `json:"ringwave:epoch,omitempty"`
	GapEstimated bool              `json:"ringwave:gap_estimated,omitempty"`
}

type fileAnnotation struct {
	Start     radio.SampleCount  `json:"core:sample_start"`
	Count     *radio.SampleCount `json:"core:sample_count,omitempty"`
	Lower     *radio.Hertz       `json:"core:freq_lower_edge,omitempty"`
	Upper     *radio.Hertz       `json:"core:freq_upper_edge,omitempty"`
	Label     string             `json:"core:label,omitempty"`
	Comment   string             `json:"core:comment,omitempty"`
	Generator string             `json:"core:generator,omitempty"`
	Round     *uint32            `json:"ringwave:round,omitempty"`
	Attempt   *uint32            `json:"ringwave:attempt,omitempty"`
	Again     uint8              `json:"ringwave:again,omitempty"`
	Phase     string             `json:"ringwave:phase,omitempty"`
	Device    *int               `json:"ringwave:device,omitempty"`
	Group     *int               `json:"ringwave:group,omitempty"`
	Epoch     radio.Epoch        `json:"ringwave:epoch,omitempty"`
	Senders   []radio.Epoch      `json:"ringwave:transmitter_epochs,omitempty"`
	Alpha     float64            `json:"ringwave:alpha,omitempty"`
	Factors   []int              `json:"ringwave:group_factors,omitempty"`
	First     *radio.SampleIndex `json:"ringwave:first_index,omitempty"`
	Span      *radio.SampleCount `json:"ringwave:index_count,omitempty"`
	Clipped   radio.SampleCount  `json:"ringwave:clipped,omitempty"`
	Invalid   radio.SampleCount  `json:"ringwave:invalid,omitempty"`
	Overrun   bool               `json:"ringwave:overrun,omitempty"`
}

// Encode returns the content of the .sigmf-meta file, which declares our extension
// whether it is used or not. ParseMeta takes it if m is as ParseMeta gives it.
func (m *Metadata) Encode() ([]byte, error) {
	f := fileMeta{
		Global: fileGlobal{
			Datatype: m.Datatype, SampleRate: m.SampleRate, Version: m.Version, NumChannels: 1,
			SHA512: m.SHA512, Author: m.Author, Description: m.Description, Hardware: m.Hardware, Recorder: m.Recorder,
			Extensions: []fileExtension{{ExtensionName, ExtensionVersion, true}},
			Scale:      m.Scale, ClipLevel: m.ClipLevel, Clipped: m.Clipped,
		},
		Captures:    []fileCapture{}, // an empty array, not null
		Annotations: []fileAnnotation{},
	}
	if len(m.Primes) > 0 {
		f.Global.Modulus, f.Global.Primes = product(m.Primes).String(), m.Primes
	}
	f.Global.Format, f.Global.Frames = m.FrameFormat, m.Frames.file()
	if m.Samples >= 0 {
		f.Global.Samples = &m.Samples
	}
	for _, c := range m.Captures {
		f.Captures = append(f.Captures, c.file())
	}
	for _, a := range m.Annotations {
		f.Annotations = append(f.Annotations, a.file())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxPrimes bounds ringwave:primes, each of which is below 2^62.
const maxPrimes = 16

const allowedPrimes = "1 to 16 integers from 3 to 2^62"

// validPrimes reports whether ringwave:primes may have these values. That they are
// prime is not asked.
func validPrimes(primes []uint64) bool {
	for _, p := range primes {
		if p < 3 || p > 1<<62 {
			return false
		}
	}
	return len(primes) <= maxPrimes
}

func product(primes []uint64) *big.Int {
	q := big.NewInt(1)
	for _, p := range primes {
		q.Mul(q, new(big.Int).SetUint64(p))
	}
	return q
}

func (c Capture) file() fileCapture {
	f := fileCapture{Start: c.Start, Index: c.Index, Frequency: c.Frequency, Epoch: c.Epoch, GapEstimated: c.GapEstimated}
	if !c.Time.IsZero() {
		f.Time = c.Time.UTC().Format(time.RFC3339Nano)
	}
	return f
}

func (a DatasetAnnotation) file() fileAnnotation {
	f := fileAnnotation{
		Start: a.Start, Label: a.Label, Comment: a.Comment, Generator: a.Generator,
		Clipped: a.Clipped, Invalid: a.Invalid, Overrun: a.Overrun,
	}
	if a.Count >= 0 {
		f.Count = &a.Count
	}
	if a.Band != nil {
		f.Lower, f.Upper = &a.Band.Min, &a.Band.Max
	}
	if a.Span != nil {
		f.First, f.Span = &a.Span.First, &a.Span.Count
	}
	if t := a.Tag; t != nil {
		f.Round, f.Attempt, f.Again, f.Phase, f.Epoch, f.Senders = &t.Round, &t.Attempt, t.Again, t.Phase, t.Epoch, t.Transmitters
		f.Alpha, f.Factors = t.Alpha, t.Factors
		if t.Device >= 0 {
			f.Device = &t.Device
		}
		if t.Group >= 0 {
			f.Group = &t.Group
		}
	}
	return f
}
