package replay

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// replayBench is a recorded waveform link without a run around it, so that its medium can
// be damaged.
type replayBench struct {
	cfg    config.Config
	link   *uplink.Waveform
	length func(t slot.Transmission) int
	mod    *zq.Modulus
	dir    string
	rnd    *rand.Rand
	read   int                                  // transmissions
	sent   func(s slot.Slot, x zq.Vector)       // if not nil: told each payload
	heard  func(s slot.Slot, rx *phy.Reception) // if not nil: told what was received
	why    []string
}

func newReplayBench(t *testing.T, sets ...string) *replayBench {
	t.Helper()
	c, err := config.Load("../../../hw-configs/waveform-mnist.toml", append([]string{
		"task.dataset=strokes", "encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "link.record=cf32_le", "link.snr_db=50", "devices.count=2",
	}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	p, err := newPlayer(c, "")
	if err != nil {
		t.Fatal(err)
	}
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	link, err := uplink.New(uplink.Setting{Config: c, Seed: root, Secret: uplink.SeedLinkSecret(root), Channel: ch, Context: p.ctx})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	l := link.(*uplink.Waveform)
	b := &replayBench{cfg: c, link: l, mod: p.ctx.Modulus(), dir: t.TempDir(), rnd: rand.New(rand.NewPCG(1, 1))}
	b.length = func(t slot.Transmission) int { return p.ctx.PayloadLength(t) }
	if err := l.Record(b.dir); err != nil {
		t.Fatal(err)
	}
	return b
}

// round carries and records all transmissions of a round, whatever becomes of them.
func (b *replayBench) round(t *testing.T, k uint32, before func(tr slot.Transmission, at radio.SampleIndex)) {
	t.Helper()
	for tr := range slot.Transmission(slot.Transmissions) {
		if before != nil {
			before(tr, b.link.Next())
		}
		if err := b.link.Open(t.Context(), slot.Slot{Round: k, Transmission: tr}, b.length(tr)); err != nil {
			t.Fatal(err)
		}
		x := b.mod.NewVector(b.length(tr))
		for i := range b.link.H {
			for j, p := range b.mod.Primes() {
				for n := range x[j] {
					x[j][n] = b.rnd.Uint64N(p)
				}
			}
			if b.sent != nil {
				kept := b.mod.NewVector(x.Len())
				kept.Copy(x)
				b.sent(slot.Slot{Round: k, Transmission: tr}, kept)
			}
			if err := b.link.Transmit(i, x); err != nil {
				t.Fatal(err)
			}
		}
		rx := phy.Reception{Y: b.mod.NewVector(b.length(tr)), Pattern: make([]int64, b.link.PatternSymbols())}
		if err := b.link.Receive(t.Context(), &rx); err != nil {
			t.Fatal(err)
		}
		if b.heard != nil {
			b.heard(slot.Slot{Round: k, Transmission: tr}, &rx)
		}
		if rx.CheckPassed {
			b.read++
		} else {
			b.why = append(b.why, b.link.Report().Failure)
		}
	}
	if err := b.link.EndRound(0, nil); err != nil {
		t.Fatal(err)
	}
}

// replay plays the rounds from 1 on and gives the verdicts.
func (b *replayBench) replay(t *testing.T, rounds int) []Verdict {
	t.Helper()
	p, err := newPlayer(b.cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	for k := range rounds {
		uri := radio.URI{Scheme: uplink.FileScheme, Name: uplink.RecordingBase(b.dir, uint32(k+1))}
		if err := p.play(t.Context(), recording{uri.String(), int64(k + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return p.verdicts
}

// What made a transmission void in the run makes it void again, and what did not
// does not: new tuning epochs that change no sample, and losses at the edges of
// frames, beyond them and of whole transmissions.
// Longer, or of more branches, than most because it is a table of damages.
func TestReplayOfDamage(t *testing.T) {
	const rounds = 3
	all := rounds * slot.Transmissions
	for _, c := range []struct {
		name string
		sets []string
		read int    // transmissions
		why  string // of one that was not
		// harm is done before c0 of round 2, whose frame begins at at.
		harm func(b *replayBench, at radio.SampleIndex) error
	}{
		{"nothing", nil, all, "", func(*replayBench, radio.SampleIndex) error { return nil }},
		{"nothing, no repeats", []string{"link.frame_repeats=0"}, all, "", func(*replayBench, radio.SampleIndex) error { return nil }},
		{"a device's new epoch", nil, all - 3, "the tuning epoch of device 2 changed", func(b *replayBench, at radio.SampleIndex) error {
			return b.link.Medium.Retune(1, at+2000, 0)
		}},
		{"a device's new epoch in guard time", nil, all - 3, "the tuning epoch of device 1 changed", func(b *replayBench, at radio.SampleIndex) error {
			return b.link.Medium.Retune(0, at+1, 0)
		}},
		{"the receiver's new epoch", nil, all - 3, "the receiver's tuning epoch changed", func(b *replayBench, at radio.SampleIndex) error {
			return b.link.Medium.RetuneReceiver(at+2000, 0)
		}},
		{"new epoch, phase given", []string{"channel.gains=lattice", "channel.gain_lattice_bits=1", "link.phase_spread_rad=0"}, all - 3 - 4, "the phase given is that of an earlier tuning epoch of the receiver", func(b *replayBench, at radio.SampleIndex) error {
			return b.link.Medium.RetuneReceiver(at, 0)
		}},
		{"lost guard time", nil, all, "", func(b *replayBench, at radio.SampleIndex) error { return b.link.Medium.Drop(at, 100) }},
		{"lost samples", nil, all, "symbols erased", func(b *replayBench, at radio.SampleIndex) error { return b.link.Medium.Drop(at+3000, 100) }},
		{"lost samples, not repeated", []string{"link.frame_repeats=0"}, all - 1, "symbols erased", func(b *replayBench, at radio.SampleIndex) error {
			return b.link.Medium.Drop(at+3000, 100)
		}},
		{"a whole transmission lost", []string{"link.frame_repeats=0"}, all - 1, "no sample of the frame was received", func(b *replayBench, at radio.SampleIndex) error {
			n, err := b.link.FrameSamples(slot.TxC0, b.length(slot.TxC0))
			return errors.Join(err, b.link.Medium.Drop(at, radio.SampleCount(n)))
		}},
		{"lost into another transmission", []string{"link.frame_repeats=0"}, all - 2, "symbols erased", func(b *replayBench, at radio.SampleIndex) error {
			n, err := b.link.FrameSamples(slot.TxC0, b.length(slot.TxC0))
			return errors.Join(err, b.link.Medium.Drop(at+1500, radio.SampleCount(n)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newReplayBench(t, c.sets...)
			for k := range uint32(rounds) {
				b.round(t, k+1, func(tr slot.Transmission, at radio.SampleIndex) {
					if k != 1 || tr != slot.TxC0 {
						return
					}
					if err := c.harm(b, at); err != nil {
						t.Fatal(err)
					}
				})
			}
			why := strings.Join(b.why, "; ")
			if b.read != c.read || b.read < all && !strings.Contains(why, c.why) {
				t.Errorf("%d of %d transmissions were read, %d expected: %q", b.read, all, c.read, why)
			}
			verdicts := b.replay(t, rounds)
			if len(verdicts) != all {
				t.Errorf("%d transmissions were replayed", len(verdicts))
			}
			for _, v := range verdicts {
				if !v.Agrees {
					t.Errorf("round %d, %s: %v, in the run %v", v.Round, v.Transmission, v.Now, v.Then)
				}
				if v.Now.Void != v.Then.Void {
					t.Errorf("round %d, %s: void because %q, in the run %q", v.Round, v.Transmission, v.Now.Void, v.Then.Void)
				}
			}
		})
	}
}

// Where the recording has less of b than the receiver asks for, b is void and so is all
// that follows in the attempt: its scales are nobody's, and added to them it would be
// elements of zeros. The next round is read again.
func TestReplayOfHalfAKey(t *testing.T) {
	b := newReplayBench(t, "channel.gains=lattice", "channel.gain_lattice_bits=1", "link.phase_spread_rad=0")
	for k := range uint32(2) {
		b.round(t, k+1, nil)
	}
	if b.read != 2*slot.Transmissions {
		t.Fatalf("%d transmissions were read: %q", b.read, b.why)
	}
	meta := uplink.RecordingBase(b.dir, 1) + ".sigmf-meta"
	cutShort(t, meta, slot.TxKey)
	for _, v := range b.replay(t, 2) {
		switch {
		case v.Round == 1 && (v.Now.Void == "" || v.Agrees):
			t.Errorf("round 1, %s: %v, agrees %v", v.Transmission, v.Now, v.Agrees)
		case v.Round == 2 && !v.Agrees:
			t.Errorf("round 2, %s: %v, in the run %v", v.Transmission, v.Now, v.Then)
		}
	}
}

// A bench's recording names its frequency, its hardware and the band of its symbols, and no
// time of day.
func TestRecordingSaysWhere(t *testing.T) {
	b := newReplayBench(t)
	b.round(t, 1, nil)
	text, err := os.ReadFile(uplink.RecordingBase(b.dir, 1) + ".sigmf-meta")
	if err != nil {
		t.Fatal(err)
	}
	m, err := sigmf.ParseMeta("recording", text)
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Captures[0]; c.Frequency == nil || *c.Frequency != 0 || !c.Time.IsZero() || m.Hardware == "" {
		t.Errorf("frequency %v, time %v, hardware %q", c.Frequency, c.Time, m.Hardware)
	}
	want := setup.SignalBand(b.cfg)
	for _, a := range m.Annotations {
		if a.Tag != nil && (a.Band == nil || *a.Band != want) {
			t.Errorf("%s has the band %v, want %v", a.Label, a.Band, want)
		}
	}
}

// cutShort halves the samples that a recording's metadata say a transmission has.
func cutShort(t *testing.T, path string, tr slot.Transmission) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	cut := 0
	for _, a := range meta["annotations"].([]any) {
		if a := a.(map[string]any); a["core:label"] == uplink.LabelTransmission && a["ringwave:phase"] == tr.String() {
			a["core:sample_count"] = math.Floor(a["core:sample_count"].(float64) / 2)
			cut++
		}
	}
	if cut != 1 {
		t.Fatalf("%d transmissions of %v in %v", cut, tr, meta["annotations"])
	}
	if text, err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
