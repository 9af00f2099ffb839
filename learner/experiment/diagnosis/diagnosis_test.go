package diagnosis_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/diagnosis"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// seen returns the report of so many attempts at b and c1 over the bench of a configuration,
// and how many transmissions were read.
func seen(t *testing.T, attempts int, sets ...string) (diagnosis.Report, int) {
	t.Helper()
	c, err := config.Load("../../../hw-configs/waveform-mnist.toml", append([]string{
		"task.dataset=strokes", "encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.frame_repeats=0", "link.max_alpha=16", "link.phase_spread_rad=0", "devices.count=2",
	}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	d, err := setup.NewDesign(c, ch)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := xmkckks.NewContext(d.Params, d.Form, d.Link.Messages, d.Witnesses, root.Derive("public"))
	if err != nil {
		t.Fatal(err)
	}
	link, err := uplink.New(uplink.Setting{Config: c, Seed: root, Secret: uplink.SeedLinkSecret(root), Channel: ch, Context: ctx, Design: d})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	w, mod, rnd := link.(*uplink.Waveform), ctx.Modulus(), rand.New(rand.NewPCG(1, 1))
	read := 0
	for k := range attempts {
		for _, tr := range []slot.Transmission{slot.TxKey, slot.TxC1} {
			n := ctx.PayloadLength(tr)
			if err := w.Open(t.Context(), slot.Slot{Round: uint32(k + 1), Transmission: tr}, n); err != nil {
				t.Fatal(err)
			}
			for i := range w.H {
				x := mod.NewVector(n)
				for j, p := range mod.Primes() {
					for m := range x[j] {
						x[j][m] = rnd.Uint64N(p)
					}
				}
				if err := w.Transmit(i, x); err != nil {
					t.Fatal(err)
				}
			}
			rx := phy.Reception{Y: mod.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
			if err := w.Receive(t.Context(), &rx); err != nil {
				t.Fatal(err)
			}
			if !rx.CheckPassed {
				break
			}
			read++
		}
	}
	return w.Tally.Report(), read
}

// Longer than 60 lines because it is a table of faults.
//
// Each fault, at a strength that loses frames, is named by what the receiver saw.
func TestFaultsAreNamed(t *testing.T) {
	emulated := []string{"channel.gains=lattice", "channel.gain_lattice_bits=1"}
	for _, f := range []struct {
		name string
		sets []string
		want string
	}{
		{"carrier beyond the search", []string{"devices.carrier_offset_hz=200000"}, "the carrier is 200 kHz off, and preambles are searched for within 78.7 kHz"},
		{"carrier far off", []string{"devices.carrier_offset_hz=-300000"}, "the carrier is -300 kHz off"},
		{"carrier, phase held", append(emulated, "devices.carrier_offset_hz=20"), "the phase moves by 1.9 rad over a frame of 15 ms, a carrier offset of 19.7 Hz"},
		{"phase held, too far for a preamble", append(emulated, "devices.carrier_offset_hz=20000"), "the carrier is 20.1 kHz off"},
		{"devices' carriers", []string{"devices.carrier_offset_per_device_hz=[-20,20]"}, "devices' carriers turn against each other"},
		{"phase noise", []string{"devices.linewidth_hz=1000"}, "the common phase wanders by "},
		{"phase noise in a preamble", []string{"devices.linewidth_hz=100000"}, "a signal 33 dB above the silence is there, and no preamble in it"},
		{"phases apart", []string{"link.phase_spread_rad=3", "devices.count=4"}, "devices' phases lie apart"},
		{"DC", []string{"link.receiver_dc_offset=0.5"}, "an offset stands under the signal, 42 dB above"},
		{"image", []string{"link.receiver_iq_gain_db=3", "devices.carrier_offset_hz=1000"}, "the receiver has an image at -15 dB"},
		{"echo", []string{"channel.echo_delays_samples=[8]", "channel.echo_gains_db=[-3]"}, "the eye is closed before the lattice: an echo or filter leaves 71 % of a symbol"},
		{"noise", []string{"link.snr_db=15"}, "the signal-to-noise ratio is 15 dB a device, and 2 in a slot need about 20 dB"},
		{"much noise", []string{"link.snr_db=5"}, "the signal-to-noise ratio is 5 dB a device"},
		{"nothing", []string{"link.snr_db=-20"}, "nothing was heard where frames were due"},
		{"bursts", []string{"link.burst_every_samples=20000", "link.burst_samples=800", "link.burst_db=20"}, "bursts struck 4."},
		{"long bursts", []string{"link.burst_every_samples=2000", "link.burst_samples=800", "link.burst_db=20"}, "bursts struck 41"},
		{"tone", []string{"link.tone_hz=50000", "link.tone_db=0"}, "a tone about 104 kHz from the carrier stands 18 dB below symbols"},
		{"sample clock", []string{"link.receiver_sample_clock_ppm=200"}, "sample clocks run apart by 196 ppm"},
		{"devices' sample clocks", []string{"devices.sample_clock_per_device_ppm=[20,-20]"}, "devices' sample clocks run apart from each other: of the line at the symbol rate 68 % are left"},
		{"fading", []string{"channel.doppler_hz=50"}, "gains change within a frame, whose strong parts have 2.4 times"},
		{"gains of other frames", []string{"channel.doppler_hz=10"}, "b is read, and what follows is not"},
		{"too many", []string{"devices.count=8", "link.snr_db=50"}, "no scale brings the gains of 8 devices in a slot near whole numbers"},
	} {
		t.Run(f.name, func(t *testing.T) {
			r, read := seen(t, 6, f.sets...)
			if r.Lost == 0 {
				t.Fatalf("%d transmissions were read, and no frame lost: the fault is too weak for the test", read)
			}
			causes := r.Causes()
			if !strings.Contains(causes[0], f.want) {
				t.Errorf("%q, want %q first: %+v", causes, f.want, r)
			}
			t.Logf("%s", r.Sentence())
		})
	}
}

// What is read needs no reason, with faults that the receiver makes up for, too.
func TestNothingIsTheMatter(t *testing.T) {
	for _, sets := range [][]string{nil, {"devices.carrier_offset_hz=100"}, {"channel.echo_delays_samples=[20]", "channel.echo_gains_db=[-6]"}, {"link.receiver_sample_clock_ppm=5"}} {
		if r, _ := seen(t, 4, sets...); r.Lost != 0 || r.Causes() != nil || r.Sentence() != "" {
			t.Errorf("%v: %d of %d frames lost, %q", sets, r.Lost, r.Frames, r.Causes())
		}
	}
}

// Checks that declare attempts void whose frames were read are reasons of their own.
func TestChecksAreReasons(t *testing.T) {
	for check, want := range map[round.Check]string{
		round.EqualGains:  "gains change between the frames of an attempt: in 3 of 3 void attempts patterns differ",
		round.GainsCheck:  "3 of 3 void attempts were refused by the gains check",
		round.Witness:     "what decodes is no noise where it should be in 3 of 3",
		round.NoSignal:    "all gains were read as 0 in 3 of 3",
		round.LinearCheck: "3 attempts were void",
	} {
		tally := diagnosis.NewTally(diagnosis.Link{})
		for range 3 {
			tally.Void(check)
		}
		if causes := tally.Report().Causes(); len(causes) != 1 || !strings.Contains(causes[0], want) {
			t.Errorf("%v: %q, want %q", check, causes, want)
		}
	}
}

// Figures that no simulation of short frames shows.
func TestFigures(t *testing.T) {
	fine := diagnosis.Report{Frames: 9, Lost: 3, Unscaled: 3, Devices: 3, SNR: 60, Quiet: 60, Timed: 1, Fade: 1.1, LeastReal: 1, MostReal: 1, Seconds: 0.1, Link: diagnosis.Link{SampleRate: 1e7, SamplesPerSymbol: 8}}
	blocked := fine
	blocked.Block = 1e-4
	clipped, leaking, smeared := fine, fine, fine
	clipped.Clipped, clipped.Erased = 5000, 0.3
	leaking.Carrier, leaking.Receiver = 0.7, 0.01
	smeared.SNR = 30
	alone := fine
	alone.Devices = 1
	for want, r := range map[string]diagnosis.Report{
		"5000 samples of a frame were clipped: lower the receiver's gain":                             clipped,
		"an offset of 0.7 times a symbol stands under the frame by the mean of guard times (DC 0.01,": leaking,
		"the eye closes before the lattice by what comes with the signal":                             smeared,
		"the receiver blocks DC up to 1 kHz":                                                          blocked,
		"no scale brings the gains of 3 devices":                                                      fine,
		"no scale reads the one device in a slot":                                                     alone,
		"3 of 9 frames were not read: no scale":                                                       fine,
	} {
		if got := r.Sentence(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
