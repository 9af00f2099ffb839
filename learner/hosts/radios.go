package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/remote"
	"ringwave/learner/hosts/server"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/boards"
	"ringwave/radio/intake"
)

// Driver opens the radios of the bench's devices on their own hosts: host:1 is that of device 1.
func (b *Bench) Driver() boards.Driver {
	return boards.Driver{Scheme: setup.HostScheme, Opener: ending{remote.NewOpener(func(index int) (remote.Caller, error) {
		var visits []int
		if b.server != nil {
			visits = b.server.Visits()
		}
		if index < 1 || index > len(visits) {
			return nil, fmt.Errorf("there is no device %d: devices.count is %d", index, len(visits))
		}
		return &line{b.server, index, visits[index-1]}, nil
	})}}
}

// ending opens radios that are closed once the context ends that they were opened in, as boards
// of this host go off.
type ending struct{ radio.Opener }

// Open implements radio.Opener.
func (o ending) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := o.Opener.Open(ctx, u)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = d.Close() }) // its host closes one that it does not hear of
	}
	return d, err
}

// line is the way to the radio of a device, as long as that is not begun anew: remote.Caller.
type line struct {
	server *server.Server
	index  int
	visit  int
}

func (l *line) Call(ctx context.Context, request []byte) ([]byte, error) {
	if l.server.Visits()[l.index-1] != l.visit {
		return nil, lost{fmt.Errorf("device %d was begun anew", l.index)}
	}
	answer, err := l.server.Radio(ctx, l.index, request)
	if errors.Is(err, server.ErrGone) {
		err = lost{err}
	}
	return answer, err
}

// lost is the error of a device that is gone. Its stream has ended and another can begin, as
// that of a board that has starved.
type lost struct{ error }

func (l lost) Unwrap() error        { return l.error }
func (l lost) Is(target error) bool { return target == radio.ErrStarved }

// Calibrate asks the bench's devices for their radios, and returns once all are there. The
// radios of Driver are theirs then, until Close.
func (b *Bench) Calibrate(ctx context.Context, c experiment.Config) (err error) {
	if err := experiment.CheckHosts(c); err != nil {
		return err
	}
	if n := b.folder.Registry.Devices(); c.Devices.Count > n {
		return b.tooMany(c, n)
	}
	if err := b.valid(c.Devices.Count, 0, time.Now()); err != nil {
		return err
	}
	encoded, err := c.Encode()
	if err != nil {
		return err
	}
	var run wire.RunID
	if _, err := rand.Read(run[:]); err != nil {
		return fmt.Errorf("naming the calibration: %w", err)
	}
	if b.server, err = server.New(server.Config{
		Identity: b.id, Bus: b.conn, Admit: b.admit, Run: run, Name: c.Experiment.Name,
		Welcome:  wire.Run{Version: b.o.Version, Config: encoded, Devices: c.Devices.Count, Sounds: true},
		Deadline: b.o.Deadline, Silence: b.o.Silence, Say: b.o.Say, Herald: b.herald,
	}); err != nil {
		return err
	}
	b.sounds = true
	return b.Await(ctx, c.Devices.Count)
}

// airwaves is the devices of a run that have radios of their own: uplink.Elsewhere.
type airwaves struct {
	*server.Radios
	bench  *Bench
	visits []int
}

// Align implements uplink.Elsewhere.
func (w *airwaves) Align(ctx context.Context, a *array.Array, all []phy.MakeUp) error {
	return w.Radios.Align(ctx, doOver(a), all)
}

// Call implements uplink.Elsewhere.
func (w *airwaves) Call(ctx context.Context, a *array.Array, d phy.Due) error {
	return w.Radios.Call(ctx, doOver(a), a.Offsets(), d)
}

// doOver asks the transmitters of an array for operations of their devices.
func doOver(a *array.Array) server.Do {
	all := a.Transmitters()
	return func(ctx context.Context, i int, op string, args []byte) error {
		tx := all[i]
		if s, ok := tx.(interface{ Unwrap() radio.Transmitter }); ok {
			tx = s.Unwrap()
		}
		far, ok := tx.(interface {
			Do(ctx context.Context, op string, args []byte) ([]byte, error)
		})
		if !ok {
			return fmt.Errorf("its transmitter is not on a host of its own")
		}
		_, err := far.Do(ctx, op, args)
		return err
	}
}

