package calibration

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// now returns the bench that f was made of, an hour later.
func now(f File) Want {
	w := Want{Bench: f.Bench, Now: f.Created.Add(time.Hour)}
	for _, d := range f.Devices {
		t := d.Transmitter
		t.TransmitGainsDB = map[string]float64{"vga": 30}
		w.Transmitters = append(w.Transmitters, t)
	}
	w.Bench.ReceiveGainsDB = map[string]float64{"vga": 20, "lna": 16, "an odd one": 0.1}
	return w
}

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *File, w *Want)
		want   string // in a sentence; nothing: matches
		quick  bool
	}{
		"the same":       {func(*File, *Want) {}, "", false},
		"another socket": {func(_ *File, w *Want) { w.Transmitters[0].URI, w.Transmitters[0].Serial = "hackrf://9", "abc1" }, "", false},
		"rounded gain":   {func(_ *File, w *Want) { w.Transmitters[0].TransmitGainsDB["vga"] = 30.0000001 }, "", false},
		"expired":        {func(_ *File, w *Want) { w.Now = w.Now.Add(100 * time.Hour) }, "c.toml: valid_until is 2026-11-22T12:00:00Z, and now it is 2026-11-25T17:00:00Z: calibrate again", false},
		"serial":         {func(_ *File, w *Want) { w.Transmitters[1].Serial = "other" }, `c.toml: device 2: serial is "ABC2", and on the bench now "other": calibrate this bench`, false},
		"order":          {func(_ *File, w *Want) { w.Transmitters[1].Serial = "ABC3" }, "that board was device 3", false},
		"driver":         {func(_ *File, w *Want) { w.Transmitters[1].Driver = "pluto" }, `device 2: driver is "hackrf", and on the bench now "pluto"`, false},
		"no serials": {func(f *File, w *Want) {
			f.Devices[0].Serial, w.Transmitters[0].Serial, w.Transmitters[0].URI = "", "", "x"
		}, `device 1: uri is "hackrf://1"`, false},
		"receiver":           {func(_ *File, w *Want) { w.Bench.ReceiverSerial = "1" }, `bench.receiver_serial is "00ff"`, false},
		"kind":               {func(_ *File, w *Want) { w.Bench.Kind = Simulated }, `bench.kind is "radios"`, false},
		"rate":               {func(_ *File, w *Want) { w.Bench.SampleRateHz = 8e6 }, "bench.sample_rate_hz is 1e+07, and on the bench now 8e+06: set it back, or calibrate again", false},
		"frequency":          {func(_ *File, w *Want) { w.Bench.FrequencyHz += 1000 }, "bench.frequency_hz is 2.4370001235e+09, and on the bench now 2.4370011235e+09", false},
		"gain":               {func(_ *File, w *Want) { w.Transmitters[2].TransmitGainsDB["vga"] = 31 }, "device 3: transmit_gains_db.vga is 30 dB, and on the bench now 31 dB", false},
		"new stage":          {func(_ *File, w *Want) { w.Bench.ReceiveGainsDB["amp"] = 14 }, "bench.receive_gains_db.amp is not set, and on the bench now 14 dB", false},
		"clock":              {func(_ *File, w *Want) { w.Bench.Clock = "internal" }, `bench.clock is "external"`, false},
		"count":              {func(_ *File, w *Want) { w.Transmitters = w.Transmitters[:2] }, "the number of devices is 3, and on the bench now 2", false},
		"identity":           {func(_ *File, w *Want) { w.Bench.Identity = "cd" }, `bench.identity is "ab12"`, false},
		"identity not known": {func(_ *File, w *Want) { w.Bench.Identity = "" }, "", false},
		"session":            {func(_ *File, w *Want) { w.Bench.SessionID = "s2" }, `c.toml: bench.session_id is "s1", and on the bench now "s2": magnitudes hold, phases do not: a quick calibration`, true},
		"epoch":              {func(_ *File, w *Want) { w.Transmitters[2].Epoch = 7 }, "device 3: epoch is 2, and on the bench now 7: magnitudes hold", true},
		"receiver's epoch":   {func(_ *File, w *Want) { w.Bench.ReceiverEpoch = 7 }, "bench.receiver_epoch is 3", true},
		"lasting":            {func(_ *File, w *Want) { w.Transmitters[1].Epoch = 7 }, "", false},
		"all lasting": {func(f *File, w *Want) {
			f.Devices[0].PhaseLasts, f.Devices[2].PhaseLasts, w.Bench.SessionID, w.Bench.ReceiverEpoch = yes(), yes(), "s2", 9
		}, "", false},
		"both": {func(_ *File, w *Want) { w.Bench.SessionID, w.Transmitters[0].Serial = "s2", "other" }, `device 1: serial`, false},
	} {
		f := some()
		w := now(f)
		c.change(&f, &w)
		found := Match("c.toml", f, w)
		if c.want == "" {
			if len(found) != 0 {
				t.Errorf("%s: %v", name, found.Sentences())
			}
			continue
		}
		if len(found) == 0 || !strings.Contains(strings.Join(found.Sentences(), "\n"), c.want) {
			t.Errorf("%s: %v, want %q", name, found.Sentences(), c.want)
		}
		var refused *Error
		if err := found.Refusal(); found.NeedsQuick() != c.quick || errors.As(err, &refused) == c.quick || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: quick is %v with the refusal %v", name, found.NeedsQuick(), err)
		}
	}
}
