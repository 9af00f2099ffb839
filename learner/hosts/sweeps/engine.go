package sweeps

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"ringwave/crypto/lockfile"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/jobs"
	"ringwave/radio/intake"
)

// EngineOptions say what an Engine is.
type EngineOptions struct {
	// Folder is where it keeps its queue, and what it makes for workers of other hosts.
	Folder string
	// Bench is a folder that ringwave enroll --sweeps has made, in place of one that the
	// engine makes; "" for none.
	Bench string
	// Listen is where workers of other hosts find the bus in this program, as host:port; ""
	// for none of other hosts. URL is that of another bus, in its place; it wants a Bench.
	Listen, URL string
	// Workers is how many jobs this machine does at a time: 0 for as many as it has cores, or
	// none with URL; -1 for none.
	Workers int
	// Command runs a process that computes jobs: jobs.ServeChild.
	Command []string
	Kinds   map[string]jobs.Kind
	// Broker has Silence, Attempts and Losses of jobs.BrokerOptions.
	Broker jobs.BrokerOptions
	// Say hears what a user should know.
	Say func(string)
}

// Engine has jobs done.
type Engine struct {
	*jobs.Broker
	Program string // what computes: of workers that may join
	o       EngineOptions
	lock    *lockfile.File
	nats    *bus.Server
	queue   *bus.Queue
	conns   []bus.Conn
	ids     []identity.Identity
	sweep   string
	// finished says that there are no jobs any more.
	finished bool

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the local worker
	working sync.WaitGroup
}

// The files of an engine's folder.
const (
	enrolledName = "enrolled"  // identities
	storeName    = "jetstream" // the queue
	scratchName  = "scratch"   // jobs on their way at this machine
	incomingName = "incoming"  // results on their way
	cellsName    = "cells"     // results that are about to be read
	engineName   = "engine.id" // what names the jobs on the bus
	engineLock   = ".lock"
)

// leastSilence is the least time that a worker may be given, which speaks once a second.
const leastSilence = 2 * time.Second

// ErrBusy says that another process has the engine's folder.
var ErrBusy = errors.New("another process is at it")

// Open begins to have jobs done, until Close.
func Open(ctx context.Context, o EngineOptions) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return open(ctx, o)
}

// open is Open of options that were checked.
func open(ctx context.Context, o EngineOptions) (e *Engine, err error) {
	if o.Workers == 0 && o.URL == "" {
		o.Workers = runtime.NumCPU()
	}
	_, err = os.Lstat(o.Folder)
	made := errors.Is(err, fs.ErrNotExist)
	e = &Engine{o: o}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, e.Close())
		if made && !errors.Is(err, ErrBusy) {
			_ = os.RemoveAll(o.Folder) // of which nothing was there
			_ = os.Remove(filepath.Dir(o.Folder))
		}
	}()
	if e.Program, err = jobs.Program(); err != nil {
		return e, err
	}
	if err := e.hold(); err != nil {
		return e, err
	}
	folder, err := e.enrolled()
	if err != nil {
		return e, err
	}
	if err := e.connect(ctx, folder); err != nil {
		return e, err
	}
	return e, e.work(ctx, folder)
}

// check refuses options that nothing can be done with.
func (o EngineOptions) check() error {
	switch {
	case o.URL != "" && o.Bench == "":
		return intake.UserError(errors.New("--join wants --bench: the folder of ringwave enroll --sweeps whose bus it is"))
	case o.URL != "" && o.Listen != "":
		return intake.UserError(errors.New("--listen is of the bus in this program, and --join names another: allowed is one of them"))
	}
	if s := o.Broker.Silence; s != 0 && s < leastSilence {
		return intake.UserError(fmt.Errorf("--silence is %v: allowed is %v or more", s, leastSilence))
	}
	if o.Workers < -1 || o.Workers > jobs.MostSlots {
		return intake.UserError(fmt.Errorf("--workers is %d: allowed are -1 for none, 0 for as many as there are cores, and 1 to %d", o.Workers, jobs.MostSlots))
	}
	if o.Workers == -1 && o.Listen == "" && o.URL == "" {
		return intake.UserError(errors.New("--workers is -1 without --listen or --join: nobody would compute the runs; allowed is a worker here or on another host"))
	}
	return nil
}

