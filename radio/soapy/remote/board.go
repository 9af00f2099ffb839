package remote

import (
	"context"
	"maps"
	"slices"
	"sync"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// board is a soapy.Board that a server has open.
type board struct {
	link   *link
	opts   options
	dialer Dialer

	closer sync.Once
	result error

	mu      sync.Mutex
	streams map[*stream]bool // the open ones
}

func (b *board) text(ctx context.Context, r *request) (string, error) {
	return ask(ctx, b.link, r, (*answer).text)
}

func (b *board) texts(ctx context.Context, r *request) ([]string, error) {
	return ask(ctx, b.link, r, (*answer).texts)
}

func (b *board) number(ctx context.Context, r *request) (float64, error) {
	return ask(ctx, b.link, r, (*answer).number)
}

func (b *board) truth(ctx context.Context, r *request) (bool, error) {
	return ask(ctx, b.link, r, (*answer).truth)
}

func (b *board) spans(ctx context.Context, r *request) ([]soapy.Range, error) {
	return ask(ctx, b.link, r, (*answer).spans)
}

func (b *board) tell(ctx context.Context, r *request) error { return tell(ctx, b.link, r) }

// Hardware implements soapy.Board.
func (b *board) Hardware(ctx context.Context) (h soapy.Hardware, err error) {
	if h.Driver, err = b.text(ctx, newRequest(callDriverKey)); err != nil {
		return h, err
	}
	if h.Key, err = b.text(ctx, newRequest(callHardwareKey)); err != nil {
		return h, err
	}
	h.Info, err = ask(ctx, b.link, newRequest(callHardwareInfo), (*answer).args)
	return h, err
}

// Channels implements soapy.Board.
func (b *board) Channels(ctx context.Context, dir radio.Direction) (int, error) {
	n, err := ask(ctx, b.link, newRequest(callChannels).direction(dir), (*answer).integer)
	return int(n), err
}

// FullDuplex implements soapy.Board.
func (b *board) FullDuplex(ctx context.Context, at soapy.Channel) (bool, error) {
	return b.truth(ctx, newRequest(callFullDuplex).channel(at))
}

// Formats implements soapy.Board.
func (b *board) Formats(ctx context.Context, at soapy.Channel) ([]string, error) {
	return b.texts(ctx, newRequest(callFormats).channel(at))
}

// NativeFormat implements soapy.Board.
func (b *board) NativeFormat(ctx context.Context, at soapy.Channel) (format string, fullScale float64, err error) {
	format, err = ask(ctx, b.link, newRequest(callNativeFormat).channel(at), func(a *answer) string {
		s := a.text()
		fullScale = a.number()
		return s
	})
	return format, fullScale, err
}

// Antennas implements soapy.Board.
func (b *board) Antennas(ctx context.Context, at soapy.Channel) ([]string, error) {
	return b.texts(ctx, newRequest(callAntennas).channel(at))
}

// Antenna implements soapy.Board.
func (b *board) Antenna(ctx context.Context, at soapy.Channel) (string, error) {
	return b.text(ctx, newRequest(callAntenna).channel(at))
}

// SetAntenna implements soapy.Board.
func (b *board) SetAntenna(ctx context.Context, at soapy.Channel, name string) error {
	return b.tell(ctx, newRequest(callSetAntenna).channel(at).text(name))
}

// Gains implements soapy.Board.
func (b *board) Gains(ctx context.Context, at soapy.Channel) ([]string, error) {
	return b.texts(ctx, newRequest(callGains).channel(at))
}

// GainRange implements soapy.Board.
func (b *board) GainRange(ctx context.Context, at soapy.Channel, element string) (soapy.Range, error) {
	return ask(ctx, b.link, newRequest(callGainRange).channel(at).text(element), (*answer).span)
}

// Gain implements soapy.Board.
func (b *board) Gain(ctx context.Context, at soapy.Channel, element string) (float64, error) {
	return b.number(ctx, newRequest(callGain).channel(at).text(element))
}

// SetGain implements soapy.Board.
func (b *board) SetGain(ctx context.Context, at soapy.Channel, element string, dB float64) error {
	return b.tell(ctx, newRequest(callSetGain).channel(at).text(element).number(dB))
}

// HasGainMode implements soapy.Board.
func (b *board) HasGainMode(ctx context.Context, at soapy.Channel) (bool, error) {
	return b.truth(ctx, newRequest(callHasGainMode).channel(at))
}

// SetGainMode implements soapy.Board.
func (b *board) SetGainMode(ctx context.Context, at soapy.Channel, automatic bool) error {
	return b.tell(ctx, newRequest(callSetGainMode).channel(at).truth(automatic))
}

// FrequencyRange implements soapy.Board.
func (b *board) FrequencyRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	return b.spans(ctx, newRequest(callFrequencyRange).channel(at))
}

// Frequency implements soapy.Board.
func (b *board) Frequency(ctx context.Context, at soapy.Channel) (float64, error) {
	return b.number(ctx, newRequest(callFrequency).channel(at))
}

// SetFrequency implements soapy.Board.
func (b *board) SetFrequency(ctx context.Context, at soapy.Channel, hertz float64) error {
	return b.tell(ctx, newRequest(callSetFrequency).channel(at).number(hertz).args(nil))
}

