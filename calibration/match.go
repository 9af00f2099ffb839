package calibration

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Want is a bench as it is now.
type Want struct {
	Bench        Bench
	Transmitters []Transmitter // of the devices 1 to N
	Now          time.Time
}

// Mismatch is one reason for which a calibration does not speak of a bench.
type Mismatch struct {
	Key      string // of the file, as "device 2: serial"
	InFile   string
	Now      string
	Sentence string // names the file, the key, both values and what to do
	// PhasesOnly tells that magnitudes hold, and only phases do not.
	PhasesOnly bool
}

// Mismatches are all that a file has, in the file's order.
type Mismatches []Mismatch

// Refusal gives, as an *Error, the first mismatch for which nothing in the file holds;
// nil if there is none.
func (m Mismatches) Refusal() error {
	for _, x := range m {
		if !x.PhasesOnly {
			return &Error{x.Sentence}
		}
	}
	return nil
}

// NeedsQuick reports whether magnitudes hold and some phases do not, so that a quick
// calibration at the session's start makes the file whole.
func (m Mismatches) NeedsQuick() bool { return len(m) > 0 && m.Refusal() == nil }

// Sentences returns all of them.
func (m Mismatches) Sentences() []string {
	var s []string
	for _, x := range m {
		s = append(s, x.Sentence)
	}
	return s
}

// Match compares a calibration with a bench as it is now; name is the file's, for
// sentences. No mismatch means that all of it holds, phases included: they do in the
// session in which they were measured while epochs stay, and otherwise only of devices
// with PhaseLasts. Boards are known by their serials, by their URIs where neither side
// has a serial. An identity is compared where both sides have one.
func Match(name string, f File, w Want) Mismatches {
	f.Devices = sorted(f.Devices)
	m := matcher{name: name}
	m.dates(f, w.Now)
	m.bench(f.Bench, w.Bench)
	if len(f.Devices) != len(w.Transmitters) {
		m.add("the number of devices", fmt.Sprint(len(f.Devices)), fmt.Sprint(len(w.Transmitters)), again)
		return m.found
	}
	for i, d := range f.Devices {
		m.board(fmt.Sprintf("device %d: ", i+1), d.Transmitter, w.Transmitters[i], otherDevice(f, w.Transmitters[i]))
		m.gains(fmt.Sprintf("device %d: transmit_gains_db", i+1), d.TransmitGainsDB, w.Transmitters[i].TransmitGainsDB)
	}
	// What a digest covers more than the above.
	if len(m.found) == 0 && f.Bench.Identity != "" && w.Bench.Identity != "" {
		m.text("bench.identity", f.Bench.Identity, w.Bench.Identity, again)
	}
	m.phases(f, w)
	return m.found
}

// What to do about it.
const (
	again   = "calibrate this bench"
	setBack = "set it back, or calibrate again"
	quick   = "magnitudes hold, phases do not: a quick calibration at the session's start finds them"
)

// matcher gathers mismatches.
type matcher struct {
	name  string
	found Mismatches
}

func (m *matcher) add(key, inFile, now, remedy string) {
	m.found = append(m.found, Mismatch{
		Key: key, InFile: inFile, Now: now, PhasesOnly: remedy == quick,
		Sentence: fmt.Sprintf("%s: %s is %s, and on the bench now %s: %s", m.name, key, inFile, now, remedy),
	})
}

func (m *matcher) text(key, inFile, now, remedy string) {
	if inFile != now {
		m.add(key, fmt.Sprintf("%q", inFile), fmt.Sprintf("%q", now), remedy)
	}
}

// number compares with what the file's rounding leaves.
func (m *matcher) number(key string, inFile, now float64) {
	if math.Abs(inFile-now) > 2e-9*math.Max(math.Abs(inFile), math.Abs(now)) {
		m.add(key, fmt.Sprint(inFile), fmt.Sprint(now), setBack)
	}
}

