package pluto_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// The URI's settings arrive, and are read back.
func TestSettings(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, "freq_hz=868e6&rate_hz=4e6&rx_gain=31.7&tx_gain=-20.1&filter_hz=3e6")
	for _, c := range []struct{ device, channel, name, want string }{
		{"ad9361-phy", "RX_LO", "frequency", "868000000"},
		{"ad9361-phy", "TX_LO", "frequency", "868000000"},
		{"ad9361-phy", "voltage0", "sampling_frequency", "4000000"},
		{"ad9361-phy", "voltage0", "rf_bandwidth", "3000000"},
		// That of a transmitter is sent when one starts.
		{"ad9361-phy", "voltage0", "hardwaregain", "-10.000000 dB"},
	} {
		if got := b.attribute(t, c.device, c.channel, c.name); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.channel, c.name, got, c.want)
		}
	}
	for dir, want := range map[radio.Direction]radio.Decibels{radio.Receive: 31, radio.Transmit: -20.25} {
		if g, err := d.Gain(dir, "hardwaregain"); err != nil || g != want {
			t.Errorf("%v gain %v, %v; want %v", dir, g, err, want)
		}
		if f, want := d.Frequencies(dir), (radio.Span[radio.Hertz]{Min: 325e6, Max: 3800e6, Step: 1}); f != want {
			t.Errorf("%v frequencies %v", dir, f)
		}
		if d.Frequency(dir) != 868e6 || d.SampleRate(dir) != 4e6 || d.Filter(dir) != 3e6 {
			t.Errorf("%v: %v, %v, %v", dir, d.Frequency(dir), d.SampleRate(dir), d.Filter(dir))
		}
	}
	ok(t, d.SetAntenna(t.Context(), radio.Transmit, "B"), d.SetAntenna(t.Context(), radio.Receive, "C_N"))
	if d.Antenna(radio.Transmit) != "B" || b.attribute(t, "ad9361-phy", "voltage0", "rf_port_select") != "B" {
		t.Error("the antenna port did not change")
	}
	text := radio.Describe(d).String()
	for _, want := range []string{
		"PlutoSDR", "serial 104473541196000f1b00010102030405", "never tried on real hardware", "this program and its guard are killed at once",
		"transmit gain hardwaregain: -20.25 dB (-89.75 dB to 0 dB in steps of 0.25 dB)", "receive antenna: C_N (of A_BALANCED,", "counted by the host",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the description lacks %q:\n%s", want, text)
		}
	}
}

func TestBadSettings(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, "")
	_, frequency := d.SetFrequency(t.Context(), radio.Receive, 100e6)
	_, rate := d.SetSampleRate(t.Context(), radio.Receive, 1e6)
	_, gain := d.SetGain(t.Context(), radio.Receive, "hardwaregain", 72)
	_, stage := d.SetGain(t.Context(), radio.Receive, "lna", 1)
	antenna := d.SetAntenna(t.Context(), radio.Transmit, "C")
	for err, want := range map[error]string{
		frequency: "the receive frequency of pluto:" + b.address + " is 100 MHz; allowed is 325 MHz to 3.8 GHz in steps of 1 Hz",
		rate:      "the receive sample rate of pluto:" + b.address + " is 1 MHz; allowed is 2.083333 MHz to 61.44 MHz in steps of 1 Hz",
		gain:      "the receive gain hardwaregain of pluto:" + b.address + " is 72 dB; allowed is -3 dB to 71 dB in steps of 1 dB",
		stage:     "has no receive gain \"lna\"; allowed is hardwaregain",
		antenna:   "the transmit antenna of pluto:" + b.address + " is \"C\"; allowed is A, B",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for uri, want := range map[string]string{
		"pluto:" + b.address + "?feed=some":  `parameter feed=some; allowed is fill, strict`,
		"pluto:" + b.address + "?gain=3":     `parameter "gain"; allowed is channel, freq_hz,`,
		"pluto:" + b.address + "?blocks=1":   `parameter blocks=1; allowed is a whole number from 2 to 64`,
		"pluto:" + b.address + "?tx_gain=1":  `parameter tx_gain=1; allowed is a number from -100 to 0`,
		"pluto:" + b.address + "?freq_hz=x":  `parameter freq_hz=x; allowed is a number from 1000000 to 10000000000`,
		"pluto:board:99999":                  `name "board:99999"; allowed is a host, or host:port`,
		"pluto:" + b.address + "?rx_gain=90": `allowed is -3 dB to 71 dB`,
	} {
		u, err := radio.ParseURI(uri)
		ok(t, err)
		if _, err := pluto.NewOpener(t.Context(), everything(t), virtual.NewGuard()).Open(t.Context(), u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", uri, err, want)
		}
	}
}

