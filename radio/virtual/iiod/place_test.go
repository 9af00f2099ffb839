package iiod_test

import (
	"net"
	"strings"
	"testing"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// A board with its two antennas on a bench in lock-step: what it sends it hears, at
// the gain of the link, and at no other frequency.
func TestPlaces(t *testing.T) {
	radiotest.Goroutines(t)
	tx, rx := iiod.NewPlace(radio.Transmit), iiod.NewPlace(radio.Receive)
	bench, err := virtual.NewBench(virtual.Config{
		Boards: []virtual.Place{{Radio: tx}, {Radio: rx}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 2}},
		Await:  []int{0, 1},
	})
	ok(t, err)
	defer func() { ok(t, bench.Close()) }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s, err := iiod.Serve(ln, iiod.Config{Receive: rx, Transmit: tx})
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	c := dial(t, ln.Addr().String())
	c.say(t, "WRITE ad9361-phy OUTPUT voltage0 hardwaregain 1\r\n0", "1\n")
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO frequency 10\r\n2400000000", "10\n")
	c.say(t, "WRITE ad9361-phy INPUT voltage0 sampling_frequency 7\r\n4000000", "7\n")
	c.say(t, "OPEN iio:device2 2 00000003\r\n", "0\n")
	c.say(t, "OPEN iio:device3 2 00000003\r\n", "0\n")
	block := func(sent, want string) {
		t.Helper()
		c.say(t, "WRITEBUF iio:device2 8\r\n", "0\n")
		c.say(t, sent, "8\n")
		if want != "" {
			c.say(t, "READBUF iio:device3 8\r\n", "8\n00000003\n"+want)
		}
	}
	block("\x10\x00\x20\x00\x30\x00\xf0\xff", "\x02\x00\x04\x00\x06\x00\xfe\xff")
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO frequency 10\r\n2500000000", "10\n")
	block("\x10\x00\x20\x00\x30\x00\xf0\xff", strings.Repeat("\x00", 8))
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO powerdown 1\r\n1", "1\n")
	c.say(t, "CLOSE iio:device2\r\n", "0\n")
	// Without anyone on the air it hears silence.
	c.say(t, "READBUF iio:device3 8\r\n", "8\n00000003\n"+strings.Repeat("\x00", 8))
	rx.Unplug()
	c.say(t, "CLOSE iio:device3\r\n", "0\n")
	c.say(t, "OPEN iio:device3 2 00000003\r\n", "-19\n")
}
