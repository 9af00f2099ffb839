package hosts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/lockfile"
	"ringwave/crypto/round"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/server"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/radio/intake"
	"ringwave/radio/life"
)

// BenchOptions are what a Bench is made of.
type BenchOptions struct {
	// Folder is that of the enrolment.
	Folder string
	// Listen is where the bus that is part of the program listens; URL is that of another,
	// in its place.
	Listen, URL string
	// Air has the channel be simulated in this process.
	Air bool
	// Version is that of the program, and Host names the machine; "" for its own name.
	Version, Host string
	// Deadline is how long a step may take a device, Silence how long it may say nothing;
	// 0 for the package server's.
	Deadline, Silence time.Duration
	// Say hears what a user should know.
	Say func(text string)
}

// Bench is the server's side of a bench of many hosts: an experiment.Fleet, of one run.
type Bench struct {
	o      BenchOptions
	folder *identity.Folder
	read   time.Time // when the registry that was read last had been written
	lock   *lockfile.File
	id     identity.Identity
	nats   *bus.Server
	conn   bus.Conn
	herald *server.Herald
	live   life.Life // ends where the bus no longer admits the server, or its air

	sky    *simulated
	server *server.Server
	// leading is server, for those who ask from other goroutines; nil while there is none.
	leading atomic.Pointer[server.Server]
	records *os.File
	known   int // records in the file
	thetas  thetas
	sounds  bool // the server is that of a calibration
}

// simulated is the air in this process.
type simulated struct {
	id   identity.Identity
	conn bus.Conn
	air  interface{ Close() }
	log  *gainLog
}

// NewBench connects the server to the bus, which it begins unless there is another. It lives
// until Close.
func NewBench(ctx context.Context, o BenchOptions) (b *Bench, err error) {
	b = &Bench{o: o}
	if o.Deadline < 0 || o.Silence < 0 || o.Deadline > 0 && o.Deadline < leastPatience || o.Silence > 0 && o.Silence < leastPatience {
		return b, intake.UserError(fmt.Errorf("--deadline is %v and --silence %v: allowed is %v or more for each", o.Deadline, o.Silence, leastPatience))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.folder, err = identity.Open(o.Folder); err != nil {
		return b, err
	}
	if b.lock, err = lockfile.Open(filepath.Join(o.Folder, lockName)); err != nil {
		return b, intake.UserError(fmt.Errorf("the bench %s has another ringwave serve already, or may not be used: %w; allowed is one at a time%s", o.Folder, err, lockfile.Hint(lockName)))
	}
	if b.id, err = identity.Load(b.folder.IdentityPath(identity.Server, 0)); err != nil {
		return b, err
	}
	if o.URL == "" {
		if o.Listen == "" {
			if o.Listen, err = listenAt(b.folder.Registry.URL); err != nil {
				return b, err
			}
		}
		if b.nats, err = bus.Embed(context.WithoutCancel(ctx), bus.ServerOptions{Folder: b.folder, Address: o.Listen, Log: o.Say}); err != nil {
			return b, err
		}
	}
	if b.conn, err = b.dial(ctx, b.id); err != nil {
		return b, err
	}
	if err := b.alone(ctx); err != nil {
		return b, err
	}
	if !o.Air {
		return b, nil
	}
	b.sky = &simulated{}
	if b.sky.id, err = identity.Load(b.folder.IdentityPath(identity.Air, 0)); err != nil {
		return b, err
	}
	b.sky.conn, err = b.dial(ctx, b.sky.id)
	return b, err
}

// lockName is the file of a bench that its one server holds.
const lockName = ".serving"

// leastPatience is the least time that a device may be given: one beats once a second, and
// the deadlines of tests are short.
const leastPatience = 100 * time.Millisecond

// listenAt returns where a bus of a URL listens: on this host alone where the URL names it
// so, or on all of its addresses.
func listenAt(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", fmt.Errorf("reading the URL of the bench: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return "localhost:" + u.Port(), nil
	}
	return ":" + u.Port(), nil
}

// dial connects one of this process's hosts.
func (b *Bench) dial(ctx context.Context, id identity.Identity) (bus.Conn, error) {
	return bus.Dial(ctx, id, b.o.URL, bus.Options{
		InProcess: b.nats, Patience: dialPatience,
		Waiting: func(err error) { b.o.Say(err.Error()) }, Lost: func(err error) { b.o.Say(err.Error()) },
		Connected: func() { b.o.Say(fmt.Sprintf("%s is connected to the bus again", id)) },
		Trouble:   func(err error) { b.o.Say(err.Error()) },
		Ended:     b.live.End,
	})
}

// dialPatience is how long a host tries to reach the bus before it gives up.
const dialPatience = 30 * time.Second

