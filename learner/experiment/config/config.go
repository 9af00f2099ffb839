// Package config reads an experiment's TOML file.
//
// It takes in a file and overrides of single keys and gives a Config in which
// every value is set and in its range, or one sentence that says what is wrong.
// It knows the keys, their ranges, defaults and meanings; what is made of
// them is for the packages that they are handed to.
package config

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/BurntSushi/toml"
)

//go:generate env RINGWAVE_UPDATE=1 go test -count=1 -run TestReference

// Config is an experiment. Numbers of physical size carry their unit in the key. What
// each key means, and what it may be, is what Describe returns; hw-configs/README.md
// has it as a table.
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
	Name       string `toml:"name"`
	Seed       int64  `toml:"seed"`
	Aggregator string `toml:"aggregator"`
}

// Task is what is learned from what.
type Task struct {
	Dataset        string  `toml:"dataset"`
	Fallback       string  `toml:"fallback"`
	Classes        []int   `toml:"classes"`
	Model          string  `toml:"model"`
	Loss           string  `toml:"loss"`
	Partition      string  `toml:"partition"`
	DirichletAlpha float64 `toml:"dirichlet_alpha"`
	Validation     float64 `toml:"validation_share"`
	StrokesTrain   int     `toml:"strokes_train"`
	StrokesTest    int     `toml:"strokes_test"`
	TrainImages    string  `toml:"train_images"`
	TrainLabels    string  `toml:"train_labels"`
	TestImages     string  `toml:"test_images"`
	TestLabels     string  `toml:"test_labels"`

	Command       []string `toml:"command"`
	AnswerSeconds float64  `toml:"answer_seconds"`
	Restarts      int      `toml:"restarts"`
}

// Optimizer is the zero-order method.
type Optimizer struct {
	Rounds           int     `toml:"rounds"`
	BatchSize        int     `toml:"batch_size"`
	Directions       string  `toml:"directions"`
	PackedDirections int     `toml:"packed_directions"`
	Clip             float64 `toml:"clip"`
	TrainLoss        string  `toml:"train_loss"`
	Estimator        string  `toml:"estimator"`
	Estimate         string  `toml:"estimate"`
	Step             string  `toml:"step"`
	Momentum         float64 `toml:"momentum"`
	StepLaw          string  `toml:"step_law"`
	Eta0             float64 `toml:"eta0"`
	EtaPower         float64 `toml:"eta_power"`
	Gamma0           float64 `toml:"gamma0"`
	GammaPower       float64 `toml:"gamma_power"`
	WarmupRounds     int     `toml:"warmup_rounds"`
	LocalSteps       int     `toml:"local_steps"`
	EvaluateEvery    int     `toml:"evaluate_every_rounds"`
	CheckpointEvery  int     `toml:"checkpoint_every_rounds"`
	EndAfterLost     int     `toml:"end_after_lost_rounds"`
	EndAfterPlateau  int     `toml:"end_after_plateau_evaluations"`
}

// Devices are the edge devices.
type Devices struct {
	Count                    int       `toml:"count"`
	Minimum                  int       `toml:"minimum"`
	Disagreement             string    `toml:"disagreement"`
	CarrierOffsetHz          float64   `toml:"carrier_offset_hz"`
	CarrierOffsetPerDeviceHz []float64 `toml:"carrier_offset_per_device_hz"`
	LinewidthHz              float64   `toml:"linewidth_hz"`
	LinewidthPerDeviceHz     []float64 `toml:"linewidth_per_device_hz"`
	IQGainDB                 float64   `toml:"iq_gain_db"`
	IQGainPerDeviceDB        []float64 `toml:"iq_gain_per_device_db"`
	IQPhaseRad               float64   `toml:"iq_phase_rad"`
	IQPhasePerDeviceRad      []float64 `toml:"iq_phase_per_device_rad"`
	DCOffset                 float64   `toml:"dc_offset"`
	DCOffsetPerDevice        []float64 `toml:"dc_offset_per_device"`
	ConverterBits            int       `toml:"converter_bits"`
	ConverterBitsPerDevice   []int     `toml:"converter_bits_per_device"`
	SampleClockPPM           float64   `toml:"sample_clock_ppm"`
	SampleClockPerDevicePPM  []float64 `toml:"sample_clock_per_device_ppm"`
	ClockJitterSamples       float64   `toml:"clock_jitter_samples"`
	FilterHz                 float64   `toml:"filter_hz"`
	AmplifierSaturation      float64   `toml:"amplifier_saturation"`
	AmplifierSmoothness      float64   `toml:"amplifier_smoothness"`
	AmplifierAMPMRad         float64   `toml:"amplifier_am_pm_rad"`
	Preset                   string    `toml:"preset"`
}

