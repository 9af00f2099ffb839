package sigmf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ringwave/radio"
	"ringwave/radio/intake"
)

const (
	// maxMeta bounds the metadata file, maxSegments its captures and its
	// annotations: a recording of a thousand rounds has some thousands of each.
	maxMeta     = 64 << 20
	maxSegments = 1 << 16
	// maxShown bounds a foreign value within an error.
	maxShown = 60
	// maxDepth bounds nesting, of which the metadata has 4 levels, and maxMembers the
	// keys of an object, of which an annotation has some twenty.
	maxDepth   = 64
	maxMembers = 1024
)

func metaLimits() intake.JSONLimits {
	return intake.JSONLimits{Depth: maxDepth, Members: maxMembers, Elements: maxSegments}
}

// FormatError says what in a recording is not as it must be.
type FormatError struct {
	File    string // as it was given
	Key     string // where in the file
	Value   string // what was found there
	Allowed string // what may be there
}

// Error returns one sentence with the file, the key, the value and what is allowed.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s is %s; allowed is %s", e.File, e.Key, e.Value, e.Allowed)
}

// object is a JSON object with its place in a file, for errors. Keys are taken as
// they are written: encoding/json would take those of another case too.
type object struct {
	file, where string
	fields      map[string]json.RawMessage
}

func (o object) wrong(key string, value any, allowed string, args ...any) error {
	return &FormatError{o.file, o.where + key, shown(fmt.Sprint(value)), fmt.Sprintf(allowed, args...)}
}

// shown cuts what a file has to a length and a form that fits into a line.
func shown(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == utf8.RuneError || r == 0x7f }) {
		return strconv.Quote(s)
	}
	return s
}

// ParseMeta reads the content of a .sigmf-meta file; name is for errors only. A
// recording without captures gets the one it implies (SigMF 1.2.5 section
// "Captures Array"). Fields of other namespaces are passed over, unless their
// extension is declared as not optional. An error is a *FormatError.
func ParseMeta(name string, data []byte) (*Metadata, error) {
	top := object{file: name}
	if len(data) > maxMeta {
		return nil, top.wrong("the metadata's length", len(data), "at most %d bytes", maxMeta)
	}
	if !utf8.Valid(data) {
		return nil, top.wrong("the metadata", "not UTF-8", "JSON in UTF-8")
	}
	var excess *intake.Excess
	if err := intake.CheckJSON("the metadata", data, metaLimits()); errors.As(err, &excess) {
		return nil, top.wrong(excess.Where, excess.Value, "%s", excess.Allowed)
	}
	if err := json.Unmarshal(data, &top.fields); err != nil || top.fields == nil {
		return nil, top.wrong("the metadata", "no JSON object", "an object with global, captures and annotations")
	}
	for key := range top.fields {
		if key != "global" && key != "captures" && key != "annotations" {
			return nil, top.wrong("a top-level key", key, "global, captures and annotations")
		}
	}
	m := &Metadata{}
	if err := m.parseGlobal(top); err != nil {
		return nil, err
	}
	if err := m.parseCaptures(top); err != nil {
		return nil, err
	}
	return m, m.parseAnnotations(top)
}

func (m *Metadata) parseGlobal(top object) error {
	g, err := top.object("global")
	if err != nil {
		return err
	}
	datatype, err := g.text("core:datatype", true)
	if err != nil {
		return err
	}
	m.Datatype = Datatype(datatype)
	if _, ok := m.Datatype.format(); !ok {
		return g.wrong("core:datatype", datatype, allowedDatatypes)
	}
	if m.Version, err = g.text("core:version", true); err != nil {
		return err
	}
	if !readableVersion(m.Version) {
		return g.wrong("core:version", m.Version, "1.Y.Z")
	}
	if err := g.conforming(); err != nil {
		return err
	}
	if err := g.extensions(); err != nil {
		return err
	}
	if err := m.parseTexts(g); err != nil {
		return err
	}
	return m.parseNumbers(g)
}

func readableVersion(v string) bool {
	parts := strings.Split(v, ".")
	if len(parts) != 3 || parts[0] != "1" {
		return false
	}
	for _, p := range parts[1:] {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil || p[0] == '+' {
			return false
		}
	}
	return true
}

