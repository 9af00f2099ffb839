// Package config reads an experiment's TOML file.
//
// It takes in a file and overrides of single keys and gives a Config in which
// every value is set and in its range, or one sentence that says what is wrong.
// It knows names, ranges and defaults; what they mean is for the packages that
// they are handed to.
package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"ringwave/radio/intake"
)

// Config is an experiment. Numbers of physical size carry their unit in the key.
type Config struct {
	Experiment Experiment `toml:"experiment"`
	Task       Task       `toml:"task"`
	Optimizer  Optimizer  `toml:"optimizer"`
	Devices    Devices    `toml:"devices"`
	Encryption Encryption `toml:"encryption"`
	Link       Link       `toml:"link"`
	Channel    Channel    `toml:"channel"`
	Radio      Radio      `toml:"radio"`

	Calibration Calibration `toml:"calibration"`

	// beside has the names that the program knows beside those of every program; nil for
	// none.
	beside *Names
}

// Experiment names the run.
type Experiment struct {
	Name string `toml:"name"`
	// Seed is the root of every random stream but the system's.
	Seed int64 `toml:"seed"`
	// Aggregator is the name of a System; ezofl is read as none, its two-point form.
	Aggregator string `toml:"aggregator"`
}

// Task is what is learned from what.
type Task struct {
	Dataset string `toml:"dataset"`
	// Fallback is the data set to take where Dataset is not on the machine;
	// empty for none.
	Fallback string `toml:"fallback"`
	Classes  [2]int `toml:"classes"`
	// Model is logistic, or lenet for dataset = "cifar10".
	Model string `toml:"model"`
	// Loss is what a device sends differences of: mean or sum over its batch.
	Loss string `toml:"loss"`
	// Partition is iid or dirichlet.
	Partition      string  `toml:"partition"`
	DirichletAlpha float64 `toml:"dirichlet_alpha"`
	// The sizes of the built-in set of strokes, over its four classes.
	StrokesTrain int `toml:"strokes_train"`
	StrokesTest  int `toml:"strokes_test"`
	// The four files of dataset = "idx".
	TrainImages string `toml:"train_images"`
	TrainLabels string `toml:"train_labels"`
	TestImages  string `toml:"test_images"`
	TestLabels  string `toml:"test_labels"`
}

// Optimizer is the zero-order method.
type Optimizer struct {
	Rounds    int `toml:"rounds"`
	BatchSize int `toml:"batch_size"`
	// Directions is rademacher, gaussian or sphere.
	Directions string `toml:"directions"`
	// PackedDirections is P, the directions of a round, whose scalars travel in as many
	// coefficients of one ciphertext.
	PackedDirections int `toml:"packed_directions"`
	// Clip cuts what a device sends to +-Clip; 0 for no bound.
	Clip float64 `toml:"clip"`
	// TrainLoss is exact, or pairs: the mean of the losses on either side, which costs
	// no forward pass of its own.
	TrainLoss string `toml:"train_loss"`
	// StepLaw is power, x0 (1+k)^-p, or theorem2, x0 K^(-1/4).
	StepLaw    string  `toml:"step_law"`
	Eta0       float64 `toml:"eta0"`
	EtaPower   float64 `toml:"eta_power"`
	Gamma0     float64 `toml:"gamma0"`
	GammaPower float64 `toml:"gamma_power"`
	// EvaluateEvery and CheckpointEvery count rounds.
	EvaluateEvery   int `toml:"evaluate_every_rounds"`
	CheckpointEvery int `toml:"checkpoint_every_rounds"`
}

