package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
	"ringwave/radio/sigmf"
)

// labelSounding marks a block of soundings in a recording.
const labelSounding = "sounding"

// soundedBench is what a calibration is made over: the bench in memory, radios, or a
// recording.
type soundedBench struct {
	cfg      sounder.Config
	want     calibration.Want // what it is
	memory   *setup.Simulated // nil but for the bench in memory
	radios   *array.Array     // nil but for radios
	recorder *uplink.Recorder // nil unless recorded
	air      radio.Sink       // is shown what is heard; nil for nothing
	closing  []func() error
	guarded  func() error // says why the radios' guard is lost, once it is; nil without radios
}

// roundSeconds returns the time from the first transmission of a round to behind its last
// over the radios of a configuration: each frame on the air, and the lead by which it
// is put off. 0 stands for a link without frames.
func roundSeconds(c config.Config, root keystream.Seed) (float64, error) {
	if !c.OverWaveform() {
		return 0, nil
	}
	c.Calibration.File = "" // it changes no frame's length
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		return 0, err
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		return 0, err
	}
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
	if err != nil {
		return 0, err
	}
	w, err := phy.NewWaveform(uplink.ReceiveConfig(c, uplink.SeedLinkSecret(root), ch, nil, ctx))
	if err != nil {
		return 0, intake.UserError(fmt.Errorf("waveform link: %w", err))
	}
	slots := (c.Devices.Count + setup.GroupSize(c) - 1) / setup.GroupSize(c)
	sum := 0.0
	for t := range slot.Transmission(slot.Transmissions) {
		samples, err := w.FrameSamples(t, ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		sum += float64(slots) * (float64(samples)/c.Link.SampleRateHz + c.Radio.LeadSeconds)
	}
	return sum, nil
}

// spread has a block's looks stand where the transmissions of a round over radios
// would, where the user does not say how far apart. It is said in the folder's config,
// so that a calibration goes on as it began.
func spread(c *config.Config, root keystream.Seed) error {
	if !c.OverRadios() || c.Calibration.RoundSeconds != 0 {
		return nil
	}
	seconds, err := roundSeconds(*c, root)
	if err != nil {
		return fmt.Errorf("calibration.round_seconds is 0, which stands for a round's: %w", err)
	}
	// As much as a block may span, if it is a long one.
	longest := float64(sounder.MaxBlockSamples) / 2 / c.Link.SampleRateHz
	c.Calibration.RoundSeconds = min(math.Round(seconds*1e6)/1e6, longest)
	return nil
}

// openBench opens the bench of the configuration.
func (k *Calibration) openBench(ctx context.Context) (*soundedBench, error) {
	if k.recording != "" {
		b, err := recordedBench(ctx, k.Config, k.root, k.recording)
		if err == nil && k.air != nil {
			b.cfg.Receiver = radio.Tee(b.cfg.Receiver, k.air)
		}
		return b, err
	}
	cfg, err := setup.SoundingConfig(k.Config)
	if err != nil {
		return nil, err
	}
	b := &soundedBench{cfg: cfg, air: k.air}
	if k.Config.OverRadios() {
		err = b.connect(ctx, k.Config, k.radios, cmp.Or(k.patience, setup.RadioPatience))
	} else {
		err = b.simulate(k.Config, k.root)
	}
	if err == nil {
		err = b.goOn(k.Config, k.blocks)
	}
	if err == nil {
		err = b.record(k)
	}
	if err != nil {
		return nil, intake.UserError(errors.Join(err, b.close()))
	}
	b.cfg.Receiver = b.taped(b.cfg.Receiver)
	return b, nil
}

// goOn goes on behind blocks that are done. In memory the session goes on, too: what
// was skipped over is as if it had been played.
func (b *soundedBench) goOn(c config.Config, done []sounder.Block) error {
	b.cfg.First = len(done)
	if len(done) == 0 {
		return nil
	}
	b.cfg.Session = done[len(done)-1].Session + 1
	length := (c.Calibration.Blocks + c.Calibration.Sessions - 1) / c.Calibration.Sessions
	if b.memory != nil && len(done)%length != 0 {
		b.cfg.Session--
		b.cfg.Acquired = sounder.Places(done, c.Devices.Count)
	}
	return nil
}

