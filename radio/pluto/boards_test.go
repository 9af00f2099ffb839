package pluto_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// path returns the names of a channel's transceiver and of its path of it.
func path(channel int) (phy, id string) {
	phy = "ad9361-phy"
	if channel > 2 {
		phy = "ad9361-phy-B"
	}
	return phy, fmt.Sprintf("voltage%d", (channel-1)%2)
}

// Each board has the ranges that it tells, and what is sent and heard goes by the channel
// that was chosen, through Debian's iiod.
func TestBoards(t *testing.T) {
	for name, profile := range iiod.Profiles() {
		for channel := 1; channel <= profile.Paths; channel++ {
			t.Run(fmt.Sprintf("%s/%d", name, channel), func(t *testing.T) {
				b := newBench(t, loopback.Config{}, func(cfg *iiod.Config) { cfg.Profile, cfg.Path = profile, channel })
				address := b.realIIOD(t)
				d := open(t, t.Context(), everything(t), address, fmt.Sprintf("channel=%d&%s", channel, ideal))
				if d.Frequencies(radio.Receive) != profile.RxFrequencies || d.Frequencies(radio.Transmit) != profile.TxFrequencies || d.SampleRates(radio.Receive) != profile.Rates {
					t.Errorf("%v, %v, %v", d.Frequencies(radio.Receive), d.Frequencies(radio.Transmit), d.SampleRates(radio.Receive))
				}
				if m := d.Info().Model; m == "" || profile.Model != "" && m != profile.Model {
					t.Errorf("the model is %q", m)
				}
				ok(t, d.Close())
				loop(t, address, 10_000, fmt.Sprintf("channel=%d", channel))
				phy, id := path(channel)
				out, err := exec.Command(tool(t, "iio_attr"), "-u", "ip:"+address, "-i", "-c", phy, id, "hardwaregain").Output()
				if ok(t, err); strings.TrimSpace(string(out)) != "0.000000 dB" {
					t.Errorf("the gain is %s", out)
				}
			})
		}
	}
}

// One oscillator drives two antennas: both are silenced before it is switched on, and one
// of them alone is sent with.
func TestOtherChannelIsSilent(t *testing.T) {
	b := newBench(t, loopback.Config{}, func(cfg *iiod.Config) { cfg.Profile = iiod.Profiles()["fmcomms5"] })
	gainOf := func(channel int) string {
		phy, id := path(channel)
		return b.attribute(t, phy, id, "hardwaregain")
	}
	d := open(t, t.Context(), everything(t), b.address, "channel=3&"+ideal)
	x := transmitter(t, d)
	for channel, want := range map[int]string{1: "-89.750000 dB", 2: "-89.750000 dB", 3: "0.000000 dB", 4: "-89.750000 dB"} {
		if g := gainOf(channel); g != want {
			t.Errorf("channel %d sends at %s, want %s", channel, g, want)
		}
	}
	for phy, want := range map[string]string{"ad9361-phy": "1", "ad9361-phy-B": "0"} {
		if v := b.attribute(t, phy, "TX_LO", "powerdown"); v != want {
			t.Errorf("the powerdown of %s is %s, want %s", phy, v, want)
		}
	}
	for _, tone := range []string{"TX1_I_F1", "TX2_Q_F2", "TX3_I_F1", "TX4_Q_F2"} {
		if v := b.attribute(t, "cf-ad9361-dds-core-lpc", tone, "raw"); v != "0" {
			t.Errorf("the tone %s is on", tone)
		}
	}
	// A guard's switch is told of no channel.
	u, err := radio.ParseURI("pluto:" + b.address)
	ok(t, err)
	s, err := pluto.OpenSwitch(t.Context(), u)
	ok(t, err, s.Off(), s.Close())
	if g := gainOf(3); g != "-89.750000 dB" || b.server.Carrier() {
		t.Errorf("after the switch the channel is at %s, its oscillator on %v", g, b.server.Carrier())
	}
	ok(t, x.Close())
}

// Two channels of a board are not two transmitters: opening one would switch off the other.
func TestOneTransmitterABoard(t *testing.T) {
	b := newBench(t, loopback.Config{}, func(cfg *iiod.Config) { cfg.Profile = iiod.Profiles()["antsdr-e310"] })
	opener := pluto.NewOpener(t.Context(), everything(t), virtual.NewGuard())
	channel := func(n int) *pluto.Device {
		u, err := radio.ParseURI(fmt.Sprintf("pluto:%s?channel=%d&%s", b.address, n, ideal))
		ok(t, err)
		d, err := opener.Open(t.Context(), u)
		ok(t, err)
		t.Cleanup(func() { ok(t, d.Close()) })
		return d.(*pluto.Device)
	}
	first, second := channel(1), channel(2)
	x := transmitter(t, first)
	if _, err := second.OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrBusy) || !strings.Contains(err.Error(), "allowed is one transmitter a board") {
		t.Error(err)
	}
	if !b.server.Carrier() {
		t.Error("the first was switched off")
	}
	ok(t, x.Close())
	ok(t, transmitter(t, second).Close())
}

// The range of the receive gain goes with the frequency, and the URI's is checked against
// that of its frequency.
func TestGainsOfFrequency(t *testing.T) {
	b := newBench(t, loopback.Config{}, func(cfg *iiod.Config) { cfg.Profile = iiod.Profiles()["antsdr-e200"] })
	d := open(t, t.Context(), everything(t), b.address, "freq_hz=433.92e6&rx_gain=73")
	if s := d.GainStages(radio.Receive)[0].Span; s.Min != -1 || s.Max != 73 {
		t.Errorf("at 433.92 MHz the gain is from %v to %v", s.Min, s.Max)
	}
	_, err := d.SetFrequency(t.Context(), radio.Receive, 5.8e9)
	ok(t, err)
	g, err := d.Gain(radio.Receive, "hardwaregain")
	if s := d.GainStages(radio.Receive)[0].Span; err != nil || s.Min != -10 || s.Max != 62 || g != 62 {
		t.Errorf("at 5.8 GHz the gain is %v from %v to %v, %v", g, s.Min, s.Max, err)
	}
	if _, err := d.SetGain(t.Context(), radio.Receive, "hardwaregain", 63); err == nil || !strings.Contains(err.Error(), "allowed is -10 dB to 62 dB") {
		t.Error(err)
	}
}

// A channel that a board does not have is refused with what it has.
func TestNoSuchChannel(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	u, err := radio.ParseURI("pluto:" + b.address + "?channel=2")
	ok(t, err)
	want := `opening device "pluto:` + b.address + `?channel=2": the board "Analog Devices PlutoSDR Rev.C (Z7010-AD9363A), emulated": it has no channel 2 to receive; allowed is channel=1 to channel=1`
	if _, err := pluto.NewOpener(t.Context(), everything(t), virtual.NewGuard()).Open(t.Context(), u); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
