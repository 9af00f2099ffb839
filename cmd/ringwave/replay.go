package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/runfolder"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

func newReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay DIR",
		Short: "Decode a recorded run again and compare its ring elements",
		Long: `Decode the recordings of a run that had link.record set, with the receiver of the
run's config.toml, and compare every ring element with what the run received.
No key is needed: the elements are what was on the air.

Exit status: 0 if all agree to the bit, 1 if some differ, 2 if a recording is
missing or damaged.`,
		Args: exactly(1, "the folder of one run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
}

// replay decodes the recordings of the rounds that metrics.csv has.
func replay(ctx context.Context, w io.Writer, dir string) error {
	c, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		return bad(err)
	}
	if c.Link.Record == recordNone {
		return bad(fmt.Errorf("%s: the run was not recorded (link.record is %s)", dir, recordNone))
	}
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName))
	if err != nil {
		return place(err)
	}
	if len(rows) == 0 {
		return bad(fmt.Errorf("%s: the run has no round to replay", dir))
	}
	p, err := newPlayer(c)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err := p.round(ctx, dir, uint32(r.Round)); err != nil {
			return bad(fmt.Errorf("round %d: %w", r.Round, err))
		}
	}
	return p.report(w, len(rows))
}

// player is the receiver of a run, fed from its recordings.
type player struct {
	cfg       phy.WaveformConfig
	ctx       *xmkckks.Context
	link      *phy.Waveform
	source    playback
	reception [phy.Transmissions]phy.Reception

	total, read int
	differ      []string
}

// newPlayer makes the receiver of a configuration.
func newPlayer(c config.Config) (*player, error) {
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := newChannel(c, root)
	if err != nil {
		return nil, err
	}
	design, err := newDesign(c, ch)
	if err != nil {
		return nil, err
	}
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Witnesses, root.Derive("public"))
	if err != nil {
		return nil, err
	}
	p := &player{cfg: receiveConfig(c, root, ch, ctx), ctx: ctx}
	p.cfg.Receiver, p.cfg.OnTransmission = &p.source, nil
	return p, p.restart()
}

// restart begins as a new sitting of the run did: knowing nothing of earlier
// frames.
func (p *player) restart() (err error) {
	if p.link, err = phy.NewWaveform(p.cfg); err != nil {
		return bad(err)
	}
	for t := range p.reception {
		p.reception[t] = phy.Reception{
			Y:       p.ctx.Modulus().NewVector(payloadLength(p.ctx, phy.Transmission(t))),
			Pattern: make([]int64, p.link.PatternSymbols()),
		}
	}
	return nil
}

// round decodes a round's recording, transmission by transmission.
func (p *player) round(ctx context.Context, dir string, k uint32) (err error) {
	recording, err := sigmf.Open(recordingBase(dir, k), sigmf.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, recording.Close()) }()
	transmissions, err := transmissionsOf(recording, dir, k)
	if err != nil {
		return err
	}
	if transmissions[0].First == 0 {
		if err := p.restart(); err != nil {
			return err
		}
	}
	if p.source.Receiver, err = recording.OpenReceiver(ctx); err != nil {
		return err
	}
	if err := p.source.Start(ctx); err != nil {
		return err
	}
	p.source.at = transmissions[0].First
	for _, a := range transmissions {
		if err := p.transmission(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// transmissionsOf gives the annotations of transmissions of a round, of which
// there is at least one, in their order.
func transmissionsOf(r *sigmf.Recording, dir string, k uint32) ([]sigmf.Annotation, error) {
	var list []sigmf.Annotation
	for _, a := range r.Annotations() {
		if a.Label != labelTransmission {
			continue
		}
		if a.Tag == nil || a.Tag.Round != k || phase(a.Tag.Phase) == phy.Transmissions {
			return nil, fmt.Errorf("%s.sigmf-meta: the transmission at sample %d does not say that it is one of this round", recordingBase(dir, k), a.First)
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s.sigmf-meta: no annotation says what was received", recordingBase(dir, k))
	}
	return list, nil
}

// phase gives the transmission of a name; phy.Transmissions if there is none.
func phase(name string) phy.Transmission {
	t := phy.Transmission(0)
	for t < phy.Transmissions && t.String() != name {
		t++
	}
	return t
}

// transmission decodes one transmission and compares it with its annotation.
func (p *player) transmission(ctx context.Context, a sigmf.Annotation) error {
	slot := phy.Slot{Round: a.Tag.Round, Attempt: a.Tag.Attempt, Transmission: phase(a.Tag.Phase)}
	if err := p.source.goTo(ctx, a); err != nil {
		return err
	}
	if err := p.link.Open(slot, payloadLength(p.ctx, slot.Transmission)); err != nil {
		return err
	}
	rx := &p.reception[slot.Transmission]
	err := p.link.Receive(rx)
	now := verdict(rx, p.link.Report())
	if errors.Is(err, errPast) {
		now, err = commentVoid+errPast.Error(), nil
	}
	if err != nil {
		return err
	}
	p.compare(slot, a.Comment, now)
	return nil
}

// compare counts a transmission. Void ones agree if they are void again.
func (p *player) compare(slot phy.Slot, then, now string) {
	p.total++
	wasVoid, isVoid := strings.HasPrefix(then, commentVoid), strings.HasPrefix(now, commentVoid)
	if !wasVoid {
		p.read++
	}
	if then == now || wasVoid && isVoid {
		return
	}
	p.differ = append(p.differ, fmt.Sprintf("round %d, attempt %d, %v: %s, in the run %s", slot.Round, slot.Attempt, slot.Transmission, now, then))
}

// report prints how many transmissions agree; that some do not is an error.
func (p *player) report(w io.Writer, rounds int) error {
	for _, d := range p.differ {
		fmt.Fprintln(w, d)
	}
	fmt.Fprintf(w, "%d of %d transmissions of %d rounds agree with the run to the bit (%d were read, %d void).\n",
		p.total-len(p.differ), p.total, rounds, p.read, p.total-p.read)
	if n := len(p.differ); n > 0 {
		return fmt.Errorf("%d of %d transmissions differ from what the run received", n, p.total)
	}
	return nil
}

// errPast says that the receiver asked for more than the transmission had.
var errPast = errors.New("more frames wanted than the run sent")

// playback is a recording's receiver that ends where a transmission does: a
// receiver that errs never reads into the next one.
type playback struct {
	radio.Receiver
	at, end radio.SampleIndex
}

// Read implements radio.Receiver.
func (p *playback) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	if p.at >= p.end {
		return 0, radio.Meta{}, errPast
	}
	n, meta, err := p.Receiver.Read(ctx, dst[:min(int64(len(dst)), int64(p.end-p.at))])
	if n > 0 {
		p.at = meta.Index(n-1) + 1
	}
	return n, meta, err
}

// goTo passes over what lies before a transmission and lets it be read.
func (p *playback) goTo(ctx context.Context, a sigmf.Annotation) error {
	passed := make([]complex64, 1<<14)
	p.end = a.First
	for p.at < a.First {
		if _, _, err := p.Read(ctx, passed); err != nil {
			return err
		}
	}
	p.end = a.First + radio.SampleIndex(a.Count)
	return nil
}
