package sounder

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// tableHeader is the first line of a table of soundings: one line a burst. Numbers are
// written so that reading them gives the same bits. Gains are received per sent
// amplitude, delays in samples behind the burst's nominal place, offsets in cycles a
// sample, powers and DC in parts of the receiver's full scale; d_delay and d_offset
// are what the burst alone adds to the delay and offset at which it was fitted, and moved
// is what the clocks have run apart by in the session.
// Indices and numbers count from 0, devices from 1.
var tableHeader = []string{
	"session", "block", "look", "device", "at_sample", "receiver_epoch", "transmitter_epoch", "clipped", "missed",
	"gain_i", "gain_q", "gain_var", "delay", "offset", "d_delay", "d_delay_var", "d_offset", "d_offset_var",
	"noise", "noise_dof", "dc_i", "dc_q", "dc_var", "image_i", "image_q", "image_var", "explained",
	"leak_i", "leak_q", "leak_var", "moved", "response",
}

// WriteHeader writes the first line of a table.
func WriteHeader(w io.Writer) error { return writeRows(w, tableHeader) }

// WriteBlock writes a block's lines, all in one Write.
func WriteBlock(w io.Writer, b Block, devices int) error {
	rows := make([][]string, 0, len(b.Records))
	for k, r := range b.Records {
		rows = append(rows, row(b, r, k/devices, k%devices))
	}
	return writeRows(w, rows...)
}

