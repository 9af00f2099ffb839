package config

// Calibration is how a bench is measured, and what of it a run goes by.
type Calibration struct {
	File               string    `toml:"file"`
	AssumedMean        []float64 `toml:"assumed_mean"`
	QuickBlocks        int       `toml:"quick_blocks"`
	Blocks             int       `toml:"blocks"`
	Looks              int       `toml:"looks"`
	Sessions           int       `toml:"sessions"`
	Sequence           string    `toml:"sequence"`
	Length             int       `toml:"length_chips"`
	Root               int       `toml:"root"`
	SamplesPerChip     int       `toml:"samples_per_chip"`
	Repetitions        int       `toml:"repetitions"`
	GuardSamples       int       `toml:"guard_samples"`
	DelaySearchSamples int       `toml:"delay_search_samples"`
	OffsetSearchHz     float64   `toml:"offset_search_hz"`
	BlockSeconds       float64   `toml:"block_seconds"`
	RoundSeconds       float64   `toml:"round_seconds"`
	ValidHours         float64   `toml:"valid_hours"`
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
	given := len(k.AssumedMean) != 0
	switch {
	case k.OffsetSearchHz >= c.Link.SampleRateHz/2:
		return c.wrong("calibration.offset_search_hz", "below half of link.sample_rate_hz, %s", number(c.Link.SampleRateHz/2))
	case given && k.File != "":
		return c.wrong("calibration.assumed_mean", "empty with calibration.file = %q: a run goes by one of them", cut(k.File))
	case given && c.OverRadios():
		return c.wrong("calibration.assumed_mean", "empty with radios: it is for simulated benches")
	}
	return nil
}