// Devices are the edge devices.
type Devices struct {
	Count int `toml:"count"`
	// Minimum is how many devices must take part in a round, that is have an integer
	// gain H_i other than 0, where the receiver looks for the lattice (the blind regime);
	// 0 for all. Elsewhere a gain of 0 may be the channel's own, and is counted only.
	Minimum int `toml:"minimum"`
	// Disagreement is what is done about a device whose gains are not what is known of
	// them: warn, or refuse, which makes the attempt void. Where |mu| > 4 sigma such a
	// gain has the sign that mu has not; elsewhere its running mean has left the
	// interval of mu. For link.kind = "waveform".
	Disagreement string `toml:"disagreement"`

	// What follows is the hardware of the transmitters of a simulated bench, for
	// link.kind = "waveform"; a list has a value a device. By default it is ideal.

	// CarrierOffsetHz is the error of a transmitter's carrier against the
	// receiver's; LinewidthHz the full width of its spectral line at half maximum:
	// its phase is a Wiener process of variance 2 pi linewidth t.
	CarrierOffsetHz          float64   `toml:"carrier_offset_hz"`
	CarrierOffsetPerDeviceHz []float64 `toml:"carrier_offset_per_device_hz"`
	LinewidthHz              float64   `toml:"linewidth_hz"`
	LinewidthPerDeviceHz     []float64 `toml:"linewidth_per_device_hz"`
	// IQGainDB and IQPhaseRad are the mismatch of the quadrature branch against
	// the in-phase one, DCOffset the offset of both in parts of full scale.
	IQGainDB            float64   `toml:"iq_gain_db"`
	IQGainPerDeviceDB   []float64 `toml:"iq_gain_per_device_db"`
	IQPhaseRad          float64   `toml:"iq_phase_rad"`
	IQPhasePerDeviceRad []float64 `toml:"iq_phase_per_device_rad"`
	DCOffset            float64   `toml:"dc_offset"`
	DCOffsetPerDevice   []float64 `toml:"dc_offset_per_device"`
	// ConverterBits is the resolution of each branch of a transmitter's converter,
	// whose largest code the largest symbol takes; 0 for none.
	ConverterBits          int   `toml:"converter_bits"`
	ConverterBitsPerDevice []int `toml:"converter_bits_per_device"`
}

// Transmitter is the hardware of one device, as Devices has it.
type Transmitter struct {
	CarrierOffsetHz, LinewidthHz   float64
	IQGainDB, IQPhaseRad, DCOffset float64
	ConverterBits                  int
}

// Encryption is the scheme's choices.
type Encryption struct {
	ParameterSet string `toml:"parameter_set"`
	// Form is whole, short, or set for the set's own.
	Form string `toml:"form"`
	// Randomness is seed or system.
	Randomness string  `toml:"randomness"`
	DeltaMax   float64 `toml:"delta_max"`
	// AttemptsPerRound is the most attempts before a round is skipped; sending its
	// decryption shares again counts as one.
	AttemptsPerRound int `toml:"attempts_per_round"`
	// KeyEpochRounds is the number of rounds that a key serves; 0 for all.
	KeyEpochRounds int `toml:"key_epoch_rounds"`
	// Overrides of the parameter set; 0 or empty leaves the set's own value.
	N            int     `toml:"n"`
	ModulusBits  []int   `toml:"modulus_bits"`
	Log2Lambda   int     `toml:"log2_lambda"`
	Log2FloodStd float64 `toml:"log2_flood_std"`
}

