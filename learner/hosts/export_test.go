package hosts

import (
	"ringwave/learner/experiment"
	"ringwave/learner/hosts/wire"
)

// Reveal has a device give its secret seed to a test.
func (o *DeviceOptions) Reveal(to func(seed []byte)) { o.reveal = to }

// RunIDOf returns the name of a folder's run, as a string.
func RunIDOf(dir string) (string, error) {
	id, err := runID(dir)
	return id.String(), err
}

// ConfigOf returns what a device makes of a server's configuration.
func ConfigOf(o DeviceOptions, w wire.Run) (experiment.Config, error) { return o.config(w) }
