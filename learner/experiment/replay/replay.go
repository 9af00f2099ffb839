package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/frame"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/sigmf"
)

// Replay decodes a run or a recording again: a run's folder, the path of one of a
// recording's files, or file:PATH. The configuration is the file's at configPath, or where
// that is "" the one of the run. A recording that is missing, damaged or of another
// configuration is an error; one that differs from the run is in the result.
func Replay(ctx context.Context, what, configPath string) (Result, error) {
	return Watch(ctx, what, configPath, nil)
}

// Frame is a frame as the receiver had it when it was decoded again: the index behind its
// last sample in the recording, and how it is drawn.
type Frame struct {
	End  radio.SampleIndex
	Look func() chart.LinkView
}

// Watch is Replay, and tells of each frame; nil hears nothing.
func Watch(ctx context.Context, what, configPath string, frame func(f Frame)) (Result, error) {
	list, err := recordingsOf(what)
	if err != nil {
		return Result{}, err
	}
	c, err := list.configuration(what, configPath)
	if err != nil {
		return Result{}, err
	}
	if !list.bare {
		if list.recordings, err = recordingsOfRun(what, c.Optimizer.Rounds); err != nil {
			return Result{}, err
		}
	}
	p, err := newPlayer(c, filepath.Dir(list.config))
	if err != nil {
		return Result{}, err
	}
	if frame != nil {
		p.cfg.OnFrame = func(o phy.Observation) error {
			frame(Frame{o.First + radio.SampleIndex(len(o.Samples)), uplink.FrameLook(c, p.cfg, o)})
			return nil
		}
	}
	for _, r := range list.recordings {
		if ctx.Err() != nil {
			return Result{}, experiment.ErrInterrupted
		}
		if err := p.play(ctx, r); err != nil {
			if r.round >= 0 {
				err = fmt.Errorf("round %d: %w", r.round, err)
			}
			return Result{}, intake.UserError(err)
		}
	}
	return p.result(len(list.recordings)), nil
}

// configuration reads the configuration of what is to be replayed.
func (list *recordings) configuration(what, path string) (c config.Config, err error) {
	if path != "" {
		list.config = path
	}
	if _, err := os.Stat(list.config); errors.Is(err, fs.ErrNotExist) && path == "" && list.bare {
		return c, intake.UserError(fmt.Errorf("%s: its configuration is not in %s: give it with --config", what, list.config))
	}
	if c, err = config.Load(list.config, nil); err != nil {
		return c, intake.UserError(err)
	}
	// The configuration of a bare recording need not be that which recorded it.
	if c.Link.Kind != setup.KindWaveform || c.Link.Record == setup.RecordNone && !list.bare {
		return c, intake.UserError(fmt.Errorf("%s: the run was not recorded (link.kind is %s, link.record %s)", list.config, c.Link.Kind, c.Link.Record))
	}
	return c, nil
}

// recording is one to be played. round is -1 for any.
type recording struct {
	uri   string
	round int64
}

// recordings are those of a run, or a bare one, and where their configuration is
// looked for.
type recordings struct {
	recordings []recording
	config     string
	bare       bool
}

// recordingsOf finds what is to be replayed, but for the recordings of a run.
func recordingsOf(what string) (recordings, error) {
	info, err := os.Stat(what)
	if err == nil && info.IsDir() {
		list := recordings{config: filepath.Join(what, runfolder.ConfigName)}
		_, err := os.Stat(list.config)
		return list, intake.PathError(err)
	}
	uri := what
	if strings.HasSuffix(what, ".sigmf-meta") || strings.HasSuffix(what, ".sigmf-data") {
		if !strings.HasPrefix(what, uplink.FileScheme+":") {
			uri = radio.URI{Scheme: uplink.FileScheme, Name: what}.String()
		}
	} else if err == nil || !strings.Contains(what, ":") {
		return recordings{}, intake.UserError(fmt.Errorf("%s: no run folder and no recording: allowed are a folder, NAME.sigmf-meta, NAME.sigmf-data or file:NAME", what))
	}
	u, err := radio.ParseURI(uri)
	if err != nil {
		return recordings{}, intake.UserError(err)
	}
	run := filepath.Dir(filepath.Dir(u.Name)) // of DIR/iq/NAME
	return recordings{[]recording{{uri, -1}}, filepath.Join(run, runfolder.ConfigName), true}, nil
}

