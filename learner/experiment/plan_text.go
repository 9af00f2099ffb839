package experiment

import (
	"fmt"
	"strings"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/bench"
)

// Text returns the plan in words, of a run with configuration c.
func (p *WaveformPlan) Text(c config.Config) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nWaveform: base %d, %s, %d samples a symbol at %.4g samples a second, SNR %.4g dB\n", c.Link.Base, c.Link.Pulse, c.Link.SamplesPerSymbol, p.SampleRateHz, setup.SNR(c))
	switch {
	case p.NeededSNRdB > 0:
		fmt.Fprintf(&w, "  emulated gains     need %.1f dB a device, all errors together %.1f dB below the superposed signal\n", p.NeededSNRdB, p.ErrorsBelowdB)
	case p.FluctuationMargin > 0:
		fmt.Fprintf(&w, "  aligned gains      scale %d; mean fluctuations leave %.2f of half a unit to the noise\n", bench.AlignedScale, p.FluctuationMargin)
	default:
		fmt.Fprintln(&w, "  blind receiver")
	}
	if bits := c.Link.ReceiverConverterBits; bits > 0 {
		fmt.Fprintf(&w, "  receive converter  %d bits\n", bits)
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&w, "  G = %d, slots %-4d   a round is read with probability %.3f (%.3f to %.3f) at once, %.3f (%.3f to %.3f) within %d attempts, %d simulated; misfit %.3f, %.3f gains of 0, %.3g s an attempt\n",
			g.Size, g.Slots, g.Reads, g.ReadsLow, g.ReadsHigh, g.ReadsRetry, g.RetryLow, g.RetryHigh, c.Encryption.AttemptsPerRound, g.Rounds, float64(g.Misfit), float64(g.ZeroGains), g.Airtime)
		if g.Failure != "" && g.ReadsHigh < oftenRead {
			fmt.Fprintf(&w, "                     the first that was not: %s\n", g.Failure)
		}
	}
	p.Losses.text(&w)
	return w.String()
}

// text writes which faults cost rounds; nil writes nothing.
func (l *LossPlan) text(w *strings.Builder) {
	if l == nil {
		return
	}
	fmt.Fprintf(w, "  faults cost rounds   %.3f are read at once, and without any fault %.3f, of %d simulated\n", l.Reads, l.Without, l.Rounds)
	for _, k := range l.Keys {
		fmt.Fprintf(w, "    %s\n      with %s about %.3f at once (%d of %d lost rounds): %s\n", k.Set, k.Instead, k.Reads, k.Read, k.Lost, k.Reason)
	}
	if len(l.Keys) == 0 {
		fmt.Fprintln(w, "    no key costs a quarter of these rounds by itself: several together do")
	}
}

// oftenRead is the share of rounds read at once below which a plan says why they are not.
const oftenRead = 0.9