func writeRows(w io.Writer, rows ...[]string) error {
	var buf bytes.Buffer
	if err := csv.NewWriter(&buf).WriteAll(rows); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

func row(b Block, r Record, look, device int) []string {
	integer := func(v int64) string { return strconv.FormatInt(v, 10) }
	epoch := ""
	if device < len(b.Transmitters) {
		epoch = strconv.FormatUint(uint64(b.Transmitters[device]), 10)
	}
	out := []string{
		integer(int64(b.Session)), integer(int64(b.Number)), integer(int64(look)), integer(int64(device + 1)), integer(int64(b.At)),
		strconv.FormatUint(uint64(b.Receiver), 10), epoch, integer(r.Clipped), r.Missed,
	}
	if r.Estimate == nil {
		return append(out, make([]string, len(tableHeader)-len(out))...)
	}
	e := r.Estimate
	for _, v := range []float64{
		real(e.Gain), imag(e.Gain), e.GainVar, float64(e.Delay), float64(e.Offset),
		float64(e.DDelay), e.DDelayVar, float64(e.DOffset), e.DOffsetVar,
	} {
		out = append(out, number(v))
	}
	out = append(out, number(float64(e.Noise)), integer(int64(e.NoiseDoF)))
	for _, v := range []float64{real(e.DC), imag(e.DC), e.DCVar, real(e.Image), imag(e.Image), e.ImageVar, e.Explained, real(e.Leak), imag(e.Leak), e.LeakVar} {
		out = append(out, number(v))
	}
	return append(out, integer(b.Moved), responseText(e.Response))
}

func responseText(response []complex64) string {
	var text []byte
	for _, x := range response {
		for _, v := range []float32{real(x), imag(x)} {
			text = append(strconv.AppendFloat(text, float64(v), 'g', -1, 32), ' ')
		}
	}
	return string(bytes.TrimSuffix(text, []byte(" ")))
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// maxLine bounds a line of a table, in bytes: its response takes 1700 at most, its other
// numbers 700, and the reason why a burst was missed is a sentence.
const maxLine = 4096

// ReadTable reads a table of blocks that follow one another from 0 on, of so many looks
// and devices, and at most as many blocks. A last block that is not whole, as a killed
// process leaves it, is left out; length is that of what counts, in bytes. Errors name
// the line.
func ReadTable(r io.Reader, most, looks, devices int) (blocks []Block, length int64, err error) {
	if looks < 1 || devices < 1 {
		return nil, 0, fmt.Errorf("%d looks of %d devices: there must be one of each", looks, devices)
	}
	lines := intake.NewLines(r, intake.LineLimits{Bytes: maxLine, Lines: 1 + int64(most)*int64(looks)*int64(devices)})
	head, ok := lines.Next()
	if !ok && lines.Err() != nil {
		return nil, 0, lines.Err()
	}
	if !ok || !bytes.Equal(head, headerLine()) {
		return nil, 0, fmt.Errorf("line 1: this is not the header of a table of soundings")
	}
	for {
		length = lines.End()
		b := Block{Number: len(blocks)}
		for k := range looks * devices {
			text, ok := lines.Next()
			if !ok {
				return blocks, length, lines.Err()
			}
			if err := b.read(text, k/devices, k%devices); err != nil {
				return nil, 0, fmt.Errorf("line %d: %w", lines.Number(), err)
			}
		}
		if n := len(blocks); n > 0 && (b.Session < blocks[n-1].Session || b.At < 0) {
			return nil, 0, fmt.Errorf("line %d: session %d follows session %d: they ascend", lines.Number(), b.Session, blocks[n-1].Session)
		}
		blocks = append(blocks, b)
	}
}

func headerLine() []byte {
	var b bytes.Buffer
	_ = WriteHeader(&b) // into memory
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// read takes in the line of a look and device.
func (b *Block) read(text []byte, look, device int) error {
	fields, err := csv.NewReader(bytes.NewReader(text)).Read()
	if err != nil {
		return fmt.Errorf("%.80q is no line of a table", text)
	}
	if len(fields) != len(tableHeader) {
		return fmt.Errorf("there are %d columns: %d are expected", len(fields), len(tableHeader))
	}
	p := fieldReader{fields: fields}
	session, block, l, d, at := p.integer(), p.integer(), p.integer(), p.integer(), p.integer()
	receiver := p.epoch()
	transmitter := p.text()
	if transmitter != "" {
		p.next--
		if e := p.epoch(); look == 0 {
			b.Transmitters = append(b.Transmitters, e)
		}
	}
	r := Record{Clipped: p.integer()}
	r.Missed = p.text()
	if r.Missed == "" {
		e := p.estimate()
		r.Estimate = &e
		b.Moved = p.integer()
		e.Response = p.response()
	}
	if p.err != nil {
		return p.err
	}
	if look == 0 && device == 0 {
		b.Session, b.At, b.Receiver = int(session), radio.SampleIndex(at), radio.Epoch(receiver)
	}
	if int(block) != b.Number || int(l) != look || int(d) != device+1 || int(session) != b.Session || session < 0 || r.Clipped < 0 {
		return fmt.Errorf("session %d, block %d, look %d, device %d: expected are session %d, block %d, look %d, device %d", session, block, l, d, b.Session, b.Number, look, device+1)
	}
	b.Records = append(b.Records, r)
	return nil
}

// fieldReader reads one column after the other and keeps the first error.
type fieldReader struct {
	fields []string
	next   int
	err    error
}

func (p *fieldReader) text() string {
	p.next++
	return p.fields[p.next-1]
}

func (p *fieldReader) fail(kind string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s is %.80q: it must be %s", tableHeader[p.next-1], p.fields[p.next-1], kind)
	}
}

func (p *fieldReader) integer() int64 {
	v, err := strconv.ParseInt(p.text(), 10, 64)
	if err != nil {
		p.fail("an integer")
	}
	return v
}

func (p *fieldReader) epoch() radio.Epoch {
	v, err := strconv.ParseUint(p.text(), 10, 64)
	if err != nil {
		p.fail("an integer from 0 on")
	}
	return radio.Epoch(v)
}

func (p *fieldReader) number() float64 {
	v, err := strconv.ParseFloat(p.text(), 64)
	if err != nil {
		p.fail("a number")
	}
	return v
}

// finite reads a number that is one.
func (p *fieldReader) finite() float64 {
	v := p.number()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		p.fail("a finite number")
	}
	return v
}

func (p *fieldReader) complex() complex128 {
	re := p.number()
	return complex(re, p.number())
}

// response reads a response's numbers, all of them or none.
func (p *fieldReader) response() (response []complex64) {
	parts := strings.Fields(p.text())
	if len(parts) == 0 {
		return nil
	}
	if len(parts) != 2*sounding.Lags {
		p.fail(fmt.Sprintf("%d numbers, or none", 2*sounding.Lags))
		return nil
	}
	var numbers [2]float32
	for k, part := range parts {
		v, err := strconv.ParseFloat(part, 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			p.fail("finite numbers")
			return nil
		}
		if numbers[k%2] = float32(v); k%2 == 1 {
			response = append(response, complex(numbers[0], numbers[1]))
		}
	}
	return response
}

func (p *fieldReader) estimate() sounding.Estimate {
	return sounding.Estimate{
		Gain: complex(p.finite(), p.finite()), GainVar: p.number(),
		Delay: modem.Samples(p.number()), Offset: modem.CyclesPerSample(p.number()),
		DDelay: modem.Samples(p.number()), DDelayVar: p.number(),
		DOffset: modem.CyclesPerSample(p.number()), DOffsetVar: p.number(),
		Noise: modem.Power(p.number()), NoiseDoF: int(p.integer()),
		DC: p.complex(), DCVar: p.number(), Image: p.complex(), ImageVar: p.number(), Explained: p.number(), Leak: p.complex(), LeakVar: p.number(),
	}
}

// Places returns where the soundings of each device were found in the session of the last
// block: what Config.Acquired wants to go on in it; nil where a device was missed in
// all of its blocks.
func Places(blocks []Block, devices int) []Acquired {
	if len(blocks) == 0 {
		return nil
	}
	session := blocks[len(blocks)-1].Session
	out, seen := make([]Acquired, devices), make([]bool, devices)
	for _, b := range blocks {
		if b.Session != session {
			continue
		}
		for k, r := range b.Records {
			if r.Estimate != nil {
				out[k%devices], seen[k%devices] = Acquired{r.Estimate.Delay, r.Estimate.Offset}, true
			}
		}
	}
	if slices.Contains(seen, false) {
		return nil
	}
	return out
}