// hold takes the engine's folder.
func (e *Engine) hold() (err error) {
	if err := os.MkdirAll(e.o.Folder, 0o755); err != nil {
		return intake.PathError(fmt.Errorf("making the folder of the queue: %w", err))
	}
	if e.lock, err = lockfile.Open(filepath.Join(e.o.Folder, engineLock)); errors.Is(err, lockfile.ErrHeld) {
		return intake.UserError(fmt.Errorf("%s: %w%s", e.o.Folder, ErrBusy, lockfile.Hint(filepath.Join(e.o.Folder, engineLock))))
	} else if err != nil {
		return intake.PathError(fmt.Errorf("%s: locking the folder: %w", e.o.Folder, err))
	}
	path := filepath.Join(e.o.Folder, engineName)
	if text, err := intake.ReadFile(path, 64); err == nil && len(strings.TrimSpace(string(text))) == 16 {
		e.sweep = strings.TrimSpace(string(text))
		return nil
	}
	id := make([]byte, 8)
	rand.Read(id)
	e.sweep = hex.EncodeToString(id)
	return runfolder.WriteFile(path, []byte(e.sweep+"\n"))
}

// enrolled returns the folder with the identities, which is made where there is none.
func (e *Engine) enrolled() (*identity.Folder, error) {
	if e.o.Bench != "" {
		folder, err := identity.Open(e.o.Bench)
		if err == nil && !folder.Registry.Sweeps() {
			err = intake.UserError(fmt.Errorf("--bench %s is that of devices; allowed is a folder that ringwave enroll --sweeps has made", e.o.Bench))
		}
		return folder, err
	}
	dir := filepath.Join(e.o.Folder, enrolledName)
	if folder, err := identity.Open(dir); err == nil && time.Until(folder.Registry.Expires) > 24*time.Hour {
		return folder, nil
	}
	if err := os.RemoveAll(dir); err != nil { // it has expired, or was never whole
		return nil, intake.PathError(err)
	}
	o := identity.Options{Sweeps: true, Hosts: namesOfThisHost()}
	if _, port, err := net.SplitHostPort(e.o.Listen); err == nil && port != "0" {
		o.URL = "tls://" + net.JoinHostPort(hostName(), port)
	}
	return identity.Create(dir, o)
}

// hostName returns what others may find this host by.
func hostName() string {
	if name, err := os.Hostname(); err == nil && identity.CheckHost(name) == nil {
		return name
	}
	return "localhost"
}

// namesOfThisHost returns the names and addresses that the bus's certificate is for.
func namesOfThisHost() []string {
	names := []string{"localhost", hostName()}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return append(names, "127.0.0.1", "::1")
	}
	for _, a := range addresses {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && !ip.IsLinkLocalUnicast() && identity.CheckHost(ip.String()) == nil {
			names = append(names, ip.String())
		}
	}
	return names
}

// connect begins the bus, or finds it, and the broker.
func (e *Engine) connect(ctx context.Context, folder *identity.Folder) (err error) {
	if e.o.URL == "" {
		if e.nats, err = e.embed(ctx, folder); err != nil {
			return err
		}
	}
	conn, err := e.dial(ctx, folder, identity.Sweep, func(is bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.Broker != nil {
			e.Broker.Connected(is)
		}
	})
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if e.queue, err = bus.NewQueue(within, conn); err != nil {
		return err
	}
	o := e.o.Broker
	o.Conn, o.Queue, o.Sweep, o.Program, o.Kinds, o.Say = conn, e.queue, e.sweep, e.Program, e.o.Kinds, e.o.Say
	o.Incoming = filepath.Join(e.o.Folder, incomingName)
	broker, err := jobs.NewBroker(o)
	e.mu.Lock()
	e.Broker = broker
	e.mu.Unlock()
	return err
}

// embed begins the bus in this program. Its store is not what is known of the jobs: one that
// cannot be read is made anew.
func (e *Engine) embed(ctx context.Context, folder *identity.Folder) (*bus.Server, error) {
	store := filepath.Join(e.o.Folder, storeName)
	o := bus.ServerOptions{Folder: folder, Address: e.o.Listen, Store: store, Log: e.o.Say}
	server, err := bus.Embed(context.WithoutCancel(ctx), o)
	if err == nil || intake.IsUserError(err) {
		return server, err
	}
	if rerr := os.RemoveAll(store); rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	return bus.Embed(context.WithoutCancel(ctx), o)
}

