package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"ringwave/radio"
)

// Start starts a guard: a command that calls Serve with its standard input and output. It
// ends once ctx is done and no board is watched, and in any case with this program. What
// it says on its standard error goes to this program's.
func Start(ctx context.Context, program string, args ...string) (*Client, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	detach(cmd)
	fail := func(err error) (*Client, error) {
		return nil, fmt.Errorf("starting the guard %s: %w", program, err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(fmt.Errorf("%w did not start: %w", radio.ErrGuard, err))
	}
	c, err := connect(ctx, out, in)
	if err != nil {
		_ = cmd.Process.Kill() // whatever it is, it is no guard
		_ = cmd.Wait()
		return fail(err)
	}
	go func() {
		<-c.life.Done() // what it said is read
		_ = cmd.Wait()  // it says on standard error what there is to say
	}()
	context.AfterFunc(ctx, c.endWhenLeft)
	return c, nil
}