// Transmitter is the hardware of one device, as Devices has it.
type Transmitter struct {
	CarrierOffsetHz, LinewidthHz   float64
	IQGainDB, IQPhaseRad, DCOffset float64
	ConverterBits                  int
	SampleClockPPM                 float64
	// PhaseNoiseRad is the deviation of the phase noise of a synthesizer, whose loop has
	// the bandwidth of LoopHz.
	PhaseNoiseRad, LoopHz float64
}

// Encryption is the scheme's choices.
type Encryption struct {
	ParameterSet     string  `toml:"parameter_set"`
	Form             string  `toml:"form"`
	Randomness       string  `toml:"randomness"`
	DeltaMax         float64 `toml:"delta_max"`
	AttemptsPerRound int     `toml:"attempts_per_round"`
	KeyEpochRounds   int     `toml:"key_epoch_rounds"`
	N                int     `toml:"n"`
	ModulusBits      []int   `toml:"modulus_bits"`
	Log2Lambda       int     `toml:"log2_lambda"`
	Log2FloodStd     float64 `toml:"log2_flood_std"`
}

// Link is how transmissions are superposed.
type Link struct {
	Kind                    string  `toml:"kind"`
	NoiseStd                float64 `toml:"noise_std"`
	BandwidthHz             float64 `toml:"bandwidth_hz"`
	Base                    int     `toml:"base"`
	GroupSize               int     `toml:"group_size"`
	Pulse                   string  `toml:"pulse"`
	SamplesPerSymbol        int     `toml:"samples_per_symbol"`
	EdgeSamples             float64 `toml:"edge_samples"`
	ToleranceSamples        float64 `toml:"tolerance_samples"`
	RollOff                 float64 `toml:"roll_off"`
	SpanSymbols             int     `toml:"span_symbols"`
	PreambleSymbols         int     `toml:"preamble_symbols"`
	BlockSymbols            int     `toml:"block_symbols"`
	SampleRateHz            float64 `toml:"sample_rate_hz"`
	FrameRepeats            int     `toml:"frame_repeats"`
	MaxAlpha                float64 `toml:"max_alpha"`
	SNRdB                   float64 `toml:"snr_db"`
	DelaySpreadSamples      float64 `toml:"delay_spread_samples"`
	PhaseSpreadRad          float64 `toml:"phase_spread_rad"`
	Record                  string  `toml:"record"`
	RecordFullScale         float64 `toml:"record_full_scale"`
	Regime                  string  `toml:"regime"`
	RealTime                bool    `toml:"real_time"`
	ReceiverConverterBits   int     `toml:"receiver_converter_bits"`
	ReceiverFullScale       float64 `toml:"receiver_full_scale"`
	ReceiverIQGainDB        float64 `toml:"receiver_iq_gain_db"`
	ReceiverIQPhaseRad      float64 `toml:"receiver_iq_phase_rad"`
	ReceiverDCOffset        float64 `toml:"receiver_dc_offset"`
	ReceiverCarrierOffsetHz float64 `toml:"receiver_carrier_offset_hz"`
	ReceiverLinewidthHz     float64 `toml:"receiver_linewidth_hz"`
	ReceiverSampleClockPPM  float64 `toml:"receiver_sample_clock_ppm"`
	ReceiverFilterHz        float64 `toml:"receiver_filter_hz"`
	ReceiverDCBlockHz       float64 `toml:"receiver_dc_block_hz"`
	ReceiverGainControlHz   float64 `toml:"receiver_gain_control_hz"`
	BurstEverySamples       int     `toml:"burst_every_samples"`
	BurstSamples            int     `toml:"burst_samples"`
	BurstDB                 float64 `toml:"burst_db"`
	ToneHz                  float64 `toml:"tone_hz"`
	ToneDB                  float64 `toml:"tone_db"`
}

