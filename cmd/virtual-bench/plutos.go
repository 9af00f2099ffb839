package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/virtual/iiod"
)

// kindHackRF is what boards are unless told otherwise. All other kinds are those of
// iiod.Profiles.
const kindHackRF = "hackrf"

// plutoUnitGain is the receive gain at which a Pluto hears what a transmitter at 0 dB sends
// as it is.
const plutoUnitGain radio.Decibels = 20

// plutoBacklog is less than the time for which an emulated Pluto bridges between the bench
// and who serves it: time that this machine was late by is left out, and no samples are
// lost in it.
const plutoBacklog = 10 * time.Millisecond

// kinds are the choices of --transmitter and --receiver.
func kinds() []string {
	return append([]string{kindHackRF}, slices.Sorted(maps.Keys(iiod.Profiles()))...)
}

// kind returns that of a board, of which the last is the receiver.
func (o *options) kind(board int) string {
	if board == o.transmitters && o.receiver != "" {
		return o.receiver
	}
	return o.transmitter
}

// plutos reports whether any board is one.
func (o *options) plutos() bool {
	return o.kind(0) != kindHackRF || o.kind(o.transmitters) != kindHackRF
}

// checkKinds says what is wrong with what the boards are to be.
func (o *options) checkKinds() error {
	for _, k := range []struct{ flag, kind string }{{"--transmitter", o.kind(0)}, {"--receiver", o.kind(o.transmitters)}} {
		if !slices.Contains(kinds(), k.kind) {
			return fmt.Errorf("%s is %q; allowed is %s", k.flag, k.kind, strings.Join(kinds(), ", "))
		}
	}
	if o.port < 0 || o.port > 65535-o.transmitters {
		return fmt.Errorf("--port is %d; allowed is 0 to %d", o.port, 65535-o.transmitters)
	}
	return nil
}

// pluto is a board behind an iiod: its antennas on the bench, and who serves it.
type pluto struct {
	name    string
	role    string
	config  iiod.Config
	server  *iiod.Server
	address string
	front   *exec.Cmd     // Debian's iiod; nil without
	gone    chan struct{} // closed once that has ended
}

// addPluto puts a Pluto's two antennas on the bench.
func (b *bench) addPluto(o *options, board int) {
	tx, rx := iiod.NewPlace(radio.Transmit), iiod.NewPlace(radio.Receive)
	b.seats = append(b.seats, seat{radio: tx, board: board, sends: true}, seat{radio: rx, board: board, hears: true})
	profile := iiod.Profiles()[o.kind(board)]
	name := profile.Model
	if name == "" {
		name = profile.Transceiver + ", emulated"
	}
	b.plutos = append(b.plutos, &pluto{name: nameOf(board, o.transmitters), role: b.role(name, board), config: iiod.Config{
		Profile: profile, Receive: rx, Transmit: tx, RealTime: !o.lockStep, UnitGain: plutoUnitGain,
		Serial: fmt.Sprintf("72696e67%08x", board),
	}})
}

// serve lets programs reach the Plutos, at ports from o.port on.
func (b *bench) serve(ctx context.Context, o *options) error {
	for i, p := range b.plutos {
		port := 0
		if o.port > 0 {
			port = o.port + i
		}
		if err := p.serve(ctx, port, o.iiod); err != nil {
			return err
		}
	}
	return nil
}

// serve takes a port, 0 for any that is free.
func (p *pluto) serve(ctx context.Context, port int, debians bool) error {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return badInput{fmt.Errorf("a port for an emulated board: %w; --port chooses others", err)}
	}
	p.address = ln.Addr().String()
	if debians { // which takes a port by itself, and so cannot be given this one
		if err := ln.Close(); err != nil {
			return err
		}
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	behind := ln.Addr().String()
	if p.server, err = iiod.Serve(ln, p.config); err != nil || !debians {
		return err
	}
	return p.startIIOD(ctx, behind)
}

// iiodPatience bounds how long Debian's iiod may take to listen.
const iiodPatience = 20 * time.Second

// startIIOD puts Debian's iiod in front of the board.
func (p *pluto) startIIOD(ctx context.Context, behind string) error {
	path, err := findIIOD()
	if err != nil {
		return badInput{err}
	}
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "-u", "ip:"+behind, "-p", port)
	standApart(cmd) // Ctrl-C is for programs, which need it to switch their carriers off
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	p.front, p.gone = cmd, make(chan struct{})
	go func() {
		defer close(p.gone)
		_ = cmd.Wait() // killed at the end
	}()
	return p.awaitIIOD(ctx)
}

// findIIOD finds it where Debian puts it, which is not on every user's path.
func findIIOD() (string, error) {
	for _, name := range []string{"iiod", "/usr/sbin/iiod"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("--iiod needs the program iiod: install the package iiod")
}

// awaitIIOD returns once it listens.
func (p *pluto) awaitIIOD(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, iiodPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-again.C:
		case <-p.gone:
			return fmt.Errorf("iiod for %s ended at once: %v", p.address, p.front.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("iiod does not listen at %s: %w", p.address, err)
		}
	}
}

// close ends who serves it.
func (p *pluto) close() error {
	if p.front != nil {
		_ = p.front.Process.Kill() // it may have ended
		<-p.gone
	}
	if p.server == nil {
		return nil
	}
	return p.server.Close()
}

// describePlutos says by which URIs they are reached.
func (b *bench) describePlutos(w io.Writer) {
	for _, p := range b.plutos {
		by := ""
		if p.front != nil {
			by = ", through Debian's iiod"
		}
		fmt.Fprintf(w, "  pluto:%s  %s%s\n", p.address, p.role, by)
	}
}