// conforming refuses what would make the dataset something else than all of one
// .sigmf-data file of one channel.
func (o object) conforming() error {
	for _, key := range []string{"core:dataset", "core:trailing_bytes"} {
		if raw, ok := o.fields[key]; ok {
			return o.wrong(key, string(raw), "none: non-conforming datasets are not read")
		}
	}
	if raw, ok := o.fields["core:metadata_only"]; ok && string(raw) != "false" {
		return o.wrong("core:metadata_only", string(raw), "false")
	}
	channels, ok, err := o.integer("core:num_channels", math.MaxInt64)
	if err != nil {
		return err
	}
	if ok && channels != 1 {
		return o.wrong("core:num_channels", channels, "1")
	}
	offset, _, err := o.integer("core:offset", math.MaxInt64)
	if err != nil {
		return err
	}
	if offset != 0 {
		return o.wrong("core:offset", offset, "0: parts of recordings are not read")
	}
	return nil
}

// extensions checks the declarations. Each has name, version and optional, and
// nothing else (SigMF 1.2.5 section "Global Object", core:extensions).
func (o object) extensions() error {
	ours := false
	err := o.each("core:extensions", false, func(_ int, e object) error {
		name, err := e.text("name", true)
		if err != nil {
			return err
		}
		if _, err := e.text("version", true); err != nil {
			return err
		}
		optional, ok, err := e.boolean("optional")
		if err != nil {
			return err
		}
		if !ok || len(e.fields) != 3 {
			return e.wrong("the declaration's keys", len(e.fields), "name, version and optional")
		}
		ours = ours || name == ExtensionName
		if !optional && name != ExtensionName {
			return e.wrong("name", name, "%s, or any that is optional", ExtensionName)
		}
		return nil
	})
	if err == nil && !ours {
		for _, key := range []string{"scale", "clip_level", "modulus", "primes", "frame_format", "frames", "samples", "clipped"} {
			if _, ok := o.fields[ExtensionName+":"+key]; ok {
				return o.wrong(ExtensionName+":"+key, "there", "none where the extension %s is not declared", ExtensionName)
			}
		}
	}
	return err
}

func (m *Metadata) parseTexts(g object) error {
	for _, f := range []struct {
		key string
		to  *string
	}{
		{"core:sha512", &m.SHA512}, {"core:hw", &m.Hardware}, {"core:author", &m.Author},
		{"core:description", &m.Description}, {"core:recorder", &m.Recorder},
	} {
		var err error
		if *f.to, err = g.text(f.key, false); err != nil {
			return err
		}
	}
	if m.SHA512 != "" && (len(m.SHA512) != 128 || strings.Trim(m.SHA512, "0123456789abcdefABCDEF") != "") {
		return g.wrong("core:sha512", m.SHA512, "128 hexadecimal digits")
	}
	return nil
}

func (m *Metadata) parseNumbers(g object) error {
	rate, ok, err := g.number("core:sample_rate")
	if err != nil {
		return err
	}
	if ok && !(rate >= 1 && rate <= float64(maxRate)) {
		return g.wrong("core:sample_rate", rate, "1 to %g", float64(maxRate))
	}
	m.SampleRate = radio.Hertz(rate)
	scale, ok, err := g.number("ringwave:scale")
	if err != nil {
		return err
	}
	// A scale beyond float32 would make samples infinite or zero.
	if ok && !(scale >= 1e-30 && scale <= 1e30) {
		return g.wrong("ringwave:scale", scale, "1e-30 to 1e30")
	}
	m.Scale = radio.Amplitude(scale)
	level, ok, err := g.number("ringwave:clip_level")
	if err != nil {
		return err
	}
	if ok && !(level >= 1e-30 && level <= 1e30) {
		return g.wrong("ringwave:clip_level", level, "1e-30 to 1e30")
	}
	m.ClipLevel = radio.Amplitude(level)
	if m.Primes, err = g.modulus(); err != nil {
		return err
	}
	format, _, err := g.integer("ringwave:frame_format", math.MaxUint8)
	if err != nil {
		return err
	}
	m.FrameFormat = uint8(format)
	if m.Frames, err = g.frames(); err != nil {
		return err
	}
	clipped, _, err := g.integer("ringwave:clipped", math.MaxInt64)
	if err != nil {
		return err
	}
	m.Clipped = radio.SampleCount(clipped)
	samples, ok, err := g.integer("ringwave:samples", math.MaxInt64)
	if m.Samples = radio.SampleCount(samples); !ok {
		m.Samples = -1
	}
	return err
}