// dial connects a role of this process to the bus.
func (e *Engine) dial(ctx context.Context, folder *identity.Folder, role identity.Role, connected func(bool)) (bus.Conn, error) {
	id, err := identity.Load(folder.IdentityPath(role, 0))
	if err != nil {
		return nil, err
	}
	e.ids = append(e.ids, id)
	ended := func(err error) { // the bus no longer admits this process
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.Broker != nil {
			e.Fail(err)
		}
	}
	conn, err := bus.Dial(ctx, id, e.o.URL, bus.Options{
		InProcess: e.nats, Patience: dialPatience,
		Waiting:   func(err error) { e.o.Say(err.Error()) },
		Lost:      func(err error) { connected(false); e.o.Say(err.Error()) },
		Connected: func() { connected(true); e.o.Say("connected to the bus again") },
		Trouble:   func(err error) { e.o.Say(err.Error()) },
		Ended:     ended,
	})
	if err == nil {
		e.conns = append(e.conns, conn)
	}
	return conn, err
}

// dialPatience is how long the bus may not be there in the beginning.
const dialPatience = 30 * time.Second

// work begins this machine's worker.
func (e *Engine) work(ctx context.Context, folder *identity.Folder) error {
	if e.o.Workers <= 0 {
		return nil
	}
	conn, err := e.dial(ctx, folder, identity.Worker, func(bool) {})
	if err != nil {
		return err
	}
	ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	e.working.Go(func() {
		err := jobs.RunWorker(ctx, jobs.WorkerOptions{
			Conn: conn, Name: workerName(), Program: e.Program, Slots: e.o.Workers,
			Scratch: filepath.Join(e.o.Folder, scratchName), Command: e.o.Command, Stay: true, Say: func(string) {},
		})
		switch {
		case ctx.Err() != nil:
		case e.Alone():
			e.Fail(fmt.Errorf("this machine cannot go on: %w", err))
		default:
			e.o.Say("this machine takes no more runs: " + err.Error())
		}
	})
	return nil
}

// workerName names a worker of this process.
func workerName() string {
	letters := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}
	host := strings.Map(letters, hostName())
	// Hosts in containers may have one name, and processes in them one number.
	tag := make([]byte, 2)
	rand.Read(tag)
	return fmt.Sprintf("%s-%d-%x", host[:min(40, len(host))], os.Getpid(), tag)
}

// Alone reports whether nobody but this machine's worker can do the jobs.
func (e *Engine) Alone() bool { return e.o.Listen == "" && e.o.URL == "" }

// URL returns where workers of other hosts find the bus, and the file of their identity; ""
// where they cannot.
func (e *Engine) URL() (url, identityPath string) {
	folder := e.o.Bench
	if folder == "" {
		folder = filepath.Join(e.o.Folder, enrolledName)
	}
	url = e.o.URL
	if e.nats != nil {
		url = e.nats.URL()
		host, _, err := net.SplitHostPort(e.o.Listen)
		if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
			url = "tls://" + net.JoinHostPort(hostName(), url[strings.LastIndexByte(url, ':')+1:])
		}
	}
	return url, filepath.Join(folder, "worker.identity")
}

// Finish says that there are no jobs any more: workers elsewhere may go, and Close leaves
// nothing of those there were.
func (e *Engine) Finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e.finished = true
	return errors.Join(e.Over(), e.queue.DropAll(ctx, e.sweep))
}

// Close ends this machine's worker, which keeps what it has of jobs on their way, and the bus
// in this program. Workers elsewhere wait for it to come back.
func (e *Engine) Close() error {
	if e.cancel != nil {
		e.cancel(nil)
		e.working.Wait()
	}
	if e.Broker != nil {
		e.Broker.Close()
	}
	for _, c := range e.conns {
		_ = c.Close() // what could be lost is said again, or was answered
	}
	if e.nats != nil {
		e.nats.Close()
	}
	for _, id := range e.ids {
		id.Wipe()
	}
	var errs []error
	for _, name := range []string{storeName, scratchName, incomingName, cellsName} {
		if e.finished {
			errs = append(errs, os.RemoveAll(filepath.Join(e.o.Folder, name)))
		}
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	e.cancel, e.conns, e.nats, e.ids, e.lock = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// removed ignores that there is nothing to remove.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