// Await implements uplink.Elsewhere.
func (w *airwaves) Await(ctx context.Context) (anew bool, err error) {
	if err := w.bench.Await(ctx, len(w.bench.server.Visits())); err != nil {
		return false, err
	}
	now := w.bench.server.Visits()
	anew = w.visits != nil && !slices.Equal(now, w.visits)
	w.visits = now
	return anew, nil
}

// overRadios makes the receiving half of a link whose devices have radios of their own.
func (b *Bench) overRadios(h uplink.Hosted) (phy.Receiver, error) {
	radios, err := b.server.NewRadios(setup.GroupSize(h.Config))
	if err != nil {
		return nil, err
	}
	rx, err := uplink.NewReceiving(h, &phy.Feed{}, nil)
	if err != nil {
		return nil, err
	}
	rx.Elsewhere = &airwaves{Radios: radios, bench: b}
	radios.Gains = func(g []float64) bool { return rx.Link.Gains(g) }
	return rx, nil
}

// local returns the keys of [radio] that a device's own user decides on, and must. There is
// also biasTee, which the user may leave as it is: false.
func local() []string { return []string{"radio.transmit", "radio.band_hz", "radio.most_gain_db"} }

const biasTee = "radio.bias_tee"

// permit returns what this host's user has confirmed that may be sent. What the run's
// configuration says of that is the server's user's.
func (o DeviceOptions) permit(c experiment.Config) (radio.TransmitPermit, error) {
	if o.Radio == "" {
		return radio.TransmitPermit{}, intake.UserError(errors.New("the run sends over radios: name this host's with --radio, as in --radio hackrf:SERIAL"))
	}
	sets := func(key string) bool {
		return slices.ContainsFunc(o.Set, func(set string) bool { return keyOf(set) == key })
	}
	for _, key := range local() {
		if !sets(key) {
			return radio.TransmitPermit{}, intake.UserError(fmt.Errorf("the run asks this host to send %v wide at %v with gains of %s: allow it with --set radio.transmit=true, --set radio.band_hz=[from, to] and --set radio.most_gain_db=dB, of which there is no %s",
				radio.Hertz(c.Link.SampleRateHz), radio.Hertz(c.Radio.FrequencyHz), strings.Join(c.Radio.TransmitGainsDB, ", "), key))
		}
	}
	c.Radio.BiasTee = c.Radio.BiasTee && sets(biasTee)
	p, err := setup.PermitOf(c)
	if err == nil && !p.Allowed() {
		err = errors.New("--set radio.transmit=false: must be true for a run over radios")
	}
	return p, intake.UserError(err)
}

// keyOf returns the key that a --set sets.
func keyOf(set string) string {
	key, _, _ := strings.Cut(set, "=")
	return strings.TrimSpace(key)
}

// host serves this device's own radio to the server; do, which may be nil, does what is the
// device's own.
func (o DeviceOptions) host(ctx context.Context, c experiment.Config, do func(ctx context.Context, tx radio.Transmitter, op string, args []byte) ([]byte, error)) (*remote.Host, error) {
	permit, err := o.permit(c)
	if err != nil {
		return nil, err
	}
	return remote.NewHost(remote.HostConfig{
		Open: func(context.Context) (radio.Device, error) { // which lives as long as the device's process
			d, _, err := o.Lab.Radios.OpenOne(ctx, permit, o.Radio)
			return d, err
		},
		Do: do, Say: o.Say,
	}), nil
}

// station makes the sending half of a link over this device's own radio.
func (o DeviceOptions) station(ctx context.Context, c *experiment.Common, link phy.WaveformConfig, i int) (*device.Station, *remote.Host, error) {
	s, err := phy.NewWaveformSender(link, i)
	if err != nil {
		return nil, nil, err
	}
	t, err := phy.NewWaveformTransmitter(phy.WaveformTransmitterConfig{Modem: link.Modem, Base: link.Base, Patience: setup.RadioPatience})
	if err != nil {
		return nil, nil, err
	}
	station := device.NewStation(s, t)
	h, err := o.host(ctx, c.Config, station.Do)
	return station, h, err
}

// soundings makes the device's part in a calibration.
func (o DeviceOptions) soundings(ctx context.Context, id identity.Identity, c experiment.Config) (*device.Part, error) {
	h, err := o.host(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	o.Say(fmt.Sprintf("device %d of a calibration of %s: soundings over %s", id.Index, c.Experiment.Name, o.Radio))
	return &device.Part{Radio: h, Readiness: wire.Readiness{Devices: c.Devices.Count, Own: true, Radio: o.Radio}, Close: h.Close}, nil
}