// Nothing is sent that is not permitted, and refusals leave the board off.
func TestPermit(t *testing.T) {
	narrow, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 868e6, Max: 869e6}, 200e3, -30)
	ok(t, err)
	b := newBench(t, loopback.Config{}, nil)
	for name, c := range map[string]struct {
		permit radio.TransmitPermit
		params string
	}{
		"nothing permitted": {radio.TransmitPermit{}, "freq_hz=868.5e6"},
		"another frequency": {narrow, "freq_hz=868.05e6"},
		"frequency unset":   {narrow, ""},
	} {
		d := open(t, t.Context(), c.permit, b.address, c.params)
		if _, err := d.OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrNotPermitted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	u, err := radio.ParseURI("pluto:" + b.address + "?tx_gain=-29")
	ok(t, err)
	if _, err := pluto.NewOpener(t.Context(), narrow, virtual.NewGuard()).Open(t.Context(), u); !errors.Is(err, radio.ErrNotPermitted) {
		t.Errorf("too much gain in the URI: %v", err)
	}
	d := open(t, t.Context(), narrow, b.address, "freq_hz=868.5e6")
	if _, err := d.SetGain(t.Context(), radio.Transmit, "hardwaregain", -29.75); !errors.Is(err, radio.ErrNotPermitted) {
		t.Errorf("too much gain: %v", err)
	}
	x, err := d.OpenTransmitter(t.Context())
	ok(t, err)
	if _, err := d.SetFrequency(t.Context(), radio.Transmit, 869e6); !errors.Is(err, radio.ErrNotPermitted) {
		t.Errorf("tuning away under an open transmitter: %v", err)
	}
	// Another program tunes the board between Open and Start.
	if out, err := exec.Command(tool(t, "iio_attr"), "-u", "ip:"+b.address, "-c", "ad9361-phy", "TX_LO", "frequency", "900000000").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := x.Start(t.Context()); !errors.Is(err, radio.ErrNotPermitted) {
		t.Errorf("another program tuned away: %v", err)
	}
	ok(t, x.Close())
	b.isOff(t)
}

// What switches the carrier comes in the order that lets out nothing else: down
// before samples flow, up after, down before they end.
func TestOrderOfPower(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, ideal+"&block=1024&feed=strict")
	b.take()
	tx := transmitter(t, d)
	_, err := tx.Write(t.Context(), noise(1, 1024), radio.TxMeta{BurstEnd: true})
	ok(t, err, tx.Close())
	got := strings.Join(b.take(), "\n")
	const gain = "WRITE iio:device0 OUTPUT voltage0 hardwaregain "
	at := 0
	for _, want := range []string{
		gain, `"-89.75\x00"`, "altvoltage1 powerdown", `"1\x00"`,
		"WRITE iio:device2 OUTPUT altvoltage0 raw", `"0\x00"`, "altvoltage1 raw", "altvoltage2 raw", "altvoltage3 raw",
		"SET iio:device2 BUFFERS_COUNT 4", "OPEN iio:device2 1024 00000003",
		"READ iio:device0 OUTPUT altvoltage1 frequency", "altvoltage1 powerdown", `"0\x00"`, gain, `"0\x00"`,
		"WRITEBUF iio:device2 4096", // and what pushes it through the board's four blocks
		"WRITEBUF iio:device2 4096", "WRITEBUF iio:device2 4096", "WRITEBUF iio:device2 4096", "WRITEBUF iio:device2 4096",
		gain, `"-89.75\x00"`, "altvoltage1 powerdown", `"1\x00"`, "CLOSE iio:device2",
	} {
		k := strings.Index(got[at:], want)
		if k < 0 {
			t.Fatalf("%s does not follow in\n%s", want, got)
		}
		at += k + len(want)
	}
	b.isOff(t)
}

// The end of the session switches the carrier off, at once and whatever was written.
func TestSessionEnds(t *testing.T) {
	radiotest.Goroutines(t)
	b := newBench(t, loopback.Config{}, nil)
	session, end := context.WithCancel(t.Context())
	d := open(t, session, everything(t), b.address, ideal+"&block=1024")
	tx := transmitter(t, d)
	end()
	// Nobody reads, so that the medium takes no more at some time.
	for {
		if _, err := tx.Write(t.Context(), make([]complex64, 1<<16), radio.TxMeta{}); err != nil {
			if !errors.Is(err, pluto.ErrSessionOver) {
				t.Error(err)
			}
			break
		}
	}
	ok(t, tx.Close())
	b.isOff(t)
	if _, err := d.OpenTransmitter(t.Context()); !errors.Is(err, pluto.ErrSessionOver) {
		t.Error(err)
	}
}

