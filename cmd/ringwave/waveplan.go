package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/rounds"
	"ringwave/phy/trial"
	"ringwave/radio/intake"
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
	// Trials is the number of simulated rounds for the link's own group size; the
	// others have a third of it.
	Trials int `json:"simulated_rounds,omitempty"`
	// FluctuationMargin is, for aligned gains, what half a unit of the lattice has
	// left for noise once the mean fluctuation of a group is taken off.
	FluctuationMargin float64 `json:"fluctuation_margin,omitempty"`
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
	trials     int
}

// effectiveSNR gives link.snr_db with the rounding errors of the converters, each
// taken as white and uniform over a step, added to the noise.
func effectiveSNR(c config.Config, ch *channel.Channel) (float64, error) {
	r, err := roundingOf(c, ch)
	if err != nil {
		return 0, err
	}
	_, omega := linkMoments(c, ch)
	digitPower := bench.DigitPower(c.Link.Base)
	noise := digitPower * math.Pow(10, -planSNR(c, ch)/10)
	noise += r.receive * r.receive / 12 / float64(r.samples)
	if r.transmit > 0 && c.Link.Base > 3 || c.Link.Pulse != "flat-top" {
		for _, o := range omega {
			noise += o * r.transmit * r.transmit / 12 / float64(r.samples)
		}
	}
	return 10 * math.Log10(digitPower/noise), nil
}

// planSNR gives the SNR of a device whose gain counts as 1.
func planSNR(c config.Config, ch *channel.Channel) float64 {
	return c.Link.SNRdB + 20*math.Log10(levelOf(c, ch))
}

// rounding is what the converters do to a symbol, in units of the superposed digit.
type rounding struct {
	transmit, receive float64 // steps, 0 for none
	samples           int     // W, the number of samples whose mean a symbol is
}

// roundingOf returns what the converters of a configuration do: of several, the coarsest
// transmitter's.
func roundingOf(c config.Config, ch *channel.Channel) (rounding, error) {
	m := modemConfig(c.Link)
	scale, err := symbolScale(c)
	if err != nil {
		return rounding{}, intake.UserError(fmt.Errorf("waveform link: %w", err))
	}
	noiseStd := receiverNoise(c.Link, scale)
	unit := scale * levelOf(c, ch)
	r := rounding{samples: int(math.Round(1 / modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol)))}
	bits := 0
	for i := range c.Devices.Count {
		if b := c.Transmitter(i).ConverterBits; b > 0 && (bits == 0 || b < bits) {
			bits = b
		}
	}
	if bits > 0 {
		r.transmit = math.Ldexp(1, 1-bits) / scale
	}
	recorded := recordConfig(c, ch, groupSize(c), noiseStd)
	switch {
	case c.Link.ReceiverConverterBits > 0:
		r.receive = math.Ldexp(receiverFullScale(c, ch, groupSize(c), noiseStd)/unit, 1-c.Link.ReceiverConverterBits)
	case largestCode(recorded.Datatype) > 0:
		r.receive = float64(recorded.FullScale) / unit / largestCode(recorded.Datatype)
	}
	return r, nil
}

// alignedMargin returns what half a unit of the lattice has left for the noise when
// every device of the worst group is off its mean by the mean fluctuation.
func alignedMargin(c config.Config, ch *channel.Channel) float64 {
	return 0.5 - linksOf(ch).Fluctuation(groupSize(c), c.Link.Base)
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
	return roundDigits(c, d) * 2 * (d.Params.N + d.Revealed())
}

// checkWaveform refuses emulated gains on a lattice that the SNR cannot resolve,
// and aligned ones whose fluctuations or noise no rounding absorbs.
func checkWaveform(c config.Config, ch *channel.Channel, d xmkckks.Design) error {
	if !c.OverWaveform() || regimeOf(c) == bench.Blind {
		return nil
	}
	snr, err := effectiveSNR(c, ch)
	if err != nil {
		return err
	}
	if regimeOf(c) == bench.MeanAligned {
		return checkAligned(c, ch, snr)
	}
	needed := bench.NeededSNR(c.Link.Base, ch.Alpha(), roundSymbols(c, d))
	if snr >= needed {
		return nil
	}
	return fmt.Errorf("link.snr_db is %v%s: emulated gains on a lattice of 2^-%d need %.1f dB a device, all errors together %.1f dB below the superposed signal: lower channel.gain_lattice_bits or raise the SNR",
		c.Link.SNRdB, withConverters(c, snr), c.Channel.GainLatticeBits, needed, needed+superposedDB(ch))
}

// withConverters says what converters make of the SNR, if they change it.
func withConverters(c config.Config, snr float64) string {
	if math.Abs(snr-c.Link.SNRdB) < 0.05 {
		return ""
	}
	return fmt.Sprintf(", %.1f dB with the converters' rounding", snr)
}