// Link is how transmissions are superposed.
type Link struct {
	Kind string `toml:"kind"`
	// NoiseStd is sigma_w, in units of one ring coefficient.
	NoiseStd float64 `toml:"noise_std"`
	// BandwidthHz is for the transmission time that plan prints.
	BandwidthHz float64 `toml:"bandwidth_hz"`

	// What follows is for kind = "waveform".

	// Base is B of the balanced digits; GroupSize is G, the devices that share a
	// time slot, 0 for all.
	Base      int `toml:"base"`
	GroupSize int `toml:"group_size"`
	// Pulse is flat-top or root-raised-cosine.
	Pulse            string  `toml:"pulse"`
	SamplesPerSymbol int     `toml:"samples_per_symbol"`
	EdgeSamples      float64 `toml:"edge_samples"`
	ToleranceSamples float64 `toml:"tolerance_samples"`
	RollOff          float64 `toml:"roll_off"`
	SpanSymbols      int     `toml:"span_symbols"`
	PreambleSymbols  int     `toml:"preamble_symbols"`
	BlockSymbols     int     `toml:"block_symbols"`
	SampleRateHz     float64 `toml:"sample_rate_hz"`
	// FrameRepeats is how often a frame is sent again before the attempt fails;
	// MaxAlpha bounds the lattice scale that the receiver looks for.
	FrameRepeats int     `toml:"frame_repeats"`
	MaxAlpha     float64 `toml:"max_alpha"`
	// SNRdB is that of a device of gain 1, a symbol, also for aggregator = "heairfed"
	// and "airhe"; DelaySpreadSamples and
	// PhaseSpreadRad are the ranges of the devices' delays and static phases.
	SNRdB              float64 `toml:"snr_db"`
	DelaySpreadSamples float64 `toml:"delay_spread_samples"`
	PhaseSpreadRad     float64 `toml:"phase_spread_rad"`
	// Record is none, or the SigMF datatype in which the receiver's samples are
	// kept: ci8, ci16_le or cf32_le. An integer one is the receiver's converter,
	// too. RecordFullScale is the amplitude up to which it does not clip, that of a
	// device of gain 1 being 1; 0 for what the channel's moments ask for.
	Record          string  `toml:"record"`
	RecordFullScale float64 `toml:"record_full_scale"`
	// Regime is how gains come to lie on a lattice: emulated (the channel's do),
	// mean-aligned (devices trim their gain and phase by the long-term mean),
	// blind (the receiver looks for the lattice), or auto: emulated for
	// channel.gains = "lattice", blind for "continuous".
	Regime string `toml:"regime"`
	// RealTime lets every transmission last as long as its samples would.
	RealTime bool `toml:"real_time"`

	// What follows is the hardware of the simulated receiver, by default ideal.

	// ReceiverConverterBits is the resolution of each branch; 0 for none.
	// ReceiverFullScale is the amplitude at which it clips, that of a device of gain
	// 1 being 1; 0 for what the channel's moments ask for. A recording of an integer
	// type then holds the converter's codes and rounds nothing more.
	ReceiverConverterBits int     `toml:"receiver_converter_bits"`
	ReceiverFullScale     float64 `toml:"receiver_full_scale"`
	// The mismatch of the receiver's quadrature branch and the offset of both in
	// parts of full scale.
	ReceiverIQGainDB   float64 `toml:"receiver_iq_gain_db"`
	ReceiverIQPhaseRad float64 `toml:"receiver_iq_phase_rad"`
	ReceiverDCOffset   float64 `toml:"receiver_dc_offset"`
}

// Radio is the bench of radios that a waveform link goes over, in place of the
// simulated one, where Transmitters has any. The sample rate is link.sample_rate_hz.
type Radio struct {
	// Transmit says that the user lets radios transmit.
	Transmit bool `toml:"transmit"`
	// Transmitters are the URIs of the devices' radios, in their order, Receiver that
	// of the server's.
	Transmitters []string `toml:"transmitters"`
	Receiver     string   `toml:"receiver"`
	// FrequencyHz is the carrier, and BandHz from where to where signals may lie, as
	// the user confirms. MostGainDB is the most that the gains of a transmitter may
	// add up to, on its own scale.
	FrequencyHz float64    `toml:"frequency_hz"`
	BandHz      [2]float64 `toml:"band_hz"`
	MostGainDB  float64    `toml:"most_gain_db"`
	// TransmitGainsDB and ReceiveGainsDB are gains as "stage=dB", by the names of the
	// radios' stages; what is not there stays as the URI has it.
	TransmitGainsDB []string `toml:"transmit_gains_db"`
	ReceiveGainsDB  []string `toml:"receive_gains_db"`
	// Level is the amplitude, in parts of the receiver's full scale, that counts as gain
	// 1 in the units of [channel]; 0 for an equal share of full scale for each device.
	Level float64 `toml:"level"`
	// Clock is external, shared or internal; Trigger is wired, none or lock-step.
	Clock   string `toml:"clock"`
	Trigger string `toml:"trigger"`
	// LeadSeconds is how far ahead of what boards were fed a frame is put;
	// SearchSeconds by how much the receiver's index may differ from the
	// transmitters', 0 for not at all.
	LeadSeconds   float64 `toml:"lead_seconds"`
	SearchSeconds float64 `toml:"search_seconds"`
	// SecretsFromSeed lets secrets come from the seed although radios take part:
	// they protect nothing then.
	SecretsFromSeed bool `toml:"secrets_from_seed"`
}

