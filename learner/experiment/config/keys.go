package config

import (
	"math"
	"reflect"
	"strings"
)

// Key is what there is to know of one key.
type Key struct {
	Name    string `json:"key"` // section.key
	Type    string `json:"type"`
	Unit    string `json:"unit,omitempty"`
	Default any    `json:"default"`
	Range   string `json:"range"`
	Meaning string `json:"meaning"`
	// Words are the values that it may have, where these are few.
	Words []string `json:"words,omitempty"`
}

// DefaultText returns the default as a file has it.
func (k Key) DefaultText() string { return show(reflect.ValueOf(k.Default)) }

// Describe returns every key of a configuration, in the order in which they are written.
func Describe() []Key {
	c := Default()
	rules := c.allRules()
	var all []Key
	for _, f := range c.fields() {
		r := rules[f.name]
		all = append(all, Key{
			Name: f.name, Type: typeName(f.value.Type()), Unit: r.unit, Default: f.value.Interface(),
			Range: r.limit.column(), Meaning: r.meaning, Words: r.limit.words,
		})
	}
	return all
}

// Keys returns every key of a configuration as section.key.
func Keys() []string {
	var keys []string
	for _, f := range new(Config).fields() {
		keys = append(keys, f.name)
	}
	return keys
}

// field is one value of a configuration.
type field struct {
	name  string // section.key
	value reflect.Value
}

// fields returns every value, to be set, too.
func (c *Config) fields() []field {
	var all []field
	for _, name := range sections() {
		section := c.section(name)
		for i := range section.NumField() {
			all = append(all, field{name + "." + section.Type().Field(i).Tag.Get("toml"), section.Field(i)})
		}
	}
	return all
}