// Who transmits has a guard, from before the carrier is switched on until it is off; without
// one, or with one that is lost, there is no carrier.
func TestGuard(t *testing.T) {
	radiotest.Goroutines(t)
	b := newBench(t, loopback.Config{}, nil)
	u, err := radio.ParseURI("pluto:" + b.address + "?" + ideal + "&block=1024")
	ok(t, err)
	none, err := pluto.NewOpener(t.Context(), everything(t), nil).Open(t.Context(), u)
	ok(t, err)
	if _, err := none.(radio.TransmitOpener).OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrNoGuard) {
		t.Error(err)
	}
	ok(t, none.Close())
	g := virtual.NewGuard()
	dev, err := pluto.NewOpener(t.Context(), everything(t), g).Open(t.Context(), u)
	ok(t, err)
	tx := transmitter(t, dev)
	if w, want := g.Watched(), "pluto:"+b.address+"?deadline_ms=2000"; len(w) != 1 || w[0] != want {
		t.Errorf("watched are %q, want %s", w, want)
	}
	if b.attribute(t, "ad9361-phy", "TX_LO", "powerdown") != "0" {
		t.Error("there is no carrier")
	}
	g.Lose("a reason")
	for err == nil {
		_, err = tx.Write(t.Context(), make([]complex64, 1<<16), radio.TxMeta{})
	}
	if !errors.Is(err, radio.ErrGuard) || !strings.Contains(err.Error(), "cannot be relied on: a reason") {
		t.Error(err)
	}
	_ = tx.Close() // it has failed
	b.isOff(t)
	b.take()
	d := dev.(*pluto.Device)
	if _, err := d.OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrGuard) {
		t.Errorf("once more: %v", err)
	}
	ok(t, d.Close())
	if w := g.Watched(); len(w) != 0 {
		t.Errorf("what is off is watched: %q", w)
	}
	for _, line := range b.take() {
		if strings.Contains(line, "powerdown") && strings.HasSuffix(line, " 0") {
			t.Errorf("without a guard: %s", line)
		}
	}
	b.isOff(t)
}

// A program that stood still while the carrier is being switched on learns it behind that,
// before anything else tells it.
func TestStoodStillWhileStarting(t *testing.T) {
	var stood atomic.Bool
	var powering atomic.Int64 // the connection whose next value is for the powerdown, from 1
	b := newBench(t, loopback.Config{}, func(c *iiod.Config) {
		log := c.Log
		c.Log = func(connection int, line string) {
			log(connection, line)
			self := int64(connection) + 1
			switch {
			case strings.HasPrefix(line, "WRITE ") && strings.Contains(line, "powerdown"):
				powering.Store(self)
			case powering.CompareAndSwap(self, 0) && line == `  "0\x00"`:
				stood.Store(true)
			}
		}
	})
	u, err := radio.ParseURI("pluto:" + b.address + "?" + ideal + "&block=256")
	ok(t, err)
	d, err := pluto.NewOpener(t.Context(), everything(t), radiotest.StandingGuard{Stood: &stood}).Open(t.Context(), u)
	ok(t, err)
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
	ok(t, err)
	if err := tx.Start(t.Context()); !errors.Is(err, radio.ErrGuard) {
		t.Error(err)
	}
	b.isOff(t)
	_ = tx.Close() // it has failed
	ok(t, d.Close())
}

// countdown does something at one of the commands that a board hears once it is armed.
type countdown struct {
	do func()

	mu   sync.Mutex
	left int // commands until then
}

// hear counts what a board that is served with c hears.
func (d *countdown) hear(c *iiod.Config) {
	log := c.Log
	c.Log = func(connection int, line string) {
		log(connection, line)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.left--; d.left == 0 {
			d.do()
		}
	}
}

// arm counts so many commands from now on.
func (d *countdown) arm(commands int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = commands
}

// over reports whether it has come to that.
func (d *countdown) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left <= 0
}