func (m *matcher) dates(f File, now time.Time) {
	if now.After(f.ValidUntil) {
		m.found = append(m.found, Mismatch{
			Key: "valid_until", InFile: date(f.ValidUntil), Now: date(now),
			Sentence: fmt.Sprintf("%s: valid_until is %s, and now it is %s: calibrate again", m.name, date(f.ValidUntil), date(now)),
		})
	}
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (m *matcher) bench(file, now Bench) {
	m.text("bench.kind", string(file.Kind), string(now.Kind), again)
	m.board("bench.receiver_", Transmitter{URI: file.ReceiverURI, Driver: file.ReceiverDriver, Serial: file.ReceiverSerial},
		Transmitter{URI: now.ReceiverURI, Driver: now.ReceiverDriver, Serial: now.ReceiverSerial}, "")
	m.gains("bench.receive_gains_db", file.ReceiveGainsDB, now.ReceiveGainsDB)
	m.number("bench.frequency_hz", file.FrequencyHz, now.FrequencyHz)
	m.number("bench.sample_rate_hz", file.SampleRateHz, now.SampleRateHz)
	m.text("bench.clock", file.Clock, now.Clock, setBack)
}

// board tells boards apart: the same serial at another URI is the same board at another
// socket. elsewhere says where in the file the board of now is.
func (m *matcher) board(prefix string, file, now Transmitter, elsewhere string) {
	if file.Driver != now.Driver {
		m.text(prefix+"driver", file.Driver, now.Driver, again)
		return
	}
	remedy := again
	if elsewhere != "" {
		remedy = elsewhere
	}
	switch {
	case file.Serial == "" && now.Serial == "":
		m.text(prefix+"uri", file.URI, now.URI, remedy)
	case !strings.EqualFold(file.Serial, now.Serial): // hexadecimal ones come in either case
		m.text(prefix+"serial", file.Serial, now.Serial, remedy)
	}
}

// otherDevice says which other device of the file has the board; "" if none has.
func otherDevice(f File, t Transmitter) string {
	for _, d := range f.Devices {
		if t.Serial != "" && strings.EqualFold(d.Serial, t.Serial) {
			return fmt.Sprintf("that board was device %d: put the transmitters in the file's order, or calibrate again", d.Index)
		}
	}
	return ""
}

// gains compares the stages of both, by name.
func (m *matcher) gains(key string, file, now map[string]float64) {
	all := maps.Clone(file)
	if all == nil {
		all = map[string]float64{}
	}
	maps.Copy(all, now)
	for _, stage := range slices.Sorted(maps.Keys(all)) {
		a, inFile := file[stage]
		b, isNow := now[stage]
		if inFile && isNow && math.Abs(a-b) <= 1e-6 {
			continue
		}
		m.add(key+"."+shown(stage), decibels(a, inFile), decibels(b, isNow), setBack)
	}
}

func decibels(v float64, set bool) string {
	if !set {
		return "not set"
	}
	return fmt.Sprintf("%v dB", v)
}

// phases tells of what lets magnitudes hold.
func (m *matcher) phases(f File, w Want) {
	var lost []int
	for _, d := range f.Devices {
		if d.PhaseLasts == nil || !*d.PhaseLasts {
			lost = append(lost, d.Index)
		}
	}
	if len(lost) == 0 {
		return
	}
	if f.Bench.SessionID != w.Bench.SessionID {
		m.add("bench.session_id", fmt.Sprintf("%q", f.Bench.SessionID), fmt.Sprintf("%q", w.Bench.SessionID), quick)
		return // epochs of other streams cannot be compared
	}
	if f.Bench.ReceiverEpoch != w.Bench.ReceiverEpoch {
		m.add("bench.receiver_epoch", fmt.Sprint(f.Bench.ReceiverEpoch), fmt.Sprint(w.Bench.ReceiverEpoch), quick)
	}
	for _, i := range lost {
		if a, b := f.Devices[i-1].Epoch, w.Transmitters[i-1].Epoch; a != b {
			m.add(fmt.Sprintf("device %d: epoch", i), fmt.Sprint(a), fmt.Sprint(b), quick)
		}
	}
}