// SampleRateRange implements soapy.Board.
func (b *board) SampleRateRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	return b.spans(ctx, newRequest(callSampleRateRange).channel(at))
}

// SampleRate implements soapy.Board.
func (b *board) SampleRate(ctx context.Context, at soapy.Channel) (float64, error) {
	return b.number(ctx, newRequest(callSampleRate).channel(at))
}

// SetSampleRate implements soapy.Board.
func (b *board) SetSampleRate(ctx context.Context, at soapy.Channel, hertz float64) error {
	return b.tell(ctx, newRequest(callSetSampleRate).channel(at).number(hertz))
}

// BandwidthRange implements soapy.Board.
func (b *board) BandwidthRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	return b.spans(ctx, newRequest(callBandwidthRange).channel(at))
}

// Bandwidth implements soapy.Board.
func (b *board) Bandwidth(ctx context.Context, at soapy.Channel) (float64, error) {
	return b.number(ctx, newRequest(callBandwidth).channel(at))
}

// SetBandwidth implements soapy.Board.
func (b *board) SetBandwidth(ctx context.Context, at soapy.Channel, hertz float64) error {
	return b.tell(ctx, newRequest(callSetBandwidth).channel(at).number(hertz))
}

// ClockSources implements soapy.Board.
func (b *board) ClockSources(ctx context.Context) ([]string, error) {
	return b.texts(ctx, newRequest(callClockSources))
}

// ClockSource implements soapy.Board.
func (b *board) ClockSource(ctx context.Context) (string, error) {
	return b.text(ctx, newRequest(callClockSource))
}

// SetClockSource implements soapy.Board.
func (b *board) SetClockSource(ctx context.Context, name string) error {
	return b.tell(ctx, newRequest(callSetClockSource).text(name))
}

// TimeSources implements soapy.Board.
func (b *board) TimeSources(ctx context.Context) ([]string, error) {
	return b.texts(ctx, newRequest(callTimeSources))
}

// TimeSource implements soapy.Board.
func (b *board) TimeSource(ctx context.Context) (string, error) {
	return b.text(ctx, newRequest(callTimeSource))
}

// SetTimeSource implements soapy.Board.
func (b *board) SetTimeSource(ctx context.Context, name string) error {
	return b.tell(ctx, newRequest(callSetTimeSource).text(name))
}

// HasHardwareTime implements soapy.Board.
func (b *board) HasHardwareTime(ctx context.Context, what string) (bool, error) {
	return b.truth(ctx, newRequest(callHasHardwareTime).text(what))
}

// HardwareTime implements soapy.Board.
func (b *board) HardwareTime(ctx context.Context, what string) (soapy.Time, error) {
	t, err := ask(ctx, b.link, newRequest(callHardwareTime).text(what), (*answer).long)
	return soapy.Time(t), err
}

// SetHardwareTime implements soapy.Board.
func (b *board) SetHardwareTime(ctx context.Context, t soapy.Time, what string) error {
	return b.tell(ctx, newRequest(callSetHardwareTime).long(int64(t)).text(what))
}

// Sensors implements soapy.Board.
func (b *board) Sensors(ctx context.Context) ([]string, error) {
	return b.texts(ctx, newRequest(callSensors))
}

// ReadSensor implements soapy.Board.
func (b *board) ReadSensor(ctx context.Context, name string) (string, error) {
	return b.text(ctx, newRequest(callReadSensor).text(name))
}

// ChannelSensors implements soapy.Board.
func (b *board) ChannelSensors(ctx context.Context, at soapy.Channel) ([]string, error) {
	return b.texts(ctx, newRequest(callChannelSensors).channel(at))
}

// ReadChannelSensor implements soapy.Board.
func (b *board) ReadChannelSensor(ctx context.Context, at soapy.Channel, name string) (string, error) {
	return b.text(ctx, newRequest(callReadChannelSensor).channel(at).text(name))
}

// WriteSetting implements soapy.Board.
func (b *board) WriteSetting(ctx context.Context, key, value string) error {
	return b.tell(ctx, newRequest(callWriteSetting).text(key).text(value))
}

// WriteChannelSetting implements soapy.Board.
func (b *board) WriteChannelSetting(ctx context.Context, at soapy.Channel, key, value string) error {
	return b.tell(ctx, newRequest(callWriteChannelSetting).channel(at).text(key).text(value))
}

// Close gives the board back, if the server answers in time; it does so by itself where the
// connection ends.
func (b *board) Close() error {
	b.closer.Do(func() { b.result = b.giveBack() })
	return b.result
}

func (b *board) giveBack() error {
	gone := b.link.life.Err() != nil // whoever uses it was told
	ctx, cancel := b.link.farewell()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { b.link.end(errClosed) }) // a call may be under way
	defer stop()
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.streams))
	b.mu.Unlock()
	for _, s := range open {
		_ = s.Close() // giving the board back closes them, too
	}
	err := b.tell(ctx, newRequest(callUnmake))
	b.link.leave()
	if gone {
		return nil
	}
	return err
}