// checkAligned refuses what is hopeless: fluctuations alone that reach half a unit
// in the mean, or noise that alone spoils a good part of all rounds.
func checkAligned(c config.Config, ch *channel.Channel, snr float64) error {
	if m := alignedMargin(c, ch); m <= 0 {
		return fmt.Errorf("link.regime is mean-aligned: the fluctuations of a group's gains add up to %.2f in the mean, and rounding absorbs less than 0.5: lower channel.std or link.group_size, or take \"blind\"", 0.5-m)
	}
	// Without any fluctuation, one symbol in a million would be wrong.
	if needed := bench.NeededSNR(c.Link.Base, bench.AlignedScale, 1000); snr < needed {
		return fmt.Errorf("link.snr_db is %v, %.1f dB for aligned devices at the level of the weakest: at least %.1f dB are needed", c.Link.SNRdB, snr, needed)
	}
	return nil
}

// planTrials is the number of simulated rounds for the group size in use.
const planTrials = 300

// planWaveform computes the outlook.
func planWaveform(ctx context.Context, s *session) (*wavePlan, float64, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	layout, err := roundLayout(s)
	if err != nil {
		return nil, 0, err
	}
	samples := layout.Airtime()
	slots := (c.Devices.Count + link.group - 1) / link.group
	perSlot := float64(samples) / c.Link.SampleRateHz
	p := &wavePlan{SymbolsPerRound: samples / c.Link.SamplesPerSymbol, SampleRateHz: c.Link.SampleRateHz}
	if !s.channel.Continuous() {
		p.NeededSNRdB = bench.NeededSNR(c.Link.Base, s.channel.Alpha(), roundSymbols(c, *s.design))
		p.ErrorsBelowdB = p.NeededSNRdB + superposedDB(s.channel)
		return p, perSlot * float64(slots), nil
	}
	if link.regime == bench.MeanAligned {
		p.FluctuationMargin = alignedMargin(c, s.links())
	}
	p.Trials = planTrials
	for _, size := range plannedSizes(c) {
		g, err := planGroup(ctx, s, size, layout)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
	}
	return p, perSlot * float64(slots), nil
}

// roundLayout returns the frames of a round.
func roundLayout(s *session) (rounds.Layout, error) {
	p := s.protocol
	return rounds.LayoutOf(p.link.(*waveLink), p.ctx.Modulus(), s.cfg.Link.Base, p.ctx.PayloadLength)
}

// roundDigits gives L, the digits of a coefficient.
func roundDigits(c config.Config, d xmkckks.Design) int {
	return int(math.Ceil(d.Params.LogQ() / math.Log2(float64(c.Link.Base))))
}

// plannedSizes gives the group sizes to look at: up to 5, and the one in use.
func plannedSizes(c config.Config) []int {
	var sizes []int
	for size := 1; size <= min(c.Devices.Count, 5); size++ {
		sizes = append(sizes, size)
	}
	if own := groupSize(c); own > len(sizes) {
		sizes = append(sizes, own)
	}
	return sizes
}

// groupRounds describes rounds of one group of the first devices.
func groupRounds(s *session, size int, layout rounds.Layout) (rounds.Config, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	b, err := plannedBench(s)
	if err != nil {
		return rounds.Config{}, err
	}
	cfg := rounds.Config{
		Bench: b, Regime: link.regime, MaxAlpha: c.Link.MaxAlpha, Group: size, Groups: 1,
		Base: c.Link.Base, Modem: modemConfig(c.Link), BlockSymbols: c.Link.BlockSymbols, Layout: layout,
		Attempts: 1, Repeats: c.Link.FrameRepeats, Whole: true,
		// Of other groups, all devices are taken to be heard.
		Least:    max(0, size-(c.Devices.Count-leastHeard(c))),
		Patterns: s.root.Derive("plan"), Seed: uint64(c.Experiment.Seed),
	}
	if link.regime == bench.MeanAligned {
		cfg.Alpha, cfg.Tolerance = bench.AlignedScale, linksOf(s.links()).AlignedTolerance(size)
	}
	return cfg, nil
}

// plannedBench returns the bench as far as the run knows it.
func plannedBench(s *session) (rounds.Bench, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	b := rounds.Bench{Noise: modem.Power(2 * link.noiseStd * link.noiseStd), FreshOnRetry: c.Channel.FreshBlockOnRetry}
	b.ReceiverBits, b.ReceiverFullScale = configuredConverter(c)
	if c.OverRadios() && b.ReceiverBits > 0 && b.ReceiverFullScale == 0 {
		b.ReceiverFullScale = 1 // that of radios
	}
	if link.trims != nil {
		b.Phases = rounds.PhasesTrimmed
	}
	delays := link.residualDelays()
	for i := range c.Devices.Count {
		f, err := s.fading(i)
		if err != nil {
			return b, err
		}
		b.Devices = append(b.Devices, rounds.Device{
			Gain: f, Phase: modem.Radians(link.phases[i]), Delay: delays[i], ConverterBits: c.Transmitter(i).ConverterBits,
		})
	}
	return b, nil
}

