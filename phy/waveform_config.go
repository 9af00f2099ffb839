package phy

import (
	"context"
	"fmt"
	"math"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// DefaultBlockSymbols is the usual length of a block.
const DefaultBlockSymbols = 8192

// WaveformConfig describes a Waveform link.
type WaveformConfig struct {
	Modulus *zq.Modulus
	// Devices is N. Group is G, the most devices that share a time slot; 0 for
	// all N.
	Devices, Group int
	// Base is B, of the balanced digits that symbols carry.
	Base int
	// BlockSymbols is about how many symbols share a linear check; 0 stands for
	// DefaultBlockSymbols.
	BlockSymbols int

	// Modem, Search and Receive are the modem's; phases are tracked, carriers are searched
	// for as far as the preamble tells unless Search says otherwise, the preamble's level is set to
	// the largest digit, and Receive.Clip, where it is 0, to the receiver's clip
	// level if it tells one (radio.Ranged).
	Modem   modem.Config
	Search  modem.Search
	Receive modem.Receive

	// Alpha is the scale where it is known: exactly, of emulated gains; with a
	// Tolerance above 0 up to that relative error, of gains that Trim aligns to
	// means of 1. 0 has the receiver find it.
	Alpha, Tolerance float64
	// Alignment is what devices make up for, and Level the amplitude at which a device
	// arrives that does so, which then counts as gain 1 (see Align); 0 stands for 1.
	Alignment
	Level float64
	// CarrierTime, if not nil, gives the index that carriers' phases go by where a
	// transmitter's index is at, for simulations that have their own. It is asked for the
	// first sample of each frame.
	CarrierTime func(at radio.SampleIndex) radio.SampleIndex
	// Amplitude is the largest magnitude of a sample that an untrimmed device
	// sends, above 0 and at most 1; 0 stands for 1. A transmit converter takes
	// its largest code for it.
	Amplitude modem.Amplitude
	// Phase is the common phase of the tuning epoch where it is known, as it must
	// be for gains whose sum may be negative or nearly 0: their preamble shows
	// neither sign nor, sometimes, itself. It is that of the epochs of the first
	// attempt: once one of them changes, every attempt is void. nil takes each round's
	// preamble.
	Phase *modem.Radians
	// Lattice bounds the blind search. Its noise deviation is not used.
	Lattice lattice.Options
	// GroupScale bounds the integers c_g by which the groups' results are brought
	// to one scale; 0 stands for 50.
	GroupScale int64
	// Repeats is how often a frame that fails is sent again, bit for bit, before
	// the attempt is given up.
	Repeats int

	// Run marks frames, so that those of another run are told apart.
	Run uint16
	// Secret is the seed of patterns, check weights and retry gains, which devices
	// and server share and nobody else knows.
	Secret keystream.Seed

	// Format is that of the frames, 0 for the present one. The first format is for
	// links that only listen.
	Format frame.Format

	// Transmitters, one a device, and Receiver are running streams of one clock,
	// whose next samples have index Start. The transmitters take timed blocks, and
	// can idle or do so by themselves (radio.Idler, radio.Pacer). Without any, the
	// link only listens, as to a recording: what devices hand to Transmit is not
	// wanted.
	Transmitters []radio.Transmitter
	Receiver     radio.Receiver
	Start        radio.SampleIndex
	// Lead is how far ahead of what a radio.Pacer has handed to its board a frame
	// is put: more than is handed over while it is written.
	Lead radio.SampleCount
	// Reach is by how much the receiver's index may differ from the transmitters',
	// either way. What it differs by is found with the first frame, and again once
	// it was lost: by a loss whose length is not known, or by two frames without
	// preamble. 0 is for indices that are the same.
	Reach radio.SampleCount
	// Flush is how many zeros behind a frame its transmitters must be promised
	// before the receiver has all of it. It is for those that are no radio.Pacer.
	Flush radio.SampleCount
	// Patience is how long a stream may give or take nothing before the link ends with
	// ErrStalled; 0 for ever, as in memory. It must be longer than a frame, its Lead and
	// twice its Reach take on the air.
	Patience time.Duration
	// Restart begins all streams anew, so that their next samples have index Start
	// again. It is called before an attempt once a transmitter has lost count of its
	// samples, and with it the time that it shares with others. nil leaves every
	// attempt from then on void, unless there is one device.
	Restart func(ctx context.Context) (transmitters []radio.Transmitter, receiver radio.Receiver, err error)
	// Remeasure, if not nil, is called after Restart, whose streams have new phases: it
	// gives what devices make up for in them, and the transmitters' index from which on it
	// has sent nothing. With ErrAgain both are called once more, a few times at most.
	Remeasure func(ctx context.Context) (a Alignment, start radio.SampleIndex, err error)
	// SenderEpochs, for a link that only listens, gives the present tuning epochs of
	// those who send, as a recording has kept them; nil, or a nil slice, where they
	// are not known.
	SenderEpochs func() []radio.Epoch
	// OnTransmission, if not nil, hears the slot of each transmission and the
	// first sample of its first frame before it is sent: a simulation sets the
	// gains there. ctx is that of Receive.
	OnTransmission func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error
	// Call, of a link whose devices are on other hosts, has them send the frame that is due:
	// the receiver hears it next. It may return ErrNobody and ErrUnsent. nil is for links with
	// transmitters of their own, and those that only listen.
	Call func(ctx context.Context, d Due) error
	// OnFrame, if not nil, hears of each frame once it was read or given up.
	OnFrame func(Observation) error
}

// setDefaults sets what 0 stands for.
func (cfg *WaveformConfig) setDefaults() {
	if cfg.Group == 0 {
		cfg.Group = cfg.Devices
	}
	if cfg.BlockSymbols == 0 {
		cfg.BlockSymbols = DefaultBlockSymbols
	}
	if cfg.GroupScale == 0 {
		cfg.GroupScale = 50
	}
	if cfg.Level == 0 {
		cfg.Level = 1
	}
	if cfg.Amplitude == 0 {
		cfg.Amplitude = 1
	}
	cfg.Receive.Tracking = modem.Follow
	cfg.Modem.Preamble.Level = float32((cfg.Base - 1) / 2) // the largest digit
	if cfg.Phase == nil && cfg.Search.MaxOffset == 0 && cfg.Modem.SamplesPerSymbol > 0 {
		cfg.Search.MaxOffset = cfg.Modem.MaxOffset()
	}
}

func (cfg *WaveformConfig) validate() error {
	if cfg.Devices < 1 || cfg.Group < 1 || cfg.Transmitters != nil && len(cfg.Transmitters) != cfg.Devices {
		return fmt.Errorf("a waveform link of %d devices in groups of %d with %d transmitters: it needs one transmitter a device and groups of 1 or more", cfg.Devices, cfg.Group, len(cfg.Transmitters))
	}
	if err := cfg.validateScale(); err != nil {
		return err
	}
	if err := cfg.Alignment.validate(cfg.Devices); err != nil {
		return err
	}
	if !(cfg.Level > 0) || math.IsInf(cfg.Level, 0) {
		return fmt.Errorf("a device of gain 1 arrives at the level %v: it must be positive", cfg.Level)
	}
	if cfg.Repeats < 0 || cfg.Repeats > math.MaxUint8 {
		return fmt.Errorf("a frame is sent again %d times: allowed are 0 to %d", cfg.Repeats, math.MaxUint8)
	}
	if cfg.Format > frame.Present || cfg.Format != 0 && cfg.Format < frame.Present && cfg.Transmitters != nil {
		return fmt.Errorf("frames of format %d: allowed are %d, and from %d on for a link that only listens", cfg.Format, frame.Present, frame.Format1)
	}
	return cfg.validateStreams()
}

// validateScale checks what is known of the scale.
func (cfg *WaveformConfig) validateScale() error {
	if !(cfg.Alpha >= 0) || math.IsInf(cfg.Alpha, 0) {
		return fmt.Errorf("the scale of emulated gains is %v: it must be positive, or 0 to be found", cfg.Alpha)
	}
	if !(cfg.Tolerance >= 0 && cfg.Tolerance < 1) || cfg.Tolerance > 0 && cfg.Alpha == 0 {
		return fmt.Errorf("a scale of %v known within %v of itself: the tolerance must be from 0 to below 1, and 0 where the scale is to be found", cfg.Alpha, cfg.Tolerance)
	}
	return nil
}

// validateStreams checks the transmitters, and how far ahead and around the link looks.
func (cfg *WaveformConfig) validateStreams() error {
	if cfg.Lead < 0 || cfg.Reach < 0 || cfg.Flush < 0 {
		return fmt.Errorf("a lead of %d samples, a reach of %d and a flush of %d: all must be 0 or more", cfg.Lead, cfg.Reach, cfg.Flush)
	}
	if cfg.Patience < 0 {
		return fmt.Errorf("a patience of %v: it must be positive, or 0 for ever", cfg.Patience)
	}
	return idle(cfg.Transmitters)
}

// idle says which of the transmitters cannot be silent between frames.
func idle(transmitters []radio.Transmitter) error {
	for i, t := range transmitters {
		_, idles := t.(radio.Idler)
		if _, paced := t.(radio.Pacer); !idles && !paced {
			return fmt.Errorf("the transmitter of device %d cannot idle between frames", i+1)
		}
	}
	return nil
}
