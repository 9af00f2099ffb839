package wire

import "strconv"

// The subjects of a run, as identity.Permissions has them.

// ToAll is where the server speaks to all devices and the air.
func (r RunID) ToAll() string { return "rw." + r.String() + ".server.all.step" }

// Pulses is where the server says to all that it is there, and may hear itself.
func (r RunID) Pulses() string { return "rw." + r.String() + ".server.all.pulse" }

// ToDevice is where it speaks to one.
func (r RunID) ToDevice(i int) string {
	return "rw." + r.String() + ".server." + strconv.Itoa(i) + ".step"
}

// ToAir is where it speaks to the air.
func (r RunID) ToAir() string { return "rw." + r.String() + ".server.air.step" }

// FromDevice is where device i speaks to the server.
func (r RunID) FromDevice(i int) string {
	return "rw." + r.String() + ".device." + strconv.Itoa(i) + ".step"
}

// OnAir is where device i puts its frames.
func (r RunID) OnAir(i int) string { return "rw." + r.String() + ".air." + strconv.Itoa(i) + ".frame" }

// FromAir is where the air gives what arrives.
func (r RunID) FromAir() string { return "rw." + r.String() + ".super.frame" }

// Patterns of all runs' subjects.
const (
	AllToAll       = "rw.*.server.all.>"
	AllFromDevices = "rw.*.device.>"
	AllOnAir       = "rw.*.air.>"
	AllToAir       = "rw.*.server.air.>"
	AllFromAir     = "rw.*.super.>"
	AllAsks        = "rw.*.ask.>"
	AllPulses      = "rw.*.server.all.pulse"
)

// Asking is where observers ask who is there, of whatever run.
const Asking = "rw.any.ask.hosts"

// AllToDevice is the pattern of what servers say to device i.
func AllToDevice(i int) string { return "rw.*.server." + strconv.Itoa(i) + ".>" }
