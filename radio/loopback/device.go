package loopback

import (
	"context"
	"fmt"
	"strconv"

	"ringwave/radio"
)

// Transmitter returns device i as a radio.TransmitOpener with FrequencyControl,
// RateControl and TimeControl. Its streams are radio.Idlers.
func (m *Medium) Transmitter(i int) (radio.Device, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.line(i); err != nil {
		return nil, err
	}
	return &txDevice{settings{m, i}}, nil
}

// Receiver returns the receiving end, whose streams begin at receive index start or
// later, as a radio.ReceiveOpener with the same capabilities.
func (m *Medium) Receiver(start radio.SampleIndex) (radio.Device, error) {
	if start < 0 || start > lastIndex {
		return nil, fmt.Errorf("loopback %q: the receiver starts at index %d; allowed is 0 to %d", m.cfg.Name, start, lastIndex)
	}
	return &rxDevice{settings{m, -1}, start}, nil
}

// MaxFrequency bounds the carrier: the end of what is called terahertz.
const MaxFrequency radio.Hertz = 10e12

// goldenAngle turns the phase at a retune: no multiple of it comes near another,
// as the random phase of a real synthesizer hardly does, and it is repeatable.
const goldenAngle Radians = 2.399963229728653

// settings is what both kinds of device can do; device is -1 at the receiver.
type settings struct {
	m      *Medium
	device int
}

func (s *settings) info() radio.Info {
	u := radio.URI{Scheme: "loopback", Name: s.m.cfg.Name}
	model := "receiver in memory"
	if s.device >= 0 {
		u.Params = map[string][]string{"tx": {strconv.Itoa(s.device)}}
		model = "transmitter in memory"
	}
	return radio.Info{URI: u.String(), Driver: "loopback", Model: model}
}

func (s *settings) Frequencies(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Max: MaxFrequency}
}

func (s *settings) Frequency(radio.Direction) radio.Hertz {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.device < 0 {
		return s.m.rxFrequency
	}
	return s.m.lines[s.device].frequency
}

// SetFrequency turns the phase and begins an epoch; the spectrum stays where it
// is. A transmitter's comes with the next sample to be written, the receiver's
// with the next to be read.
func (s *settings) SetFrequency(_ context.Context, d radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	f, err := s.Frequencies(d).Floor(fmt.Sprintf("the %v frequency of loopback %q", d, s.m.cfg.Name), f)
	if err != nil {
		return 0, err
	}
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, radio.ErrClosed
	}
	if s.device < 0 {
		m.rxFrequency = f
		m.rxTurn *= goldenAngle.turn()
		m.rxEpoch++
		return f, nil
	}
	l := m.lines[s.device]
	l.frequency = f
	at := max(l.pos, m.cursor(l))
	l.steps = insert(l.steps, step{at: at, turn: goldenAngle.turn()})
	l.epoch++
	l.tell(radio.EpochChanged, at, 0)
	return f, nil
}

func (s *settings) SampleRates(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: s.m.cfg.Rate, Max: s.m.cfg.Rate}
}

func (s *settings) SampleRate(radio.Direction) radio.Hertz { return s.m.cfg.Rate }

func (s *settings) SetSampleRate(_ context.Context, d radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	return s.SampleRates(d).Floor(fmt.Sprintf("the %v sample rate of loopback %q", d, s.m.cfg.Name), rate)
}

// Now returns the index that the medium has reached: by its clock, or by reads.
func (s *settings) Now(context.Context) (radio.SampleIndex, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.m.closed {
		return 0, radio.ErrClosed
	}
	return s.m.now(), nil
}

type txDevice struct{ settings }

func (d *txDevice) Info() radio.Info { return d.info() }

func (d *txDevice) OpenTransmitter(context.Context) (radio.Transmitter, error) {
	t, err := d.m.openTransmitter(d.device)
	if err != nil {
		return nil, err // not a nil transmitter in an interface
	}
	return t, nil
}

func (d *txDevice) Close() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if t := d.m.lines[d.device].tx; t != nil {
		t.close()
	}
	return nil
}

type rxDevice struct {
	settings
	start radio.SampleIndex
}

func (d *rxDevice) Info() radio.Info { return d.info() }

func (d *rxDevice) OpenReceiver(context.Context) (radio.Receiver, error) {
	r, err := d.m.openReceiver(d.start)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (d *rxDevice) Close() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if d.m.rx != nil {
		d.m.rx.close()
	}
	return nil
}

// Opener opens loopback:NAME for the receiver of the medium of that name,
// loopback:NAME?start=INDEX for one that starts late, and loopback:NAME?tx=I for
// transmitter I.
type Opener struct{ media map[string]*Medium }

// NewOpener makes the opener of media of different names.
func NewOpener(media ...*Medium) (*Opener, error) {
	o := &Opener{media: map[string]*Medium{}}
	for _, m := range media {
		if _, ok := o.media[m.cfg.Name]; ok {
			return nil, fmt.Errorf("two loopback media have the name %q; allowed is one", m.cfg.Name)
		}
		o.media[m.cfg.Name] = m
	}
	return o, nil
}

// Open opens an end of a medium.
func (o *Opener) Open(_ context.Context, u radio.URI) (radio.Device, error) {
	if err := u.Only("tx", "start"); err != nil {
		return nil, err
	}
	m, ok := o.media[u.Name]
	if !ok {
		return nil, fmt.Errorf("device %q has the name %q; allowed is that of a medium that was made", u, u.Name)
	}
	if u.Params.Has("tx") {
		if u.Params.Has("start") {
			return nil, fmt.Errorf("device %q has the parameters tx and start; allowed is one of them", u)
		}
		i, err := strconv.Atoi(u.Params.Get("tx"))
		if err != nil {
			return nil, fmt.Errorf("device %q has the parameter tx=%s; allowed is 0 to %d", u, u.Params.Get("tx"), len(m.lines)-1)
		}
		return m.Transmitter(i)
	}
	start := int64(0)
	if u.Params.Has("start") {
		var err error
		if start, err = strconv.ParseInt(u.Params.Get("start"), 10, 64); err != nil {
			return nil, fmt.Errorf("device %q has the parameter start=%s; allowed is 0 to %d", u, u.Params.Get("start"), lastIndex)
		}
	}
	return m.Receiver(radio.SampleIndex(start))
}