func (m *Metadata) parseCaptures(top object) error {
	err := top.each("captures", true, func(k int, o object) error {
		c, err := parseCapture(o)
		if err != nil {
			return err
		}
		if k > 0 {
			if err := c.follows(o, m.Captures[k-1]); err != nil {
				return err
			}
		}
		if k == 0 && c.Start != 0 {
			return o.wrong("core:sample_start", c.Start, "0 in the first capture")
		}
		m.Captures = append(m.Captures, c)
		return nil
	})
	if err == nil && len(m.Captures) == 0 {
		m.Captures = []Capture{{}}
	}
	return err
}

// follows checks c, which o describes, against the capture before it.
func (c Capture) follows(o object, before Capture) error {
	if c.Start <= before.Start {
		return o.wrong("core:sample_start", c.Start, "more than %d, that of the capture before", before.Start)
	}
	// Start is at most 2^62 beyond before.Start and Index at most 2^62: no sum
	// overflows.
	due := before.Index + radio.SampleIndex(c.Start-before.Start)
	if c.Index < due {
		return o.wrong("core:global_index", c.Index, "%d or more, where the capture before ends", due)
	}
	return nil
}

// maxPosition bounds positions so that sums of two do not overflow.
const maxPosition = math.MaxInt64 / 2

func parseCapture(o object) (c Capture, err error) {
	start, ok, err := o.integer("core:sample_start", maxPosition)
	if err != nil {
		return c, err
	}
	if !ok {
		return c, o.wrong("core:sample_start", "missing", "0 or more")
	}
	index, ok, err := o.integer("core:global_index", maxPosition)
	if err != nil {
		return c, err
	}
	if !ok {
		index = start // as the specification says
	}
	c.Start, c.Index = radio.SampleCount(start), radio.SampleIndex(index)
	header, _, err := o.integer("core:header_bytes", math.MaxInt64)
	if err != nil {
		return c, err
	}
	if header != 0 {
		return c, o.wrong("core:header_bytes", header, "0: non-conforming datasets are not read")
	}
	frequency, ok, err := o.number("core:frequency")
	if err != nil {
		return c, err
	}
	if ok {
		f := radio.Hertz(frequency)
		if !(f >= -maxFrequency && f <= maxFrequency) {
			return c, o.wrong("core:frequency", frequency, "%g to %g", -float64(maxFrequency), float64(maxFrequency))
		}
		c.Frequency = &f
	}
	if c.Time, err = o.time("core:datetime"); err != nil {
		return c, err
	}
	epoch, _, err := o.integer("ringwave:epoch", math.MaxInt64)
	if err != nil {
		return c, err
	}
	c.Epoch = radio.Epoch(epoch)
	c.GapEstimated, _, err = o.boolean("ringwave:gap_estimated")
	return c, err
}

func (m *Metadata) parseAnnotations(top object) error {
	return top.each("annotations", true, func(k int, o object) error {
		a, err := parseAnnotation(o)
		if err != nil {
			return err
		}
		if k > 0 && a.Start < m.Annotations[k-1].Start {
			return o.wrong("core:sample_start", a.Start, "%d or more, that of the annotation before", m.Annotations[k-1].Start)
		}
		m.Annotations = append(m.Annotations, a)
		return nil
	})
}

func parseAnnotation(o object) (a DatasetAnnotation, err error) {
	start, ok, err := o.integer("core:sample_start", maxPosition)
	if err != nil {
		return a, err
	}
	if !ok {
		return a, o.wrong("core:sample_start", "missing", "0 or more")
	}
	count, ok, err := o.integer("core:sample_count", maxPosition)
	if err != nil {
		return a, err
	}
	if !ok {
		count = -1
	}
	a.Start, a.Count = radio.SampleCount(start), radio.SampleCount(count)
	for _, f := range []struct {
		key string
		to  *string
	}{{"core:label", &a.Label}, {"core:comment", &a.Comment}, {"core:generator", &a.Generator}} {
		if *f.to, err = o.text(f.key, false); err != nil {
			return a, err
		}
	}
	clipped, _, err := o.integer("ringwave:clipped", maxPosition)
	if err != nil {
		return a, err
	}
	a.Clipped = radio.SampleCount(clipped)
	invalid, _, err := o.integer("ringwave:invalid", maxPosition)
	if err != nil {
		return a, err
	}
	a.Invalid = radio.SampleCount(invalid)
	if a.Span, err = parseSpan(o); err != nil {
		return a, err
	}
	if a.Band, err = o.band(); err != nil {
		return a, err
	}
	if a.Overrun, _, err = o.boolean("ringwave:overrun"); err != nil {
		return a, err
	}
	a.Tag, err = parseTag(o)
	return a, err
}

