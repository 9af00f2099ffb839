package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
)

// deadline is how long a test waits for what must happen.
const deadline = 20 * time.Second

// inbox keeps the messages of a subscription.
type inbox chan bus.Message

func subscribe(t testing.TB, c bus.Conn, subject string) inbox {
	t.Helper()
	messages := make(inbox, 1000)
	if _, err := c.Subscribe(subject, func(m bus.Message) { messages <- m }); err != nil {
		t.Fatal(err)
	}
	return messages
}

func (b inbox) next(t testing.TB) bus.Message {
	t.Helper()
	return wait(t, b, "a message")
}

// wait returns what comes on a channel.
func wait[T any](t testing.TB, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(deadline):
		t.Fatalf("%s has not come within %v", what, deadline)
	}
	return value
}

// Payloads of any length arrive as they were sent, over TLS and within the process, and
// those beyond the bound are refused.
func TestPayloads(t *testing.T) {
	b := bustest.New(t, 2, "127.0.0.1:0")
	limits := bus.DefaultLimits()
	limits.Message = 3 << 20
	o := bus.Options{Limits: limits}
	for name, c := range map[string]bus.Conn{"in process": b.Dial(identity.Device, 1, o), "TLS": b.DialURL(identity.Device, 1, b.Server.URL(), o)} {
		got := subscribe(t, b.DialURL(identity.Server, 0, b.Server.URL(), o), "rw.r.device.>")
		random := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 1, 100, 1<<18 - 1, 1 << 18, 1<<18 + 1, 1 << 20, 3 << 20} {
			payload := make([]byte, n)
			for i := range payload {
				payload[i] = byte(random.Uint32())
			}
			if err := c.Publish("rw.r.device.1.x", payload); err != nil {
				t.Fatal(err)
			}
			if m := got.next(t); m.Subject != "rw.r.device.1.x" || !bytes.Equal(m.Payload, payload) || m.Reply != "" {
				t.Errorf("%s: %d bytes for %s in place of %d", name, len(m.Payload), m.Subject, n)
			}
		}
		if err := c.Publish("rw.r.device.1.x", make([]byte, 3<<20+1)); err == nil || !strings.Contains(err.Error(), "the payload has 3145729 bytes; allowed is at most 3145728") {
			t.Error(err)
		}
	}
}

// What is no subject is refused before anything is sent.
func TestSubjects(t *testing.T) {
	b := bustest.New(t, 1, "")
	c := b.Dial(identity.Device, 1, bus.Options{})
	for _, subject := range []string{"", "rw..x", "rw.r.device.1.", "rw.r.device.1.a b", "rw.r.device.1.*", "rw.r.device.1.>", "rw.r.device.1.a\r\nPUB", "rw.r.device.1.a\x00"} {
		if err := c.Publish(subject, nil); err == nil || !strings.Contains(err.Error(), "the subject is ") {
			t.Errorf("%q: %v", subject, err)
		}
	}
	for _, subject := range []string{"rw.>.x", "rw.a*", "rw.r.server.all. >"} {
		if _, err := c.Subscribe(subject, nil); err == nil || !strings.Contains(err.Error(), "the subject is ") {
			t.Errorf("%q: %v", subject, err)
		}
	}
}

