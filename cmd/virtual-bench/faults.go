package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// hardware is what is wrong with a board. Of what has a unit, frequencies are in hertz.
type hardware struct {
	// ppm is the error of the board's reference, of carrier and sampling clock alike, and
	// carrierPPM and clockPPM are what each has beside it.
	ppm, carrierPPM, clockPPM  float64
	dc, dcRad                  float64
	iqGainDB, iqPhaseRad       float64
	linewidth                  float64
	phaseNoise, loop           float64
	filter, dcBlock, gain      float64
	bits, jitter               float64
	saturation, smoothness     float64
	amPM                       float64
	burstEvery, burst, burstAt float64
	tone, toneAt               float64
	delay                      float64
	echoes                     []channel.Echo
	loseEvery, lose            float64
	stays, noTrigger           float64
}

// faultKey is a key of --fault.
type faultKey struct {
	name        string
	least, most float64
	about       string
	value       func(h *hardware) *float64
}

// whole reports whether the key counts something.
func (k *faultKey) whole() bool {
	return slices.Contains([]string{"bits", "burst-every", "burst", "lose-every", "lose", "no-trigger"}, k.name)
}

// faultKeys are the keys of --fault but echo, which has no single value.
func faultKeys() []faultKey {
	const maxHz = 10e6
	return []faultKey{
		{"ppm", -virtual.MaxOffsetPPM / 2, virtual.MaxOffsetPPM / 2, "error of its reference: of carrier and sampling clock", func(h *hardware) *float64 { return &h.ppm }},
		{"carrier-ppm", -virtual.MaxOffsetPPM / 2, virtual.MaxOffsetPPM / 2, "error of its carrier beside that", func(h *hardware) *float64 { return &h.carrierPPM }},
		{"clock-ppm", -virtual.MaxOffsetPPM / 2, virtual.MaxOffsetPPM / 2, "error of its sampling clock beside that", func(h *hardware) *float64 { return &h.clockPPM }},
		{"dc", 0, 0.5, "DC spike or leak of the oscillator, of full scale", func(h *hardware) *float64 { return &h.dc }},
		{"dc-rad", -math.Pi, math.Pi, "its phase in radians; drawn unless given", func(h *hardware) *float64 { return &h.dcRad }},
		{"iq-gain-db", -6, 6, "mismatch of Q's gain", func(h *hardware) *float64 { return &h.iqGainDB }},
		{"iq-phase-rad", -0.5, 0.5, "mismatch of Q's phase", func(h *hardware) *float64 { return &h.iqPhaseRad }},
		{"linewidth-hz", 0, 1e4, "linewidth of its carrier, whose phase walks", func(h *hardware) *float64 { return &h.linewidth }},
		{"phase-noise-rad", 0, 0.5, "deviation of a phase that a loop holds, in place of a linewidth", func(h *hardware) *float64 { return &h.phaseNoise }},
		{"loop-hz", 1, 1e6, "bandwidth of that loop (100 kHz unless given)", func(h *hardware) *float64 { return &h.loop }},
		{"filter-hz", 1e3, maxHz, "corner of its low-pass filter", func(h *hardware) *float64 { return &h.filter }},
		{"dc-block-hz", 1e-2, 1e5, "corner of its receiver's DC block", func(h *hardware) *float64 { return &h.dcBlock }},
		{"gain-control-hz", 1e-2, 1e5, "bandwidth of its receiver's gain control", func(h *hardware) *float64 { return &h.gain }},
		{"bits", 2, 16, "bits of its converters, beside the 8 that all have", func(h *hardware) *float64 { return &h.bits }},
		{"jitter", 0, channel.MaxJitter, "deviation of each sample's instant, in samples", func(h *hardware) *float64 { return &h.jitter }},
		{"saturation", 0.1, 100, "of its transmit amplifier, of full scale", func(h *hardware) *float64 { return &h.saturation }},
		{"smoothness", 0.5, channel.MaxSmoothness, "p of Rapp's model of that amplifier (2 unless given)", func(h *hardware) *float64 { return &h.smoothness }},
		{"am-pm-rad", -math.Pi, math.Pi, "turn of that amplifier at full scale", func(h *hardware) *float64 { return &h.amPM }},
		{"burst-every", 1, 1e9, "samples from a burst of noise at its antenna to the next", func(h *hardware) *float64 { return &h.burstEvery }},
		{"burst", 1, 1e6, "length of those bursts in samples", func(h *hardware) *float64 { return &h.burst }},
		{"burst-std", 0, 10, "their deviation in each branch, of full scale", func(h *hardware) *float64 { return &h.burstAt }},
		{"tone-hz", -maxHz, maxHz, "frequency of a tone at its antenna, from the carrier", func(h *hardware) *float64 { return &h.tone }},
		{"tone", 0, 10, "amplitude of that tone, of full scale", func(h *hardware) *float64 { return &h.toneAt }},
		{"delay", 0, channel.MaxDelaySamples, "delay of what it sends, in samples, fractions included", func(h *hardware) *float64 { return &h.delay }},
		{"lose-every", 1, 1e9, "samples of a stream after which some are lost, again and again", func(h *hardware) *float64 { return &h.loseEvery }},
		{"lose", 1, 1e6, "how many of them, the last ones", func(h *hardware) *float64 { return &h.lose }},
		{"stays", 0, 1, "amplitude that it goes on sending once it is switched off, of full scale", func(h *hardware) *float64 { return &h.stays }},
		{"no-trigger", 0, 1, "1 for no wire to its trigger input", func(h *hardware) *float64 { return &h.noTrigger }},
	}
}

