//go:build linux && amd64

// Command kernel-bench runs a program in a virtual machine whose Linux has a virtual
// USB host controller, so that emulated boards go through a real kernel. It needs
// QEMU, ldd and xz, and no root: see scripts/kernel-bench, which finds the kernel.
//
// The same binary is the machine's first process: it loads the modules, runs the
// program and hands its exit status out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit statuses; that of the program is passed on.
const (
	exitFailure     = 1
	exitBadInput    = 2
	exitInterrupted = 130
)

// badInput marks an error as the user's to mend.
type badInput struct{ error }

func (e badInput) Unwrap() error { return e.error }

// exited is the status of the program in the machine.
type exited int

func (e exited) Error() string { return fmt.Sprintf("the program ended with status %d", int(e)) }

func main() {
	if os.Getpid() == 1 {
		guest()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command and gives its exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var input badInput
	var program exited
	switch {
	case err == nil:
		return 0
	case errors.As(err, &program):
		return int(program)
	case ctx.Err() != nil:
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "kernel-bench:", err)
	if errors.As(err, &input) {
		return exitBadInput
	}
	return exitFailure
}

// options are what the command line says.
type options struct {
	kernel  string
	memory  int
	timeout time.Duration
	add     []string
	env     []string
	out     string
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "kernel-bench --kernel FOLDER [flags] -- PROGRAM ARGUMENT...",
		Short: "Run a program in a virtual machine with virtual USB",
		Long: `kernel-bench runs a program, as root, in a virtual machine whose Linux can have
virtual USB boards. In the machine are the program, what --add names, the libraries
that they need, and nothing else; programs are in /bin, so that one can start another.

  kernel-bench --kernel FOLDER --add hackrf_info -- ./virtual-bench --kernel -- hackrf_info

FOLDER has vmlinuz and the modules usb-common.ko, usbcore.ko, usbip-core.ko and
vhci-hcd.ko of one kernel.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MinimumNArgs(1)(cmd, args); err != nil {
				return badInput{err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), o, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput{err} })
	f := root.Flags()
	f.StringVar(&o.kernel, "kernel", "", "folder with the kernel")
	f.IntVar(&o.memory, "memory", 512, "memory of the machine in MiB, 128 to 8192")
	f.DurationVar(&o.timeout, "timeout", 4*time.Minute, "time after which the machine is stopped, 1s to 1h")
	f.StringSliceVar(&o.add, "add", nil, "other programs to have in /bin")
	f.StringArrayVar(&o.env, "env", nil, "NAME=value of the program's environment")
	f.StringVar(&o.out, "out", "", "file to copy what the program leaves in /out to")
	return root
}

func (o *options) check() error {
	if o.memory < 128 || o.memory > 8192 {
		return fmt.Errorf("--memory is %d; allowed is 128 to 8192", o.memory)
	}
	if o.timeout < time.Second || o.timeout > time.Hour {
		return fmt.Errorf("--timeout is %v; allowed is 1s to 1h", o.timeout)
	}
	for _, name := range append([]string{"vmlinuz"}, modules()...) {
		if _, err := os.Stat(filepath.Join(o.kernel, name)); err != nil {
			return fmt.Errorf("--kernel: %w; see scripts/kernel-bench", err)
		}
	}
	return nil
}

// modules are those of USB/IP, in the order in which they are loaded.
func modules() []string {
	return []string{"usb-common.ko", "usbcore.ko", "usbip-core.ko", "vhci-hcd.ko"}
}

// run makes the machine and waits for it.
func run(ctx context.Context, o options, program []string, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return badInput{err}
	}
	dir, err := os.MkdirTemp("", "kernel-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the machine: %w", err)
	}
	defer os.RemoveAll(dir)
	kernel, err := unpackKernel(ctx, filepath.Join(o.kernel, "vmlinuz"), dir)
	if err != nil {
		return err
	}
	initrd := filepath.Join(dir, "initrd")
	if err := packInitrd(initrd, o, program); err != nil {
		return err
	}
	out := filepath.Join(dir, "out")
	return boot(ctx, o, kernel, initrd, out, stdout, stderr)
}

// boot runs QEMU until the machine turns itself off.
func boot(ctx context.Context, o options, kernel, initrd, out string, stdout, stderr io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, "qemu-system-x86_64",
		"-M", "q35", "-accel", "tcg", "-cpu", "qemu64", "-smp", "1", "-m", strconv.Itoa(o.memory),
		"-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet loglevel=3 panic=-1",
		"-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "stdio", "-serial", "file:"+out,
		"-device", "isa-debug-exit,iobase=0xf4,iosize=0x04")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the virtual machine was stopped after %v", o.timeout)
	}
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return badInput{fmt.Errorf("%w (on Debian: apt-get install qemu-system-x86)", err)}
	case err == nil:
		return errors.New("the virtual machine ended without saying how its program did")
	case !errors.As(err, &status) || status.ExitCode() < 0 || status.ExitCode()%2 == 0:
		return fmt.Errorf("running the virtual machine: %w", err)
	}
	if o.out != "" {
		if err := copyFile(o.out, out); err != nil {
			return err
		}
	}
	// isa-debug-exit ends QEMU with twice what was written, and 1.
	if code := status.ExitCode() / 2; code != 0 {
		return exited(code)
	}
	return nil
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("reading what the program left: %w", err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		return fmt.Errorf("writing what the program left: %w", err)
	}
	return nil
}
