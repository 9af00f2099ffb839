package hosts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// crowd is the devices of one process. Each has its identity, connection, key and journal;
// what all hosts of a run compute alike, and the data set, they load once.
type crowd struct {
	mu      sync.Mutex
	devices int
	key     [sha256.Size]byte // of what is loaded
	common  *experiment.Common
	shards  *experiment.Shards // nil once all have theirs
	taken   int
}

// RunDevices takes part in the server's run as each of several devices, until it ends or ctx
// does. A device that cannot go on leaves the others be.
func RunDevices(ctx context.Context, o DeviceOptions, identities []string) error {
	if err := o.checkCrowd(identities); err != nil {
		return err
	}
	o.crowd, o.until = &crowd{devices: len(identities)}, time.Now().Add(dialPatience)
	errs := make([]error, len(identities))
	connecting := make(chan struct{}, dialsAtOnce)
	var all sync.WaitGroup
	for i, path := range identities {
		one := o
		one.Identity, one.connecting = path, connecting
		if len(identities) > 1 {
			one.Say = func(text string) { o.Say(path + ": " + strings.TrimPrefix(text, path+": ")) }
		}
		all.Go(func() {
			if errs[i] = RunDevice(ctx, one); errs[i] != nil && len(identities) > 1 && ctx.Err() == nil {
				one.Say(errs[i].Error())
			}
		})
	}
	all.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(identities) == 1 || len(errs) == 0 || ctx.Err() != nil {
		return errors.Join(errs[:min(1, len(errs))]...)
	}
	return fmt.Errorf("%d of %d devices have not come to the end, the first for this: %w", len(errs), len(identities), errs[0])
}

// dialsAtOnce is how many devices of a process connect side by side: more would wait for
// each other's handshakes.
const dialsAtOnce = 16

// checkCrowd refuses what devices of one process cannot have in common.
func (o DeviceOptions) checkCrowd(identities []string) error {
	if o.Own && len(identities) > 1 {
		return intake.UserError(errors.New("--own is given with several identities: the data of a device's own go with one"))
	}
	if o.Radio != "" && len(identities) > 1 {
		return intake.UserError(errors.New("--radio is given with several identities: each device has a radio of its own"))
	}
	for i, path := range identities {
		if slices.Contains(identities[:i], path) {
			return intake.UserError(fmt.Errorf("%s is given twice: one process at a time may be a device", path))
		}
	}
	return nil
}

// load returns what all hosts compute alike of a run, and a device's samples. What is loaded
// is kept until each device of the process has its own.
func (c *crowd) load(o DeviceOptions, id identity.Identity, config experiment.Config, w wire.Run, dir string) (*experiment.Common, *experiment.Shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := sha256.New()
	for _, part := range [][]byte{w.Config, w.Calibration, []byte(strings.Join(o.Set, "\n"))} {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	if key := [sha256.Size]byte(h.Sum(nil)); key != c.key {
		c.key, c.common, c.shards, c.taken = key, nil, nil, 0
	}
	var err error
	if c.common == nil {
		if c.common, err = o.Lab.Common(config, dir); err != nil {
			return nil, nil, err
		}
	}
	if c.shards == nil {
		if c.shards, err = o.Lab.LoadShards(config, o.Own); err != nil {
			return nil, nil, err
		}
	}
	shard, err := c.shards.Of(id.Index - 1)
	if err == nil && !o.Own && shard.Name != w.Dataset {
		err = intake.UserError(fmt.Errorf("the run's data set is %s, and the host of device %d has not got it (%v): name its folder with --data", w.Dataset, id.Index, shard.Missing))
	}
	if c.taken++; c.taken >= c.devices {
		// The data set is many times what a device keeps of it, which the system should
		// have back: there may be as many processes as devices.
		c.shards, c.taken = nil, 0
		debug.FreeOSMemory()
	}
	return c.common, shard, err
}