// An observer is answered by the server, and by nobody through it anywhere else.
func TestAsk(t *testing.T) {
	b := bustest.New(t, 1, "")
	server, observer, device := b.Dial(identity.Server, 0, bus.Options{}), b.Dial(identity.Observer, 0, bus.Options{}), b.Dial(identity.Device, 1, bus.Options{})
	answer := bytes.Repeat([]byte("answer"), 1<<17)
	if _, err := server.Subscribe("rw.r.ask.>", func(m bus.Message) {
		if err := server.Respond(m, answer); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if m, err := observer.Ask(ctx, "rw.r.ask.hosts", []byte("who")); err != nil || !bytes.Equal(m.Payload, answer) {
		t.Errorf("%d bytes, %v", len(m.Payload), err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := observer.Ask(ended, "rw.r.ask.hosts", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := device.Ask(ctx, "rw.r.device.1.x", nil); !errors.Is(err, bus.ErrForbidden) {
		t.Error(err)
	}
	for _, reply := range []string{"", "rw.r.server.all.stop", "inbox.observer", "inbox.observerx.y"} {
		if err := server.Respond(bus.Message{Reply: reply}, nil); err == nil || !strings.Contains(err.Error(), "allowed is what begins with inbox.observer") {
			t.Errorf("%q: %v", reply, err)
		}
	}
}

// forbidden has what each role must not do, whatever the bus.
var forbidden = map[identity.Role]struct{ publish, subscribe []string }{
	identity.Server: {
		publish:   []string{"rw.r.device.1.x", "rw.r.air.1.x", "rw.r.super.x", "rw.r.ask.x", "rw.r.server", "x.r.server.all.x", "inbox.x", "$SYS.REQ.SERVER.PING", "_INBOX.x.y"},
		subscribe: []string{"rw.r.air.>", "rw.r.air.1.x", "rw.*.air.>", "rw.*.air.*.>", "rw.>", ">", "*.>", "rw.*.*.>", "rw.*.*.1.>", "rw.*.*.*.x", "*.*.air.>", "rw.r.*.1.x", "rw.r.server.>", "inbox.>", "_INBOX.>", "$SYS.>"},
	},
	identity.Device: {
		publish:   []string{"rw.r.device.2.x", "rw.r.air.2.x", "rw.r.device.x", "rw.r.device.01.x", "rw.r.device.11.x", "rw.r.server.all.x", "rw.r.server.1.x", "rw.r.super.x", "rw.r.ask.x", "inbox.observer.x", "_INBOX.x.y", "$SYS.REQ.SERVER.PING"},
		subscribe: []string{"rw.r.server.2.>", "rw.r.server.>", "rw.r.server.*.>", "rw.r.server.air.>", "rw.r.device.>", "rw.r.device.1.>", "rw.r.device.2.>", "rw.r.air.>", "rw.r.air.1.>", "rw.r.super.>", "rw.r.ask.>", "rw.r.*.all.>", "rw.r.*.1.>", "rw.>", ">", "_INBOX.>", "_INBOX.a.b", "inbox.>", "inbox.observer.>", "inbox.observer.x", "$SYS.>"},
	},
	identity.Air: {
		publish:   []string{"rw.r.server.all.x", "rw.r.device.1.x", "rw.r.air.1.x", "rw.r.ask.x", "inbox.observer.x", "_INBOX.x.y"},
		subscribe: []string{"rw.r.device.>", "rw.r.device.1.>", "rw.r.super.>", "rw.r.ask.>", "rw.r.server.1.>", "rw.r.server.>", "rw.r.server.*.>", "rw.r.*.1.>", "rw.>", ">", "_INBOX.>", "inbox.>"},
	},
	identity.Observer: {
		publish:   []string{"rw.r.server.all.x", "rw.r.device.1.x", "rw.r.air.1.x", "rw.r.super.x", "inbox.observer.x"},
		subscribe: []string{"rw.r.device.>", "rw.r.air.>", "rw.r.super.>", "rw.r.server.>", "rw.r.server.all.>", "rw.r.ask.>", "rw.>", ">", "inbox.>", "inbox.*.>", "_INBOX.>"},
	},
}

// permitted has what each role must be able to do.
var permitted = map[identity.Role]struct{ publish, subscribe []string }{
	identity.Server:   {publish: []string{"rw.r.server.all.x", "rw.r.server.1.x", "rw.r.server.air.x"}, subscribe: []string{"rw.*.device.>", "rw.r.device.1.>", "rw.r.super.>", "rw.r.ask.>"}},
	identity.Device:   {publish: []string{"rw.r.device.1.x", "rw.r.air.1.x", "rw.r.air.1.x.y"}, subscribe: []string{"rw.r.server.all.>", "rw.*.server.1.>", "rw.r.server.1.x"}},
	identity.Air:      {publish: []string{"rw.r.super.x"}, subscribe: []string{"rw.*.air.>", "rw.r.air.1.x", "rw.r.server.air.>", "rw.r.server.all.>"}},
	identity.Observer: {publish: []string{"rw.r.ask.x"}, subscribe: []string{"inbox.observer.x"}},
}

func indexOf(role identity.Role) int {
	if role == identity.Device {
		return 1
	}
	return 0
}

// Each role does what it may and nothing else, at the server in the program.
func TestPermissions(t *testing.T) {
	b := bustest.New(t, 11, "127.0.0.1:0")
	tryPermissions(t, b, b.Server.URL())
}

// The configuration that is written for other nats-servers has the same permissions, in this
// library's reading of it.
func TestPermissionsOfConfiguration(t *testing.T) {
	b := bustest.New(t, 11, "")
	tryPermissions(t, b, foreign(t, b.Folder))
}

// So it has in a nats-server that is not ours at all, where there is one.
func TestPermissionsOfOtherServer(t *testing.T) {
	b := bustest.New(t, 11, "")
	url, _ := program(t, b.Folder)
	tryPermissions(t, b, url)
	refuses12(t, url)
}

func tryPermissions(t *testing.T, b *bustest.Bench, url string) {
	t.Helper()
	for role, f := range forbidden {
		index := indexOf(role)
		trouble := make(chan error, 100)
		c := b.DialURL(role, index, url, bus.Options{Trouble: func(err error) { trouble <- err }})
		for _, subject := range f.subscribe {
			if _, err := c.Subscribe(subject, func(bus.Message) {}); !errors.Is(err, bus.ErrForbidden) {
				t.Errorf("%s subscribes %s: %v", role, subject, err)
			}
		}
		for _, subject := range f.publish {
			if err := c.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			if err := wait(t, trouble, fmt.Sprintf("the refusal of %s publishing %s", role, subject)); !errors.Is(err, bus.ErrForbidden) || !strings.Contains(err.Error(), `"`+subject+`"`) {
				t.Errorf("%s publishes %s: %v", role, subject, err)
			}
		}
		for _, subject := range permitted[role].subscribe {
			if _, err := c.Subscribe(subject, func(bus.Message) {}); err != nil {
				t.Errorf("%s subscribes %s: %v", role, subject, err)
			}
		}
		for _, subject := range permitted[role].publish {
			if err := c.Publish(subject, nil); err != nil {
				t.Error(err)
			}
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(trouble) > 0 {
			t.Errorf("%s: %v", role, <-trouble)
		}
	}
}

// foreign runs a nats-server of the library with what the folder has for it.
func foreign(t *testing.T, f *identity.Folder) (url string) {
	t.Helper()
	return changed(t, f, func(o *server.Options) {
		if o.MaxPayload != identity.MaxPayload || len(o.Nkeys) != len(f.Registry.Hosts) {
			t.Errorf("payload %d, %d nkeys", o.MaxPayload, len(o.Nkeys))
		}
	})
}

// program runs the nats-server of this host, or skips.
func program(t *testing.T, f *identity.Folder) (url string, process *exec.Cmd) {
	t.Helper()
	path, err := exec.LookPath("nats-server")
	if err != nil { // where Debian puts it, which is not on every user's path
		path, err = exec.LookPath("/usr/sbin/nats-server")
	}
	if err != nil {
		t.Skip("there is no nats-server here")
	}
	ports := t.TempDir()
	process = exec.Command(path, "-c", "nats-server.conf", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports)
	process.Dir = f.Dir
	var log bytes.Buffer
	process.Stderr = &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // killed, as it was meant to be
	})
	return portOf(t, ports, &log), process
}
