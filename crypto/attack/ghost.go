package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/phy"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

const (
	ghostDevices = 3
	ghostRounds  = 8 // a transmission
	// ghostShift is what the ghost wants to add to M.
	ghostShift = 1.5
	// guardSymbols is the silence before a frame, as all who read the layout know.
	guardSymbols = 24
)

// ghost is a transmitter that nobody enrolled. It knows the layout of frames and when
// they begin, and adds a payload of its own to one of the round's transmissions, at
// gain 1 and with checks by the weights that it has.
type ghost struct {
	cfg       phy.WaveformConfig
	link      *phy.Waveform
	codec     *digit.Codec
	modulator *modem.Modulator
	tx        radio.Transmitter
	weights   frame.Weights

	target slot.Transmission
	adds   func(x zq.Vector) // to the payload
	length func(t slot.Transmission) int
}

// send sends during a transmission whose first frame begins at index at.
func (g *ghost) send(ctx context.Context, s slot.Slot, at radio.SampleIndex) error {
	n := g.length(s.Transmission)
	samples, err := g.link.FrameSamples(s.Transmission, n)
	if err != nil {
		return err
	}
	guard := radio.SampleIndex(guardSymbols * g.cfg.Modem.SamplesPerSymbol)
	if s.Transmission == g.target {
		signal, err := g.signal(s, n)
		if err != nil {
			return err
		}
		if _, err := g.tx.Write(ctx, signal, radio.TxMeta{Timed: true, Start: at + guard, BurstEnd: true}); err != nil {
			return fmt.Errorf("the ghost sends: %w", err)
		}
	}
	return g.tx.(radio.Idler).Idle(ctx, at+radio.SampleIndex(samples)+guard)
}

// signal returns the samples of the ghost's frame: silent during preamble, header and
// pattern, so that it changes no gain.
func (g *ghost) signal(s slot.Slot, n int) ([]complex64, error) {
	const patternSymbols = 64
	p, err := frame.NewPayload(g.cfg.Modulus, g.codec, n, max(1, g.cfg.BlockSymbols/g.codec.Digits()), patternSymbols)
	if err != nil {
		return nil, err
	}
	p.Draw(g.weights.Of(frame.Header{Run: g.cfg.Run, Round: s.Round, Transmission: uint8(s.Transmission)}), false)
	x, scratch := g.cfg.Modulus.NewVector(n), p.NewScratch()
	g.adds(x)
	start := len(g.cfg.Modem.PreambleSymbols()) + frame.HeaderSymbols + patternSymbols
	symbols := make([]int8, start+p.Symbols())
	p.Encode(symbols[start:], x, scratch)
	p.EncodeChecks(symbols[start:], g.cfg.Modulus.NewVector(patternSymbols), scratch)
	tail := g.modulator.Tail()
	signal := make([]complex64, (len(symbols)+int(tail))*g.cfg.Modem.SamplesPerSymbol)
	end := len(symbols) * g.cfg.Modem.SamplesPerSymbol
	g.modulator.Reset()
	g.modulator.ModulateDigits(signal[:end], symbols)
	g.modulator.Idle(signal[end:], tail)
	return signal, nil
}

// haunted is a party on the air, with a ghost.
type haunted struct {
	*party
	medium *loopback.Medium
	engine *round.Engine
	ghost  *ghost
	next   uint32 // round
}

// newHaunted makes it; the ghost has the weights that come from its secret, and link
// is that of devices and server.
func newHaunted(ctx context.Context, link, secret, seed keystream.Seed) (h *haunted, err error) {
	p, err := set("lean-2048")
	if err != nil {
		return nil, err
	}
	h = &haunted{next: 1}
	if h.party, err = newParty(p, p.Form, ghostDevices, 1000, seed); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	config := loopback.Config{Rate: 10e6}
	for range ghostDevices + 1 {
		config.Devices = append(config.Devices, loopback.Device{Gain: 1})
	}
	if h.medium, err = loopback.New(config); err != nil {
		return nil, err
	}
	tx, rx, err := streamsOf(ctx, h.medium, ghostDevices+1)
	if err != nil {
		return nil, err
	}
	h.ghost = &ghost{tx: tx[ghostDevices], weights: frame.NewWeights(secret, 0), length: h.ctx.PayloadLength}
	cfg := phy.WaveformConfig{
		Modulus: h.ctx.Modulus(), Devices: ghostDevices, Base: 3, BlockSymbols: 8192, Alpha: 1, Phase: new(modem.Radians),
		Modem:  modem.Config{SamplesPerSymbol: 4, Pulse: modem.FlatTop{Edge: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}},
		Secret: link, Transmitters: tx[:ghostDevices], Receiver: rx, OnTransmission: h.ghost.send,
	}
	h.ghost.cfg = cfg
	if h.ghost.codec, err = digit.New(cfg.Modulus, cfg.Base); err != nil {
		return nil, err
	}
	if h.ghost.modulator, err = modem.NewModulator(cfg.Modem, modem.Drive{Peak: 1, Amplitude: 1}); err != nil {
		return nil, err
	}
	if h.ghost.link, err = phy.NewWaveform(cfg); err != nil {
		return nil, err
	}
	h.engine, err = round.New(round.Config{
		Context: h.ctx, Participants: round.Locals(h.devices, h.ghost.link), Server: h.server, Receiver: h.ghost.link, Attempts: 1, Workers: 1,
	})
	return h, err
}