// recordingsOfRun returns those of the rounds, of so many at most, that metrics.csv has.
func recordingsOfRun(dir string, rounds int) (list []recording, err error) {
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), rounds)
	if err != nil {
		return nil, intake.PathError(err)
	}
	for _, r := range rows {
		if r.Attempts == 0 {
			continue // skipped by a resume: nothing was received
		}
		uri := radio.URI{Scheme: uplink.FileScheme, Name: uplink.RecordingBase(dir, uint32(r.Round))}
		list = append(list, recording{uri.String(), int64(r.Round)})
	}
	if len(list) == 0 {
		return list, intake.UserError(fmt.Errorf("%s: the run has no round to replay", dir))
	}
	return list, nil
}

// player is the receiver of a run, fed from its recordings.
type player struct {
	cfg       phy.WaveformConfig
	rate      radio.Hertz
	devices   *radio.Registry
	ctx       *xmkckks.Context
	secretOf  func(frame.Format) (keystream.Seed, error)
	link      *phy.Waveform
	source    playback
	reception [slot.Transmissions]phy.Reception
	// transmissions is the most that a round of so many attempts has.
	attempts, transmissions int

	verdicts []Verdict
}

// newPlayer makes the receiver of a configuration, with what the run's folder keeps: the
// copy of the calibration that it went by, if it did, and the secret of its checks.
func newPlayer(c config.Config, dir string) (*player, error) {
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		return nil, err
	}
	stats, err := uplink.LinkStatsOfRun(c, root, ch, filepath.Join(dir, runfolder.CalibrationName))
	if err != nil {
		return nil, err
	}
	links := ch
	if stats != nil {
		links = stats.Channel
	}
	design, err := setup.NewDesign(c, links)
	if err != nil {
		return nil, err
	}
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
	if err != nil {
		return nil, err
	}
	p := &player{attempts: c.Encryption.AttemptsPerRound, cfg: uplink.ReceiveConfig(c, keystream.Seed{}, ch, stats, ctx), rate: radio.Hertz(c.Link.SampleRateHz), ctx: ctx}
	// D alone is sent again within an attempt.
	p.transmissions = p.attempts * (slot.Transmissions + slot.MaxAgain)
	p.secretOf = func(f frame.Format) (keystream.Seed, error) {
		if f == frame.Format1 { // whose secret was the seed's, wherever keys came from
			return uplink.SeedLinkSecret(root), nil
		}
		return uplink.ReadLinkSecret(dir, c, root)
	}
	p.cfg.Receiver, p.cfg.OnTransmission, p.cfg.SenderEpochs = &p.source, nil, p.source.senderEpochs
	p.devices, err = radio.NewRegistry(map[string]radio.Opener{uplink.FileScheme: sigmf.Opener{}})
	return p, err
}

// restart begins as a new sitting of the run did: knowing nothing of earlier
// frames.
func (p *player) restart() (err error) {
	if p.link, err = phy.NewWaveform(p.cfg); err != nil {
		return err
	}
	for t := range p.reception {
		p.reception[t] = phy.Reception{
			Y:       p.ctx.Modulus().NewVector(p.ctx.PayloadLength(slot.Transmission(t))),
			Pattern: make([]int64, p.link.PatternSymbols()),
		}
	}
	return nil
}