// OverRadios tells whether transmissions go over radios.
func (c *Config) OverRadios() bool { return len(c.Radio.Transmitters) > 0 }

// Channel is the fading model.
type Channel struct {
	Model string `toml:"model"`
	// Model is gaussian, rician or thz-los. Mean is mu and Std sigma of every
	// device, MeanPerDevice and StdPerDevice
	// those of each; KFactor is for model = "rician".
	Mean          float64   `toml:"mean"`
	Std           float64   `toml:"std"`
	KFactor       float64   `toml:"k_factor"`
	MeanPerDevice []float64 `toml:"mean_per_device"`
	StdPerDevice  []float64 `toml:"std_per_device"`
	// Gains is lattice or continuous; GainLatticeBits is f, alpha = 2^f.
	Gains           string `toml:"gains"`
	GainLatticeBits int    `toml:"gain_lattice_bits"`
	// AnalogNoiseStd is sigma_n, for aggregator = "none" and "ezofl-one-point".
	AnalogNoiseStd float64 `toml:"analog_noise_std"`
	// PilotStd is sigma_pilot, the standard deviation of the estimate of a gain, for
	// aggregator = "zf", "mmse", "airhe" and, of a complex gain, "heairfed".
	PilotStd float64 `toml:"pilot_std"`
	// Antennas is the number of the server's antennas and AntennaFading, los or
	// rayleigh, how they hear a device, for aggregator = "heairfed".
	Antennas      int    `toml:"antennas"`
	AntennaFading string `toml:"antenna_fading"`
	// Drift is none, after-key, within-ciphertext or after-ciphertext.
	Drift             string  `toml:"drift"`
	DriftStd          float64 `toml:"drift_std"`
	DriftProbability  float64 `toml:"drift_probability"`
	FreshBlockOnRetry bool    `toml:"fresh_block_on_retry"`
	// The link of model = "thz-los", of which mean and std follow; the K-factor
	// is k_factor and the bandwidth link.bandwidth_hz. DistancePerDeviceM and
	// MisalignmentPerDeviceDeg tell devices apart.
	CarrierHz                float64   `toml:"carrier_hz"`
	DistanceM                float64   `toml:"distance_m"`
	DistancePerDeviceM       []float64 `toml:"distance_per_device_m"`
	TransmitGainDBi          float64   `toml:"transmit_gain_dbi"`
	ReceiveGainDBi           float64   `toml:"receive_gain_dbi"`
	TransmitPowerDBm         float64   `toml:"transmit_power_dbm"`
	NoiseFigureDB            float64   `toml:"noise_figure_db"`
	MisalignmentDeg          float64   `toml:"misalignment_deg"`
	MisalignmentPerDeviceDeg []float64 `toml:"misalignment_per_device_deg"`
	SpeedMps                 float64   `toml:"speed_mps"`
	TemperatureK             float64   `toml:"temperature_k"`
	PressureHPa              float64   `toml:"pressure_hpa"`
	VapourDensityGM3         float64   `toml:"vapour_density_g_m3"`
}

