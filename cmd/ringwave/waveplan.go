package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/cmd/internal/config"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
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

// isWaveform tells whether an experiment goes over the waveform link.
func isWaveform(c config.Config) bool {
	return c.Link.Kind == kindWaveform && c.Experiment.Aggregator == aggregatorXMK
}

// effectiveSNR gives link.snr_db with the rounding errors of the converters, each
// taken as white and uniform over a step, added to the noise.
func effectiveSNR(c config.Config, ch *channel.Channel) (float64, error) {
	s, err := sampling(c, ch)
	if err != nil {
		return 0, err
	}
	_, omega := linkMoments(c, ch)
	digitPower := bench.DigitPower(c.Link.Base)
	noise := digitPower * math.Pow(10, -planSNR(c, ch)/10)
	noise += s.Receive.Step * s.Receive.Step / 12 / float64(s.Samples)
	if s.Transmit.Step > 0 && c.Link.Base > 3 || !s.Flat {
		for _, o := range omega {
			noise += o * s.Transmit.Step * s.Transmit.Step / 12 / float64(s.Samples)
		}
	}
	return 10 * math.Log10(digitPower/noise), nil
}

// planSNR gives the SNR of a device whose gain counts as 1.
func planSNR(c config.Config, ch *channel.Channel) float64 {
	return c.Link.SNRdB + 20*math.Log10(levelOf(c, ch))
}

// sampling gives what the converters do to a symbol, in units of the superposed
// digit.
func sampling(c config.Config, ch *channel.Channel) (lattice.Sampling, error) {
	m := modemConfig(c.Link)
	scale, err := symbolScale(c)
	if err != nil {
		return lattice.Sampling{}, bad(fmt.Errorf("waveform link: %w", err))
	}
	noiseStd := receiverNoise(c.Link, scale)
	unit := scale * levelOf(c, ch)
	s := lattice.Sampling{
		Samples: int(math.Round(1 / modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol))),
		Flat:    c.Link.Pulse == "flat-top",
	}
	bits := 0
	for i := range c.Devices.Count {
		if b := c.Transmitter(i).ConverterBits; b > 0 && (bits == 0 || b < bits) {
			bits = b
		}
	}
	if bits > 0 {
		s.Transmit.Step = math.Ldexp(1, 1-bits) / scale
	}
	recorded := recordConfig(c, ch, groupSize(c), noiseStd)
	switch {
	case c.Link.ReceiverConverterBits > 0:
		full := receiverFullScale(c, ch, groupSize(c), noiseStd) / unit
		s.Receive = lattice.Converter{Step: math.Ldexp(full, 1-c.Link.ReceiverConverterBits), FullScale: full}
	case largestCode(recorded.Datatype) > 0:
		full := float64(recorded.FullScale) / unit
		s.Receive = lattice.Converter{Step: full / largestCode(recorded.Datatype), FullScale: full}
	}
	return s, nil
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
	if !isWaveform(c) || regimeOf(c) == bench.Blind {
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

// planWaveform computes the outlook; the simulation is of symbols: their samples'
// noise and converters, without interference between symbols.
func planWaveform(s *session) (*wavePlan, float64, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	frames, samples, err := frameBlocks(s)
	if err != nil {
		return nil, 0, err
	}
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
		g, err := planGroup(s, size, frames)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
	}
	return p, perSlot * float64(slots), nil
}