// A guard that is lost while the carrier is being switched on, at each command: it is off
// afterwards.
func TestGuardLostWhileStarting(t *testing.T) {
	for k := range 30 {
		g := virtual.NewGuard()
		c := &countdown{do: func() { g.Lose("stopped here") }}
		b := newBench(t, loopback.Config{}, c.hear)
		u, err := radio.ParseURI("pluto:" + b.address + "?" + ideal + "&block=256")
		ok(t, err)
		d, err := pluto.NewOpener(t.Context(), everything(t), g).Open(t.Context(), u)
		ok(t, err)
		tx, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
		ok(t, err)
		c.arm(k + 1)
		_ = tx.Start(t.Context()) // it may fail or not
		if c.over() {
			_, err = tx.Write(t.Context(), make([]complex64, 8), radio.TxMeta{})
			for err == nil {
				_, err = tx.Write(t.Context(), make([]complex64, 8), radio.TxMeta{})
			}
			// A write may fail while the carrier is being switched off.
			for began := time.Now(); !b.silent(t); {
				if time.Since(began) > 10*time.Second {
					t.Errorf("lost at command %d, failed by %v, and the carrier stays on", k, err)
					break
				}
			}
		}
		_ = tx.Close()
		b.isOff(t)
		ok(t, d.Close())
	}
}

// A stream that is closed as its session has ended has lost what was written, and says
// nothing of it: who ended the session knows.
func TestSessionEndsBeforeClose(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	for range 20 {
		session, end := context.WithCancel(t.Context())
		d := open(t, session, everything(t), b.address, ideal+"&block=1024")
		tx := transmitter(t, d)
		if _, err := tx.Write(t.Context(), make([]complex64, 1<<16), radio.TxMeta{}); err != nil {
			t.Fatal(err)
		}
		end()
		ok(t, tx.Close(), d.Close())
		b.isOff(t)
	}
}

// A session that ends while the carrier is being switched on: it is off afterwards.
func TestSessionEndsWhileStarting(t *testing.T) {
	for k := range 60 {
		session, end := context.WithCancel(t.Context())
		c := &countdown{do: end}
		b := newBench(t, loopback.Config{}, c.hear)
		d := open(t, session, everything(t), b.address, ideal+"&block=256")
		tx, err := d.OpenTransmitter(t.Context())
		ok(t, err)
		c.arm(1 + k%30)
		if err := tx.Start(t.Context()); err != nil && !errors.Is(err, pluto.ErrSessionOver) {
			t.Errorf("after %d commands: %v", 1+k%30, err)
		}
		end()
		ok(t, tx.Close(), d.Close())
		b.isOff(t)
	}
}

// What switches a carrier off is not overtaken by what was to switch it on: the command
// that the board works on when the session ends is answered before another connection
// says anything.
func TestOffComesBehindOn(t *testing.T) {
	session, end := context.WithCancel(t.Context())
	defer end()
	var mu sync.Mutex
	on, off := -1, -1 // the connections whose next value is for the powerdown
	var delayed sync.Once
	overtaken := make(chan struct{})
	b := newBench(t, loopback.Config{}, func(c *iiod.Config) {
		log := c.Log
		began := false
		c.Log = func(connection int, line string) {
			log(connection, line)
			mu.Lock()
			switch {
			case strings.Contains(line, "WRITE") && strings.Contains(line, "powerdown"):
				on = connection
			case on == connection && line == `  "0\x00"`:
				began, on = true, -1
				mu.Unlock()
				delayed.Do(func() {
					end()
					select {
					case <-overtaken:
					case <-time.After(200 * time.Millisecond): // nobody overtakes
					}
				})
				return
			case on == connection && began && line == `  "1\x00"`:
				off, on = connection, -1
			case off == connection: // that was carried out
				off = -1
				close(overtaken)
			case on == connection:
				on = -1
			}
			mu.Unlock()
		}
	})
	d := open(t, session, everything(t), b.address, ideal+"&block=256")
	tx, err := d.OpenTransmitter(t.Context())
	ok(t, err)
	if err := tx.Start(t.Context()); !errors.Is(err, pluto.ErrSessionOver) {
		t.Error(err)
	}
	ok(t, tx.Close(), d.Close())
	b.isOff(t)
}

// Nothing is switched on for a session that is over.
func TestStartBehindTheSession(t *testing.T) {
	session, end := context.WithCancel(t.Context())
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, session, everything(t), b.address, ideal)
	tx, err := d.OpenTransmitter(t.Context())
	ok(t, err)
	b.take()
	end()
	if err := tx.Start(t.Context()); !errors.Is(err, pluto.ErrSessionOver) {
		t.Error(err)
	}
	for _, line := range b.take() {
		if strings.Contains(line, "WRITE") || strings.Contains(line, "OPEN") {
			t.Errorf("the board was told: %s", line)
		}
	}
	ok(t, tx.Close())
}

