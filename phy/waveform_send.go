package phy

import (
	"context"
	"fmt"
	"sync"

	"ringwave/phy/frame"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// prefix gives the symbols before the payload: preamble, header and pattern.
func (w *Waveform) prefix(g *group) (preamble, header, pattern int) {
	preamble = len(w.cfg.Modem.PreambleSymbols())
	return preamble, preamble + frame.HeaderSymbols, preamble + frame.HeaderSymbols + g.patterns.Symbols()
}

// Transmit writes device i's digits. Header and checks are written for each repeat,
// later.
func (w *Waveform) Transmit(i int, x zq.Vector) error {
	if i < 0 || i >= len(w.devices) {
		return fmt.Errorf("device %d transmits on a link of %d devices", i+1, len(w.devices))
	}
	if x.Len() != w.payload.Len() {
		return fmt.Errorf("device %d sends %d coefficients of %v where %d are expected", i+1, x.Len(), w.slot.Transmission, w.payload.Len())
	}
	d, g := w.devices[i], w.groups[i/w.cfg.Group]
	_, header, start := w.prefix(g)
	if n := start + w.payload.Symbols(); cap(d.symbols) < n {
		d.symbols = make([]int8, n)
	}
	d.symbols = d.symbols[:start+w.payload.Symbols()]
	for k, s := range w.cfg.Modem.PreambleSymbols() {
		d.symbols[k] = int8(s)
	}
	for k := range g.patterns.Symbols() {
		d.symbols[header+k] = int8(g.patterns.Symbol(i-g.first, k))
	}
	w.payload.Encode(d.symbols[start:], x, d.scratch[w.payload])
	d.sent = true
	return nil
}

// modulate makes the samples of a group's devices, side by side.
func (w *Waveform) modulate(number int, g *group, repeat uint8) {
	header := w.header(number, repeat)
	preamble, _, start := w.prefix(g)
	sps := w.cfg.Modem.SamplesPerSymbol
	var done sync.WaitGroup
	for i, d := range w.devices[g.first : g.first+g.size] {
		done.Add(1)
		go func() {
			defer done.Done()
			w.payload.EncodeChecks(d.symbols[start:], g.residues[i], d.scratch[w.payload])
			header.Symbols(d.symbols[preamble:])
			for k := range d.symbols[preamble : preamble+frame.HeaderSymbols] {
				d.symbols[preamble+k] *= w.half
			}
			tail := d.modulator.Tail()
			n := (len(d.symbols) + int(tail)) * sps
			if cap(d.samples) < n {
				d.samples = make([]complex64, n)
			}
			d.samples = d.samples[:n]
			d.modulator.Reset()
			d.modulator.ModulateDigits(d.samples[:len(d.symbols)*sps], d.symbols)
			d.modulator.Idle(d.samples[len(d.symbols)*sps:], tail)
			if d.gain == 1 {
				return
			}
			for k := range d.samples {
				d.samples[k] *= complex(d.gain, 0)
			}
		}()
	}
	done.Wait()
}

// send puts a group's frame behind all that was sent, and gives the transmitters'
// index at which it begins, guard time included. Who is not in the group is silent.
func (w *Waveform) send(ctx context.Context, g *group) (radio.SampleIndex, error) {
	w.putOff()
	at := w.cursor
	end := at + radio.SampleIndex(w.window(g, w.payload))
	next := end + w.margin() + w.behind()
	// A receiver that loses samples towards the end of this frame need not wait for
	// the next one, whose own guard time may be promised too.
	silent := max(next, end+w.guardSamples())
	for i, tx := range w.cfg.Transmitters {
		if i >= g.first && i < g.first+g.size {
			meta := radio.TxMeta{Timed: true, Start: at + w.guardSamples(), BurstEnd: true}
			if err := w.write(ctx, i, w.devices[i].samples, meta); err != nil {
				return 0, fmt.Errorf("device %d sends %v: %w", i+1, w.slot.Transmission, err)
			}
		}
		if err := beSilent(ctx, tx, silent); err != nil {
			return 0, fmt.Errorf("device %d idles: %w", i+1, err)
		}
	}
	w.cursor, w.sent = next, end
	return at, nil
}

// beSilent promises zeros of a transmitter that does not go on by itself.
func beSilent(ctx context.Context, tx radio.Transmitter, until radio.SampleIndex) error {
	if _, paced := tx.(radio.Pacer); paced {
		return nil
	}
	return tx.(radio.Idler).Idle(ctx, until)
}

// behind is what must be silent behind the end of a capture: what pushes it out of
// the boards, and what a receiver reads too far that has lost samples unnoticed.
func (w *Waveform) behind() radio.SampleIndex {
	return radio.SampleIndex(w.cfg.Flush + w.cfg.Reach)
}

// putOff moves the cursor to where a frame can be sent: late enough for boards that
// go on by themselves, and, where it must be searched for, far enough behind the
// last one that this cannot be mistaken for it.
func (w *Waveform) putOff() {
	if w.margin() > 0 {
		w.cursor = max(w.cursor, w.sent+2*w.margin())
	}
	for _, tx := range w.cfg.Transmitters {
		if p, ok := tx.(radio.Pacer); ok {
			w.cursor = max(w.cursor, p.Earliest()+radio.SampleIndex(w.cfg.Lead))
		}
	}
}