// parseSpan returns nil where the annotation has none.
func parseSpan(o object) (*Span, error) {
	const first, count = "ringwave:first_index", "ringwave:index_count"
	at, hasFirst, err := o.integer(first, maxPosition)
	if err != nil {
		return nil, err
	}
	n, hasCount, err := o.integer(count, maxPosition)
	switch {
	case err != nil:
		return nil, err
	case hasFirst && !hasCount:
		return nil, o.wrong(count, "missing", "0 or more, as "+first+" is there")
	case hasCount && !hasFirst:
		return nil, o.wrong(first, "missing", "0 or more, as "+count+" is there")
	case !hasFirst:
		return nil, nil
	}
	return &Span{radio.SampleIndex(at), radio.SampleCount(n)}, nil
}

// band reads the edges of an annotation's band; nil where it has none.
func (o object) band() (*radio.Span[radio.Hertz], error) {
	const lower, upper = "core:freq_lower_edge", "core:freq_upper_edge"
	from, hasLower, err := o.number(lower)
	if err != nil {
		return nil, err
	}
	to, hasUpper, err := o.number(upper)
	switch {
	case err != nil:
		return nil, err
	case hasLower && !hasUpper:
		return nil, o.wrong(upper, "missing", "a frequency, as "+lower+" is there")
	case hasUpper && !hasLower:
		return nil, o.wrong(lower, "missing", "a frequency, as "+upper+" is there")
	case !hasLower:
		return nil, nil
	}
	band := radio.Span[radio.Hertz]{Min: radio.Hertz(from), Max: radio.Hertz(to)}
	if !validBand(band) {
		return nil, o.wrong(lower+" and "+upper, fmt.Sprintf("%g and %g", from, to), allowedBand)
	}
	return &band, nil
}

const allowedBand = "-1 THz to 1 THz, the lower one first"

// validBand reports whether an annotation may have these edges.
func validBand(b radio.Span[radio.Hertz]) bool {
	return b.Min >= -maxFrequency && b.Min <= b.Max && b.Max <= maxFrequency
}

// epochs reads a list of tuning epochs; nil where it is not there.
func (o object) epochs(key string) ([]radio.Epoch, error) {
	raw, ok := o.fields[key]
	if !ok {
		return nil, nil
	}
	var list []uint64
	// null would be taken for an element of 0, or for no list.
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > maxTransmitters || bytes.Contains(raw, []byte("null")) {
		return nil, o.wrong(key, string(raw), "1 to %d integers of 0 or more", maxTransmitters)
	}
	epochs := make([]radio.Epoch, len(list))
	for i, e := range list {
		epochs[i] = radio.Epoch(e)
	}
	return epochs, nil
}

// modulus returns the primes of q, nil where neither they nor q are there.
func (o object) modulus() ([]uint64, error) {
	const modulus, primes = "ringwave:modulus", "ringwave:primes"
	q, err := o.text(modulus, false)
	if err != nil {
		return nil, err
	}
	_, there := o.fields[primes]
	if !there && q == "" {
		return nil, nil
	}
	var list []uint64
	if json.Unmarshal(o.fields[primes], &list) != nil || len(list) == 0 || !validPrimes(list) {
		return nil, o.wrong(primes, o.raw(primes), allowedPrimes)
	}
	if want := product(list).String(); q != want {
		return nil, o.wrong(modulus, strconv.Quote(q), "%q, the product of ringwave:primes", want)
	}
	return list, nil
}