// Device numbers are not assumed.
func TestOtherNumbers(t *testing.T) {
	b := newBench(t, loopback.Config{}, func(c *iiod.Config) { c.FirstDevice = 1 })
	loop(t, b.address, 10_000, "")
	if lines := b.take(); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, "OPEN iio:device4 4096 00000003") }) {
		t.Errorf("%q", lines)
	}
}

func TestBusy(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, ideal)
	rx := receiver(t, d)
	if _, err := d.OpenReceiver(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if err := rx.Start(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, err := d.SetSampleRate(t.Context(), radio.Receive, 5e6); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, err := d.SetSampleRate(t.Context(), radio.Transmit, 4e6); err != nil {
		t.Error(err)
	}
	// Another program.
	other := open(t, t.Context(), everything(t), b.address, ideal)
	second, err := other.OpenReceiver(t.Context())
	ok(t, err)
	if err := second.Start(t.Context()); !errors.Is(err, pluto.Errno(16)) || !strings.Contains(err.Error(), "the board is in use") {
		t.Error(err)
	}
	ok(t, second.Close())
	second, err = other.OpenReceiver(t.Context())
	ok(t, err, rx.Close(), second.Start(t.Context()))
	ok(t, second.Close(), d.Close())
	if _, err := d.OpenReceiver(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if _, err := d.SetFrequency(t.Context(), radio.Receive, 1e9); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// The commands for the same settings and streams are those of libiio, letter by
// letter, and in its order on each connection.
func TestTranscript(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, "")
	b.take()
	_, frequency := d.SetFrequency(t.Context(), radio.Receive, 1e9)
	_, gain := d.SetGain(t.Context(), radio.Receive, "hardwaregain", 20)
	_, rate := d.SetSampleRate(t.Context(), radio.Receive, 3e6)
	ok(t, frequency, gain, rate)
	ours := commands(b.take())

	for _, args := range [][]string{
		{"-c", "ad9361-phy", "RX_LO", "frequency", "1000000000"},
		{"-i", "-c", "ad9361-phy", "voltage0", "gain_control_mode", "manual"},
		{"-i", "-c", "ad9361-phy", "voltage0", "hardwaregain", "20"},
		{"-i", "-c", "ad9361-phy", "voltage0", "sampling_frequency", "3000000"},
		{"-i", "-c", "ad9361-phy", "voltage0", "rf_bandwidth", "3000000"},
		{"-o", "-c", "ad9361-phy", "voltage0", "rf_bandwidth", "3000000"},
	} {
		if out, err := exec.Command(tool(t, "iio_attr"), append([]string{"-u", "ip:" + b.address}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	theirs := commands(b.take())
	// Reading back is each one's own matter.
	written := func(all []string) (w []string) {
		for k, l := range all {
			if strings.HasPrefix(l, "WRITE") {
				w = append(w, l+all[k+1])
			}
		}
		return w
	}
	if a, b := written(ours), written(theirs); !slices.Equal(a, b) || len(a) != 6 {
		t.Errorf("ours\n%q\nlibiio's\n%q", a, b)
	}

	// A stream of one block.
	feeder := transmitter(t, open(t, t.Context(), everything(t), b.address, ideal))
	b.take()
	r := receiver(t, open(t, t.Context(), everything(t), b.address, "block=256&feed=strict"))
	_, _, err := radio.ReadFull(t.Context(), r, make([]complex64, 256))
	ok(t, err, r.Close())
	ours = streaming(b.take())
	if out, err := exec.Command(tool(t, "iio_readdev"), "-u", "ip:"+b.address, "-b", "256", "-s", "256", "cf-ad9361-lpc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs = streaming(b.take())
	ok(t, feeder.Close())
	if len(ours) < 2 || len(theirs) < 2 || !slices.Equal(ours[:2], theirs[:2]) {
		t.Errorf("ours\n%q\nlibiio's\n%q", ours, theirs)
	}
}

// commands leaves the numbers of connections away.
func commands(lines []string) (all []string) {
	for _, l := range lines {
		_, c, _ := strings.Cut(l, " ")
		all = append(all, c)
	}
	return all
}

// streaming keeps what is about received samples, from where the device is opened.
func streaming(lines []string) (all []string) {
	for _, c := range commands(lines) {
		f := strings.Fields(c)
		if len(f) > 1 && f[1] == "iio:device3" && (f[0] == "OPEN" || f[0] == "READBUF" && len(all) > 0) {
			all = append(all, c)
		}
	}
	return all
}