// fading gives the law of device i's gain, as far as it is known.
func (s *session) fading(i int) (channel.Fading, error) {
	if s.known != nil {
		return s.known.fading[i], nil
	}
	return fadingOf(s.cfg, i)
}

// residualDelays gives the delays of the devices that a calibration leaves.
func (l *waveLink) residualDelays() []modem.Samples {
	if l.known == nil || l.known.file == nil {
		return l.delays
	}
	left := slices.Clone(l.delays)
	for i, a := range l.advances {
		left[i] -= a
	}
	if first := slices.Min(left); first < 0 {
		for i := range left {
			left[i] -= first
		}
	}
	return left
}

// planGroup simulates rounds of one group and raises the result to the number of
// groups, which must all be read.
func planGroup(ctx context.Context, s *session, size int, layout rounds.Layout) (groupPlan, error) {
	c := s.cfg
	cfg, err := groupRounds(s, size, layout)
	if err != nil {
		return groupPlan{}, err
	}
	slots := (c.Devices.Count + size - 1) / size
	g := groupPlan{Size: size, Slots: slots, trials: planTrials}
	if size != groupSize(c) {
		g.trials /= 3
	}
	if slots == 1 {
		cfg.Attempts = c.Encryption.AttemptsPerRound
	}
	simulated, err := rounds.Simulate(ctx, cfg, g.trials)
	if ctx.Err() != nil {
		return groupPlan{}, errInterrupted
	}
	if err != nil {
		return groupPlan{}, intake.UserError(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	var once, all trial.Tally
	for _, attempts := range simulated {
		once.Add(outcomeOf(attempts[:1], cfg.Repeats))
		all.Add(outcomeOf(attempts, cfg.Repeats))
	}
	g.Reads = math.Pow(float64(once.Within(1))/float64(g.trials), float64(slots))
	g.Misfit, g.ZeroGains = once.Misfit(), once.ZeroGains()
	if slots == 1 {
		g.ReadsRetry = float64(all.Within(cfg.Attempts)) / float64(g.trials)
		return g, nil
	}
	// An attempt is good only if all groups are: here attempts are taken as
	// independent, which fresh gains make them nearly.
	g.ReadsRetry = 1 - math.Pow(1-g.Reads, float64(c.Encryption.AttemptsPerRound))
	return g, nil
}

// outcomeOf returns what became of a round of simulated attempts.
func outcomeOf(attempts []rounds.Attempt, repeats int) trial.Outcome {
	for i, a := range attempts {
		if a.Read(repeats) {
			return trial.Outcome{Attempt: i + 1, Alpha: a.Alpha, Misfit: a.Misfit, ZeroGains: a.ZeroGains}
		}
	}
	return trial.Outcome{}
}

// readsStd gives the deviation of Reads, the simulated share taken as one trial
// nearer to the middle than it is.
func (g groupPlan) readsStd() float64 {
	n := float64(g.trials)
	share := (math.Pow(g.Reads, 1/float64(g.Slots))*n + 1) / (n + 2)
	return float64(g.Slots) * math.Sqrt(share*(1-share)/n)
}

func printWavePlan(w io.Writer, c config.Config, p *wavePlan) {
	fmt.Fprintf(w, "\nWaveform: base %d, %s, %d samples a symbol at %.4g samples a second, SNR %v dB\n", c.Link.Base, c.Link.Pulse, c.Link.SamplesPerSymbol, p.SampleRateHz, c.Link.SNRdB)
	if p.NeededSNRdB > 0 {
		fmt.Fprintf(w, "  emulated gains     need %.1f dB a device, all errors together %.1f dB below the superposed signal\n", p.NeededSNRdB, p.ErrorsBelowdB)
		return
	}
	if p.FluctuationMargin > 0 {
		fmt.Fprintf(w, "  aligned gains      scale %d; mean fluctuations leave %.2f of half a unit to the noise\n", bench.AlignedScale, p.FluctuationMargin)
	} else {
		fmt.Fprintln(w, "  blind receiver")
	}
	if bits := c.Link.ReceiverConverterBits; bits > 0 {
		fmt.Fprintf(w, "  receive converter  %d bits\n", bits)
	}
	for _, g := range p.Groups {
		fmt.Fprintf(w, "  G = %d, slots %-4d   a round is read with probability %.3f at once (+- %.3f, %d simulated), %.3f within %d attempts; misfit %.3f, %.3f gains of 0, %.3g s an attempt\n",
			g.Size, g.Slots, g.Reads, g.readsStd(), g.trials, g.ReadsRetry, c.Encryption.AttemptsPerRound, g.Misfit, g.ZeroGains, g.Airtime)
	}
}
