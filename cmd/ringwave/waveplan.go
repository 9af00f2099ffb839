package main

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/cmd/internal/config"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
)

// wavePlan is what a waveform link will need and give.
type wavePlan struct {
	SymbolsPerRound int     `json:"symbols_per_round"`
	SampleRateHz    float64 `json:"sample_rate_hz"`
	// For emulated gains: the SNR that the chosen lattice needs, and how far all
	// errors together must lie below the superposed signal.
	NeededSNRdB   float64     `json:"needed_snr_db,omitempty"`
	ErrorsBelowdB float64     `json:"errors_below_db,omitempty"`
	Groups        []groupPlan `json:"groups,omitempty"`
}

// groupPlan is the outlook for one group size.
type groupPlan struct {
	Size       int     `json:"size"`
	Slots      int     `json:"slots"`
	Reads      float64 `json:"probability_one_attempt"`
	ReadsRetry float64 `json:"probability_all_attempts"`
	Misfit     float64 `json:"median_largest_misfit"`
	ZeroGains  float64 `json:"mean_zero_gains"`
	Airtime    float64 `json:"airtime_seconds_per_attempt"`
}

// isWaveform tells whether an experiment goes over the waveform link.
func isWaveform(c config.Config) bool {
	return c.Link.Kind == kindWaveform && c.Experiment.Aggregator == aggregatorXMK
}

// neededSNR gives, for emulated gains on a lattice of scale alpha, the SNR of a
// device at which a round's symbols all fall to the right integer but for one
// round in a thousand: half a lattice unit is z deviations of the noise.
func neededSNR(c config.Config, alpha float64, symbols int) float64 {
	z := distuv.UnitNormal.Quantile(1 - 1e-3/(2*float64(symbols)))
	digitPower := float64(c.Link.Base*c.Link.Base-1) / 12
	return 20 * math.Log10(2*z*alpha*math.Sqrt(digitPower))
}

// superposedDB gives the mean power of the superposed symbols against that of one
// device of gain 1.
func superposedDB(ch *channel.Channel) float64 {
	_, omega := ch.Moments()
	sum := 0.0
	for _, o := range omega {
		sum += o
	}
	return 10 * math.Log10(sum)
}

// roundSymbols gives the payload symbols of a round.
func roundSymbols(c config.Config, d xmkckks.Design) int {
	revealed := d.Params.N
	if d.Form == xmkckks.Short {
		revealed = 1 + d.Witnesses
	}
	return roundDigits(c, d) * 2 * (d.Params.N + revealed)
}

// checkWaveform refuses emulated gains on a lattice that the SNR cannot resolve.
func checkWaveform(c config.Config, ch *channel.Channel, d xmkckks.Design) error {
	if !isWaveform(c) || ch.Continuous() {
		return nil
	}
	needed := neededSNR(c, ch.Alpha(), roundSymbols(c, d))
	if c.Link.SNRdB >= needed {
		return nil
	}
	return fmt.Errorf("link.snr_db is %v: emulated gains on a lattice of 2^-%d need %.1f dB a device, all errors together %.1f dB below the superposed signal: lower channel.gain_lattice_bits or raise the SNR",
		c.Link.SNRdB, c.Channel.GainLatticeBits, needed, needed+superposedDB(ch))
}

// planTrials is the number of simulated rounds for each group size.
const planTrials = 100

// planWaveform computes the outlook; the simulation is of symbols, without the
// modem's own interference.
func planWaveform(s *session) (*wavePlan, float64, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	samples, blocks := 0, 0
	for t := range phy.Transmission(phy.Transmissions) {
		n := payloadLength(s.protocol.ctx, t)
		f, err := link.FrameSamples(t, n)
		if err != nil {
			return nil, 0, err
		}
		samples += f
		blocks += 1 + n*roundDigits(c, *s.design)/c.Link.BlockSymbols
	}
	slots := (c.Devices.Count + link.group - 1) / link.group
	perSlot := float64(samples) / c.Link.SampleRateHz
	p := &wavePlan{SymbolsPerRound: samples / c.Link.SamplesPerSymbol, SampleRateHz: c.Link.SampleRateHz}
	if !s.channel.Continuous() {
		p.NeededSNRdB = neededSNR(c, s.channel.Alpha(), roundSymbols(c, *s.design))
		p.ErrorsBelowdB = p.NeededSNRdB + superposedDB(s.channel)
		return p, perSlot * float64(slots), nil
	}
	for size := 1; size <= min(c.Devices.Count, 5); size++ {
		g, err := planGroup(s, size, blocks)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
	}
	return p, perSlot * float64(slots), nil
}

// roundDigits gives L, the digits of a coefficient.
func roundDigits(c config.Config, d xmkckks.Design) int {
	return int(math.Ceil(d.Params.LogQ() / math.Log2(float64(c.Link.Base))))
}

// planGroup simulates rounds of one group and raises the result to the number of
// groups, which must all be read.
func planGroup(s *session, size, blocks int) (groupPlan, error) {
	c := s.cfg
	trials := lattice.Trials{
		SNRdB: c.Link.SNRdB, Base: c.Link.Base, Symbols: c.Link.BlockSymbols, Blocks: min(blocks, 16),
		Attempts: 1, Trials: planTrials, Seed: uint64(c.Experiment.Seed),
		Options: lattice.Options{MaxAlpha: c.Link.MaxAlpha},
	}
	for i := range size {
		f, err := fadingOf(c, i)
		if err != nil {
			return groupPlan{}, err
		}
		trials.Gains = append(trials.Gains, f)
	}
	if err := trials.Validate(); err != nil {
		return groupPlan{}, bad(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	slots := (c.Devices.Count + size - 1) / size
	g := groupPlan{Size: size, Slots: slots}
	var one float64
	one, g.Misfit, g.ZeroGains = lattice.Simulate(trials)
	g.Reads = math.Pow(one, float64(slots))
	// An attempt is good only if all groups are; attempts are nearly independent
	// thanks to the retry gains.
	g.ReadsRetry = 1 - math.Pow(1-g.Reads, float64(c.Encryption.AttemptsPerRound))
	return g, nil
}

func printWavePlan(w io.Writer, c config.Config, p *wavePlan) {
	fmt.Fprintf(w, "\nWaveform: base %d, %s, %d samples a symbol at %.4g samples a second, SNR %v dB\n", c.Link.Base, c.Link.Pulse, c.Link.SamplesPerSymbol, p.SampleRateHz, c.Link.SNRdB)
	if p.NeededSNRdB > 0 {
		fmt.Fprintf(w, "  emulated gains     need %.1f dB a device, all errors together %.1f dB below the superposed signal\n", p.NeededSNRdB, p.ErrorsBelowdB)
		return
	}
	fmt.Fprintf(w, "  blind receiver, %d simulated rounds for each group size G\n", planTrials)
	for _, g := range p.Groups {
		fmt.Fprintf(w, "  G = %d, slots %-4d   a round is read with probability %.2f at once, %.3f within %d attempts; misfit %.3f, %.2f gains of 0, %.3g s an attempt\n",
			g.Size, g.Slots, g.Reads, g.ReadsRetry, c.Encryption.AttemptsPerRound, g.Misfit, g.ZeroGains, g.Airtime)
	}
}
