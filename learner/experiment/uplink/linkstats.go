package uplink

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"slices"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
)

// LinkStats holds the channel statistics that a run uses: what a calibration found, or what
// the user assumes. A nil *LinkStats stands for those of the simulated channel itself.
type LinkStats struct {
	// Channel draws from the distributions that are taken for the links', Fading; gains are
	// in units of unit, a received amplitude.
	Channel *channel.Channel
	Fading  []channel.Fading
	unit    float64
	// Of a calibration file; nil without.
	File *calibration.File
	path string
	// Means are what is received per sent amplitude of each device, with the phases that a
	// quick calibration has found last: what its user compares with the file's.
	Means  []complex128
	delays []modem.Samples
	// corrections are of the devices' own hardware, and left how far each carrier may then
	// be from what devices have in common, in hertz: a standard error.
	corrections []modem.Correction
	left        []float64
	carriers    string // what to say of them
	echoes      string // and of echoes
	// Quick says that phases and delays do not last and must be found anew, which whoever
	// opens radios wants to know: it takes the time of a quick calibration.
	Quick bool
}

// LinkStatsOfRun returns the statistics that the receiver of an earlier run used: of the
// copy of its calibration, at the path copied, or where there is none, as beside a
// configuration that is not in the run's folder, of the file that the configuration names.
// Both were valid then.
func LinkStatsOfRun(c config.Config, root keystream.Seed, ch *channel.Channel, copied string) (*LinkStats, error) {
	if c.Calibration.File == "" {
		return AssumedLinkStats(c, root, ch)
	}
	if _, err := os.Stat(copied); err != nil {
		copied = c.Calibration.File
	}
	return ReadLinkStats(copied, c, root)
}

// ReadLinkStats reads a calibration file, and refuses one of another number of devices.
// Match compares the rest of it with a bench.
func ReadLinkStats(path string, c config.Config, root keystream.Seed) (*LinkStats, error) {
	f, err := calibration.Read(path)
	if err != nil {
		return nil, intake.UserError(err)
	}
	if len(f.Devices) != c.Devices.Count {
		return nil, intake.UserError(fmt.Errorf("%s: it is of %d devices, and devices.count is %d: calibrate this bench", path, len(f.Devices), c.Devices.Count))
	}
	stats, err := calibrated(c, root, f)
	if err != nil {
		return nil, err
	}
	stats.path = path
	return stats, nil
}

// Match compares the file with the bench as it is, and returns what refuses it, or that
// phases must be found anew where quick, the blocks for that, is 0.
func (stats *LinkStats) Match(bench calibration.Want, quick int) error {
	m := calibration.Match(stats.path, *stats.File, bench)
	if err := m.Refusal(); err != nil {
		return err
	}
	stats.Quick = m.NeedsQuick()
	if stats.Quick && quick == 0 {
		return fmt.Errorf("%s; calibration.quick_blocks is 0, which forbids that", m.Sentences()[0])
	}
	return nil
}