// usageOfFaults is the part of the help that lists the keys.
func usageOfFaults() string {
	var b strings.Builder
	for _, k := range faultKeys() {
		fmt.Fprintf(&b, "  %-16s %s: %.4g to %.4g\n", k.name, k.about, k.least, k.most)
	}
	fmt.Fprintf(&b, "  %-16s DELAY/DB or DELAY/DB/RAD, an echo of what it sends: samples, dB against the\n  %-16s first arrival and phase, drawn unless given; may be given several times", "echo", "")
	return b.String()
}

// parseFaults reads --fault for boards of which the last is the receiver. Later ones win.
func parseFaults(all []string, transmitters int) ([]hardware, error) {
	boards := make([]hardware, transmitters+1)
	for i := range boards {
		boards[i].dcRad = math.NaN() // to be drawn
	}
	for _, text := range all {
		who, list, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("--fault is %q; allowed is BOARD:KEY=VALUE,..., as rx:dc=0.02,ppm=20", text)
		}
		first, end, err := boardsNamed("--fault", who, transmitters)
		if err != nil {
			return nil, err
		}
		for _, pair := range strings.Split(list, ",") {
			key, value, _ := strings.Cut(pair, "=")
			for i := first; i < end; i++ {
				if err := boards[i].set(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range boards {
		if err := boards[i].check(titleOf(i, transmitters)); err != nil {
			return nil, err
		}
	}
	return boards, nil
}

// boardsNamed returns the first board that a name stands for, and the one behind the last.
func boardsNamed(flag, who string, transmitters int) (first, end int, err error) {
	switch who {
	case "all":
		return 0, transmitters + 1, nil
	case "tx":
		return 0, transmitters, nil
	case "rx":
		return transmitters, transmitters + 1, nil
	}
	n, err := strconv.Atoi(who)
	if err != nil || n < 1 || n > transmitters {
		return 0, 0, fmt.Errorf("%s names the board %q; allowed is tx, rx, all or the number of a transmitter, 1 to %d", flag, who, transmitters)
	}
	return n - 1, n, nil
}

// set takes in a key with its value.
func (h *hardware) set(key, value string) error {
	if key == "echo" {
		e, err := parseEcho(value)
		h.echoes = append(slices.Clip(h.echoes), e)
		return err
	}
	keys := faultKeys()
	i := slices.IndexFunc(keys, func(k faultKey) bool { return k.name == key })
	if i < 0 {
		var names []string
		for _, k := range keys {
			names = append(names, k.name)
		}
		return fmt.Errorf("--fault has the key %q; allowed is %s or echo", key, strings.Join(names, ", "))
	}
	v, err := strconv.ParseFloat(value, 64)
	if k := keys[i]; err != nil || !(v >= k.least && v <= k.most) {
		return fmt.Errorf("--fault has %s = %q; allowed is %.4g to %.4g", key, value, k.least, k.most)
	}
	if keys[i].whole() && v != math.Trunc(v) {
		return fmt.Errorf("--fault has %s = %q; allowed is whole numbers from %.4g to %.4g", key, value, keys[i].least, keys[i].most)
	}
	*keys[i].value(h) = v
	return nil
}

// parseEcho reads DELAY/DB or DELAY/DB/RAD.
func parseEcho(value string) (e channel.Echo, err error) {
	parts := strings.Split(value, "/")
	e.PhaseRad = math.NaN()
	var db float64
	into := []*float64{&e.DelaySamples, &db, &e.PhaseRad}
	ok := len(parts) == 2 || len(parts) == 3
	for i := 0; ok && i < len(parts); i++ {
		*into[i], err = strconv.ParseFloat(parts[i], 64)
		ok = err == nil && !math.IsNaN(*into[i])
	}
	if !ok || !(e.DelaySamples >= 0 && e.DelaySamples <= channel.MaxDelaySamples) || !(math.Abs(db) <= 60) || math.IsInf(e.PhaseRad, 0) {
		return e, fmt.Errorf("--fault has echo = %q; allowed is DELAY/DB or DELAY/DB/RAD with a delay of 0 to %d samples and -60 to 60 dB", value, channel.MaxDelaySamples)
	}
	e.Gain = math.Pow(10, db/20)
	return e, nil
}

// check refuses what does nothing because a part of it is missing.
func (h *hardware) check(board string) error {
	if (h.burstEvery > 0) != (h.burst > 0) || (h.burst > 0) != (h.burstAt > 0) || h.burst > h.burstEvery {
		return fmt.Errorf("--fault gives %s bursts of %v samples every %v, of deviation %v; allowed is all three, the length no more than the distance", board, h.burst, h.burstEvery, h.burstAt)
	}
	if (h.loseEvery > 0) != (h.lose > 0) || h.lose > h.loseEvery {
		return fmt.Errorf("--fault gives %s lose = %v and lose-every = %v; allowed is both together, the former no more than the latter", board, h.lose, h.loseEvery)
	}
	if h.loop > 0 && h.phaseNoise == 0 {
		return fmt.Errorf("--fault gives %s loop-hz without phase-noise-rad; allowed is both together", board)
	}
	return nil
}

// beyond reports whether a board's clocks are further off, with the error of --offset-ppm,
// than a bench has them.
func (h *hardware) beyond(offsetPPM float64) bool {
	worst := max(offsetPPM+math.Abs(h.ppm+h.carrierPPM), math.Abs(h.ppm+h.clockPPM))
	return worst > virtual.MaxOffsetPPM
}

// ownReference reports whether the board goes by its own oscillator.
func (h *hardware) ownReference() bool { return h.ppm != 0 || h.carrierPPM != 0 || h.clockPPM != 0 }

// impairments returns what the hardware does at a rate. What is beyond what samples can
// show does nothing.
func (h *hardware) impairments(rate float64, seed keystream.Seed) channel.Impairments {
	cycles := func(hz float64) float64 {
		if hz/rate > channel.MaxFilter {
			return 0
		}
		return hz / rate
	}
	imp := channel.Impairments{
		IQGainDB: h.iqGainDB, IQPhaseRad: h.iqPhaseRad, ConverterBits: int(h.bits), ClockJitter: h.jitter,
		PhaseNoiseStd: min(1, math.Sqrt(2*math.Pi*h.linewidth/rate)),
		Filter:        cycles(h.filter),
	}
	phase := h.dcRad
	if math.IsNaN(phase) {
		phase = drawnPhase(seed.Derive("dc"))
	}
	imp.DC = complex64(complex(h.dc*math.Cos(phase), h.dc*math.Sin(phase)))
	if h.phaseNoise > 0 {
		loop := h.loop
		if loop == 0 {
			loop = 100e3
		}
		imp.PhaseLoop = min(loop/rate, 0.5)
		imp.PhaseNoiseStd = h.phaseNoise * math.Sqrt(-math.Expm1(-4*math.Pi*imp.PhaseLoop))
	}
	if h.jitter > 0 {
		imp.ClockRoom = int(math.Ceil(6 * h.jitter))
	}
	return imp
}

// bends reports whether the board's hardware does something to what it sends.
func (h *hardware) bends() bool {
	return h.dc != 0 || h.iqGainDB != 0 || h.iqPhaseRad != 0 || h.linewidth != 0 || h.phaseNoise != 0 || h.filter != 0 || h.bits != 0 || h.jitter != 0 || h.saturation != 0
}

// sends gives what the board's transmit chain does: where there is one at all it delays, and
// so all boards have one where any has.
func (h *hardware) sends(seed keystream.Seed, any bool) virtual.Chain {
	return func(rate radio.Hertz, n uint64) func([]complex64) {
		imp := h.impairments(float64(rate), seed)
		smoothness := h.smoothness
		if smoothness == 0 {
			smoothness = 2
		}
		imp.Amplifier = channel.Amplifier{Saturation: h.saturation, Smoothness: smoothness, PhaseRad: h.amPM}
		if !any && imp == (channel.Impairments{Amplifier: channel.Amplifier{Smoothness: smoothness}}) {
			return nil
		}
		p, err := channel.NewPath(imp, seed.Derive("transmit", n))
		if err != nil {
			return nil // the keys' ranges keep to what it takes
		}
		p.Begin(channel.Moment{})
		return func(x []complex64) { p.Apply(x, x) }
	}
}

// hears gives what the board's receive chain does.
func (h *hardware) hears(seed keystream.Seed) virtual.Chain {
	return func(rate radio.Hertz, n uint64) func([]complex64) {
		imp := h.impairments(float64(rate), seed)
		imp.HighPass, imp.GainControl = min(h.dcBlock/float64(rate), channel.MaxFilter), min(h.gain/float64(rate), channel.MaxFilter)
		imp.Interference = channel.Interference{BurstEvery: int(h.burstEvery), BurstLength: int(h.burst), BurstStd: h.burstAt}
		if tone := h.tone / float64(rate); math.Abs(tone) <= 0.5 {
			imp.Interference.Tone, imp.Interference.ToneAmplitude = tone, h.toneAt
		}
		if imp == (channel.Impairments{}) {
			return nil
		}
		f, err := channel.NewFront(imp, 0, 1, seed.Derive("receive", n))
		if err != nil {
			return nil // the keys' ranges keep to what it takes
		}
		f.Begin(channel.Moment{})
		return func(x []complex64) { f.Apply(x) }
	}
}

// path returns the way of what the board sends to another: nil for none but gain.
func (h *hardware) path(seed keystream.Seed) (*channel.Path, error) {
	air := channel.Air{Echoes: slices.Clone(h.echoes)}
	for k := range air.Echoes {
		if math.IsNaN(air.Echoes[k].PhaseRad) {
			air.Echoes[k].PhaseRad = drawnPhase(seed.Derive("echo", uint64(k)))
		}
	}
	return channel.NewPathThrough(channel.Impairments{DelaySamples: h.delay}, air, seed)
}

// way is a channel.Path as a bench takes samples through it.
type way struct{ path *channel.Path }

func (w way) Apply(dst, src []complex64, _ int64) { w.path.Apply(dst, src) }