// streamsOf opens and starts the transmitters of a medium, and its receiver.
func streamsOf(ctx context.Context, m *loopback.Medium, n int) (tx []radio.Transmitter, rx radio.Receiver, err error) {
	for i := range n {
		d, err := m.Transmitter(i)
		if err != nil {
			return nil, nil, err
		}
		t, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := t.Start(ctx); err != nil {
			return nil, nil, err
		}
		tx = append(tx, t)
	}
	d, err := m.Receiver(0)
	if err != nil {
		return nil, nil, err
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		return nil, nil, err
	}
	return tx, rx, rx.Start(ctx)
}

func (h *haunted) close() error {
	if h.engine != nil {
		h.engine.Close()
	}
	h.party.close()
	if h.medium == nil {
		return nil
	}
	return h.medium.Close()
}

// haunt is what came of rounds in which the ghost sent.
type haunt struct {
	shifts   []float64 // of M, 0 where the round was refused
	accepted int
	answered int    // decryption shares that were given, of one device
	said     string // why the first was refused
}

// haunt runs rounds in which the ghost adds x to coefficient 0 of a transmission, with
// the signs given.
func (h *haunted) haunt(ctx context.Context, target slot.Transmission, x float64, signs []float64, rnd *rand.Rand) (out haunt, err error) {
	before := h.guard.Answered(0)
	for _, sign := range signs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		h.ghost.target = target
		h.ghost.adds = func(v zq.Vector) { h.ctx.Modulus().AddInt(v, 0, int64(sign*x)) }
		var delta [][]float64
		for _, d := range scalars(rnd, ghostDevices) {
			delta = append(delta, []float64{d})
		}
		o, err := h.engine.Run(ctx, h.next, delta)
		h.next++
		if err != nil {
			return out, err
		}
		shift := 0.0
		if o.Skipped {
			if out.said == "" {
				out.said = o.Failures[0].String()
			}
		} else {
			out.accepted++
			shift = o.M[0]
			for _, d := range delta {
				shift -= d[0]
			}
		}
		out.shifts = append(out.shifts, shift)
	}
	out.answered = h.guard.Answered(0) - before
	return out, nil
}

// ghostTransmitter: who is on the air and was not enrolled sends a well-formed frame
// with the others. With the weights of the checks, as when they were public, it adds
// to M what it likes, and has devices answer a c~1 of its making. Without them every
// round is refused, in b, c0 and c1 before a share was given.
func ghostTransmitter(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	link := seed.Derive("link")
	rnd := rand.New(seed.Derive("scalars").Stream())
	signs := make([]float64, ghostRounds)
	for k := range signs {
		signs[k] = float64(1 - 2*rnd.Int64N(2))
	}
	knows, err := newHaunted(ctx, link, link, seed.Derive("knows"))
	if err != nil {
		return nil, err
	}
	defer knows.close()
	shift := ghostShift * knows.ctx.Params.Lambda()
	with, err := knows.haunt(ctx, slot.TxShare, shift, signs, rnd)
	if err != nil {
		return nil, err
	}
	answers, err := knows.haunt(ctx, slot.TxC1, math.Ldexp(1, 40), signs, rnd)
	if err != nil {
		return nil, err
	}

	guesses, err := newHaunted(ctx, link, seed.Derive("guess"), seed.Derive("guesses"))
	if err != nil {
		return nil, err
	}
	defer guesses.close()
	var shifts, truth []float64
	accepted, early, said := 0, 0, ""
	for t := range slot.Transmission(slot.Transmissions) {
		without, err := guesses.haunt(ctx, t, shift, signs, rnd)
		if err != nil {
			return nil, err
		}
		shifts, accepted = append(shifts, without.shifts...), accepted+without.accepted
		for _, s := range signs {
			truth = append(truth, ghostShift*s)
		}
		if t != slot.TxShare {
			early += without.answered
		}
		said = without.said
	}
	var wanted []float64
	for _, s := range signs {
		wanted = append(wanted, ghostShift*s)
	}
	const exact = 1e-4
	r := Result{
		Target:  describe(knows.ctx.Params) + fmt.Sprintf(" over a waveform, N = %d, M", ghostDevices),
		Attack:  measure("a ghost without the secret, in b, c0, c1 and D", shifts, truth, exact),
		Control: measure("one that knows the weights of the checks, in D", with.shifts, wanted, exact),
		Guard:   said,
	}
	r.AsStated = accepted == 0 && early == 0 && r.Attack.Exact == 0 && r.Control.recovers() && answers.answered == ghostRounds
	r.Verdict = verdict(r.AsStated, fmt.Sprintf("who knows the checks' weights adds %.1f to M at will and has devices answer a c~1 of its making (%d of %d); without the secret %d of %d rounds are accepted, and %d shares were given to a b, c0 or c1 that was tampered with. This stops outsiders: a device knows the secret", ghostShift, answers.answered, ghostRounds, accepted, len(shifts), early))
	return []Result{r}, nil
}
