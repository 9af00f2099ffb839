package iiod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"ringwave/radio"
)

// Config describes an emulated board.
type Config struct {
	// Receive is where received samples come from, a radio.ReceiveOpener; nil for a
	// board whose receiver cannot be opened.
	Receive radio.Device
	// Transmit is where transmitted samples go, a radio.TransmitOpener; nil for a
	// board whose transmitter cannot be opened.
	Transmit radio.Device
	// RealTime says that time does not wait: received blocks that nobody takes are
	// lost, as a board loses them. Without it the ends wait.
	RealTime bool
	// UnitGain is the receive gain that leaves samples as they are, -3 to 71 dB.
	UnitGain radio.Decibels
	// Profile is the sort of board, a Pluto unless given, and Path which of its antennas
	// the ends are joined to, 1 unless given. The others hear nothing.
	Profile Profile
	Path    int
	// Serial and Firmware are what the board says of itself; "" is that of an emulated
	// board.
	Serial, Firmware string
	// FirstDevice is the number of the first of the board's devices, 0 or more: real
	// boards differ.
	FirstDevice int
	// Log is told each command, by the number of its connection from 0; nil for
	// nobody. It may be called from several goroutines at once.
	Log func(connection int, line string)
}

// Server serves one emulated board. Make it with Serve.
type Server struct {
	board  *board
	ln     net.Listener
	cancel context.CancelFunc // ends the connections
	wg     sync.WaitGroup
}

// Serve serves a board on a listener, which it owns from now on, until Close.
func Serve(ln net.Listener, cfg Config) (*Server, error) {
	if cfg.Profile == (Profile{}) {
		cfg.Profile = Profiles()["pluto"]
	}
	if cfg.Path == 0 {
		cfg.Path = 1
	}
	if cfg.Serial == "" {
		cfg.Serial = "00000000000000000000000000000000"
	}
	if cfg.Firmware == "" {
		cfg.Firmware = "v0.38-emulated"
	}
	if err := check(cfg); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{board: newBoard(cfg), ln: ln, cancel: cancel}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		s.accept(ctx)
	}()
	return s, nil
}

func check(cfg Config) error {
	if _, ok := cfg.Receive.(radio.ReceiveOpener); cfg.Receive != nil && !ok {
		return fmt.Errorf("emulated Pluto: %s does not receive; allowed as Receive is a device that does", cfg.Receive.Info().URI)
	}
	if _, ok := cfg.Transmit.(radio.TransmitOpener); cfg.Transmit != nil && !ok {
		return fmt.Errorf("emulated Pluto: %s does not transmit; allowed as Transmit is a device that does", cfg.Transmit.Info().URI)
	}
	if cfg.FirstDevice < 0 {
		return fmt.Errorf("emulated Pluto: the first device is %d; allowed is 0 or more", cfg.FirstDevice)
	}
	if cfg.Path < 1 || cfg.Path > cfg.Profile.Paths {
		return fmt.Errorf("emulated Pluto: the ends are joined to path %d; allowed is 1 to %d", cfg.Path, cfg.Profile.Paths)
	}
	if !(cfg.UnitGain >= minRxGain && cfg.UnitGain <= maxRxGain) {
		return fmt.Errorf("emulated Pluto: the unit gain is %v; allowed is %v dB to %v dB", cfg.UnitGain, minRxGain, maxRxGain)
	}
	return nil
}

// Attribute reads an attribute of the board as a client would, by device, channel
// ("" for none; "TX_LO" and "voltage0" work, output first) and name.
func (s *Server) Attribute(device, channel, name string) (string, error) {
	for _, place := range []place{ofOutput, ofInput} {
		c := command{device: device, place: place, channel: channel, attr: name}
		if channel == "" {
			c.place = ofDevice
		}
		if v, err := s.board.read(c); err == nil {
			return v, nil
		}
	}
	return "", fmt.Errorf("emulated Pluto: device %s has no attribute %s %s", device, channel, name)
}

// Carrier reports whether a transmit oscillator is on: it leaks to the antenna then, through
// the attenuator as it is set, with samples and without.
func (s *Server) Carrier() bool {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	return slices.ContainsFunc(s.board.set.phys, func(p phySettings) bool { return !p.txDown })
}

// Close ends all connections and waits for them. The ends stay open.
func (s *Server) Close() error {
	s.cancel()
	err := s.ln.Close()
	s.wg.Wait()
	return err
}

func (s *Server) accept(ctx context.Context) {
	for n := 0; ; n++ {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.session(ctx, conn, n)
		}()
	}
}