// Default gives the configuration of an empty file: the paper's MNIST experiment
// at sigma = 1 with the program's own parameter set.
func Default() Config {
	return Config{
		Experiment: Experiment{Name: "experiment", Seed: 1, Aggregator: "xmk-ckks"},
		Task: Task{
			Dataset: "mnist", Classes: [2]int{0, 1}, Model: "logistic", Loss: "mean", Partition: "iid",
			DirichletAlpha: 0.5, StrokesTrain: 8000, StrokesTest: 2000,
		},
		Optimizer: Optimizer{
			Rounds: 400, BatchSize: 128, Directions: "rademacher", PackedDirections: 1, TrainLoss: "exact", StepLaw: "power",
			Eta0: 0.05, EtaPower: 0.5, Gamma0: 0.05, GammaPower: 0.25,
			EvaluateEvery: 10, CheckpointEvery: 10,
		},
		Devices: Devices{
			Count: 10, Disagreement: "warn", CarrierOffsetPerDeviceHz: []float64{}, LinewidthPerDeviceHz: []float64{},
			IQGainPerDeviceDB: []float64{}, IQPhasePerDeviceRad: []float64{}, DCOffsetPerDevice: []float64{},
			ConverterBitsPerDevice: []int{},
		},
		Encryption: Encryption{
			ParameterSet: "ringwave-4096-100", Form: "set", Randomness: "seed",
			DeltaMax: 16, AttemptsPerRound: 4, ModulusBits: []int{},
		},
		Link: Link{
			Kind: "ring", BandwidthHz: 1e12,
			Base: 3, Pulse: "flat-top", SamplesPerSymbol: 8, EdgeSamples: 2, ToleranceSamples: 1,
			RollOff: 0.5, SpanSymbols: 16, PreambleSymbols: 127, BlockSymbols: 8192, SampleRateHz: 10e6,
			FrameRepeats: 1, MaxAlpha: 40, SNRdB: 40, Record: "none", Regime: "auto",
		},
		Channel: Channel{
			Model: "gaussian", Mean: 1, Std: 1, KFactor: 10,
			MeanPerDevice: []float64{}, StdPerDevice: []float64{},
			Gains: "lattice", GainLatticeBits: 8, AnalogNoiseStd: 1, PilotStd: 0.1, Antennas: 16, AntennaFading: "rayleigh", Drift: "none",
			CarrierHz: 300e9, DistanceM: 10, TransmitGainDBi: 25, ReceiveGainDBi: 25,
			NoiseFigureDB: 10, TemperatureK: 296, PressureHPa: 1013.25, VapourDensityGM3: 9.2,
			DistancePerDeviceM: []float64{}, MisalignmentPerDeviceDeg: []float64{},
		},
		Radio: Radio{
			Transmitters: []string{}, MostGainDB: noGain, TransmitGainsDB: []string{}, ReceiveGainsDB: []string{},
			Clock: "external", Trigger: "wired", LeadSeconds: 0.2, SearchSeconds: 0.1,
		},
		Calibration: defaultCalibration(),
	}
}

// maxFile bounds a configuration file, which is written by hand.
const maxFile = 1 << 20

// Error says what is wrong with a configuration: it is the user's to mend.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func failf(format string, args ...any) error {
	return &Error{intake.Sentence(fmt.Sprintf(format, args...))}
}

// Load reads a file, applies overrides of the form section.key=value in their
// order, and checks the whole.
func Load(path string, overrides []string) (Config, error) { return Names{}.Load(path, overrides) }

// Load is the function Load for a program that knows more names.
func (n Names) Load(path string, overrides []string) (Config, error) {
	data, err := intake.ReadFile(path, maxFile)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return Config{}, failf("%s: the configuration: %v", path, excess)
	}
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return Config{}, failf("%s: the configuration cannot be read: %v", path, err)
	}
	return n.Parse(path, data, overrides)
}

// Parse is Load on bytes; name stands for the file in errors.
func Parse(name string, data []byte, overrides []string) (Config, error) {
	return Names{}.Parse(name, data, overrides)
}

