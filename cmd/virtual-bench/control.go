package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// controlVariable names a bench's socket in the environment of its programs.
const controlVariable = "VIRTUAL_BENCH"

const (
	controlPatience = 20 * time.Second
	maxControl      = 1 << 12 // bytes of a question or an answer
	answerGood      = "done"  // begins an answer, before lines of what it has
)

// control takes what programs in the bench's environment ask of it, one line each:
// "unplug BOARD", and "join", which is answered by an environment for one program.
type control struct {
	b      *bench
	ln     net.Listener
	folder string
	all    sync.WaitGroup
	// asked is held over a question.
	asked sync.Mutex
}

// openControl begins to listen.
func (b *bench) openControl() (*control, error) {
	folder, err := os.MkdirTemp("", "virtual-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the bench's socket: %w", err)
	}
	ln, err := net.Listen("unix", filepath.Join(folder, "control"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the bench's socket: %w", err), os.RemoveAll(folder))
	}
	c := &control{b: b, ln: ln, folder: folder}
	c.all.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.serve(conn) })
		}
	})
	return c, nil
}

// env is how programs find it.
func (c *control) env() string { return controlVariable + "=" + c.ln.Addr().String() }

func (c *control) close() error {
	err := c.ln.Close()
	c.all.Wait()
	return errors.Join(err, os.RemoveAll(c.folder))
}

// serve answers one question. Who asked and is gone misses the answer.
func (c *control) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(controlPatience))
	line, err := bufio.NewReader(io.LimitReader(conn, maxControl)).ReadString('\n')
	if err != nil {
		return
	}
	c.asked.Lock()
	lines, err := c.answer(strings.Fields(line))
	c.asked.Unlock()
	if err != nil {
		_, _ = fmt.Fprintln(conn, err)
		return
	}
	_, _ = fmt.Fprintln(conn, strings.Join(append([]string{answerGood}, lines...), "\n"))
}

func (c *control) answer(words []string) ([]string, error) {
	switch {
	case len(words) == 2 && words[0] == "unplug":
		return nil, c.b.unplug(words[1])
	case len(words) == 1 && words[0] == "join" && c.b.bus != nil:
		return c.b.bus.Env()
	case len(words) == 1 && words[0] == "join":
		return nil, nil // all programs see the boards alike
	}
	return nil, fmt.Errorf("the bench was asked %q", words)
}

// unplug takes a board away while programs may have it open.
func (b *bench) unplug(name string) error {
	var names []string
	for i, n := range b.names {
		if n == name && b.bus != nil {
			return b.bus.Unplug(b.at[i])
		}
		if n == name {
			return b.attached[i].Close()
		}
		names = append(names, n)
	}
	for _, p := range b.plutos {
		if p.name == name {
			return p.close()
		}
		names = append(names, p.name)
	}
	return fmt.Errorf("the board is %q; allowed is %s", name, strings.Join(names, ", "))
}

// ask asks the bench in whose environment this program runs.
func ask(ctx context.Context, question string) (lines []string, err error) {
	path := os.Getenv(controlVariable)
	if path == "" {
		return nil, badInput{errors.New("this is not the environment of a bench, which has " + controlVariable + ": virtual-bench -- PROGRAM gives it to a program, and without one prints it")}
	}
	conn, err := (&net.Dialer{Timeout: controlPatience}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, badInput{fmt.Errorf("the bench of %s = %s has ended: %w", controlVariable, path, err)}
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(controlPatience)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(conn, question); err != nil {
		return nil, fmt.Errorf("asking the bench: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxControl))
	if err != nil {
		return nil, fmt.Errorf("asking the bench: %w", err)
	}
	lines = strings.Split(strings.TrimSpace(string(answer)), "\n")
	if lines[0] != answerGood {
		return nil, badInput{errors.New(lines[0])}
	}
	return lines[1:], nil
}

// asInput makes an error of arguments the user's to mend.
func asInput(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return badInput{err}
		}
		return nil
	}
}

// newUnplug makes the command for a program, or a user, in a bench's environment.
func newUnplug() *cobra.Command {
	return &cobra.Command{
		Use:   "unplug BOARD",
		Short: "Take a board away while programs use it",
		Long: `unplug takes a board of the bench away, in whose environment it runs: a transmitter by its
number, from 1 on, the receiver, rx, or the RTL2832U, rtl. Nothing plugs it in again.

  virtual-bench -n 2 -- sh -c 'hackrf_transfer -r /dev/null & sleep 3; virtual-bench unplug 1; wait'`,
		Args: asInput(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ContainsAny(args[0], " \t\r\n") || args[0] == "" {
				return badInput{fmt.Errorf("the board is %q; allowed is the number of a transmitter, rx or rtl", args[0])}
			}
			_, err := ask(cmd.Context(), "unplug "+args[0])
			return err
		},
	}
}

// newJoin makes the command that starts a program beside others.
func newJoin() *cobra.Command {
	join := &cobra.Command{
		Use:   "join PROGRAM ARGUMENT...",
		Short: "Run one of several programs on a bench",
		Long: `join becomes a program that sees the boards of the bench in whose environment it runs.
Several such programs may start at once. Without it they share files of umockdev's, which
are named alike in all of them, and one that starts together with another may see no USB.

  virtual-bench -n 2 -- sh -c 'virtual-bench join hackrf_info & virtual-bench join hackrf_info; wait'`,
		Args: asInput(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := ask(cmd.Context(), "join")
			if err != nil {
				return err
			}
			for _, line := range env {
				name, value, _ := strings.Cut(line, "=")
				if err := os.Setenv(name, value); err != nil {
					return err
				}
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return badInput{fmt.Errorf("the program to run, %s: %w", args[0], err)}
			}
			return fmt.Errorf("running %s: %w", args[0], syscall.Exec(path, args, os.Environ()))
		},
	}
	join.Flags().SetInterspersed(false) // flags behind PROGRAM are its own
	return join
}
