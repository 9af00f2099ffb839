// Command virtual-bench brings up emulated USB radios whose antennas are joined, for
// any program on this machine: see package radio/virtual.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ringwave/crypto/keystream"
)

// The exit statuses; that of a program which was started is passed on.
const (
	exitFailure     = 1   // the machine
	exitBadInput    = 2   // the user's to mend
	exitInterrupted = 130 // Ctrl-C
)

// badInput marks an error as the user's to mend.
type badInput struct{ error }

func (e badInput) Unwrap() error { return e.error }

// errInterrupted says that Ctrl-C ended the bench.
var errInterrupted = errors.New("interrupted")

func main() {
	os.Exit(execute(untilStopped(), os.Args[1:], os.Stdout, os.Stderr))
}

// untilStopped returns a context that ends by Ctrl-C, with errInterrupted, or by SIGTERM.
func untilStopped() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		if <-asked == os.Interrupt {
			cancel(errInterrupted)
		}
		cancel(context.Canceled)
	}()
	return ctx
}

// execute runs the command and gives its exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var input badInput
	var child *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &child) && child.ExitCode() > 0:
		return child.ExitCode()
	}
	fmt.Fprintln(stderr, "virtual-bench:", err)
	if errors.As(err, &input) {
		return exitBadInput
	}
	return exitFailure
}

// options are what the command line says.
type options struct {
	transmitters int
	transmitter  string // the kind
	receiver     string // "" for that of the transmitters
	iiod         bool
	port         int
	rtl          bool
	api          string
	gains        []float64
	noise        float64
	offsetPPM    float64
	phases       bool
	faults       []string
	hardware     []hardware // that faults name, of each HackRF
	lockStep     bool
	await        []string
	awaited      []int // that await names
	backlog      time.Duration
	kernel       bool
	seed         uint64
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "virtual-bench [flags] [-- PROGRAM ARGUMENT...]",
		Short: "Emulated USB radios for any program on this machine",
		Long: `virtual-bench plugs emulated HackRFs into this machine, N transmitters and a
receiver (each of them can do both), whose antennas are joined in a channel. It
prints the environment by which programs see them and stays until Ctrl-C, or runs
one program in that environment. Nothing is sent on any antenna, and nothing here
was compared with a real board.

  virtual-bench -- hackrf_info
  virtual-bench -n 3 --noise 0.01

In that environment virtual-bench join starts one of several programs, and
virtual-bench unplug takes a board away while they run.

With --transmitter pluto boards are Plutos, each at a port of this machine, and need no USB;
so they can be relatives of it. They have no triggers. --receiver makes the receiver of
another kind, and with --iiod Debian's program iiod serves each, at all of this machine's
addresses:

  virtual-bench -n 2 --transmitter pluto --iiod -- iio_info -u ip:127.0.0.1:30431

With --fault boards have hardware that is not perfect. BOARD is tx (all transmitters),
rx, all, or the number of a transmitter, from 1 on, as configurations count them:

  virtual-bench --phases --fault rx:dc=0.02,ppm=20 --fault all:filter-hz=700e3

` + usageOfFaults() + `

A board with an error of its reference is not on the common 10 MHz: what asks for that
("clock = external") refuses it. Spikes and mismatches are those of both directions.
All that is drawn comes from --seed.

Boards on USB need the package umockdev; with --kernel they need root and the kernel's
module vhci-hcd instead, and all programs see the boards.`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.plutos() && !cmd.Flags().Changed("backlog") {
				o.backlog = plutoBacklog
			}
			return run(cmd.Context(), o, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput{err} })
	f := root.Flags()
	f.IntVarP(&o.transmitters, "transmitters", "n", 2, "number of transmitters, 1 to 12")
	f.StringVar(&o.transmitter, "transmitter", kindHackRF, "kind of the transmitters: "+strings.Join(kinds(), ", "))
	f.StringVar(&o.receiver, "receiver", "", "kind of the receiver (default that of the transmitters)")
	f.BoolVar(&o.iiod, "iiod", false, "let Debian's program iiod serve each Pluto (package iiod)")
	f.IntVar(&o.port, "port", 30431, "port of the first Pluto, to which the next ones add, 0 for any that are free")
	f.BoolVar(&o.rtl, "rtl", false, "add an RTL2832U receiver")
	f.StringVar(&o.api, "api", "0106", "USB API of the HackRFs: 0102, 0106 or 0112")
	f.Float64SliceVar(&o.gains, "gain", nil, "gain from each transmitter to all others, -16 to 16 (default 1/N each)")
	f.Float64Var(&o.noise, "noise", 0, "standard deviation of the receivers' noise in each branch, 0 to 1 of full scale")
	f.Float64Var(&o.offsetPPM, "offset-ppm", 0, "take the common 10 MHz away and give oscillators errors of up to this, 0 to 1000")
	f.BoolVar(&o.phases, "phases", false, "give carriers a random phase at each start and retune, as boards have")
	f.StringArrayVar(&o.faults, "fault", nil, "what is wrong with a board's hardware, BOARD:KEY=VALUE,...; may be given several times")
	f.BoolVar(&o.lockStep, "lock-step", false, "go as fast as programs do, without over- and underruns, in place of real time")
	f.StringSliceVar(&o.await, "await", nil, "boards without which time does not begin, as for --fault, with --lock-step")
	f.DurationVar(&o.backlog, "backlog", 100*time.Millisecond, "how late this machine may be before the bench leaves time out, 1ms to 1m; "+plutoBacklog.String()+" with Plutos")
	f.BoolVar(&o.kernel, "kernel", false, "plug the boards into the kernel (needs root and the module vhci-hcd)")
	root.AddCommand(newUnplug(), newJoin())
	root.CompletionOptions.DisableDefaultCmd = true
	f.Uint64Var(&o.seed, "seed", 1, "seed of noise, phases and oscillators")
	return root
}

// run brings the bench up and lets it be used.
func run(ctx context.Context, o options, program []string, stdout, stderr io.Writer) (err error) {
	b, err := build(o, keystream.FromInteger(o.seed))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.serve(ctx, &o); err != nil {
		return err
	}
	env, err := b.plug(ctx, o.kernel)
	if err != nil {
		return err
	}
	c, err := b.openControl()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	env = append(env, c.env())
	b.describe(stderr)
	if len(program) > 0 {
		err := start(ctx, env, program, stdout, stderr)
		b.report(stderr)
		return err
	}
	for _, line := range env {
		fmt.Fprintln(stdout, "export", line)
	}
	fmt.Fprintln(stderr, b.invitation(o.kernel))
	<-ctx.Done()
	b.report(stderr)
	return errInterrupted
}

// passOn tells a program to end, unless that was Ctrl-C, which it has from the terminal: of
// two, ringwave takes the second for an order to end without switching boards off.
func passOn(ctx context.Context, signal func(os.Signal) error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return nil
	}
	return signal(syscall.SIGINT)
}

// start runs a program and waits for it, which has time to end.
func start(ctx context.Context, env, program []string, stdout, stderr io.Writer) error {
	path, err := exec.LookPath(program[0])
	if err != nil {
		return badInput{fmt.Errorf("the program to run, %s: %w", program[0], err)}
	}
	cmd := exec.CommandContext(ctx, path, program[1:]...)
	cmd.Cancel = func() error { return passOn(ctx, cmd.Process.Signal) }
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", program[0], err)
	}
	return nil
}