// play decodes a round's recording, transmission by transmission.
func (p *player) play(ctx context.Context, r recording) (err error) {
	opened, err := p.devices.Open(ctx, r.uri)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	d, ok := opened.(uplink.RecordedDevice)
	if !ok {
		return fmt.Errorf("%s: not a recording", r.uri)
	}
	name := d.Info().URI
	if rate := d.SampleRate(radio.Receive); rate != p.rate {
		return fmt.Errorf("%s: core:sample_rate is %v; allowed is %v, the configuration's link.sample_rate_hz", name, rate, p.rate)
	}
	transmissions, frames, err := annotationsOf(d, name, r.round)
	if err != nil {
		return err
	}
	if n, most := len(transmissions), p.transmissions; n > most {
		return fmt.Errorf("%s: it has %d transmissions; allowed are at most %d, those of encryption.attempts_per_round = %d attempts", name, n, most, p.attempts)
	}
	if p.source.Receiver, err = d.OpenReceiver(ctx); err != nil {
		return err
	}
	if err := p.source.Start(ctx); err != nil {
		return err
	}
	p.source.at, p.source.frames = 0, frames
	format := max(frame.Format1, frame.Format(d.Metadata().FrameFormat))
	if p.link == nil || transmissions[0].First == 0 || format != p.cfg.Format {
		p.cfg.Format = format
		if p.cfg.Secret, err = p.secretOf(format); err != nil {
			return err
		}
		if err := p.restart(); err != nil {
			return err
		}
	}
	for _, a := range transmissions {
		if err := p.transmission(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// annotationsOf returns what was noted about the transmissions of a round, of which
// there is at least one, and about their frames, in their order. Those of a round
// below 0 may be of any one.
func annotationsOf(d uplink.RecordedDevice, name string, round int64) (transmissions, frames []sigmf.Annotation, err error) {
	for _, a := range d.Annotations() {
		switch a.Label {
		case uplink.LabelFrame:
			frames = append(frames, a)
		case uplink.LabelTransmission:
			transmissions = append(transmissions, a)
		}
	}
	byFirst := func(a, b sigmf.Annotation) int { return cmp.Compare(a.First, b.First) }
	slices.SortStableFunc(transmissions, byFirst)
	slices.SortStableFunc(frames, byFirst)
	if len(transmissions) == 0 {
		return nil, nil, fmt.Errorf("%s: no annotation says what was received", name)
	}
	for k, a := range transmissions {
		if a.Tag != nil && round < 0 {
			round = int64(a.Tag.Round)
		}
		if a.Tag == nil || int64(a.Tag.Round) != round || phase(a.Tag.Phase) == slot.Transmissions {
			return nil, nil, fmt.Errorf("%s: the transmission at sample %d does not say that it is one of this round", name, a.First)
		}
		if k > 0 && a.First < transmissions[k-1].First+radio.SampleIndex(transmissions[k-1].Count) {
			return nil, nil, fmt.Errorf("%s: the transmission at sample %d begins before the one before it ends", name, a.First)
		}
		if !strings.HasPrefix(a.Comment, uplink.CommentVoid) && !strings.HasPrefix(a.Comment, uplink.CommentElements) {
			return nil, nil, fmt.Errorf("%s: the transmission at sample %d has the comment %q; allowed is %s or %s and what it was", name, a.First, a.Comment, strings.TrimSpace(uplink.CommentElements), strings.TrimSpace(uplink.CommentVoid))
		}
	}
	return transmissions, frames, nil
}

// phase returns the transmission of a name; slot.Transmissions if there is none.
func phase(name string) slot.Transmission {
	t := slot.Transmission(0)
	for t < slot.Transmissions && t.String() != name {
		t++
	}
	return t
}

// transmission decodes one transmission and compares it with its annotation.
func (p *player) transmission(ctx context.Context, a sigmf.Annotation) error {
	s := slot.Slot{Round: a.Tag.Round, Attempt: a.Tag.Attempt, Transmission: phase(a.Tag.Phase), Again: a.Tag.Again}
	if err := p.source.goTo(ctx, a); err != nil {
		return err
	}
	p.link.Seek(a.First)
	if err := p.link.Open(ctx, s, p.ctx.PayloadLength(s.Transmission)); err != nil {
		return err
	}
	rx := &p.reception[s.Transmission]
	err := p.link.Receive(ctx, rx)
	now := uplink.Verdict(rx, p.link.Report())
	if errors.Is(err, errPast) {
		now, err = uplink.CommentVoid+errPast.Error(), nil
	}
	if err != nil {
		return err
	}
	p.compare(s, a.Comment, now)
	return nil
}

// Verdict is a transmission as the run had it and as replay has it.
type Verdict struct {
	Round        uint32  `json:"round"`
	Attempt      uint32  `json:"attempt"`
	Transmission string  `json:"transmission"`
	Again        uint8   `json:"again,omitempty"`
	Agrees       bool    `json:"agrees"`
	Then         Outcome `json:"then"`
	Now          Outcome `json:"now"`
}

// Outcome is one of its fields: what was received.
type Outcome struct {
	Elements string `json:"elements,omitempty"` // SHA-256
	Void     string `json:"void,omitempty"`     // why there are none
}

func outcome(comment string) Outcome {
	if reason, void := strings.CutPrefix(comment, uplink.CommentVoid); void {
		return Outcome{Void: reason}
	}
	return Outcome{Elements: strings.TrimPrefix(comment, uplink.CommentElements)}
}

// compare keeps the verdict on a transmission. Void ones agree if they are void
// again.
func (p *player) compare(s slot.Slot, then, now string) {
	wasVoid, isVoid := strings.HasPrefix(then, uplink.CommentVoid), strings.HasPrefix(now, uplink.CommentVoid)
	p.verdicts = append(p.verdicts, Verdict{
		Round: s.Round, Attempt: s.Attempt, Transmission: s.Transmission.String(), Again: s.Again,
		Agrees: then == now || wasVoid && isVoid, Then: outcome(then), Now: outcome(now),
	})
}

// Result counts what became of the transmissions, and has each of them.
type Result struct {
	Rounds        int       `json:"rounds"`
	Transmissions int       `json:"transmissions"`
	Agree         int       `json:"agree"`
	Read          int       `json:"read"`
	Void          int       `json:"void"`
	Verdicts      []Verdict `json:"verdicts"`
}

// result counts what became of the transmissions.
func (p *player) result(rounds int) Result {
	r := Result{Rounds: rounds, Transmissions: len(p.verdicts), Verdicts: p.verdicts}
	for _, v := range p.verdicts {
		if v.Agrees {
			r.Agree++
		}
		if v.Then.Void == "" {
			r.Read++
		}
	}
	r.Void = r.Transmissions - r.Read
	return r
}

// WriteText writes what differs, and how many transmissions agree.
func (r Result) WriteText(w io.Writer) error {
	for _, v := range r.Verdicts {
		if v.Agrees {
			continue
		}
		again := ""
		if v.Again > 0 {
			again = fmt.Sprintf(" sent again (%d)", v.Again)
		}
		if _, err := fmt.Fprintf(w, "round %d, attempt %d, %s%s: %v, in the run %v\n", v.Round, v.Attempt, v.Transmission, again, v.Now, v.Then); err != nil {
			return err
		}
	}
	rounds := fmt.Sprintf("%d rounds", r.Rounds)
	if r.Rounds == 1 {
		rounds = "a round"
	}
	_, err := fmt.Fprintf(w, "%d of %d transmissions of %s agree with the run to the bit (%d were read, %d void).\n",
		r.Agree, r.Transmissions, rounds, r.Read, r.Void)
	return err
}

// String returns the outcome as an annotation of the recording says it.
func (o Outcome) String() string {
	if o.Elements != "" {
		return uplink.CommentElements + o.Elements
	}
	return uplink.CommentVoid + o.Void
}

// errPast says that the receiver asked for more than the transmission had.
var errPast = errors.New("more frames wanted than the run sent")

// playback is a recording's receiver that ends where a transmission does: a
// receiver that errs never reads into the next one.
type playback struct {
	radio.Receiver
	at, end radio.SampleIndex
	// epochs are those of the transmitters as the transmission was opened, frames
	// tells those at the end of each frame.
	epochs []radio.Epoch
	begun  radio.SampleIndex
	frames []sigmf.Annotation // ascending
	passed []complex64        // between transmissions
}

// Read implements radio.Receiver.
func (p *playback) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return p.ReadUntil(ctx, dst, radio.Forever)
}

// ClipLevel implements radio.Ranged.
func (p *playback) ClipLevel() radio.Amplitude { return radio.ClipLevel(p.Receiver) }

// ReadUntil implements radio.Bounded.
func (p *playback) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, p.Receiver, dst, min(until, p.end))
	if n > 0 {
		p.at = meta.Index(n-1) + 1
		return n, meta, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, meta, err
	}
	// There is nothing left: either it was lost, or it is not of this transmission.
	if until > p.end {
		return n, meta, errPast
	}
	p.at = until
	return n, meta, nil
}

// senderEpochs returns the transmitters' epochs as the run had them at this point.
func (p *playback) senderEpochs() []radio.Epoch {
	behind, _ := slices.BinarySearchFunc(p.frames, p.at, func(f sigmf.Annotation, at radio.SampleIndex) int { return cmp.Compare(f.First, at) })
	for _, f := range slices.Backward(p.frames[:behind]) {
		if f.First < p.begun {
			break
		}
		if f.Tag != nil {
			return f.Tag.Transmitters
		}
	}
	return p.epochs
}

// goTo passes over what lies before a transmission and lets it be read.
func (p *playback) goTo(ctx context.Context, a sigmf.Annotation) error {
	if p.passed == nil {
		p.passed = make([]complex64, 1<<14)
	}
	p.end = a.First
	for p.at < a.First {
		if _, _, err := p.ReadUntil(ctx, p.passed, a.First); err != nil {
			return err
		}
	}
	p.end = a.First + radio.SampleIndex(a.Count)
	p.begun, p.epochs = a.First, a.Tag.Transmitters
	return nil
}
