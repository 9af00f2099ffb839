package sweeps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/jobs"
	"ringwave/radio/intake"
)

// WorkOptions say what a worker is that joins from another process or host.
type WorkOptions struct {
	// Identity is the file of a worker's identity, URL that of the bus where it is not the
	// identity's.
	Identity, URL string
	Jobs          int    // at a time; 0 for as many as there are cores
	Scratch       string // folder for jobs on their way; "" for one among the system's
	Stay          bool   // wait for other jobs when those there were are over
	// Patience is how long the bus may not be there; 0 for without end.
	Patience time.Duration
	Command  []string
	Say      func(string)
	Busy     func(jobs, done int) // may be nil
}

// Work does jobs of the bus of an identity until ctx ends, or they are over.
func Work(ctx context.Context, o WorkOptions) (err error) {
	id, err := identity.Load(o.Identity)
	if err != nil {
		return err
	}
	defer id.Wipe()
	if id.Role != identity.Worker {
		return intake.UserError(fmt.Errorf("%s: the identity is that of %s; allowed is that of a worker", o.Identity, id))
	}
	if o.Jobs < 0 || o.Jobs > jobs.MostSlots {
		return intake.UserError(fmt.Errorf("--jobs is %d: allowed are 0 for as many as there are cores, and 1 to %d", o.Jobs, jobs.MostSlots))
	}
	if o.Patience < 0 {
		return intake.UserError(fmt.Errorf("--patience is %v: allowed is 0 for without end, or more", o.Patience))
	}
	if o.Jobs == 0 {
		o.Jobs = runtime.NumCPU()
	}
	if o.Scratch == "" {
		o.Scratch = filepath.Join(os.TempDir(), "ringwave-work-"+userName())
		if err := private(o.Scratch); err != nil {
			return err
		}
	}
	program, err := jobs.Program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	away := time.AfterFunc(time.Hour, func() {
		cancel(fmt.Errorf("the bus was not there for %v", o.Patience))
	})
	away.Stop()
	dialPatience := o.Patience
	if o.Patience == 0 {
		dialPatience = 1 << 62
	}
	conn, err := bus.Dial(ctx, id, o.URL, bus.Options{
		Patience: dialPatience,
		Waiting:  func(err error) { o.Say(err.Error()) },
		Lost: func(err error) {
			if o.Patience > 0 {
				away.Reset(o.Patience)
			}
			o.Say(err.Error())
		},
		Connected: func() { away.Stop(); o.Say("connected to the bus again") },
		Trouble:   func(err error) { o.Say(err.Error()) },
		Ended:     func(err error) { cancel(err) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // every result was asked whether it has arrived
	err = jobs.RunWorker(ctx, jobs.WorkerOptions{
		Conn: conn, Name: workerName(), Program: program, Slots: o.Jobs, Scratch: o.Scratch, Command: o.Command,
		Stay: o.Stay, Say: o.Say, Busy: o.Busy,
	})
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// private makes a folder among those of all users that is this user's alone: what another has
// put there would be taken for results.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return intake.PathError(fmt.Errorf("making the folder for runs on their way: %w", err))
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return intake.PathError(fmt.Errorf("looking at the folder for runs on their way: %w", err))
	}
	if !info.IsDir() || !own(info) {
		return intake.UserError(fmt.Errorf("%s is another user's, or no folder: allowed is another with --scratch", dir))
	}
	return os.Chmod(dir, 0o700) // whatever it was before
}

// userName returns what tells this user's folders from others'.
func userName() string { return fmt.Sprint(os.Getuid()) }