// Radio is the bench of radios that a waveform link goes over, in place of the
// simulated one, where Transmitters has any. The sample rate is link.sample_rate_hz.
type Radio struct {
	Transmit        bool       `toml:"transmit"`
	Transmitters    []string   `toml:"transmitters"`
	Receiver        string     `toml:"receiver"`
	FrequencyHz     float64    `toml:"frequency_hz"`
	BandHz          [2]float64 `toml:"band_hz"`
	MostGainDB      float64    `toml:"most_gain_db"`
	BiasTee         bool       `toml:"bias_tee"`
	TransmitGainsDB []string   `toml:"transmit_gains_db"`
	ReceiveGainsDB  []string   `toml:"receive_gains_db"`
	Level           float64    `toml:"level"`
	Clock           string     `toml:"clock"`
	Trigger         string     `toml:"trigger"`
	LeadSeconds     float64    `toml:"lead_seconds"`
	SearchSeconds   float64    `toml:"search_seconds"`
	SecretsFromSeed bool       `toml:"secrets_from_seed"`
}

// OverRadios reports whether transmissions go over radios.
func (c *Config) OverRadios() bool { return len(c.Radio.Transmitters) > 0 }

// Channel is the fading model.
type Channel struct {
	Model                    string    `toml:"model"`
	Mean                     float64   `toml:"mean"`
	Std                      float64   `toml:"std"`
	KFactor                  float64   `toml:"k_factor"`
	MeanPerDevice            []float64 `toml:"mean_per_device"`
	StdPerDevice             []float64 `toml:"std_per_device"`
	Gains                    string    `toml:"gains"`
	GainLatticeBits          int       `toml:"gain_lattice_bits"`
	AnalogNoiseStd           float64   `toml:"analog_noise_std"`
	PilotStd                 float64   `toml:"pilot_std"`
	Antennas                 int       `toml:"antennas"`
	AntennaFading            string    `toml:"antenna_fading"`
	Drift                    string    `toml:"drift"`
	DriftStd                 float64   `toml:"drift_std"`
	DriftProbability         float64   `toml:"drift_probability"`
	FreshBlockOnRetry        bool      `toml:"fresh_block_on_retry"`
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
	EchoDelaysSamples        []float64 `toml:"echo_delays_samples"`
	EchoGainsDB              []float64 `toml:"echo_gains_db"`
	EchoPhasesRad            []float64 `toml:"echo_phases_rad"`
	Echoes                   string    `toml:"echoes"`
	EchoKFactor              float64   `toml:"echo_k_factor"`
	DopplerHz                float64   `toml:"doppler_hz"`
}

// Default returns the configuration of an empty file: the paper's MNIST experiment
// at sigma = 1 with the program's own parameter set.
func Default() Config {
	return Config{
		Experiment: Experiment{Name: "experiment", Seed: 1, Aggregator: "xmk-ckks"},
		Task: Task{
			Dataset: "mnist", Classes: []int{0, 1}, Model: "logistic", Loss: "mean", Partition: "iid",
			DirichletAlpha: 0.5, StrokesTrain: 8000, StrokesTest: 2000, Command: []string{}, AnswerSeconds: 60, Restarts: 3,
		},
		Optimizer: Optimizer{
			Rounds: 400, BatchSize: 128, Directions: "rademacher", PackedDirections: 1, TrainLoss: "exact", StepLaw: "power",
			Estimator: "two-point", Estimate: "sum", Step: "plain",
			Eta0: 0.05, EtaPower: 0.5, Gamma0: 0.05, GammaPower: 0.25,
			LocalSteps: 1, EvaluateEvery: 10, CheckpointEvery: 10, EndAfterLost: 50,
		},
		Devices: Devices{
			Count: 10, Disagreement: "warn", CarrierOffsetPerDeviceHz: []float64{}, LinewidthPerDeviceHz: []float64{},
			IQGainPerDeviceDB: []float64{}, IQPhasePerDeviceRad: []float64{}, DCOffsetPerDevice: []float64{},
			ConverterBitsPerDevice: []int{}, SampleClockPerDevicePPM: []float64{}, AmplifierSmoothness: 2,
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
			EchoDelaysSamples: []float64{}, EchoGainsDB: []float64{}, EchoPhasesRad: []float64{}, Echoes: EchoesCommon,
		},
		Radio: Radio{
			Transmitters: []string{}, MostGainDB: noGain, TransmitGainsDB: []string{}, ReceiveGainsDB: []string{},
			Clock: "external", Trigger: "wired", LeadSeconds: 0.2, SearchSeconds: 0.1,
		},
		Calibration: defaultCalibration(),
	}
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

// Flat returns every key as section.key with its value as text.
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
