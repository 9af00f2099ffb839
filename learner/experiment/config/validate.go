package config

import (
	"fmt"
	"slices"
)

// The largest sizes that make sense on one machine: they keep a slip of the pen
// from asking for terabytes.
const (
	maxRounds  = 10_000_000
	maxDevices = 10_000
	maxSamples = 10_000_000
	maxPacked  = 1 << 16
)

// wrong is a value that a key may not have.
type wrong struct{ key, text string }

func (w *wrong) Error() string { return w.text }

// wrong says what the value of a key must be.
func (c *Config) wrong(key, must string, args ...any) error {
	return &wrong{key, key + " = " + show(c.value(key)) + ": must be " + fmt.Sprintf(must, args...)}
}

// validate returns the first key whose value is out of its range, or does not go with
// another's. fields are c's own, and rules are allRules.
func (c *Config) validate(fields []field, rules map[string]rule) error {
	if err := c.checkLimits(fields, rules); err != nil {
		return err
	}
	for _, check := range []func() error{
		c.checkUnchecked, c.checkOneKey, c.checkTask, c.checkMethod, c.checkGains,
		c.checkLink, c.checkChannel, c.checkFaults, c.checkRadio, c.checkCalibration,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits holds each value to the limit of its key: first those that name no other
// key, which the others go by.
func (c *Config) checkLimits(fields []field, rules map[string]rule) error {
	for _, depends := range []bool{false, true} {
		for _, f := range fields {
			if l := rules[f.name].limit; l.depends() == depends && !l.allows(c, f.value) {
				return c.wrong(f.name, "%s", c.mustBe(f.name))
			}
		}
	}
	return nil
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOneKey refuses what the systems with one key for all devices do not have.
func (c *Config) checkOneKey() error {
	a := c.System().Name
	if !c.System().SharesKey {
		return nil
	}
	if c.Encryption.Randomness != "seed" {
		return c.wrong("encryption.randomness", `"seed" with experiment.aggregator = %q, which draws all from the seed`, a)
	}
	if c.Link.Kind == "waveform" {
		return c.wrong("link.kind", `"ring" with experiment.aggregator = %q, which has a link of its own`, a)
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
		return c.wrong("link.kind", `"ring" with experiment.aggregator = %q, which runs on no other`, a)
	}
	if c.Channel.Drift != "none" {
		return c.wrong("channel.drift", `"none" with experiment.aggregator = %q, which is predicted for gains that stay for a round`, a)
	}
	if system.StaleKey && c.Encryption.KeyEpochRounds != 0 {
		return c.wrong("encryption.key_epoch_rounds", "0 with experiment.aggregator = %q, whose keys are aggregated once", a)
	}
	if system.Equalisation != "" && c.Channel.Gains == "continuous" {
		return c.wrong("channel.gains", `"lattice" with experiment.aggregator = %q, which takes its gains h_i from the lattice, as xmk-ckks does, and whose effective gains are continuous by themselves`, a)
	}
	return nil
}

func (c *Config) checkTask() error {
	t := c.Task
	if unique := slices.Compact(slices.Sorted(slices.Values(t.Classes))); len(unique) < 2 || len(unique) < len(t.Classes) {
		return c.wrong("task.classes", "two classes or more that differ")
	}
	if (t.Dataset == "strokes" || t.Fallback == "strokes") && slices.Max(t.Classes) > 3 {
		return c.wrong("task.classes", "from 0 to 3, the classes of the strokes")
	}
	if c.Optimizer.EndAfterPlateau > 0 && t.Validation == 0 {
		return c.wrong("optimizer.end_after_plateau_evaluations", "0 with task.validation_share = 0: a plateau is one of the validation loss")
	}
	if err := c.checkProcess(); err != nil {
		return err
	}
	if err := c.checkModel(); err != nil {
		return err
	}
	for _, key := range []string{"task.train_images", "task.train_labels", "task.test_images", "task.test_labels"} {
		if given, idx := c.value(key).String() != "", t.Dataset == "idx"; given && !idx {
			return c.wrong(key, `"" with task.dataset = %q: the four files are for "idx"`, t.Dataset)
		} else if idx && !given {
			return c.wrong(key, `the path of a file, with task.dataset = "idx"`)
		}
	}
	return nil
}

// checkProcess refuses what does not go with a program that learns, and such a program without
// its model.
func (c *Config) checkProcess() error {
	t := c.Task
	if t.Model != "process" {
		switch {
		case t.Dataset == "process":
			return c.wrong("task.dataset", `another with task.model = %q: "process" is what the program of task.model = "process" has`, t.Model)
		case len(t.Command) > 0:
			return c.wrong("task.command", `an empty list with task.model = %q: the program is for "process"`, t.Model)
		}
		return nil
	}
	const with = `with task.model = "process"`
	switch {
	case t.Dataset != "process" || t.Fallback != "":
		return c.wrong("task.dataset", `"process" %s, whose program has the samples, and task.fallback ""`, with)
	case len(t.Command) == 0 || t.Command[0] == "":
		return c.wrong("task.command", `a program and its arguments, such as ["python3", "learner.py"], %s`, with)
	case t.Loss != "mean":
		return c.wrong("task.loss", `"mean" %s`, with)
	case t.Partition != "iid":
		return c.wrong("task.partition", `"iid" %s, of whose samples the classes are not known`, with)
	case c.Optimizer.Directions != "philox":
		return c.wrong("optimizer.directions", `"philox" %s, whose program makes the same`, with)
	case c.System().Gradients:
		return c.wrong("task.model", "another with experiment.aggregator = %q, which sends gradients: a program has losses only", c.Experiment.Aggregator)
	}
	return nil
}

// checkModel refuses data and systems that the model or its loss do not go with.
func (c *Config) checkModel() error {
	t, a := c.Task, c.Experiment.Aggregator
	if (t.Dataset == "cifar10" || t.Fallback == "cifar10") && slices.Max(t.Classes) > 9 {
		return c.wrong("task.classes", "from 0 to 9, the classes of CIFAR-10")
	}
	if t.Model == "lenet" && (t.Dataset != "cifar10" || t.Fallback != "" && t.Fallback != "cifar10") {
		return c.wrong("task.model", `another with task.dataset = %q and task.fallback = %q: lenet takes images of 3 x 32 x 32, which only cifar10 has`, t.Dataset, t.Fallback)
	}
	if c.Optimizer.LocalSteps > 1 && a != FedAvg {
		return c.wrong("optimizer.local_steps", "1 with experiment.aggregator = %q: several are for \"fedavg\"", a)
	}
	if !c.System().Gradients {
		return nil
	}
	with := fmt.Sprintf("with experiment.aggregator = %q, which sends gradients", a)
	switch o := c.Optimizer; {
	case t.Model == "lenet":
		return c.wrong("task.model", "another %s: lenet has losses only", with)
	case o.PackedDirections != 1:
		return c.wrong("optimizer.packed_directions", "1 %s, and these have no directions", with)
	case o.TrainLoss != "exact":
		return c.wrong("optimizer.train_loss", `"exact" %s, and no pairs of losses`, with)
	case o.Clip != 0:
		return c.wrong("optimizer.clip", "0 %s, which are not clipped", with)
	case t.Loss == "sum":
		return c.wrong("task.loss", `"mean" %s of means`, with)
	}
	return nil
}

// checkGains checks what is asked of the devices' gains, which only patterns show and
// only a receiver that looks for the lattice may choose.
func (c *Config) checkGains() error {
	d, waveform := c.Devices, c.OverWaveform()
	if d.Minimum != 0 && !c.System().Encrypts {
		return c.wrong("devices.minimum", "0 with experiment.aggregator = %q, whose rounds all devices take part in", c.Experiment.Aggregator)
	}
	if d.Disagreement == "refuse" && !waveform {
		return c.wrong("devices.disagreement", `"warn" without link.kind = "waveform" and experiment.aggregator = "xmk-ckks", which shows the gains`)
	}
	return nil
}

func (c *Config) checkLink() error {
	l := c.Link
	if l.Kind == "waveform" && l.NoiseStd != 0 {
		return c.wrong("link.noise_std", `0 with link.kind = "waveform", which has the noise of link.snr_db, and no ring noise`)
	}
	if l.Record != "none" && !c.OverWaveform() {
		return c.wrong("link.record", `"none" without link.kind = "waveform" and experiment.aggregator = "xmk-ckks", which has samples to record`)
	}
	return first(c.checkRegime(), c.checkConverters())
}

// checkRegime refuses a regime that the gains do not go with.
func (c *Config) checkRegime() error {
	r, gains := c.Link.Regime, c.Channel.Gains
	if r == "auto" || c.Link.Kind != "waveform" || (r == "emulated") == (gains == "lattice") {
		return nil
	}
	if gains == "lattice" {
		return c.wrong("link.regime", `"auto" or "emulated" with channel.gains = "lattice": others are for "continuous"`)
	}
	return c.wrong("link.regime", `"auto", "mean-aligned" or "blind" with channel.gains = %q: "emulated" is for "lattice"`, gains)
}

// checkConverters refuses to round what the receiver's converter gives once more.
func (c *Config) checkConverters() error {
	l := c.Link
	recorded := map[string]int{"ci8": 8, "ci16_le": 16}[l.Record]
	if l.ReceiverConverterBits == 0 || recorded == 0 {
		return nil
	}
	if l.ReceiverConverterBits > recorded {
		return c.wrong("link.receiver_converter_bits", `from 2 to %d with link.record = %q, or link.record "cf32_le": the recording would round once more`, recorded, l.Record)
	}
	if l.RecordFullScale != 0 {
		return c.wrong("link.record_full_scale", "0 with link.receiver_converter_bits = %d: an integer recording has the converter's full scale, link.receiver_full_scale", l.ReceiverConverterBits)
	}
	return nil
}

// checkChannel refuses means that a Rician envelope has not.
func (c *Config) checkChannel() error {
	if c.Channel.Model != "rician" {
		return nil
	}
	for i := range c.Devices.Count {
		if c.Mean(i) >= 0 {
			continue
		}
		key := "channel.mean"
		if len(c.Channel.MeanPerDevice) > 0 {
			key = "channel.mean_per_device"
		}
		return c.wrong(key, `above 0 for device %d with channel.model = "rician", an envelope`, i+1)
	}
	return nil
}

// Mean returns mu of device i, counted from 0.
func (c *Config) Mean(i int) float64 { return own(c.Channel.MeanPerDevice, i, c.Channel.Mean) }

// Std returns sigma of device i, counted from 0.
func (c *Config) Std(i int) float64 { return own(c.Channel.StdPerDevice, i, c.Channel.Std) }

// Distance returns the distance of device i in metres.
func (c *Config) Distance(i int) float64 {
	return own(c.Channel.DistancePerDeviceM, i, c.Channel.DistanceM)
}

// Misalignment returns the misalignment of device i in degrees.
func (c *Config) Misalignment(i int) float64 {
	return own(c.Channel.MisalignmentPerDeviceDeg, i, c.Channel.MisalignmentDeg)
}

// Transmitter returns the hardware of device i, counted from 0.
func (c *Config) Transmitter(i int) Transmitter {
	d := c.Devices
	t := Transmitter{
		CarrierOffsetHz: own(d.CarrierOffsetPerDeviceHz, i, d.CarrierOffsetHz),
		LinewidthHz:     own(d.LinewidthPerDeviceHz, i, d.LinewidthHz),
		IQGainDB:        own(d.IQGainPerDeviceDB, i, d.IQGainDB),
		IQPhaseRad:      own(d.IQPhasePerDeviceRad, i, d.IQPhaseRad),
		DCOffset:        own(d.DCOffsetPerDevice, i, d.DCOffset),
		ConverterBits:   own(d.ConverterBitsPerDevice, i, d.ConverterBits),
		SampleClockPPM:  own(d.SampleClockPerDevicePPM, i, d.SampleClockPPM),
	}
	if d.Preset == PresetPluto {
		t.pluto()
	}
	return t
}

// own returns a device's own value, or the common one.
func own[T any](values []T, i int, common T) T {
	if i < len(values) {
		return values[i]
	}
	return common
}