// simulate makes the bench in memory. Its gains are those of a time before the
// experiment.
func (b *soundedBench) simulate(c config.Config, root keystream.Seed) error {
	before := root.Derive("calibration")
	ch, err := setup.NewChannel(c, before)
	if err != nil {
		return err
	}
	if b.memory, err = setup.NewSimulated(c, root, before, ch); err != nil {
		return err
	}
	// A block is named as a round is, from 1 on; its time is that of its samples.
	b.memory.RoundSamples = float64(b.cfg.BlockSamples())
	b.memory.RoundStart = -b.memory.RoundSamples
	b.memory.ClocksRun = true // looks are not triggered
	b.closing = append(b.closing, b.memory.Close)
	if b.cfg.Transmitters, b.cfg.Receiver, err = b.memory.Streams(); err != nil {
		return err
	}
	b.cfg.OnLook = func(block, look int, at radio.SampleIndex) error {
		return b.memory.Fade(uint32(block+1), 0, look, at)
	}
	b.want = setup.SimulatedBench(c, root)
	return nil
}

// connect opens radios.
func (b *soundedBench) connect(ctx context.Context, c config.Config, radios setup.Radios, patience time.Duration) error {
	a, guarded, err := radios.Open(ctx, c)
	if err != nil {
		return err
	}
	b.radios, b.guarded = a, guarded
	b.closing = append(b.closing, a.Close)
	if err := a.Start(ctx); err != nil {
		return setup.LostGuard(guarded, err)
	}
	rate := c.Link.SampleRateHz
	b.cfg.Transmitters, b.cfg.Receiver = a.Transmitters(), a.Receiver()
	b.cfg.Lead = radio.SampleCount(c.Radio.LeadSeconds * rate)
	b.cfg.Reach = radio.SampleCount(c.Radio.SearchSeconds * rate)
	b.cfg.Flush = a.Flush()
	b.cfg.Patience = setup.SoundingPatience(&b.cfg, c, patience)
	b.cfg.Restart = func() ([]radio.Transmitter, radio.Receiver, error) {
		if err := a.Start(ctx); err != nil {
			return nil, nil, err
		}
		return a.Transmitters(), b.taped(a.Receiver()), nil
	}
	b.want = setup.RadioBench(c, a)
	return nil
}

// taped shows and records what a receiver hears, if that is wanted.
func (b *soundedBench) taped(rx radio.Receiver) radio.Receiver {
	if b.air != nil {
		rx = radio.Tee(rx, b.air)
	}
	if b.recorder == nil {
		return rx
	}
	return b.recorder.Tape(rx)
}

// record keeps what is received, a recording a sitting, if the configuration wants it.
func (b *soundedBench) record(k *Calibration) error {
	if k.Config.Link.Record == setup.RecordNone {
		return nil
	}
	if b.radios != nil && k.Config.Calibration.Sessions > 1 {
		return fmt.Errorf("link.record is %s with radios and calibration.sessions = %d: a recording holds one session; allowed is 1", k.Config.Link.Record, k.Config.Calibration.Sessions)
	}
	ch, err := setup.NewChannel(k.Config, k.root)
	if err != nil {
		return err
	}
	noise := 0.0
	if b.memory != nil {
		noise = b.memory.NoiseStd
	}
	b.recorder = &uplink.Recorder{Cfg: setup.RecordConfig(k.Config, ch, setup.GroupSize(k.Config), noise)}
	// A sounding's chips are as wide as the sample rate allows.
	half := b.recorder.Cfg.SampleRate / 2
	b.recorder.Band = radio.Span[radio.Hertz]{Min: *b.recorder.Cfg.Frequency - half, Max: *b.recorder.Cfg.Frequency + half}
	b.recorder.Cfg.Description = "soundings of experiment " + k.Config.Experiment.Name
	if err := b.recorder.Start(k.folder.Path()); err != nil {
		return err
	}
	if err := b.recorder.Begin(uint32(len(k.blocks) + 1)); err != nil {
		return err
	}
	b.closing = append(b.closing, func() error { b.recorder.Abort(); return nil })
	b.cfg.OnBlock = func(block, session int, first, end radio.SampleIndex) error {
		return b.recorder.Annotate(uplink.Note{
			Slot: slot.Slot{Round: uint32(block), Attempt: uint32(session)}, Group: -1,
			First: first, End: end, Label: labelSounding, Comment: fmt.Sprintf("block %d of session %d", block, session),
		})
	}
	return nil
}

