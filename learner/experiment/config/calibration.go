package config

import "fmt"

// Calibration is how a bench is measured, and what of it a run goes by.
type Calibration struct {
	// File is a calibration that a run goes by: mu_i and Omega_i for scaling, phase,
	// gain and delay for what devices trim. Empty: the figures of [channel].
	File string `toml:"file"`
	// AssumedMean is what a run takes for mu_i in place of what is known of them, to
	// see what a wrong figure does; empty for none, else one a device.
	AssumedMean []float64 `toml:"assumed_mean"`
	// QuickBlocks is the number of soundings of each device by which a run finds
	// phases and delays anew in each session of streams, where a calibration's do not
	// last; 0 refuses to run there.
	QuickBlocks int `toml:"quick_blocks"`

	// What follows is for calibrate.

	// Blocks is the number of realisations of the channel that are sounded, Looks how
	// often each device is within one, Sessions how often streams begin anew.
	Blocks   int `toml:"blocks"`
	Looks    int `toml:"looks"`
	Sessions int `toml:"sessions"`
	// Sequence is zadoff-chu or m-sequence, of Length chips a period, with Root for
	// zadoff-chu (0: chosen); Repetitions are the periods estimated from.
	Sequence       string `toml:"sequence"`
	Length         int    `toml:"length_chips"`
	Root           int    `toml:"root"`
	SamplesPerChip int    `toml:"samples_per_chip"`
	Repetitions    int    `toml:"repetitions"`
	// GuardSamples is the silence around a burst; DelaySearchSamples and
	// OffsetSearchHz are up to where a burst and its carrier are searched for.
	GuardSamples       int     `toml:"guard_samples"`
	DelaySearchSamples int     `toml:"delay_search_samples"`
	OffsetSearchHz     float64 `toml:"offset_search_hz"`
	// BlockSeconds is the time from a block to the next; 0: as fast as can be.
	// RoundSeconds is that over which a block's looks are spread, which should be a
	// round's; 0: what a round of this configuration takes over its radios, frames and
	// leads, and in memory as fast as can be.
	BlockSeconds float64 `toml:"block_seconds"`
	RoundSeconds float64 `toml:"round_seconds"`
	// ValidHours is how long what was measured is taken for true.
	ValidHours float64 `toml:"valid_hours"`
}

// defaultCalibration leaves mu_i an error of sigma_i/20.
func defaultCalibration() Calibration {
	return Calibration{
		AssumedMean: []float64{}, QuickBlocks: 32,
		Blocks: 400, Looks: 4, Sessions: 2, Sequence: "zadoff-chu", Length: 127, SamplesPerChip: 2, Repetitions: 2,
		GuardSamples: 96, DelaySearchSamples: 80, OffsetSearchHz: 2000, ValidHours: 24,
	}
}

func (c *Config) checkCalibration() error {
	k := c.Calibration
	err := first(
		between("calibration.quick_blocks", k.QuickBlocks, 0, 10_000),
		between("calibration.blocks", k.Blocks, 16, 1_000_000),
		between("calibration.looks", k.Looks, 1, 4),
		between("calibration.sessions", k.Sessions, 1, min(100, max(1, k.Blocks/4))),
		oneOf("calibration.sequence", k.Sequence, "zadoff-chu", "m-sequence"),
		between("calibration.length_chips", k.Length, 31, 4095),
		between("calibration.root", k.Root, 0, 4094),
		between("calibration.samples_per_chip", k.SamplesPerChip, 2, 16),
		between("calibration.repetitions", k.Repetitions, 2, 1024),
		between("calibration.guard_samples", k.GuardSamples, 1, 1_000_000),
		between("calibration.delay_search_samples", k.DelaySearchSamples, 0, 1_000_000),
		inRange("calibration.offset_search_hz", k.OffsetSearchHz, 0, 1e6),
		inRange("calibration.block_seconds", k.BlockSeconds, 0, 3600),
		inRange("calibration.round_seconds", k.RoundSeconds, 0, 60),
		inRange("calibration.valid_hours", k.ValidHours, 1e-3, 1e6),
	)
	switch {
	case err != nil:
		return err
	case k.DelaySearchSamples > k.GuardSamples:
		return fmt.Errorf("calibration.delay_search_samples is %d: allowed are 0 to calibration.guard_samples, %d", k.DelaySearchSamples, k.GuardSamples)
	case k.OffsetSearchHz >= c.Link.SampleRateHz/2:
		return fmt.Errorf("calibration.offset_search_hz is %v: it must be below half of link.sample_rate_hz, %v", k.OffsetSearchHz, c.Link.SampleRateHz/2)
	case len(k.AssumedMean) != 0 && len(k.AssumedMean) != c.Devices.Count:
		return fmt.Errorf("calibration.assumed_mean has %d values for %d devices (devices.count): give one a device, or none", len(k.AssumedMean), c.Devices.Count)
	}
	for _, m := range k.AssumedMean {
		if err := inRange("calibration.assumed_mean", m, 1e-6, 1e6); err != nil {
			return err
		}
	}
	if k.File != "" && len(k.AssumedMean) != 0 {
		return fmt.Errorf("calibration.assumed_mean is given with calibration.file = %q: a run goes by one of them", k.File)
	}
	if c.OverRadios() && len(k.AssumedMean) != 0 {
		return fmt.Errorf("calibration.assumed_mean is given with radios: it is for simulated benches")
	}
	return nil
}