// frameBlocks gives the symbols of the blocks of a round's frames, and the samples
// of all of them.
func frameBlocks(s *session) (frames [][]int, samples int, err error) {
	link := s.protocol.link.(*waveLink)
	for t := range phy.Transmission(phy.Transmissions) {
		n := s.protocol.ctx.PayloadLength(t)
		size, err := link.FrameSamples(t, n)
		if err != nil {
			return nil, 0, err
		}
		blocks, err := link.FrameBlocks(t, n)
		if err != nil {
			return nil, 0, err
		}
		frames, samples = append(frames, blocks), samples+size
	}
	return frames, samples, nil
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

// planTrialsOf describes the simulation of rounds of one group of the first
// devices, whose frames have blocks of the given lengths.
func planTrialsOf(s *session, size int, frames [][]int) (lattice.Trials, error) {
	c, link := s.cfg, s.protocol.link.(*waveLink)
	c.Link.GroupSize = size
	hardware, err := sampling(c, s.links())
	if err != nil {
		return lattice.Trials{}, err
	}
	trials := lattice.Trials{
		SNRdB: planSNR(c, s.links()), Base: c.Link.Base, Frames: frames, Repeats: c.Link.FrameRepeats,
		Sampling: hardware, Trials: planTrials, Seed: uint64(c.Experiment.Seed),
		Options: lattice.Options{MaxAlpha: c.Link.MaxAlpha},
	}
	if link.regime == bench.Blind { // of other groups, all devices are taken to be heard
		trials.Least = max(0, size-(c.Devices.Count-leastHeard(c)))
	}
	if trials.Passages, err = passages(c, link.residualDelays()[:size]); err != nil {
		return trials, err
	}
	if link.regime == bench.MeanAligned {
		trials.Alpha, trials.Tolerance = bench.AlignedScale, linksOf(s.links()).AlignedTolerance(size)
	} else if link.trims == nil {
		trials.Phases = link.phases[:size]
	}
	for i := range size {
		f, err := s.fading(i)
		if err != nil {
			return trials, err
		}
		var g lattice.Gain = f
		if link.regime == bench.MeanAligned {
			g = trimmed{f}
		}
		trials.Gains = append(trials.Gains, g)
	}
	return trials, nil
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

// passages measures the real gain that a device of gain 1 has at the receiver, one
// a device of the given delays: the filter that makes a fraction of a sample
// overshoots at the edges of flat-top pulses. The preamble of all devices
// together puts the receiver in time; each is then received alone.
func passages(c config.Config, delays []modem.Samples) ([]float64, error) {
	m := modemConfig(c.Link)
	m.Preamble.Level = float32(c.Link.Base-1) / 2
	detector, err := modem.NewDetector(m, modem.Search{})
	if err != nil {
		return nil, err
	}
	demodulator, err := modem.NewDemodulator(m, modem.Receive{})
	if err != nil {
		return nil, err
	}
	const symbols = 256
	digits := m.PreambleSymbols()
	rnd := rand.New(rand.NewPCG(1, 1))
	for range symbols {
		digits = append(digits, m.Preamble.Level*float32(1-2*rnd.IntN(2)))
	}
	var sum []complex64
	alone := make([][]complex64, len(delays))
	for i, delay := range delays {
		if alone[i], err = passed(c, m, digits, delay); err != nil {
			return nil, err
		}
		if sum == nil {
			sum = make([]complex64, len(alone[i]))
		}
		for k, x := range alone[i] {
			sum[k] += x
		}
	}
	scale, err := symbolScale(c)
	if err != nil {
		return nil, err
	}
	// The noise decides which of the windows that are as good as any is taken.
	const draws = 16
	noise := receiverNoise(c.Link, scale)
	soft, erased, noisy := make([]float32, symbols), make([]bool, symbols), make([]complex64, len(sum))
	gains := make([]float64, len(delays))
	for range draws {
		for k, x := range sum {
			noisy[k] = x + complex(float32(noise*rnd.NormFloat64()), float32(noise*rnd.NormFloat64()))
		}
		sync, err := detector.First(noisy)
		if err != nil {
			return nil, fmt.Errorf("planning the link: %w", err)
		}
		for i := range gains {
			demodulator.Demodulate(soft, erased, alone[i], sync)
			for _, y := range soft {
				gains[i] += math.Abs(float64(y)) / (draws * symbols * scale * float64(m.Preamble.Level))
			}
		}
	}
	return gains, nil
}

// passed gives a device's samples as they arrive.
func passed(c config.Config, m modem.Config, digits []float32, delay modem.Samples) ([]complex64, error) {
	drive := modem.Drive{Peak: m.Preamble.Level, Amplitude: transmitAmplitude(c)}
	if c.Link.Pulse != "flat-top" {
		drive.Advance = delay
	}
	modulator, err := modem.NewModulator(m, drive)
	if err != nil {
		return nil, err
	}
	path, err := channel.NewPath(channel.Impairments{DelaySamples: float64(delay)}, keystream.Seed{})
	if err != nil {
		return nil, err
	}
	const guard = 24
	sps := m.SamplesPerSymbol
	tail := modulator.Tail() + guard
	out := make([]complex64, (guard+len(digits)+int(tail))*sps)
	frame := out[guard*sps:]
	modulator.Modulate(frame, digits)
	modulator.Idle(frame[len(digits)*sps:], tail)
	path.Apply(out, out)
	return out, nil
}

// trimmed is the gain of a device that divides by its mean.
type trimmed struct{ channel.Fading }

// Draw implements lattice.Gain.
func (t trimmed) Draw(rnd *rand.Rand) float64 { return t.Fading.Draw(rnd) / t.Mean() }

// planGroup simulates rounds of one group and raises the result to the number of
// groups, which must all be read.
func planGroup(s *session, size int, frames [][]int) (groupPlan, error) {
	c := s.cfg
	trials, err := planTrialsOf(s, size, frames)
	if err != nil {
		return groupPlan{}, err
	}
	if size != groupSize(c) {
		trials.Trials /= 3
	}
	if err := trials.Validate(); err != nil {
		return groupPlan{}, bad(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	slots := (c.Devices.Count + size - 1) / size
	g := groupPlan{Size: size, Slots: slots, trials: trials.Trials}
	var one float64
	one, g.Misfit, g.ZeroGains = lattice.Simulate(trials)
	g.Reads = math.Pow(one, float64(slots))
	if slots == 1 && !c.Channel.FreshBlockOnRetry {
		trials.Attempts = c.Encryption.AttemptsPerRound
		g.ReadsRetry, _, _ = lattice.Simulate(trials)
		return g, nil
	}
	// An attempt is good only if all groups are: here attempts are taken as
	// independent, which fresh gains make them nearly.
	g.ReadsRetry = 1 - math.Pow(1-g.Reads, float64(c.Encryption.AttemptsPerRound))
	return g, nil
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