// parseTag returns nil where there is no round and no attempt.
func parseTag(o object) (*Tag, error) {
	t := &Tag{Device: -1, Group: -1}
	round, hasRound, err := o.integer("ringwave:round", math.MaxUint32)
	if err != nil {
		return nil, err
	}
	attempt, hasAttempt, err := o.integer("ringwave:attempt", math.MaxUint32)
	if err != nil {
		return nil, err
	}
	again, _, err := o.integer("ringwave:again", math.MaxUint8)
	if err != nil {
		return nil, err
	}
	t.Round, t.Attempt, t.Again = uint32(round), uint32(attempt), uint8(again)
	if t.Phase, err = o.text("ringwave:phase", false); err != nil {
		return nil, err
	}
	if len(t.Phase) > maxPhase {
		return nil, o.wrong("ringwave:phase", t.Phase, "at most %d bytes", maxPhase)
	}
	for _, f := range []struct {
		key string
		to  *int
	}{{"ringwave:device", &t.Device}, {"ringwave:group", &t.Group}} {
		v, ok, err := o.integer(f.key, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		if ok {
			*f.to = int(v)
		}
	}
	epoch, _, err := o.integer("ringwave:epoch", math.MaxInt64)
	if err != nil {
		return nil, err
	}
	t.Epoch = radio.Epoch(epoch)
	if t.Transmitters, err = o.epochs("ringwave:transmitter_epochs"); err != nil {
		return nil, err
	}
	if t.Alpha, _, err = o.number("ringwave:alpha"); err != nil {
		return nil, err
	}
	if !(t.Alpha >= 0) {
		return nil, o.wrong("ringwave:alpha", t.Alpha, "a number of 0 or more")
	}
	if t.Factors, err = o.counts("ringwave:group_factors", maxTransmitters); err != nil {
		return nil, err
	}
	if !hasRound && !hasAttempt {
		return nil, nil
	}
	return t, nil
}

// The typed fields. Each getter fails where the field is there and of another
// type; what is not there is the zero value.

func (o object) object(key string) (object, error) {
	child := object{file: o.file, where: o.where + key + " "}
	if json.Unmarshal(o.fields[key], &child.fields) != nil || child.fields == nil {
		return child, o.wrong(key, o.raw(key), "an object")
	}
	return child, nil
}

// objects are those of an array, one decoded at a time: all together would take many
// times the memory of their text.
type objects struct {
	of   object
	key  string
	raws []json.RawMessage
}

func (o object) list(key string, required bool) (objects, error) {
	l := objects{of: o, key: key}
	if _, ok := o.fields[key]; !ok && !required {
		return l, nil
	}
	if json.Unmarshal(o.fields[key], &l.raws) != nil || l.raws == nil {
		return l, o.wrong(key, o.raw(key), "an array of objects")
	}
	o.fields[key] = nil // a copy of all of them
	return l, nil
}

// each calls do with each element of a list, until that fails.
func (o object) each(key string, required bool, do func(k int, element object) error) error {
	list, err := o.list(key, required)
	if err != nil {
		return err
	}
	for k := range list.raws {
		element, err := list.at(k)
		if err != nil {
			return err
		}
		if err := do(k, element); err != nil {
			return err
		}
	}
	return nil
}

func (l objects) at(k int) (object, error) {
	o := object{file: l.of.file, where: fmt.Sprintf("%s%s[%d] ", l.of.where, l.key, k)}
	raw := l.raws[k]
	l.raws[k] = nil // it is asked for once
	if json.Unmarshal(raw, &o.fields) != nil || o.fields == nil {
		return o, l.of.wrong(fmt.Sprintf("%s[%d]", l.key, k), string(raw), "an object")
	}
	return o, nil
}

func (o object) raw(key string) string {
	if raw, ok := o.fields[key]; ok {
		return string(raw)
	}
	return "missing"
}

func (o object) text(key string, required bool) (string, error) {
	raw, ok := o.fields[key]
	if !ok && !required {
		return "", nil
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", o.wrong(key, o.raw(key), "a string")
	}
	return *s, nil
}

func (o object) boolean(key string) (v, ok bool, err error) {
	switch o.raw(key) {
	case "missing":
		return false, false, nil
	case "true":
		return true, true, nil
	case "false":
		return false, true, nil
	}
	return false, false, o.wrong(key, o.raw(key), "true or false")
}

func (o object) number(key string) (v float64, ok bool, err error) {
	raw, ok := o.fields[key]
	if !ok {
		return 0, false, nil
	}
	var p *float64
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return 0, false, o.wrong(key, string(raw), "a number")
	}
	return *p, true, nil
}

// integer takes what JSON Schema takes for one, 1.0 and 1e3 too, from 0 to most.
func (o object) integer(key string, most int64) (v int64, ok bool, err error) {
	raw, ok := o.fields[key]
	if !ok {
		return 0, false, nil
	}
	v, err = strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		var f float64
		// Above 2^53 a number written as a fraction may have been rounded.
		if json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || string(raw) == "null" {
			return 0, false, o.wrong(key, string(raw), "an integer from 0 to %d", most)
		}
		v = int64(f)
	}
	if v < 0 || v > most {
		return 0, false, o.wrong(key, string(raw), "an integer from 0 to %d", most)
	}
	return v, true, nil
}

// time takes an RFC 3339 time in UTC, written with Z.
func (o object) time(key string) (time.Time, error) {
	s, err := o.text(key, false)
	if err != nil || s == "" {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !strings.HasSuffix(s, "Z") {
		return time.Time{}, o.wrong(key, s, "YYYY-MM-DDThh:mm:ss.sssZ")
	}
	return t.UTC(), nil
}
