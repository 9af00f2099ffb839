package hosts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/radio/intake"
)

// DeviceOptions are what a device is made of.
type DeviceOptions struct {
	// Identity is the file of the device's identity, URL that of the bus where it is not
	// the identity's.
	Identity, URL string
	// Lab is what this program knows, with the folder of the device's data.
	Lab experiment.Lab
	// Own says that all of the data are this device's; otherwise it has its part of a data
	// set that all have, by the run's partition.
	Own bool
	// Set overrides keys of the run's [task], as section.key=value: where own data are; and
	// what this host's radio may send.
	Set []string
	// Radio is the URI of this host's radio; "" for none.
	Radio string
	// State is the folder of what the device must remember: a folder below it a run and
	// device.
	State string
	// SeedSecrets lets a run derive the device's secrets from its seed, which everybody
	// knows.
	SeedSecrets bool
	// Stay has the device wait for the next run behind one's end.
	Stay bool
	// ReplayRounds is how many rounds the device replays at most where it may take a
	// checkpoint of theta; 0 for all.
	ReplayRounds int
	// Silence is after what time without a word of its server the device greets anew, and
	// Patience after what time it ends; 0 for never.
	Silence, Patience time.Duration
	Version           string
	// Say hears what a user should know, Round of each round that the device has computed
	// its losses for, with their mean.
	Say   func(text string)
	Round func(k, rounds int, loss float64)

	crowd      *crowd        // the devices of this process
	connecting chan struct{} // has room for so many that connect at once
	until      time.Time     // how long they try to reach the bus
	// reveal, in a test, is given the device's secret seed.
	reveal func(seed []byte)
}

