package identity

import "strconv"

// Role is what a host is on a bench.
type Role string

// The roles. Of devices there are many, of the others one each.
const (
	Server   Role = "server"   // receives, adds up, and leads the rounds
	Air      Role = "air"      // simulates the channel between devices and server
	Observer Role = "observer" // asks the server who is there
	Device   Role = "device"   // has data, a key and a transmitter
)

// The roles where runs of sweeps are given to workers. Of each there is one identity, which
// any number of workers share.
const (
	Sweep  Role = "sweep"  // has jobs, and takes their results
	Worker Role = "worker" // takes jobs
)

// ObserverInbox is what the subjects of answers to observers begin with, without the last
// dot.
const ObserverInbox = "inbox.observer"

// Inbox returns what the subjects of answers to a role begin with, without the last dot; ""
// for a role that has none.
func (r Role) Inbox() string {
	switch r {
	case Observer:
		return ObserverInbox
	case Sweep, Worker:
		return "inbox." + string(r)
	}
	return ""
}

// The work queue of sweeps, on a bus that has one: the names of its stream and of the
// consumer that all workers share, and what its subjects are.
const (
	QueueStream   = "RINGWAVE"
	QueueConsumer = "workers"
	QueueSubjects = "rw.*.job.*"
)

// Allowed is what a host may do on the bus: subjects, with > for any words and * for one.
type Allowed struct{ Publish, Subscribe []string }

// Permissions returns what the host with a role may do; index is that of a device. This
// is the only such table: the server in the program and the configuration of one outside
// it are both made from it. The server does not hear what devices send to the air, as on
// a real bench it hears their superposition only; of what servers say it hears whether
// there is another.
func Permissions(role Role, index int) Allowed {
	own := strconv.Itoa(index)
	switch role {
	case Server:
		return Allowed{
			Publish:   []string{"rw.*.server.>", ObserverInbox + ".>"},
			Subscribe: []string{"rw.*.device.>", "rw.*.super.>", "rw.*.ask.>", "rw.*.server.all.pulse"},
		}
	case Device:
		return Allowed{
			Publish:   []string{"rw.*.device." + own + ".>", "rw.*.air." + own + ".>"},
			Subscribe: []string{"rw.*.server.all.>", "rw.*.server." + own + ".>"},
		}
	case Air:
		return Allowed{
			Publish:   []string{"rw.*.super.>"},
			Subscribe: []string{"rw.*.air.>", "rw.*.server.air.>", "rw.*.server.all.>"},
		}
	case Observer:
		return Allowed{
			Publish:   []string{"rw.*.ask.>"},
			Subscribe: []string{ObserverInbox + ".>"},
		}
	case Sweep:
		return Allowed{
			Publish:   []string{QueueSubjects, "rw.*.sweep.>", Worker.Inbox() + ".>", "$JS.API.>"},
			Subscribe: []string{"rw.*.worker.>", Sweep.Inbox() + ".>"},
		}
	case Worker:
		of := "." + QueueStream + "." + QueueConsumer
		return Allowed{
			Publish:   []string{"rw.*.worker.>", "$JS.API.CONSUMER.MSG.NEXT" + of, "$JS.API.CONSUMER.INFO" + of, "$JS.ACK" + of + ".>"},
			Subscribe: []string{"rw.*.sweep.>", Worker.Inbox() + ".>"},
		}
	}
	return Allowed{}
}