// Parse is the function Parse for a program that knows more names.
func (n Names) Parse(name string, data []byte, overrides []string) (Config, error) {
	c := Default().With(n)
	if err := decode(name, string(data), &c); err != nil {
		return Config{}, err
	}
	for _, o := range overrides {
		key, value, found := strings.Cut(o, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || !strings.Contains(key, ".") {
			return Config{}, failf("--set %s: it must be section.key=value, such as channel.std=10", o)
		}
		if err := override(key, value, &c); err != nil {
			return Config{}, err
		}
	}
	if c.Experiment.Aggregator == "ezofl" {
		c.Experiment.Aggregator = "none" // so that both give the same run
	}
	if err := c.validate(); err != nil {
		return Config{}, failf("%s: %v", name, err)
	}
	return c, nil
}

// Check refuses what Load refuses, in a configuration that a program has made or changed
// itself.
func (c Config) Check() error {
	if err := c.validate(); err != nil {
		return failf("the configuration: %v", err)
	}
	return nil
}

// override sets one key. A value that is no TOML is taken as a string, so that
// quotes need not survive a shell.
func override(key, value string, c *Config) error {
	name := "--set " + key
	if strings.ContainsAny(key+value, "\n\r") {
		return failf("%s: it must be a single line", name)
	}
	// Here, for a key with a bracket or a hash may be something else to TOML.
	if !slices.Contains(Keys(), key) {
		return unknown(name, key)
	}
	text := "x = " + value
	if err := intake.CheckTOML(text); err != nil {
		return failf("%s: %v", name, err)
	}
	var probe map[string]any
	if _, err := toml.Decode(text, &probe); err != nil {
		value = fmt.Sprintf("%q", value)
	}
	return decode(name, key+" = "+value, c)
}

// decode reads TOML over c and refuses keys that c does not have. The library would
// take those of another case, too, and of several the one that a map gives last.
func decode(name, text string, c *Config) error {
	if err := intake.CheckTOML(text); err != nil {
		return failf("%s: %v", name, err)
	}
	var all toml.Primitive
	meta, err := toml.Decode(text, &all)
	if err == nil {
		known := map[string]bool{}
		for _, key := range append(sections(), Keys()...) {
			known[key] = true
		}
		for _, key := range meta.Keys() {
			if !known[key.String()] {
				return unknown(name, key.String())
			}
		}
		err = meta.PrimitiveDecode(all, c)
	}
	if err != nil {
		return failf("%s: %s", name, strings.TrimPrefix(err.Error(), "toml: "))
	}
	return nil
}

// unknown proposes the right spelling of a key or of a section.
func unknown(name, key string) error {
	known := Keys()
	if !strings.Contains(key, ".") {
		known = sections()
	}
	return failf("%s: unknown key %s; the nearest known one is %s", name, key, intake.Nearest(key, known))
}

// sections gives the names of the sections.
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

// Keys gives every key of a configuration as section.key.
func Keys() []string {
	var keys []string
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		section := t.Field(i)
		if section.Tag.Get("toml") == "" {
			continue
		}
		for j := range section.Type.NumField() {
			keys = append(keys, section.Tag.Get("toml")+"."+section.Type.Field(j).Tag.Get("toml"))
		}
	}
	return keys
}

// Encode writes the configuration with every value, as it goes into a run
// folder.
func (c Config) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("writing the resolved configuration: %w", err)
	}
	return b.Bytes(), nil
}

// Flat gives every key as section.key with its value as text.
func (c Config) Flat() (map[string]string, error) {
	encoded, err := c.Encode()
	if err != nil {
		return nil, err
	}
	var sections map[string]map[string]any
	if _, err := toml.Decode(string(encoded), &sections); err != nil {
		return nil, fmt.Errorf("reading the resolved configuration: %w", err)
	}
	flat := map[string]string{}
	for section, keys := range sections {
		for key, value := range keys {
			flat[section+"."+key] = fmt.Sprint(value)
		}
	}
	return flat, nil
}

// Digest identifies a configuration.
func (c Config) Digest() ([sha256.Size]byte, error) {
	b, err := c.Encode()
	return sha256.Sum256(b), err
}
