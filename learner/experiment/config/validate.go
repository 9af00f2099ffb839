package config

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// The largest sizes that make sense on one machine: they keep a slip of the pen
// from asking for terabytes.
const (
	maxRounds  = 10_000_000
	maxDevices = 10_000
	maxSamples = 10_000_000
	maxPacked  = 1 << 16
)

// validate gives the first key whose value is out of its range.
func (c *Config) validate() error {
	for _, check := range []func() error{
		c.checkExperiment, c.checkTask, c.checkOptimizer, c.checkDevices,
		c.checkEncryption, c.checkLink, c.checkChannel, c.checkRadio, c.checkCalibration,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// first gives the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: allowed are %s", key, value, strings.Join(allowed, ", "))
}

func between(key string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %d: allowed are %d to %d", key, value, low, high)
}

func inRange(key string, value, low, high float64) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%s is %v: allowed are %v to %v", key, value, low, high)
}

func positive(key string, value float64) error {
	if value > 0 && !math.IsInf(value, 0) {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be a positive number", key, value)
}

func (c *Config) checkExperiment() error {
	e := c.Experiment
	if e.Name == "" || len(e.Name) > 100 {
		return fmt.Errorf("experiment.name is %q: it must have 1 to 100 characters", e.Name)
	}
	if e.Seed < 0 {
		return fmt.Errorf("experiment.seed is %d: allowed are 0 to %d", e.Seed, int64(math.MaxInt64))
	}
	return first(
		oneOf("experiment.aggregator", e.Aggregator, c.aggregators()...),
		c.checkUnchecked(),
		c.checkOneKey(),
	)
}

// checkOneKey refuses what the systems with one key for all devices do not have.
func (c *Config) checkOneKey() error {
	a := c.System().Name
	if !c.System().SharesKey {
		return nil
	}
	if c.Encryption.Randomness != "seed" {
		return fmt.Errorf("encryption.randomness is %q: experiment.aggregator = %q draws all from the seed, and allowed is seed", c.Encryption.Randomness, a)
	}
	if c.Link.Kind == "waveform" {
		return fmt.Errorf("experiment.aggregator is %s: it has a link of its own, and link.kind must be \"ring\"", a)
	}
	return nil
}

// checkUnchecked refuses what the systems that run without checks do not have.
func (c *Config) checkUnchecked() error {
	system, a := c.System(), c.Experiment.Aggregator
	if !system.Unchecked {
		return nil
	}
	if c.Link.Kind == "waveform" {
		return fmt.Errorf("experiment.aggregator is %s: it runs on link.kind = \"ring\" only", a)
	}
	if c.Channel.Drift != "none" {
		return fmt.Errorf("channel.drift is %s: experiment.aggregator = %q is predicted for gains that stay for a round, and allowed is none", c.Channel.Drift, a)
	}
	if system.StaleKey && c.Encryption.KeyEpochRounds != 0 {
		return fmt.Errorf("encryption.key_epoch_rounds is %d: with experiment.aggregator = \"stale-key\", whose keys are aggregated once, it must be 0", c.Encryption.KeyEpochRounds)
	}
	if system.Equalisation != "" && c.Channel.Gains == "continuous" {
		return fmt.Errorf("channel.gains is continuous: experiment.aggregator = %q takes its gains h_i from the lattice, as xmk-ckks does, and its effective gains are continuous by themselves", a)
	}
	return nil
}

func (c *Config) checkTask() error {
	t := c.Task
	sets := []string{"mnist", "strokes", "cifar10"} // and the user's own files
	err := first(
		oneOf("task.dataset", t.Dataset, append(append(slices.Clone(sets), "idx"), c.names().DataSets...)...),
		oneOf("task.fallback", t.Fallback, append([]string{""}, sets...)...),
		oneOf("task.model", t.Model, append([]string{"logistic", "lenet"}, c.names().Models...)...),
		oneOf("task.loss", t.Loss, "mean", "sum"),
		oneOf("task.partition", t.Partition, "iid", "dirichlet"),
		inRange("task.dirichlet_alpha", t.DirichletAlpha, 1e-3, 1e6),
		between("task.strokes_train", t.StrokesTrain, 4, maxSamples),
		between("task.strokes_test", t.StrokesTest, 4, maxSamples),
		between("task.classes", t.Classes[0], 0, 255),
		between("task.classes", t.Classes[1], 0, 255),
	)
	if err != nil {
		return err
	}
	if t.Classes[0] == t.Classes[1] {
		return fmt.Errorf("task.classes is %v: the two classes must differ", t.Classes)
	}
	if (t.Dataset == "strokes" || t.Fallback == "strokes") && max(t.Classes[0], t.Classes[1]) > 3 {
		return fmt.Errorf("task.classes is %v: the strokes have the classes 0 to 3", t.Classes)
	}
	if err := c.checkModel(); err != nil {
		return err
	}
	files := map[string]string{
		"train_images": t.TrainImages, "train_labels": t.TrainLabels,
		"test_images": t.TestImages, "test_labels": t.TestLabels,
	}
	for _, key := range []string{"train_images", "train_labels", "test_images", "test_labels"} {
		if (files[key] != "") != (t.Dataset == "idx") {
			return fmt.Errorf("task.%s is %q: the four files are given for dataset = \"idx\", and for no other", key, files[key])
		}
	}
	return nil
}

// checkModel refuses data and systems that the model or its loss do not go with.
func (c *Config) checkModel() error {
	t, a := c.Task, c.Experiment.Aggregator
	if (t.Dataset == "cifar10" || t.Fallback == "cifar10") && max(t.Classes[0], t.Classes[1]) > 9 {
		return fmt.Errorf("task.classes is %v: CIFAR-10 has the classes 0 to 9", t.Classes)
	}
	if t.Model == "lenet" && (t.Dataset != "cifar10" || t.Fallback != "" && t.Fallback != "cifar10") {
		return fmt.Errorf("task.model is lenet with task.dataset = %q and task.fallback = %q: lenet takes images of 3 x 32 x 32, which only cifar10 has", t.Dataset, t.Fallback)
	}
	if !c.System().Gradients {
		return nil
	}
	if t.Model == "lenet" {
		return fmt.Errorf("task.model is lenet: experiment.aggregator = %q sends gradients, and lenet has losses only", a)
	}
	if o := c.Optimizer; o.PackedDirections != 1 || o.TrainLoss != "exact" || o.Clip != 0 {
		return fmt.Errorf("optimizer.packed_directions is %d, optimizer.train_loss is %s and optimizer.clip is %v: experiment.aggregator = %q sends gradients, which have no directions, and allowed are 1, exact and 0", o.PackedDirections, o.TrainLoss, o.Clip, a)
	}
	if t.Loss == "sum" {
		return fmt.Errorf("task.loss is sum: experiment.aggregator = %q sends the gradients of means", a)
	}
	return nil
}

func (c *Config) checkOptimizer() error {
	o := c.Optimizer
	return first(
		between("optimizer.rounds", o.Rounds, 1, maxRounds),
		between("optimizer.batch_size", o.BatchSize, 1, maxSamples),
		oneOf("optimizer.directions", o.Directions, "rademacher", "gaussian", "sphere"),
		between("optimizer.packed_directions", o.PackedDirections, 1, maxPacked),
		inRange("optimizer.clip", o.Clip, 0, 1e300),
		oneOf("optimizer.train_loss", o.TrainLoss, "exact", "pairs"),
		oneOf("optimizer.step_law", o.StepLaw, "power", "theorem2"),
		positive("optimizer.eta0", o.Eta0),
		positive("optimizer.gamma0", o.Gamma0),
		inRange("optimizer.eta_power", o.EtaPower, 0, 10),
		inRange("optimizer.gamma_power", o.GammaPower, 0, 10),
		between("optimizer.evaluate_every_rounds", o.EvaluateEvery, 1, maxRounds),
		between("optimizer.checkpoint_every_rounds", o.CheckpointEvery, 1, maxRounds),
	)
}

func (c *Config) checkDevices() error {
	d := c.Devices
	err := first(
		between("devices.count", d.Count, 1, maxDevices),
		c.checkGains(),
		c.checkPerDevice("devices.carrier_offset_per_device_hz", len(d.CarrierOffsetPerDeviceHz)),
		c.checkPerDevice("devices.linewidth_per_device_hz", len(d.LinewidthPerDeviceHz)),
		c.checkPerDevice("devices.iq_gain_per_device_db", len(d.IQGainPerDeviceDB)),
		c.checkPerDevice("devices.iq_phase_per_device_rad", len(d.IQPhasePerDeviceRad)),
		c.checkPerDevice("devices.dc_offset_per_device", len(d.DCOffsetPerDevice)),
		c.checkPerDevice("devices.converter_bits_per_device", len(d.ConverterBitsPerDevice)),
	)
	for i := 0; i < d.Count && err == nil; i++ {
		err = c.checkTransmitter(i)
	}
	return err
}

// checkGains checks what is asked of the devices' gains, which only patterns show and
// only a receiver that looks for the lattice may choose.
func (c *Config) checkGains() error {
	d, waveform := c.Devices, c.OverWaveform()
	if blind := waveform && c.Channel.Gains == "continuous" && c.Link.Regime != "mean-aligned"; !blind && d.Minimum != 0 {
		return fmt.Errorf("devices.minimum = %d: must be 0 where the receiver does not look for the lattice (link.kind = \"waveform\" with channel.gains = \"continuous\" and link.regime = \"blind\")", d.Minimum)
	}
	if d.Minimum < 0 || d.Minimum > d.Count {
		return fmt.Errorf("devices.minimum = %d: must be from 1 to devices.count, %d, or 0 for all", d.Minimum, d.Count)
	}
	if d.Disagreement != "warn" && d.Disagreement != "refuse" {
		return fmt.Errorf("devices.disagreement = %q: must be \"warn\" or \"refuse\"", d.Disagreement)
	}
	if d.Disagreement == "refuse" && !waveform {
		return fmt.Errorf("devices.disagreement = \"refuse\": must be \"warn\" without link.kind = \"waveform\" and experiment.aggregator = \"xmk-ckks\", which shows the gains")
	}
	return nil
}

// checkTransmitter checks the hardware of device i.
func (c *Config) checkTransmitter(i int) error {
	d := c.Devices
	key := func(common, each string, n int) string {
		if n > 0 {
			return fmt.Sprintf("devices.%s of device %d", each, i+1)
		}
		return "devices." + common
	}
	t := c.Transmitter(i)
	half := c.Link.SampleRateHz / 2
	return first(
		inRange(key("carrier_offset_hz", "carrier_offset_per_device_hz", len(d.CarrierOffsetPerDeviceHz)), t.CarrierOffsetHz, -half, half),
		inRange(key("linewidth_hz", "linewidth_per_device_hz", len(d.LinewidthPerDeviceHz)), t.LinewidthHz, 0, half/10),
		inRange(key("iq_gain_db", "iq_gain_per_device_db", len(d.IQGainPerDeviceDB)), t.IQGainDB, -20, 20),
		inRange(key("iq_phase_rad", "iq_phase_per_device_rad", len(d.IQPhasePerDeviceRad)), t.IQPhaseRad, -1, 1),
		inRange(key("dc_offset", "dc_offset_per_device", len(d.DCOffsetPerDevice)), t.DCOffset, -0.5, 0.5),
		converterBits(key("converter_bits", "converter_bits_per_device", len(d.ConverterBitsPerDevice)), t.ConverterBits),
	)
}

// converterBits checks a resolution: with one bit there is no code for 0, which
// is sent between frames.
func converterBits(key string, bits int) error {
	if bits == 0 || bits >= 2 && bits <= 24 {
		return nil
	}
	return fmt.Errorf("%s is %d: allowed are 2 to 24, or 0 for no converter", key, bits)
}

func (c *Config) checkEncryption() error {
	e := c.Encryption
	err := first(
		oneOf("encryption.form", e.Form, "set", "whole", "short"),
		oneOf("encryption.randomness", e.Randomness, "seed", "system"),
		positive("encryption.delta_max", e.DeltaMax),
		between("encryption.attempts_per_round", e.AttemptsPerRound, 1, 1000),
		between("encryption.key_epoch_rounds", e.KeyEpochRounds, 0, maxRounds),
	)
	if err != nil {
		return err
	}
	if e.N != 0 && (e.N < 1024 || e.N > 8192 || bits.OnesCount(uint(e.N)) != 1) {
		return fmt.Errorf("encryption.n is %d: it must be a power of two from 1024 to 8192, or 0 for the set's own", e.N)
	}
	if len(e.ModulusBits) > 4 {
		return fmt.Errorf("encryption.modulus_bits has %d primes: allowed are 1 to 4", len(e.ModulusBits))
	}
	for _, b := range e.ModulusBits {
		if err := between("encryption.modulus_bits", b, 20, 57); err != nil {
			return err
		}
	}
	if e.Log2Lambda != 0 {
		if err := between("encryption.log2_lambda", e.Log2Lambda, 1, 96); err != nil {
			return err
		}
	}
	if e.Log2FloodStd != 0 {
		return inRange("encryption.log2_flood_std", e.Log2FloodStd, 16, 96)
	}
	return nil
}

func (c *Config) checkLink() error {
	l := c.Link
	err := first(
		oneOf("link.kind", l.Kind, append([]string{"ring", "waveform"}, c.names().Links...)...),
		inRange("link.noise_std", l.NoiseStd, 0, 1<<52),
		positive("link.bandwidth_hz", l.BandwidthHz),
		between("link.base", l.Base, 3, 15),
		between("link.group_size", l.GroupSize, 0, maxDevices),
		oneOf("link.pulse", l.Pulse, "flat-top", "root-raised-cosine"),
		between("link.samples_per_symbol", l.SamplesPerSymbol, 2, 64),
		inRange("link.edge_samples", l.EdgeSamples, 0, 32),
		inRange("link.tolerance_samples", l.ToleranceSamples, 0, 32),
		inRange("link.roll_off", l.RollOff, 0.01, 1),
		between("link.span_symbols", l.SpanSymbols, 4, 64),
		between("link.preamble_symbols", l.PreambleSymbols, 31, 4095),
		between("link.block_symbols", l.BlockSymbols, 64, 1<<20),
		inRange("link.sample_rate_hz", l.SampleRateHz, 1, 1e9),
		between("link.frame_repeats", l.FrameRepeats, 0, 255),
		inRange("link.max_alpha", l.MaxAlpha, 1, 1e4),
		inRange("link.snr_db", l.SNRdB, -20, 200),
		inRange("link.delay_spread_samples", l.DelaySpreadSamples, 0, 64),
		inRange("link.phase_spread_rad", l.PhaseSpreadRad, 0, math.Pi),
		oneOf("link.record", l.Record, "none", "ci8", "ci16_le", "cf32_le"),
		inRange("link.record_full_scale", l.RecordFullScale, 0, 1e6),
		oneOf("link.regime", l.Regime, "auto", "emulated", "mean-aligned", "blind"),
		converterBits("link.receiver_converter_bits", l.ReceiverConverterBits),
		inRange("link.receiver_full_scale", l.ReceiverFullScale, 0, 1e6),
		inRange("link.receiver_iq_gain_db", l.ReceiverIQGainDB, -20, 20),
		inRange("link.receiver_iq_phase_rad", l.ReceiverIQPhaseRad, -1, 1),
		inRange("link.receiver_dc_offset", l.ReceiverDCOffset, -0.5, 0.5),
	)
	if err == nil && l.Base%2 == 0 {
		return fmt.Errorf("link.base is %d: it must be odd, so that digits have mean zero", l.Base)
	}
	if err == nil && l.Kind == "waveform" && l.NoiseStd != 0 {
		return fmt.Errorf("link.noise_std is %v: a waveform link has the noise of link.snr_db, and no ring noise", l.NoiseStd)
	}
	if err == nil && l.Record != "none" && !c.OverWaveform() {
		return fmt.Errorf("link.record is %s: only link.kind = \"waveform\" with experiment.aggregator = \"xmk-ckks\" has samples to record", l.Record)
	}
	return first(err, c.checkRegime(), c.checkConverters())
}

// checkRegime refuses a regime that the gains do not go with.
func (c *Config) checkRegime() error {
	r, gains := c.Link.Regime, c.Channel.Gains
	if r == "auto" || c.Link.Kind != "waveform" || (r == "emulated") == (gains == "lattice") {
		return nil
	}
	needs := "continuous"
	if r == "emulated" {
		needs = "lattice"
	}
	return fmt.Errorf("link.regime is %q and channel.gains %q: this regime is for channel.gains = %q", r, gains, needs)
}

// checkConverters refuses to round what the receiver's converter gives once more.
func (c *Config) checkConverters() error {
	l := c.Link
	recorded := map[string]int{"ci8": 8, "ci16_le": 16}[l.Record]
	if l.ReceiverConverterBits == 0 || recorded == 0 {
		return nil
	}
	if l.ReceiverConverterBits > recorded {
		return fmt.Errorf("link.record is %s and link.receiver_converter_bits %d: the recording would round once more; allowed are 2 to %d bits, or cf32_le", l.Record, l.ReceiverConverterBits, recorded)
	}
	if l.RecordFullScale != 0 {
		return fmt.Errorf("link.record_full_scale is %v with link.receiver_converter_bits = %d: an integer recording has the converter's full scale, link.receiver_full_scale", l.RecordFullScale, l.ReceiverConverterBits)
	}
	return nil
}

func (c *Config) checkChannel() error {
	h := c.Channel
	err := first(
		oneOf("channel.model", h.Model, "gaussian", "rician", "thz-los"),
		oneOf("channel.gains", h.Gains, "lattice", "continuous"),
		oneOf("channel.drift", h.Drift, "none", "after-key", "within-ciphertext", "after-ciphertext"),
		between("channel.gain_lattice_bits", h.GainLatticeBits, 0, 24),
		inRange("channel.analog_noise_std", h.AnalogNoiseStd, 0, 1e6),
		between("channel.antennas", h.Antennas, 1, 1024),
		oneOf("channel.antenna_fading", h.AntennaFading, "los", "rayleigh"),
		inRange("channel.pilot_std", h.PilotStd, 0, 1e3),
		inRange("channel.k_factor", h.KFactor, 0, 1e6),
		inRange("channel.drift_std", h.DriftStd, 0, 1e3),
		inRange("channel.drift_probability", h.DriftProbability, 0, 1),
		c.checkPerDevice("channel.mean_per_device", len(h.MeanPerDevice)),
		c.checkPerDevice("channel.std_per_device", len(h.StdPerDevice)),
		c.checkPerDevice("channel.distance_per_device_m", len(h.DistancePerDeviceM)),
		c.checkPerDevice("channel.misalignment_per_device_deg", len(h.MisalignmentPerDeviceDeg)),
	)
	if err != nil {
		return err
	}
	for i := range c.Devices.Count {
		mean, std := c.Mean(i), c.Std(i)
		if mean == 0 || math.Abs(mean) > 1e3 || math.IsNaN(mean) {
			return fmt.Errorf("channel.mean of device %d is %v: it must be from -1000 to 1000 and not 0 (Eq. 2 of the paper)", i+1, mean)
		}
		if h.Model == "rician" && mean < 0 {
			return fmt.Errorf("channel.mean of device %d is %v: a Rician envelope has a positive mean", i+1, mean)
		}
		if err := inRange(fmt.Sprintf("channel.std of device %d", i+1), std, 0, 1e3); err != nil {
			return err
		}
	}
	return nil
}

// checkPerDevice wants one value a device, or none.
func (c *Config) checkPerDevice(key string, values int) error {
	if values == 0 || values == c.Devices.Count {
		return nil
	}
	return fmt.Errorf("%s has %d values for %d devices: give one a device, or none", key, values, c.Devices.Count)
}

// Mean gives mu of device i, counted from 0.
func (c *Config) Mean(i int) float64 { return own(c.Channel.MeanPerDevice, i, c.Channel.Mean) }

// Std gives sigma of device i, counted from 0.
func (c *Config) Std(i int) float64 { return own(c.Channel.StdPerDevice, i, c.Channel.Std) }

// Distance gives the distance of device i in metres.
func (c *Config) Distance(i int) float64 {
	return own(c.Channel.DistancePerDeviceM, i, c.Channel.DistanceM)
}

// Misalignment gives the misalignment of device i in degrees.
func (c *Config) Misalignment(i int) float64 {
	return own(c.Channel.MisalignmentPerDeviceDeg, i, c.Channel.MisalignmentDeg)
}

// Transmitter gives the hardware of device i, counted from 0.
func (c *Config) Transmitter(i int) Transmitter {
	d := c.Devices
	return Transmitter{
		CarrierOffsetHz: own(d.CarrierOffsetPerDeviceHz, i, d.CarrierOffsetHz),
		LinewidthHz:     own(d.LinewidthPerDeviceHz, i, d.LinewidthHz),
		IQGainDB:        own(d.IQGainPerDeviceDB, i, d.IQGainDB),
		IQPhaseRad:      own(d.IQPhasePerDeviceRad, i, d.IQPhaseRad),
		DCOffset:        own(d.DCOffsetPerDevice, i, d.DCOffset),
		ConverterBits:   own(d.ConverterBitsPerDevice, i, d.ConverterBits),
	}
}

// own gives a device's own value, or the common one.
func own[T any](values []T, i int, common T) T {
	if i < len(values) {
		return values[i]
	}
	return common
}