// Notes returns sentences on where mu_i are from and, once a link was made, on what devices
// make up for.
func (stats *LinkStats) Notes() []string {
	if stats.File == nil {
		return []string{"mu_i are those of calibration.assumed_mean, which need not be the links'"}
	}
	notes := []string{fmt.Sprintf("mu_i and Omega_i are those of a calibration of %s", stats.File.Created.Format(time.RFC3339))}
	for _, note := range []string{stats.carriers, stats.echoes} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// AssumedLinkStats returns the statistics with the means of calibration.assumed_mean; nil,
// without an error, where that is empty.
func AssumedLinkStats(c config.Config, root keystream.Seed, ch *channel.Channel) (*LinkStats, error) {
	if len(c.Calibration.AssumedMean) == 0 {
		return nil, nil
	}
	stats := &LinkStats{unit: 1}
	mu, omega := ch.Moments()
	for i, m := range c.Calibration.AssumedMean {
		stats.Fading = append(stats.Fading, channel.Gaussian{Mu: m, Sigma: math.Sqrt(max(0, omega[i]-mu[i]*mu[i]))})
	}
	return stats, stats.draw(c, root)
}

// calibrated returns what a calibration file says.
func calibrated(c config.Config, root keystream.Seed, f calibration.File) (*LinkStats, error) {
	stats := &LinkStats{unit: 1, File: &f}
	first := math.Inf(1)
	for i, d := range f.Devices {
		stats.Means = append(stats.Means, f.MeanGain(i))
		stats.delays = append(stats.delays, modem.Samples(d.DelaySamples.Value))
		first = min(first, d.DelaySamples.Value)
	}
	for i := range stats.delays {
		stats.delays[i] -= modem.Samples(first)
	}
	if c.OverRadios() {
		stats.unit = c.Radio.Level
		if stats.unit == 0 {
			for _, m := range stats.Means {
				stats.unit += cmplx.Abs(m) / float64(len(stats.Means))
			}
		}
	}
	stats.correct(c)
	_, phases := setup.Positions(c, root)
	for i, d := range f.Devices {
		mu, omega := d.Mu.Value/stats.unit, d.Omega.Value/(stats.unit*stats.unit)
		if !turnsPhases(c) && math.Cos(d.PhaseRad.Value-phases[i]) < 0 {
			mu = -mu // of a real gain with a negative mean, which nobody turns
		}
		if d.Model == calibration.Rician {
			stats.Fading = append(stats.Fading, campaign.Fading(d, stats.unit))
			continue
		}
		stats.Fading = append(stats.Fading, channel.Gaussian{Mu: mu, Sigma: math.Sqrt(max(0, omega-mu*mu))})
	}
	return stats, stats.draw(c, root)
}

// turnsPhases reports whether devices turn their signals so that gains have a positive
// mean. Emulated gains, and those of links without a waveform, are real as they are.
func turnsPhases(c config.Config) bool {
	return c.OverWaveform() && setup.RegimeOf(c) != bench.Emulated
}

// draw makes Channel of the distributions in Fading.
func (stats *LinkStats) draw(c config.Config, root keystream.Seed) error {
	cfg := setup.ChannelConfig(c)
	cfg.Devices = stats.Fading
	ch, err := channel.New(cfg, root.Derive("channel"))
	if err != nil {
		return intake.UserError(fmt.Errorf("the links as they are known: %w", err))
	}
	stats.Channel = ch
	return nil
}

// unitOf returns the received amplitude that counts as gain 1.
func (stats *LinkStats) unitOf(c config.Config) float64 {
	switch {
	case stats != nil:
		return stats.unit
	case c.OverRadios():
		return setup.RadioLevel(c)
	}
	return 1
}

// alignment returns all that devices make up for.
func (stats *LinkStats) alignment(c config.Config) (a phy.Alignment, err error) {
	a.Trim, err = stats.trims(c)
	a.Advance = advances(c, stats.delays)
	if c.OverWaveform() {
		a.Correction = stats.corrections
	}
	return a, err
}

// trims returns what devices make up for, and with how many samples' advance they send:
// gain and phase in the mean-aligned regime, else the phase alone.
func (stats *LinkStats) trims(c config.Config) ([]phy.Trim, error) {
	if !turnsPhases(c) {
		return nil, nil
	}
	trims, _, err := phy.Align(stats.Means)
	if err != nil || setup.RegimeOf(c) == bench.MeanAligned {
		return trims, err
	}
	for i, t := range trims {
		trims[i] = t / phy.Trim(complex(cmplx.Abs(complex128(t)), 0))
	}
	return trims, nil
}

// advances returns by how much devices of known delays send earlier. Flat-top pulses
// absorb fractions of a sample, which a filter would make overshoot: they are moved by
// whole samples. A modulator moves them by a symbol at most, either way: delays that spread
// further are made up for from their middle on, as far as that goes.
func advances(c config.Config, delays []modem.Samples) []modem.Samples {
	out := slices.Clone(delays)
	if c.Link.Pulse != "flat-top" {
		return out
	}
	middle, symbol := modem.Samples(0), modem.Samples(c.Link.SamplesPerSymbol)
	if slices.Max(delays) > symbol+0.5 {
		middle = (slices.Min(delays) + slices.Max(delays)) / 2
	}
	for i, d := range out {
		out[i] = max(-symbol, min(symbol, modem.Samples(math.Round(float64(d-middle)))))
	}
	return out
}

// quickTries is how many times a quick calibration is made whose phases are gone before
// it ends.
const quickTries = 3

// remeasure finds phases and delays anew with a few soundings over running streams, and
// gives the transmitters' index from which on nothing was sent. Magnitudes stay the
// file's, and must be about what is found. Radios may stand still for patience.
func (stats *LinkStats) remeasure(ctx context.Context, c config.Config, a *array.Array, tx []radio.Transmitter, rx radio.Receiver, patience time.Duration) (start radio.SampleIndex, err error) {
	c.Calibration.Blocks, c.Calibration.Looks, c.Calibration.Sessions = c.Calibration.QuickBlocks, 1, 1
	c.Calibration.RoundSeconds, c.Calibration.BlockSeconds = 0, 0
	cfg, err := setup.SoundingConfig(c)
	if err != nil {
		return 0, err
	}
	rate := c.Link.SampleRateHz
	cfg.Transmitters, cfg.Receiver, cfg.Flush = tx, rx, a.Flush()
	cfg.Lead, cfg.Reach = radio.SampleCount(c.Radio.LeadSeconds*rate), radio.SampleCount(c.Radio.SearchSeconds*rate)
	cfg.Patience = setup.SoundingPatience(&cfg, c, patience)
	for try := 1; ; try++ {
		s, err := sounder.New(cfg)
		if err != nil {
			return 0, err
		}
		var blocks []sounder.Block
		err = s.Run(ctx, func(b sounder.Block) error {
			blocks = append(blocks, b)
			return nil
		})
		if errors.Is(err, sounder.ErrUncounted) || errors.Is(err, radio.ErrStarved) {
			return 0, fmt.Errorf("the quick calibration: %w: %w", phy.ErrAgain, err)
		}
		if err != nil {
			return 0, fmt.Errorf("the quick calibration: %w", err)
		}
		cfg.Start = s.Next()
		switch last := blocks[len(blocks)-1]; {
		case last.Session == 0:
			if blocks, err = stats.firstPaths(&cfg, blocks); err != nil {
				return 0, err
			}
			carriers := campaign.FollowCarriers(&cfg, rate, blocks, last.Session)
			stats.takeCarriers(carriers, rate, s.Ahead())
			return cfg.Start, stats.takePhases(campaign.Stilled(&cfg, rate, blocks, map[int]campaign.Carriers{last.Session: carriers}))
		case try == quickTries:
			return 0, fmt.Errorf("the quick calibration: in %d tries phases were lost before its end, as by a loss of samples or a retuned board: %s: %w", try, missedIn(blocks), phy.ErrAgain)
		}
	}
}

// firstPaths takes from blocks what the echoes of the file's devices add.
func (stats *LinkStats) firstPaths(cfg *sounder.Config, blocks []sounder.Block) ([]sounder.Block, error) {
	var echoes [][]sounding.Echo
	for _, d := range stats.File.Devices {
		echoes = append(echoes, campaign.EchoesOf(d))
	}
	return campaign.FirstPaths(cfg, blocks, echoes)
}

// missedIn returns the last reason for which soundings were missed.
func missedIn(blocks []sounder.Block) string {
	for _, b := range slices.Backward(blocks) {
		for _, r := range b.Records {
			if r.Missed != "" {
				return r.Missed
			}
		}
	}
	return "none was missed"
}

// takePhases takes phases and delays from blocks of one session.
func (stats *LinkStats) takePhases(blocks []sounder.Block) error {
	first := math.Inf(1)
	for i, d := range stats.File.Devices {
		all := campaign.Estimates(blocks, campaign.AllSessions, i, len(stats.File.Devices))
		if len(all) == 0 {
			return fmt.Errorf("the quick calibration: all soundings of device %d were missed: %s", i+1, missedIn(blocks))
		}
		var mean complex128
		variance := 0.0
		for _, e := range all {
			mean += e.Gain / complex(float64(len(all)), 0)
			variance += e.GainVar / float64(len(all)*len(all))
		}
		// All blocks may lie within one coherence time.
		spread := 5*(d.Sigma.Value+math.Sqrt(variance)) + 0.02*d.Mu.Value
		if size := cmplx.Abs(mean); !(math.Abs(size-d.Mu.Value) <= spread) {
			return fmt.Errorf("%s: mu of device %d is %.4g, and the quick calibration finds %.4g, further off than sigma = %.3g explains: calibrate this bench", stats.path, i+1, d.Mu.Value, size, d.Sigma.Value)
		}
		stats.Means[i] = cmplx.Rect(d.Mu.Value, cmplx.Phase(mean))
		stats.delays[i] = sounding.Pool(all).Delay
		first = min(first, float64(stats.delays[i]))
	}
	for i := range stats.delays {
		stats.delays[i] -= modem.Samples(first)
	}
	return nil
}
