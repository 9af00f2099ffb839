package bringup

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"

	"ringwave/radio/intake"
)

// mostText bounds a configuration that goes from one program to another, in bytes.
const mostText = 1 << 20

// sending is the line that a program which sends says once it does.
const sending = "sending"

// Start starts a program that calls Serve, hands it the text of a configuration, and returns
// once it sends. kill ends it without a word; it ends by itself when this program does.
func Start(ctx context.Context, program string, args []string, text []byte) (kill func() error, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	kill = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	}
	if _, err = fmt.Fprintf(in, "%d\n%s", len(text), text); err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		_ = kill() // what went wrong before says more
		return nil, fmt.Errorf("%w: %s", err, intake.Sentence(said.String()))
	}
	return kill, nil
}

// Serve reads the text of a configuration from whoever started this program and hands it to
// send, which calls ready once it sends and goes on until its context ends: that is when in
// ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, send func(ctx context.Context, text []byte, ready func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := bufio.NewReader(io.LimitReader(in, 2*mostText))
	var length int
	if _, err := fmt.Fscanln(from, &length); err != nil || length < 0 || length > mostText {
		return intake.UserError(fmt.Errorf("standard input does not begin with a length in bytes; allowed is 0 to %d", mostText))
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(from, text); err != nil {
		return fmt.Errorf("reading a configuration of %d bytes from standard input: %w", length, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, from) // until whoever started this is gone
		cancel()
	}()
	return send(ctx, text, func() { fmt.Fprintln(out, sending) })
}