// Attendance says who is there, from any goroutine; false while no run has begun.
func (b *Bench) Attendance() (wire.Attendance, bool) {
	if s := b.leading.Load(); s != nil {
		return s.Census(), true
	}
	return wire.Attendance{}, false
}

// URL returns where devices find the bus.
func (b *Bench) URL() string {
	if b.nats == nil {
		return b.o.URL
	}
	return b.nats.URL()
}

// Close lets go of all that the bench holds.
func (b *Bench) Close() error {
	var errs []error
	b.live.End(nil)
	if b.server != nil {
		if b.sounds {
			b.dismiss()
		}
		b.server.Close()
	}
	if b.sky != nil {
		if b.sky.air != nil {
			b.sky.air.Close()
		}
		if b.sky.log != nil {
			errs = append(errs, b.sky.log.close())
		}
		if b.sky.conn != nil {
			errs = append(errs, b.sky.conn.Close())
		}
	}
	if b.herald != nil {
		b.herald.Close()
	}
	if b.conn != nil {
		errs = append(errs, b.conn.Close())
	}
	if b.nats != nil {
		b.nats.Close()
	}
	if b.records != nil {
		errs = append(errs, b.records.Close())
	}
	b.id.Wipe()
	if b.lock != nil {
		errs = append(errs, b.lock.Close())
	}
	b.lock, b.server, b.sky, b.herald, b.conn, b.nats, b.records = nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// dismiss tells devices that a calibration is over, which they may not hear.
func (b *Bench) dismiss() {
	b.server.Dismiss()
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	_ = b.conn.Flush(ctx) // else they learn it from the next run
}

// The files of a run's folder that are the bench's.
const (
	runName     = "run.id"
	recordsName = "records.bin"
	gainsName   = "air.csv"
)

// Open begins the run of a folder, or a sitting at it: experiment.Fleet.
func (b *Bench) Open(f experiment.FleetRun) ([]round.Participant, phy.Receiver, error) {
	if n := b.folder.Registry.Devices(); f.Config.Devices.Count > n {
		return nil, nil, b.tooMany(f.Config, n)
	}
	if err := b.valid(f.Config.Devices.Count, f.Config.Devices.Minimum, time.Now()); err != nil {
		return nil, nil, err
	}
	run, err := runID(f.Dir)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := f.Config.Encode()
	if err != nil {
		return nil, nil, err
	}
	records, err := b.openRecords(f, run)
	if err != nil {
		return nil, nil, err
	}
	if b.server, err = server.New(server.Config{
		Identity: b.id, Bus: b.conn, Admit: b.admit, Run: run, Name: f.Config.Experiment.Name,
		Welcome: wire.Run{Version: b.o.Version, Config: encoded, Calibration: f.Calibration, Dataset: f.Dataset, Devices: f.Config.Devices.Count},
		Rounds:  f.Config.Optimizer.Rounds, Context: f.Context, Deadline: b.o.Deadline, Silence: b.o.Silence, Say: b.o.Say, Records: records, Herald: b.herald,
	}); err != nil {
		return nil, nil, err
	}
	if err := b.openThetas(f, run); err != nil {
		return nil, nil, err
	}
	rx, err := b.receiver(f.Common, linkSecret(f.Common, b.id, run))
	if err != nil {
		return nil, nil, err
	}
	if b.sky != nil && !f.Config.OverRadios() {
		if b.sky.log, err = openGains(filepath.Join(f.Dir, gainsName), f.Common); err != nil {
			return nil, nil, err
		}
		if b.sky.air, err = newAir(f.Common, b.sky.id, b.sky.conn, b.sky.log, b.o.Say); err != nil {
			return nil, nil, err
		}
	}
	b.leading.Store(b.server)
	return b.server.Participants(), rx, nil
}

// tooMany says that more devices are asked for than are enrolled.
func (b *Bench) tooMany(c experiment.Config, enrolled int) error {
	return intake.UserError(fmt.Errorf("devices.count = %d: must be at most %d, the devices that are enrolled in %s; enrol more with --add", c.Devices.Count, enrolled, b.o.Folder))
}

// receiver makes the receiving half of the run's link.
func (b *Bench) receiver(c *experiment.Common, secret keystream.Seed) (phy.Receiver, error) {
	if !c.Config.OverWaveform() {
		return b.server.NewRingReceiver(c.Design.Link.NoiseStd, secret)
	}
	if c.Config.OverRadios() {
		return b.overRadios(c.Waveform(secret))
	}
	antenna, err := b.server.NewAntenna(setup.GroupSize(c.Config))
	if err != nil {
		return nil, err
	}
	rx, err := uplink.NewReceiving(c.Waveform(secret), &antenna.Feed, antenna.Call)
	if err != nil {
		return nil, err
	}
	antenna.Gains = rx.Link.Gains
	return rx, nil
}

// admit looks into the registry, which may have changed.
func (b *Bench) admit(index int, nkey string) error {
	changed, err := b.folder.Changed()
	if err != nil {
		return err
	}
	if !changed.Equal(b.read) { // to read it takes as many checks of signatures as it has hosts
		folder, err := identity.Open(b.o.Folder)
		if err != nil {
			return err
		}
		b.folder, b.read = folder, changed
	}
	e, ok := b.folder.Registry.Find(identity.Device, index)
	switch {
	case !ok || e.Nkey != nkey:
		return fmt.Errorf("device %d is enrolled with another key: the identity is an old one", index)
	case !e.Revoked.IsZero():
		return fmt.Errorf("the identity of device %d was revoked at %s", index, e.Revoked.UTC().Format(time.RFC3339))
	}
	return nil
}

// linkSecret returns the secret of patterns and checks of a run: that of the enrolment, or of
// the seed where all secrets are.
func linkSecret(c *experiment.Common, id identity.Identity, run wire.RunID) keystream.Seed {
	if c.Config.Encryption.Randomness != "system" {
		return c.SeedLinkSecret()
	}
	var s keystream.Seed
	copy(s[:], id.Secret())
	return s.Derive("run " + run.String())
}

// runID returns the name of a folder's run, which is drawn when it begins.
func runID(dir string) (id wire.RunID, err error) {
	path := filepath.Join(dir, runName)
	text, err := intake.ReadFile(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 { // of a process that was killed as it began
		if _, err := rand.Read(id[:]); err != nil {
			return id, fmt.Errorf("naming the run: %w", err)
		}
		return id, intake.PathError(os.WriteFile(path, []byte(id.String()+"\n"), 0o644))
	}
	if err != nil {
		return id, intake.PathError(fmt.Errorf("reading %s: %w", path, err))
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(b) != len(id) {
		return id, intake.UserError(fmt.Errorf("%s has %q: it must have %d hexadecimal digits", path, intake.Sentence(string(text)), 2*len(id)))
	}
	return wire.RunID(b), nil
}

// openRecords opens the run's records, and returns those of rounds that metrics.csv has. A
// last one that was cut off is dropped: it is made again.
func (b *Bench) openRecords(f experiment.FleetRun, run wire.RunID) (sealed [][]byte, err error) {
	path := filepath.Join(f.Dir, recordsName)
	if b.records, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, intake.PathError(fmt.Errorf("opening the records of rounds: %w", err))
	}
	text, err := intake.ReadFile(path, int64(f.Config.Optimizer.Rounds)*int64(wire.RecordSize(f.Config.Optimizer.PackedDirections))+1<<16)
	if err != nil {
		return nil, intake.PathError(fmt.Errorf("reading %s: %w", path, err))
	}
	end := int64(0)
	for len(text) > 0 && len(sealed) < f.Rounds {
		one, rest, err := wire.CutRecord(text, run)
		if err != nil {
			break
		}
		if r, err := wire.OpenRecords(one, run, 1, b.verify); err != nil || r[0].Round != uint32(len(sealed)+1) {
			return nil, intake.UserError(fmt.Errorf("%s: record %d is not that round's, signed by this server: the run is of another bench than %s, or the file was changed", path, len(sealed)+1, b.o.Folder))
		}
		sealed, text, end = append(sealed, one), rest, end+int64(len(one))
	}
	b.known = len(sealed)
	if err := b.records.Truncate(end); err != nil {
		return nil, intake.PathError(err)
	}
	_, err = b.records.Seek(end, 0)
	return sealed, intake.PathError(err)
}

func (b *Bench) verify(purpose string, message, signature []byte) error {
	return identity.Verify(b.id.Nkey, purpose, message, signature)
}

// Await waits for devices: experiment.Fleet.
func (b *Bench) Await(ctx context.Context, n int) error {
	if err := b.live.Err(); err != nil {
		return err
	}
	ctx, release := b.live.Join(ctx)
	defer release()
	return b.server.Await(ctx, n)
}

// Keep keeps the record of a round: experiment.Fleet.
func (b *Bench) Keep(k int, m []float64, before [32]byte) error {
	if k <= b.known {
		return nil
	}
	sealed, err := b.server.Keep(wire.Record{Round: uint32(k), M: m, Before: before})
	if err != nil {
		return err
	}
	b.known = k
	if _, err := b.records.Write(sealed); err != nil {
		return intake.PathError(err)
	}
	return b.kept(k, sealed)
}

// Sync brings the records to disk: experiment.Fleet.
func (b *Bench) Sync() error { return b.records.Sync() }

// End tells the devices that the run is over: experiment.Fleet.
func (b *Bench) End(ctx context.Context, digest [32]byte) ([]string, error) {
	v, err := b.server.End(ctx, digest)
	return []string{v.String()}, err
}

var _ experiment.Fleet = (*Bench)(nil)