// sections returns the names of the sections.
func sections() []string {
	var names []string
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("toml"); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// section returns a section by its name.
func (c *Config) section(name string) reflect.Value {
	all := reflect.ValueOf(c).Elem()
	for i := range all.NumField() {
		if all.Type().Field(i).Tag.Get("toml") == name {
			return all.Field(i)
		}
	}
	return reflect.Value{}
}

// value returns that of a key, which is none of a key that there is not.
func (c *Config) value(key string) reflect.Value {
	of, name, _ := strings.Cut(key, ".")
	section := c.section(of)
	if !section.IsValid() || of == "" {
		return reflect.Value{}
	}
	for i := range section.NumField() {
		if section.Type().Field(i).Tag.Get("toml") == name {
			return section.Field(i)
		}
	}
	return reflect.Value{}
}

// rule is what is asked of a key, and what it means.
type rule struct {
	name    string // without the section
	unit    string
	limit   limit
	meaning string
}

// mustBe returns what the value of a key must be.
func (c *Config) mustBe(key string) string {
	return c.allRules()[key].limit.mustBe(c, c.value(key).Type())
}

// allRules returns the rules of all keys.
func (c *Config) allRules() map[string]rule {
	all := map[string]rule{}
	for _, section := range sections() {
		for _, r := range c.rules(section) {
			all[section+"."+r.name] = r
		}
	}
	return all
}

func (c *Config) rules(section string) []rule {
	switch section {
	case "experiment":
		return c.experimentRules()
	case "task":
		return c.taskRules()
	case "optimizer":
		return optimizerRules()
	case "devices":
		return devicesRules()
	case "encryption":
		return encryptionRules()
	case "link":
		return append(c.linkRules(), waveformRules()...)
	case "channel":
		return append(channelRules(), terahertzRules()...)
	case "radio":
		return radioRules()
	case "calibration":
		return calibrationRules()
	}
	return nil
}

func (c *Config) experimentRules() []rule {
	return []rule{
		{"name", "", text(1, 100), "name of the run, in its folder's name and its plots"},
		{"seed", "", atLeast(0), "root of every random stream but the system's"},
		{"aggregator", "", oneOf(c.aggregators()...), "the system that is run: " + systemsInWords() + "; ezofl is read as none"},
	}
}

func systemsInWords() string {
	var texts []string
	for _, s := range Systems() {
		texts = append(texts, s.Name+", "+s.Text)
	}
	return strings.Join(texts, "; ")
}

func (c *Config) taskRules() []rule {
	made := []string{"mnist", "strokes", "cifar10"}
	sets := append(append([]string{}, made...), "idx", "process")
	path := text(0, math.MaxInt)
	return []rule{
		{"dataset", "", oneOf(append(sets, c.names().DataSets...)...), "what is learned from; strokes are drawn by the program, idx is four files of one's own, process is what the program of model = \"process\" has"},
		{"fallback", "", oneOf(append([]string{""}, made...)...), "the data set to take where that of dataset is not on the machine; empty for none"},
		{"classes", "", list(256, whole(0, 255)), "the classes to tell apart, two or more"},
		{"model", "", oneOf(append([]string{"logistic", "lenet", "process"}, c.names().Models...)...), "what learns; logistic is softmax regression where there are more than two classes, lenet is for dataset = \"cifar10\", process is a program of one's own"},
		{"loss", "", oneOf("mean", "sum"), "what a device sends differences of: the mean or the sum over its batch"},
		{"partition", "", oneOf("iid", "dirichlet"), "how samples are dealt to devices"},
		{"dirichlet_alpha", "", numbers(1e-3, 1e6), "concentration of partition = \"dirichlet\": the smaller, the more uneven"},
		{"validation_share", "", numbers(0, 0.5), "share of the training samples that devices do not learn from, and by which it is seen when to stop and which round's model is the best; 0 for none"},
		{"strokes_train", "images", whole(4, maxSamples), "size of the strokes' training set, over its four classes"},
		{"strokes_test", "images", whole(4, maxSamples), "size of the strokes' test set"},
		{"train_images", "", path, "a file of dataset = \"idx\""},
		{"train_labels", "", path, "a file of dataset = \"idx\""},
		{"test_images", "", path, "a file of dataset = \"idx\""},
		{"test_labels", "", path, "a file of dataset = \"idx\""},
		{"command", "", path, "the program of model = \"process\" and its arguments, started in the folder from which ringwave is called"},
		{"answer_seconds", "s", numbers(1e-3, 1e6), "how long that program may take to answer"},
		{"restarts", "", whole(0, 1000), "how often that program is started again in a sitting where it has ended or is late"},
	}
}

func optimizerRules() []rule {
	return []rule{
		{"rounds", "rounds", whole(1, maxRounds), "K, the rounds of training"},
		{"batch_size", "samples", whole(1, maxSamples), "samples that a device looks at in a round"},
		{"directions", "", oneOf("rademacher", "gaussian", "sphere", "philox"), "law of Phi_k, the random direction of a round; philox is rademacher, of keys of which other programs can make the same"},
		{"packed_directions", "", whole(1, maxPacked), "P, the directions of a round, whose scalars travel in as many coefficients of one ciphertext"},
		{"clip", "", numbers(0, 1e300), "what a device sends is cut to +-clip; 0 for no bound"},
		{"train_loss", "", oneOf("exact", "pairs"), "training loss of a round: exact, or of pairs, the mean of the losses on either side, which costs no forward pass of its own"},
		{"estimator", "", oneOf("two-point", OneSided), "which losses make a device's scalar: two-point is f_i(theta + gamma Phi) - f_i(theta - gamma Phi), 2P forward passes a round; one-sided is f_i(theta + gamma Phi) - f_i(theta), P+1 passes, and half of it in the mean"},
		{"estimate", "", oneOf("sum", Gradient), "units of g_k: sum is the paper's, 2 gamma_k times the sum of the devices' gradients; gradient divides it by 2 gamma_k N, with estimator = \"one-sided\" by gamma_k N, so that eta_k is a step in units of the gradient of the mean loss"},
		{"step", "", oneOf("plain", FZOO), "plain is eta_k/P sum_p M_p Phi_p; fzoo divides that by the standard deviation of the M_p of the round (FZOO, ICLR 2026), and makes none where they are equal"},
		{"momentum", "", numbers(0, 0.999), "beta: a step is eta_k sum_j beta^j g_(k-j), over the last W rounds, the fewest with beta^W of 1 % or less (44 for 0.9), whose scalars are kept and directions drawn again; 0 for none"},
		{"step_law", "", oneOf("power", Theorem2, Constant, Cosine), "eta_k and gamma_k: power is x0 (1+k)^-p, theorem2 is x0 K^(-1/4), constant is x0; cosine is constant but for eta_k, which falls from eta0 in round 1 to near 0 in round K by half a cosine"},
		{"eta0", "", above0(), "first step eta_0"},
		{"eta_power", "", numbers(0, 10), "p of eta_k"},
		{"gamma0", "", above0(), "first half distance gamma_0 of the two losses"},
		{"gamma_power", "", numbers(0, 10), "p of gamma_k"},
		{"warmup_rounds", "rounds", whole(0, maxRounds), "in so many first rounds eta_k is k/warmup_rounds of what step_law says; 0 for none"},
		{"local_steps", "steps", whole(1, 100_000), "steps that each device makes with its own model in a round of aggregator = \"fedavg\", each on a batch of its own, of 2 N eta_k gamma_k times the gradient"},
		{"evaluate_every_rounds", "rounds", whole(1, maxRounds), "rounds from one test to the next"},
		{"checkpoint_every_rounds", "rounds", whole(1, maxRounds), "rounds from one checkpoint to the next"},
		{"end_after_lost_rounds", "rounds", whole(0, maxRounds), "rounds in a row of which none is read that end a run, with exit status 3 and what the receiver saw; 0 for never. By chance 50 are lost once in 10^15 where every second round is"},
		{"end_after_plateau_evaluations", "evaluations", whole(0, maxRounds), "evaluations in a row without a validation loss below the least before that end a run; 0 for never. For task.validation_share above 0"},
	}
}

func devicesRules() []rule {
	offset, width := carrierOffset(), linewidth()
	gain, phase, dc, bits := numbers(-20, 20), numbers(-1, 1), numbers(-0.5, 0.5), converter()
	all := bound{name: "devices.count", of: func(c *Config) float64 { return float64(c.Devices.Count) }}
	each := func(what string) string { return what + " of each device, in place of the common one" }
	return []rule{
		{"count", "devices", whole(1, maxDevices), "N, the edge devices"},
		{"minimum", "devices", orZero(within(at(1), all), "all"), "how many devices must take part in a round: over hosts (ringwave serve) so many must be there and answer, and devices take part in no round of fewer; where the receiver looks for the lattice (the blind regime) so many must have an integer gain H_i other than 0. In one process all devices are there, and elsewhere than in the blind regime a gain of 0 may be the channel's own, and is counted only"},
		{"disagreement", "", oneOf("warn", "refuse"), "what is done about a device whose gains are not what is known of them; refuse makes the attempt void. Where |mu| > 4 sigma such a gain has the sign that mu has not; elsewhere its running mean has left the interval of mu. For link.kind = \"waveform\""},
		{"carrier_offset_hz", "Hz", offset, "simulated transmitters: error of the carrier against the receiver's"},
		{"carrier_offset_per_device_hz", "Hz", perDevice(offset), each("carrier offset")},
		{"linewidth_hz", "Hz", width, "simulated transmitters: full width of the spectral line at half maximum; the phase is a Wiener process of variance 2 pi linewidth t"},
		{"linewidth_per_device_hz", "Hz", perDevice(width), each("linewidth")},
		{"iq_gain_db", "dB", gain, "simulated transmitters: mismatch of the quadrature branch's gain against the in-phase one"},
		{"iq_gain_per_device_db", "dB", perDevice(gain), each("gain mismatch")},
		{"iq_phase_rad", "rad", phase, "simulated transmitters: mismatch of the quadrature branch's phase"},
		{"iq_phase_per_device_rad", "rad", perDevice(phase), each("phase mismatch")},
		{"dc_offset", "full scale", dc, "simulated transmitters: offset of both branches"},
		{"dc_offset_per_device", "full scale", perDevice(dc), each("offset")},
		{"converter_bits", "bits", bits, "simulated transmitters: resolution of each branch of the converter, whose largest code the largest symbol takes"},
		{"converter_bits_per_device", "bits", perDevice(bits), each("resolution")},
		{"sample_clock_ppm", "ppm", ppm(), "simulated transmitters: error of the sample clock; with one above 0 samples come faster. It adds up from the first sample of a transmission on"},
		{"sample_clock_per_device_ppm", "ppm", perDevice(ppm()), each("error of the sample clock")},
		{"clock_jitter_samples", "samples", numbers(0, 1), "simulated transmitters: deviation of each sample's instant"},
		{"filter_hz", "Hz", corner(), "simulated transmitters: passband, one-sided, of the board's low-pass filter, Butterworth of third order, which is 3 dB down there"},
		{"amplifier_saturation", "full drive", orZero(numbers(0.1, 100), "a linear amplifier"), "simulated transmitters: amplitude at which the amplifier saturates, by Rapp's model"},
		{"amplifier_smoothness", "", numbers(0.5, 20), "simulated transmitters: p of Rapp's model; the larger, the sharper"},
		{"amplifier_am_pm_rad", "rad", numbers(-1, 1), "simulated transmitters: by how much the amplifier turns the phase at full drive; less in proportion to the power"},
		{"preset", "", oneOf("", PresetPluto), "simulated transmitters: for what is 0 above, figures of a kind of board. pluto: 12 bits, image and carrier leakage 50 dB below full drive, and phase noise of 0.37 degrees rms within a loop of 100 kHz, typical of the AD9361's data sheet at 2.4 GHz. They are not those that arXiv 2606.18085 measured, which were not to be had"},
	}
}

func encryptionRules() []rule {
	power := limit{text: "that is a power of two from 1024 to 16384", check: func(_ *Config, x float64) bool {
		return x >= 1024 && x <= 16384 && math.Log2(x) == math.Trunc(math.Log2(x))
	}}
	own := "the set's own"
	return []rule{
		{"parameter_set", "", text(1, 100), "the parameter set: \"ringwave sets\" lists them"},
		{"form", "", oneOf("set", "whole", "short"), "what is sent of c0 and D: all coefficients, or those that carry the message, and witnesses; set is the set's own"},
		{"randomness", "", oneOf("seed", "system"), "where keys come from: the seed, by which a run can be repeated and nothing is protected, or the operating system"},
		{"delta_max", "", above0(), "largest |Delta f/mu|: beyond it messages are clipped, and counted"},
		{"attempts_per_round", "attempts", whole(1, 1000), "most attempts before a round is skipped; sending its decryption shares again counts as one"},
		{"key_epoch_rounds", "rounds", whole(0, maxRounds), "rounds that a key serves; 0 for all"},
		{"n", "coefficients", orZero(power, own), "n, the degree of the ring, in place of the set's"},
		{"modulus_bits", "bits", list(4, whole(20, 57)), "bits of the modulus' primes, in place of the set's; empty for the set's own"},
		{"log2_lambda", "bits", orZero(whole(1, 96), own), "log2 of Lambda, the scale of messages, in place of the set's"},
		{"log2_flood_std", "bits", orZero(numbers(16, 96), own), "log2 of the deviation of e*, the flooding of shares, in place of the set's"},
	}
}

func (c *Config) linkRules() []rule {
	return []rule{
		{"kind", "", oneOf(append([]string{"ring", "waveform"}, c.names().Links...)...), "how transmissions are superposed: as ring elements, exact, or as samples"},
		{"noise_std", "coefficients", numbers(0, 1<<52), "sigma_w, the ring's noise in units of one coefficient; 0 for kind = \"waveform\""},
		{"bandwidth_hz", "Hz", above0(), "bandwidth for the transmission time that plan prints, and of the receiver's noise for channel.model = \"thz-los\""},
	}
}

// waveformRules are those of link.kind = "waveform".
func waveformRules() []rule {
	odd := limit{text: "that is odd, from 3 to 15", check: func(_ *Config, x float64) bool { return x >= 3 && x <= 15 && math.Mod(x, 2) == 1 }}
	return []rule{
		{"base", "", odd, "B of the balanced digits, which have mean zero as B is odd"},
		{"group_size", "devices", whole(0, maxDevices), "G, the devices that share a time slot; 0 for all"},
		{"pulse", "", oneOf("flat-top", "root-raised-cosine"), "shape of a symbol; flat-top tolerates delays between devices"},
		{"samples_per_symbol", "samples", whole(2, 64), "samples a symbol"},
		{"edge_samples", "samples", numbers(0, 32), "length of an edge of pulse = \"flat-top\""},
		{"tolerance_samples", "samples", numbers(0, 32), "delay that pulse = \"flat-top\" tolerates"},
		{"roll_off", "", numbers(0.01, 1), "roll-off of pulse = \"root-raised-cosine\""},
		{"span_symbols", "symbols", whole(4, 64), "length of pulse = \"root-raised-cosine\""},
		{"preamble_symbols", "symbols", whole(31, 4095), "length of a frame's preamble"},
		{"block_symbols", "symbols", whole(64, 1<<20), "symbols that share a linear check"},
		{"sample_rate_hz", "Hz", numbers(1, 1e9), "samples a second, over radios, too"},
		{"frame_repeats", "", whole(0, 255), "how often a frame that fails is sent again, and combined, before the attempt fails"},
		{"max_alpha", "", numbers(1, 1e4), "finest lattice scale that the receiver looks for"},
		{"snr_db", "dB", numbers(-20, 200), "SNR of a device of gain 1, a symbol; also for aggregator = \"heairfed\" and \"airhe\". With channel.model = \"thz-los\" a waveform takes it from the link budget of channel.distance_m, over the bandwidth of a symbol in place of link.bandwidth_hz, and any value but the default is refused"},
		{"delay_spread_samples", "samples", numbers(0, 64), "range of the devices' delays"},
		{"phase_spread_rad", "rad", numbers(0, math.Pi), "range of the devices' static phases"},
		{"record", "", oneOf("none", "ci8", "ci16_le", "cf32_le"), "SigMF datatype in which the receiver's samples are kept; an integer one is the receiver's converter, too"},
		{"record_full_scale", "gain", numbers(0, 1e6), "amplitude up to which a recording does not clip, that of a device of gain 1 being 1; 0 for what the channel's moments ask for"},
		{"regime", "", oneOf("auto", "emulated", "mean-aligned", "blind"), "how gains come to lie on a lattice: the channel's do (emulated), devices trim gain and phase by the long-term mean (mean-aligned), the receiver looks for the lattice (blind), or auto: emulated for channel.gains = \"lattice\", blind for \"continuous\""},
		{"real_time", "", limit{}, "every transmission lasts as long as its samples would"},
		{"receiver_converter_bits", "bits", converter(), "simulated receiver: resolution of each branch"},
		{"receiver_full_scale", "gain", numbers(0, 1e6), "simulated receiver: amplitude at which it clips, that of a device of gain 1 being 1; 0 for what the channel's moments ask for"},
		{"receiver_iq_gain_db", "dB", numbers(-20, 20), "simulated receiver: mismatch of the quadrature branch's gain"},
		{"receiver_iq_phase_rad", "rad", numbers(-1, 1), "simulated receiver: mismatch of the quadrature branch's phase"},
		{"receiver_dc_offset", "full scale", numbers(-0.5, 0.5), "simulated receiver: offset of both branches"},
		{"receiver_carrier_offset_hz", "Hz", carrierOffset(), "simulated receiver: error of its carrier against one that the devices share; signals turn as much the other way"},
		{"receiver_linewidth_hz", "Hz", linewidth(), "simulated receiver: full width of its carrier's spectral line at half maximum"},
		{"receiver_sample_clock_ppm", "ppm", ppm(), "simulated receiver: error of the sample clock; with one above 0 samples come faster. It adds up from the first sample of a transmission on"},
		{"receiver_filter_hz", "Hz", corner(), "simulated receiver: passband, one-sided, of the low-pass filter, Butterworth of third order, which is 3 dB down there"},
		{"receiver_dc_block_hz", "Hz", corner(), "simulated receiver: corner of a high-pass filter of first order, y[n] = a (y[n-1] + x[n] - x[n-1]) with a = exp(-2 pi corner/rate), at rest as an attempt begins"},
		{"receiver_gain_control_hz", "Hz", corner(), "simulated receiver: bandwidth of an automatic gain control, which holds the mean power at 12 dB below full scale, by 20 dB at most, and has gain 1 as an attempt begins"},
		{"burst_every_samples", "samples", whole(0, 1_000_000_000), "simulated receiver: samples from the beginning of a burst of noise at the antenna to the next one's, the first of a transmission anywhere within; 0 for no bursts"},
		{"burst_samples", "samples", within(at(0), bound{name: "link.burst_every_samples", of: func(c *Config) float64 { return float64(c.Link.BurstEverySamples) }}), "simulated receiver: length of a burst"},
		{"burst_db", "dB", numbers(-100, 100), "simulated receiver: power of a burst, over that of a device of gain 1"},
		{"tone_hz", "Hz", carrierOffset(), "simulated receiver: frequency of an interfering tone at the antenna; 0 for none"},
		{"tone_db", "dB", numbers(-100, 100), "simulated receiver: power of the tone, over that of a device of gain 1"},
	}
}

// carrierOffset is what a simulated carrier may be off.
func carrierOffset() limit {
	half := bound{name: "link.sample_rate_hz/2", of: func(c *Config) float64 { return c.Link.SampleRateHz / 2 }}
	return within(bound{name: "-" + half.name, of: func(c *Config) float64 { return -half.of(c) }}, half)
}

// linewidth is what a simulated carrier's spectral line may be wide.
func linewidth() limit {
	return within(at(0), bound{name: "link.sample_rate_hz/20", of: func(c *Config) float64 { return c.Link.SampleRateHz / 20 }})
}

// ppm is what a simulated sample clock may be off.
func ppm() limit { return numbers(-200, 200) }

// corner is that of a simulated filter, or 0 for none.
func corner() limit {
	return within(at(0), bound{name: "0.49 link.sample_rate_hz", of: func(c *Config) float64 { return 0.49 * c.Link.SampleRateHz }})
}

func channelRules() []rule {
	mean := limit{text: "from -1000 to 1000 and not 0", check: func(_ *Config, x float64) bool { return math.Abs(x) <= 1e3 && x != 0 }}
	std := numbers(0, 1e3)
	return []rule{
		{"model", "", oneOf("gaussian", "rician", "thz-los"), "law of fading; thz-los is a link budget, of which mean, std and a waveform's SNR follow"},
		{"mean", "gain", mean, "mu of every device (Eq. 2 of the paper)"},
		{"std", "gain", std, "sigma of every device"},
		{"k_factor", "", numbers(0, 1e6), "direct power against all scattered power, for model = \"rician\" and \"thz-los\""},
		{"mean_per_device", "gain", perDevice(mean), "mu of each device, in place of mean"},
		{"std_per_device", "gain", perDevice(std), "sigma of each device, in place of std"},
		{"gains", "", oneOf("lattice", "continuous"), "whether gains lie on a lattice"},
		{"gain_lattice_bits", "bits", whole(0, 24), "f: the gains of gains = \"lattice\" are multiples of 2^-f, and alpha = 2^f"},
		{"analog_noise_std", "", numbers(0, 1e6), "sigma_n, the receiver's noise, for aggregator = \"none\" and \"ezofl-one-point\""},
		{"pilot_std", "gain", numbers(0, 1e3), "sigma_pilot, the deviation of the estimate of a gain, for aggregator = \"zf\", \"mmse\", \"airhe\" and, of a complex gain, \"heairfed\""},
		{"antennas", "", whole(1, 1024), "the server's antennas, for aggregator = \"heairfed\""},
		{"antenna_fading", "", oneOf("los", "rayleigh"), "how antennas hear a device, for aggregator = \"heairfed\""},
		{"drift", "", oneOf("none", "after-key", "within-ciphertext", "after-ciphertext"), "where in a round gains change, against the paper's assumption"},
		{"drift_std", "gain", numbers(0, 1e3), "deviation of the change"},
		{"drift_probability", "", numbers(0, 1), "probability of the change, a round"},
		{"fresh_block_on_retry", "", limit{}, "an attempt after the first meets fresh gains"},
		{"echo_delays_samples", "samples", list(16, numbers(0, 1024)), "simulated bench: how much later than its signal each echo of a device arrives, fractions included"},
		{"echo_gains_db", "dB", list(16, numbers(-200, 20)), "simulated bench: gain of each echo against the signal; as many as channel.echo_delays_samples"},
		{"echo_phases_rad", "rad", list(16, numbers(-2*math.Pi, 2*math.Pi)), "simulated bench: phase of each echo against the signal; as many as channel.echo_delays_samples, or none for 0"},
		{"echoes", "", oneOf(EchoesCommon, EchoesPerDevice), "simulated bench: whether all devices have the same echoes, or each draws phases of its own, which are added"},
		{"echo_k_factor", "", numbers(0, 1e6), "simulated bench: power of an echo's constant part against that of a part that is drawn with the gains; 0 for echoes that stay"},
		{"doppler_hz", "Hz", within(at(0), bound{name: "link.sample_rate_hz/1000", of: func(c *Config) float64 { return c.Link.SampleRateHz / 1000 }}), "simulated bench: largest Doppler shift, by which gains fade within a round with Clarke's spectrum, of autocorrelation J0(2 pi doppler t), and the law of channel.model; 0 for gains that stay for a round. For channel.gains = \"continuous\""},
	}
}

// terahertzRules are those of channel.model = "thz-los", as phy/channel has them.
func terahertzRules() []rule {
	distance, angle, gain := numbersAbove(0, 1e6), numbers(0, 90), numbers(-20, 80)
	return []rule{
		{"carrier_hz", "Hz", numbers(1e9, 1e12), "thz-los: carrier"},
		{"distance_m", "m", distance, "thz-los: distance of every device, at which an aligned link has gain 1"},
		{"distance_per_device_m", "m", perDevice(distance), "thz-los: distance of each device"},
		{"transmit_gain_dbi", "dBi", gain, "thz-los: gain of a device's antenna"},
		{"receive_gain_dbi", "dBi", gain, "thz-los: gain of the server's antenna"},
		{"transmit_power_dbm", "dBm", numbers(-100, 100), "thz-los: power of a device"},
		{"noise_figure_db", "dB", numbers(0, 60), "thz-los: noise figure of the receiver"},
		{"misalignment_deg", "degrees", angle, "thz-los: how far each beam points past the other antenna"},
		{"misalignment_per_device_deg", "degrees", perDevice(angle), "thz-los: misalignment of each device"},
		{"speed_mps", "m/s", numbers(0, 1e4), "thz-los: speed, which gives the coherence time; channel.doppler_hz = speed carrier_hz/c simulates it"},
		{"temperature_k", "K", numbers(150, 400), "thz-los: temperature of the air"},
		{"pressure_hpa", "hPa", numbersAbove(0, 2000), "thz-los: pressure of dry air"},
		{"vapour_density_g_m3", "g/m3", numbers(0, 500), "thz-los: density of water vapour"},
	}
}

func radioRules() []rule {
	gains := limit{text: `"stage=dB", such as "lna=16", each stage once and from -200 to 200 dB`, checkText: isGain}
	return []rule{
		{"transmit", "", limit{}, "true: you let radios transmit"},
		{"transmitters", "", text(0, math.MaxInt), "URIs of the devices' radios, in their order; none for the simulated bench"},
		{"receiver", "", text(0, math.MaxInt), "URI of the server's radio"},
		{"frequency_hz", "Hz", orZero(above0(), "none yet"), "carrier"},
		{"band_hz", "Hz", orZero(above0(), "none yet"), "from where to where signals may lie, as you confirm"},
		{"most_gain_db", "dB", orNoGain(numbers(-maxGain, maxGain)), "the most that the gains of a transmitter may add up to, on its own scale"},
		{"bias_tee", "", limit{}, "true: you let URIs with bias=on put power out at antennas' ports, which destroys what is not made for it"},
		{"transmit_gains_db", "dB", gains, "gains of transmitters as \"stage=dB\", by the names of the radios' stages; what is not there stays as the URI has it"},
		{"receive_gains_db", "dB", gains, "gains of the receiver"},
		{"level", "full scale", numbers(0, 100), "amplitude at the receiver that counts as gain 1 in the units of [channel]; 0 for an equal share of full scale for each device"},
		{"clock", "", oneOf("external", "shared", "internal"), "reference of the boards: external is asked of every board, shared takes your word for it"},
		{"trigger", "", oneOf("wired", "none", "lock-step", "sounded", "pps"), "how boards come to one index: wired, by trigger wires; pps, by clocks that one pulse sets, and a time at which all start; sounded, each begins by itself, as on other hosts, and is found by soundings of [calibration]; lock-step, on an emulated bench whose time waits"},
		{"lead_seconds", "s", numbers(0, 10), "how far ahead of what boards were fed a frame is put"},
		{"search_seconds", "s", numbers(0, 10), "by how much the receiver's index may differ from the transmitters'; 0 for not at all"},
		{"secrets_from_seed", "", limit{}, "secrets may come from the seed although radios take part: they protect nothing then"},
	}
}

func calibrationRules() []rule {
	sessions := bound{name: "100 or calibration.blocks/4", of: func(c *Config) float64 { return float64(min(100, max(1, c.Calibration.Blocks/4))) }}
	guard := bound{name: "calibration.guard_samples", of: func(c *Config) float64 { return float64(c.Calibration.GuardSamples) }}
	return []rule{
		{"file", "", text(0, math.MaxInt), "a calibration that a run goes by: mu_i and Omega_i for scaling, phase, gain and delay for what devices trim; empty: the figures of [channel]"},
		{"assumed_mean", "gain", perDevice(numbers(1e-6, 1e6)), "what a run takes for mu_i in place of what is known of them, to see what a wrong figure does"},
		{"quick_blocks", "blocks", whole(0, 10_000), "soundings of each device by which a run finds phases and delays anew in each session of streams, where a calibration's do not last; 0 refuses to run there"},
		{"blocks", "blocks", whole(16, 1_000_000), "calibrate: realisations of the channel that are sounded"},
		{"looks", "looks", whole(1, 4), "calibrate: how often each device is sounded within a block"},
		{"sessions", "sessions", within(at(1), sessions), "calibrate: how often streams begin anew, which shows whether phases last"},
		{"sequence", "", oneOf("zadoff-chu", "m-sequence"), "what is sent"},
		{"length_chips", "chips", whole(31, 4095), "period of the sequence"},
		{"root", "", whole(0, 4094), "root of sequence = \"zadoff-chu\"; 0: chosen"},
		{"samples_per_chip", "samples", whole(2, 16), "samples a chip"},
		{"repetitions", "periods", whole(2, 1024), "periods that are estimated from"},
		{"guard_samples", "samples", whole(1, 1_000_000), "silence around a burst"},
		{"delay_search_samples", "samples", within(at(0), guard), "up to where a burst is searched for"},
		{"offset_search_hz", "Hz", numbers(0, 1e6), "up to where a burst's carrier is searched for, below half of link.sample_rate_hz"},
		{"block_seconds", "s", numbers(0, 3600), "time from a block to the next; 0: as fast as can be"},
		{"round_seconds", "s", numbers(0, 60), "time over which a block's looks are spread, which should be a round's; 0: what a round of this configuration takes over its radios, frames and leads, and in memory as fast as can be"},
		{"valid_hours", "h", numbers(1e-3, 1e6), "how long what was measured is taken for true"},
	}
}