// stop ends the recording.
func (b *soundedBench) stop() error {
	if b.recorder == nil {
		return nil
	}
	return b.recorder.End()
}

func (b *soundedBench) close() error {
	var errs []error
	for _, f := range slices.Backward(b.closing) {
		errs = append(errs, f())
	}
	b.closing = nil
	return errors.Join(errs...)
}

// recordedBench opens the recordings of an earlier calibration.
func recordedBench(ctx context.Context, c config.Config, root keystream.Seed, path string) (*soundedBench, error) {
	cfg, err := setup.SoundingConfig(c)
	if err != nil {
		return nil, err
	}
	metas, err := soundingRecordings(path)
	if err != nil {
		return nil, err
	}
	b := &soundedBench{cfg: cfg}
	if err := b.play(ctx, metas, radio.Hertz(c.Link.SampleRateHz)); err != nil {
		return nil, intake.UserError(errors.Join(err, b.close()))
	}
	b.want = setup.SimulatedBench(c, root)
	b.want.Bench.Kind, b.want.Bench.Identity = calibration.Recording, ""
	if c.OverRadios() {
		b.want.Bench.FrequencyHz = c.Radio.FrequencyHz
	}
	return b, nil
}

// soundingRecordings finds the recordings of a folder, oldest first, or the one named.
func soundingRecordings(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, intake.UserError(fmt.Errorf("--recording %s: %w", path, err))
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	metas, err := filepath.Glob(filepath.Join(path, uplink.IQFolder, "*.sigmf-meta"))
	if err != nil {
		return nil, err
	}
	if len(metas) == 0 {
		return nil, intake.UserError(fmt.Errorf("--recording %s: there is no recording in %s: calibrate with link.record", path, filepath.Join(path, uplink.IQFolder)))
	}
	if _, err := os.Stat(filepath.Join(path, runfolder.ConfigName)); err != nil {
		return nil, intake.UserError(fmt.Errorf("--recording %s: this is no calibration's folder: %w", path, err))
	}
	return metas, nil // their names ascend
}

// soundedBlock is where a block is in a recording.
type soundedBlock struct {
	at      radio.SampleIndex
	session int
}

// play makes the receiver of recordings: of several sittings, one after the other.
func (b *soundedBench) play(ctx context.Context, metas []string, want radio.Hertz) error {
	if len(metas) != 1 {
		return fmt.Errorf("there are %d recordings, of as many sittings: give one of them", len(metas))
	}
	u := radio.URI{Scheme: uplink.FileScheme, Name: strings.TrimPrefix(metas[0], uplink.FileScheme+":")}
	d, err := sigmf.Opener{}.Open(ctx, u)
	if err != nil {
		return err
	}
	b.closing = append(b.closing, d.Close)
	rec, ok := d.(uplink.RecordedDevice)
	if !ok {
		return fmt.Errorf("%s: not a recording", metas[0])
	}
	if rate := rec.SampleRate(radio.Receive); rate != want {
		return fmt.Errorf("%s: core:sample_rate is %v; allowed is %v, the configuration's link.sample_rate_hz", metas[0], rate, want)
	}
	blocks := map[int]soundedBlock{}
	for _, a := range rec.Annotations() {
		if a.Label == labelSounding && a.Tag != nil {
			blocks[int(a.Tag.Round)] = soundedBlock{a.First, int(a.Tag.Attempt)}
		}
	}
	if len(blocks) == 0 {
		return fmt.Errorf("%s: no block of soundings is annotated: it is no recording of a calibration", metas[0])
	}
	for n := range b.cfg.Blocks {
		if _, ok := blocks[n]; !ok {
			return fmt.Errorf("%s: block %d of %d is not annotated: the recording is of another calibration, or of a part of one", metas[0], n+1, b.cfg.Blocks)
		}
	}
	rx, err := rec.OpenReceiver(ctx)
	if err != nil {
		return err
	}
	b.cfg.Receiver, b.cfg.Session = rx, blocks[0].session
	b.cfg.BlockAt = func(n int) (radio.SampleIndex, int, error) { return blocks[n].at, blocks[n].session, nil }
	return rx.Start(ctx)
}
