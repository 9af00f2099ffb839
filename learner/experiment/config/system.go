package config

import "slices"

// System is what a value of experiment.aggregator stands for, as far as the rest of a
// configuration and what is made from it depend on it.
type System struct {
	Name string // the value
	Text string // what it is, in a line
	// Encrypts says that it is xMK-CKKS in one of its ways: with a design, a key of each
	// device's own and decryption shares.
	Encrypts bool
	// Unchecked says that gains do not match by design, as the paper has systems that
	// fail: no check is made, and all is decoded.
	Unchecked bool
	// StaleKey says that keys are aggregated once; Equalisation says how devices
	// pre-equalise ("zf", "mmse", or "" for not at all).
	StaleKey     bool
	Equalisation string
	// SharesKey says that all devices hold one key.
	SharesKey bool
	// Ideal says that devices reach the server over a digital link: all gains are 1.
	Ideal bool
	// Waveform says that link.kind = "waveform" carries it, and so recordings and radios.
	Waveform bool
	// Gradients says that devices send whole gradients in place of Delta f.
	Gradients bool
	// OnePoint says that devices send one loss in place of the difference of two.
	OnePoint bool
}

// The systems of the paper and of what it compares with, as experiment.aggregator names
// them.
const (
	Plain    = "none"
	OnePoint = "ezofl-one-point"
	Digital  = "digital"
	XMKCKKS  = "xmk-ckks"
	StaleKey = "stale-key"
	ZF       = "zf"
	MMSE     = "mmse"
	HEAirFed = "heairfed"
	AirHE    = "airhe"
	FedAvg   = "fedavg"
)

// Systems returns those that every program has.
func Systems() []System {
	return []System{
		{Name: Plain, Text: "plain EZOFL (Eq. 4): nothing is encrypted"},
		{Name: OnePoint, Text: "plain EZOFL of one loss in place of a difference (arXiv 2401.17460)", OnePoint: true},
		{Name: Digital, Text: "xMK-CKKS over digital links: all gains are 1", Encrypts: true, Ideal: true},
		{Name: XMKCKKS, Text: "xMK-CKKS over the air, the paper's system", Encrypts: true, Waveform: true},
		{Name: StaleKey, Text: "xMK-CKKS with keys aggregated once, under other gains", Encrypts: true, Unchecked: true, StaleKey: true},
		{Name: ZF, Text: "xMK-CKKS over gains that devices invert", Encrypts: true, Unchecked: true, Equalisation: "zf"},
		{Name: MMSE, Text: "xMK-CKKS over gains that devices equalise for the least mean square error", Encrypts: true, Unchecked: true, Equalisation: "mmse"},
		{Name: HEAirFed, Text: "single-key CKKS of whole gradients, over antennas", SharesKey: true, Gradients: true},
		{Name: AirHE, Text: "single-key LWE of scalars, over inverted gains", SharesKey: true},
		{Name: FedAvg, Text: "federated averaging of whole models, which are learned by gradients, over digital links: nothing is encrypted", Ideal: true, Gradients: true},
	}
}

// Names are values that a program knows beside those that every program has.
type Names struct {
	Systems  []System // of experiment.aggregator
	Models   []string // of task.model
	DataSets []string // of task.dataset
	Links    []string // of link.kind
}

// names returns what the configuration may name beside what every program has.
func (c *Config) names() Names {
	if c.beside == nil {
		return Names{}
	}
	return *c.beside
}

// With returns the configuration as that of a program which knows more names.
func (c Config) With(more Names) Config {
	c.beside = &more
	if len(more.Systems)+len(more.Models)+len(more.DataSets)+len(more.Links) == 0 {
		c.beside = nil
	}
	return c
}

// systems returns all systems that the configuration may name.
func (c *Config) systems() []System { return append(Systems(), c.names().Systems...) }

// System returns what experiment.aggregator stands for. Of a value that is not known only
// the name is there: checking refuses it.
func (c *Config) System() System {
	all := c.systems()
	if k := slices.IndexFunc(all, func(s System) bool { return s.Name == c.Experiment.Aggregator }); k >= 0 {
		return all[k]
	}
	return System{Name: c.Experiment.Aggregator}
}

// OverWaveform reports whether rounds go over link.kind = "waveform".
func (c *Config) OverWaveform() bool { return c.Link.Kind == "waveform" && c.System().Waveform }

// aggregators returns the values of experiment.aggregator.
func (c *Config) aggregators() []string {
	var names []string
	for _, s := range c.systems() {
		names = append(names, s.Name)
	}
	return names
}