// RunDevice takes part in the server's run until it ends, or ctx does.
func RunDevice(ctx context.Context, o DeviceOptions) (err error) {
	if o.crowd == nil {
		o.crowd, o.connecting, o.until = &crowd{devices: 1}, make(chan struct{}, 1), time.Now().Add(dialPatience)
	}
	if err := o.checkLives(); err != nil {
		return err
	}
	id, err := identity.Load(o.Identity)
	if err != nil {
		return err
	}
	defer id.Wipe()
	if id.Role != identity.Device {
		return intake.UserError(fmt.Errorf("%s: the identity is that of %s; allowed is that of a device", o.Identity, id))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.connecting <- struct{}{}
	conn, err := bus.Dial(ctx, id, o.URL, bus.Options{
		Patience: time.Until(o.until),
		Waiting:  func(err error) { o.Say(err.Error()) }, Lost: func(err error) { o.Say(err.Error()) },
		Connected: func() { o.Say("connected to the bus again") },
		Trouble:   func(err error) { o.Say(err.Error()) },
		Ended:     func(err error) { cancel(err) },
	})
	<-o.connecting
	if err != nil {
		return err
	}
	defer func() {
		// Of a run that has ended the server has all that it needs; it may be gone by now.
		if closing := conn.Close(); closing != nil && err == nil {
			o.Say(closing.Error())
		}
	}()
	d, err := device.New(device.Config{
		Identity: id, Bus: conn, Version: o.Version, Say: o.Say, Stay: o.Stay, Silence: o.Silence, Patience: o.Patience, ReplayRounds: o.ReplayRounds,
		Join: func(run wire.RunID, w wire.Run) (*device.Part, error) { return o.join(ctx, id, run, w) },
	})
	if err != nil {
		return err
	}
	err = d.Run(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(err, context.Canceled) && cause != nil {
		return cause
	}
	return err
}

// join makes the device's part in a run.
func (o DeviceOptions) join(ctx context.Context, id identity.Identity, run wire.RunID, w wire.Run) (part *device.Part, err error) {
	if w.Sounds {
		c, err := o.config(w)
		if err != nil {
			return nil, err
		}
		return o.soundings(ctx, id, c)
	}
	dir := filepath.Join(o.State, run.String(), deviceDir(id.Index))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, intake.PathError(fmt.Errorf("making the folder of the run: %w", err))
	}
	if w.Calibration != nil {
		if err := os.WriteFile(filepath.Join(dir, runfolder.CalibrationName), w.Calibration, 0o644); err != nil {
			return nil, intake.PathError(err)
		}
	}
	c, err := o.config(w)
	if err != nil {
		return nil, err
	}
	if id.Index > c.Devices.Count {
		return nil, intake.UserError(fmt.Errorf("the run has %d devices (devices.count), and this is device %d", c.Devices.Count, id.Index))
	}
	common, shard, err := o.crowd.load(o, id, c, w, dir)
	if err != nil {
		return nil, err
	}
	m := &member{o: o, id: id, common: common, task: shard.Task, rounds: c.Optimizer.Rounds}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if err = m.open(dir); err != nil {
		return nil, err
	}
	learner, err := shard.Member(c)
	if err != nil {
		return nil, err
	}
	part = &device.Part{
		Context: common.Context, Cipher: m.cipher, Member: learner, Rounds: m.rounds, Epoch: m.epoch, Minimum: c.Devices.Minimum,
		Readiness: wire.Readiness{Devices: c.Devices.Count, Data: digestOf(shard.Files, shard.Name), Own: o.Own, Samples: shard.Train.Len()},
		Note:      m.note, Close: m.Close,
	}
	if err := o.frames(ctx, part, m, linkSecret(common, id, run)); err != nil {
		return nil, err
	}
	if part.Minimum == 0 {
		part.Minimum = c.Devices.Count
	}
	o.Say(fmt.Sprintf("device %d of run %s: %s, %d samples%s, secrets from %s", id.Index, c.Experiment.Name, shard.Name, shard.Train.Len(),
		map[bool]string{true: " of its own"}[o.Own], map[bool]string{true: "the system's generator", false: "the seed, which protects nothing"}[systemKeys(common)]))
	return part, nil
}

// frames makes the sending half of the run's link.
func (o DeviceOptions) frames(ctx context.Context, part *device.Part, m *member, secret keystream.Seed) error {
	c, i, modulus := m.common, m.id.Index-1, m.common.Context.Modulus()
	if !c.Config.OverWaveform() {
		f, err := phy.NewRingFramer(modulus, c.Config.Devices.Count, c.Design.Link.NoiseStd, secret)
		if err != nil {
			return err
		}
		part.Framer = device.NewRing(f, modulus, i)
		return nil
	}
	link, err := c.Waveform(secret).Link()
	if err != nil {
		return err
	}
	if c.Config.OverRadios() {
		station, host, err := o.station(ctx, c, link, i)
		if err != nil {
			return err
		}
		part.Framer, part.Radio, part.Readiness.Radio, m.radio = station, host, o.Radio, host
		return nil
	}
	s, err := phy.NewWaveformSender(link, i)
	part.Framer = device.Waveform{WaveformSender: s}
	return err
}

// config reads the run's configuration. What it says of this device's data is the device's.
func (o DeviceOptions) config(w wire.Run) (c experiment.Config, err error) {
	for _, set := range o.Set {
		if key := keyOf(set); !strings.HasPrefix(key, "task.") && key != biasTee && !slices.Contains(local(), key) {
			return c, intake.UserError(fmt.Errorf("--set %s: allowed are keys of [task], which say where this device's data are, and %s: all else is the run's", intake.Sentence(set), strings.Join(append(local(), biasTee), ", ")))
		}
	}
	if c, err = o.Lab.Parse("the run's configuration", w.Config, o.Set); err != nil {
		return c, err
	}
	// A server must not say what runs on a device's host.
	if c.Task.Model == "process" && !slices.ContainsFunc(o.Set, func(set string) bool { return keyOf(set) == "task.command" }) {
		return c, intake.UserError(errors.New("the run's model is a program (task.model = \"process\"), and what runs here is not the server's to say: name this host's with --set 'task.command=[\"program\", \"argument\"]'"))
	}
	if c.Devices.Count != w.Devices {
		return c, fmt.Errorf("the server speaks of %d devices, and its configuration of %d", w.Devices, c.Devices.Count)
	}
	if w.Sounds { // which have no secrets
		return c, nil
	}
	if c.Encryption.Randomness != "system" && !o.SeedSecrets {
		return c, intake.UserError(fmt.Errorf("the run derives all secrets from its seed (encryption.randomness = %q), which protects nothing: allow it with --secrets-from-seed, or have the server run with \"system\"", c.Encryption.Randomness))
	}
	if c.Encryption.Randomness == "system" && c.Devices.Count < 2 {
		return c, intake.UserError(errors.New("devices.count = 1: the server would see this device's own values; allowed are 2 or more, in whose sum each is hidden"))
	}
	return c, nil
}

func systemKeys(c *experiment.Common) bool { return c.Config.Encryption.Randomness == "system" }

// digestOf returns a digest of the files that data come from.
func digestOf(files []dataset.File, name string) string {
	if len(files) == 0 {
		return name
	}
	h := sha256.New()
	for _, f := range files {
		io.WriteString(h, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// member is what a device's part holds open.
type member struct {
	o       DeviceOptions
	id      identity.Identity
	common  *experiment.Common
	task    *experiment.Task
	rounds  int
	cipher  *xmkckks.Device
	journal *xmkckks.Journal
	base    uint32 // the key epoch of the first round, of keys from the system
	first   int    // that round; 0 before
	log     *runfolder.Lines
	radio   io.Closer // nil for none
}

// The device's own log.
const (
	deviceLogName = "device.csv"
	deviceHeader  = "round,time,loss,clipped,delta"
)

// JournalName is the file of the shares that a device has given.
const JournalName = "shares.journal"

// open makes the key and opens the journal.
func (m *member) open(dir string) (err error) {
	c := m.common
	m.journal, err = xmkckks.OpenJournal(filepath.Join(dir, JournalName), xmkckks.JournalConfig{Limit: setup.SharesPerKey(c.Config), System: systemKeys(c)})
	if err != nil {
		return intake.PathError(err)
	}
	var seed *keystream.Seed
	if systemKeys(c) {
		if m.base, err = m.journal.Begin(); err != nil {
			return err
		}
		seed, err = keystream.FromSystem()
	} else {
		secrets := c.Seed.DeriveSecret("secrets")
		defer secrets.Wipe()
		seed = secrets.DeriveSecret("device", uint64(m.id.Index-1))
	}
	if err != nil {
		return err
	}
	if m.o.reveal != nil {
		m.o.reveal(seed[:])
	}
	i := m.id.Index - 1
	m.cipher, err = c.Context.NewDevice(xmkckks.DeviceConfig{Index: i, Mu: c.Design.Link.Mu[i], DeltaMax: c.Design.Link.DeltaMax, Seed: seed, Guard: m.journal})
	if err != nil {
		seed.Wipe()
		return err
	}
	if m.log, err = runfolder.OpenLines(filepath.Join(dir, deviceLogName), deviceHeader, 0o600); err != nil {
		return intake.PathError(fmt.Errorf("the device's own log: %w", err))
	}
	return nil
}

// epoch returns the key epoch of a round.
func (m *member) epoch(k int) uint32 {
	e := m.common.Config.Encryption.KeyEpochRounds
	if m.first == 0 {
		m.first = k
	}
	switch {
	case e == 0:
		return m.base
	case systemKeys(m.common):
		return m.base + uint32((k-1)/e-(m.first-1)/e)
	}
	return uint32((k - 1) / e)
}

// note writes what only the device knows of a round into its log.
func (m *member) note(k int, loss float64, values []float64, clipped int) error {
	if m.o.Round != nil {
		m.o.Round(k, m.rounds, loss)
	}
	line := fmt.Sprintf("%d,%s,%s,%d,%s", k, time.Now().UTC().Format(time.RFC3339Nano), strconv.FormatFloat(loss, 'g', -1, 64), clipped, spaced(values))
	if err := m.log.Add(line); err != nil {
		return intake.PathError(fmt.Errorf("the device's own log: %w", err))
	}
	return nil
}

// Close lets go of all.
func (m *member) Close() error {
	var errs []error
	if m.radio != nil { // what is on the air goes off first
		errs = append(errs, m.radio.Close())
	}
	if m.cipher != nil {
		m.cipher.Close()
	}
	if m.task != nil {
		errs = append(errs, m.task.Close())
	}
	if m.journal != nil {
		errs = append(errs, m.journal.Close())
	}
	if m.log != nil {
		errs = append(errs, m.log.Close())
	}
	return errors.Join(errs...)
}
