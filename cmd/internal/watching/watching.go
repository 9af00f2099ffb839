// Package watching is the flag --watch of commands whose work can be watched in a browser.
//
// It takes in the flags, and gives a page with a board, metrics and a door while the
// command works. Without --watch there is none, and all of its methods do nothing.
package watching

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/curves"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/hosts/wire"
	"ringwave/learner/paper"
	"ringwave/learner/watch"
	"ringwave/learner/watch/gate"
	"ringwave/learner/watch/metrics"
	"ringwave/learner/watch/page"
	"ringwave/learner/watch/scenes"
)

// Flags are those of a page.
type Flags struct{ gate gate.Options }

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.gate.Addr, "watch", "", "show the work in a browser: `host:port`, as localhost:0, where 0 picks a port")
	f.AddDoor(cmd)
}

// AddDoor adds the flags that say who may come in.
func (f *Flags) AddDoor(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.gate.TokenFile, "watch-token", "", "`file` with the page's token (default one drawn now, in the address that is printed)")
	fl.StringVar(&f.gate.Cert, "watch-cert", "", "`file` with the page's certificate, for addresses beyond this machine (default one that signs itself)")
	fl.StringVar(&f.gate.Key, "watch-key", "", "`file` with the certificate's key")
	fl.StringSliceVar(&f.gate.Names, "watch-name", nil, "further `names` of this host that a browser may use")
}

// Page is what is watched; nil where nothing is.
type Page struct {
	Board   *watch.Board
	Metrics *metrics.Metrics
	door    *gate.Gate
	run     *scenes.Run
	off     context.CancelCauseFunc
	hosts   func() (watch.Table, bool)
}

// errOff is why a command ends whose carriers were taken off in the browser.
var errOff = fmt.Errorf("carriers off was asked for in the browser: %w", context.Canceled)

// Open begins to show what the command does, and prints where. The command's context ends
// where a viewer takes carriers off. It returns nil where --watch was not given.
func (f *Flags) Open(cmd *cobra.Command, program string) (*Page, error) {
	if !cmd.Flags().Changed("watch") {
		for _, name := range []string{"watch-token", "watch-cert", "watch-key", "watch-name"} {
			if cmd.Flags().Changed(name) {
				return nil, errors.New("--" + name + " goes with --watch")
			}
		}
		return nil, nil
	}
	return f.OpenAt(cmd, program, f.gate.Addr)
}

// OpenAt is Open at an address.
func (f *Flags) OpenAt(cmd *cobra.Command, program, addr string) (*Page, error) {
	assets, err := page.Assets()
	if err != nil {
		return nil, err
	}
	o := f.gate
	o.Addr = addr
	door, err := gate.Listen(o)
	if err != nil {
		return nil, err
	}
	ctx, off := context.WithCancelCause(cmd.Context())
	cmd.SetContext(ctx)
	p := &Page{Board: watch.NewBoard(program, assets), Metrics: metrics.New(program), door: door, off: off}
	p.run = scenes.NewRun(scenes.RunOptions{Board: p.Board, Meter: p.Metrics, CarriersOff: p.CarriersOff, Hosts: func() (watch.Table, bool) {
		if p.hosts == nil {
			return watch.Table{}, false
		}
		return p.hosts()
	}})
	door.Serve(p.Board.Handler(), p.Metrics.Handler())
	// What was asked for is printed, with --quiet, too.
	fmt.Fprintf(cmd.ErrOrStderr(), "Watch: %s\n", door.URL())
	if note := door.Note(); note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "Watch: %s\n", note)
	}
	return p, nil
}

// CarriersOff ends the command's context, which takes all carriers off.
func (p *Page) CarriersOff() { p.off(errOff) }

// Hosts says who else takes part. It is for before the run.
func (p *Page) Hosts(attendance func() (wire.Attendance, bool)) {
	if p == nil {
		return
	}
	p.hosts = func() (watch.Table, bool) {
		a, ok := attendance()
		return scenes.HostsTable(a), ok
	}
}

// Observer returns what hears of runs for the page, and then o.
func (p *Page) Observer(o experiment.Observer) experiment.Observer {
	if p == nil {
		return o
	}
	return p.run.Observer(o)
}

// End says how a run has ended, and returns its error.
func (p *Page) End(err error) error {
	if p != nil {
		p.run.End(err)
	}
	return err
}

// errStop is why work ends that was stopped in the browser.
var errStop = fmt.Errorf("a stop was asked for in the browser: %w", context.Canceled)

// work returns what the scenes of work are made of. Work over radios may be cut off.
func (p *Page) work(radios bool) scenes.WorkOptions {
	o := scenes.WorkOptions{Board: p.Board, Meter: p.Metrics, Stop: func() { p.off(errStop) }}
	if radios {
		o.CarriersOff = p.CarriersOff
	}
	return o
}

// Calibration begins the scene of a calibration; nil where nothing is watched.
func (p *Page) Calibration(k *experiment.Calibration) *scenes.Calibration {
	if p == nil {
		return nil
	}
	return scenes.NewCalibration(p.work(true), k)
}

// Curves begins the scene of curves; nil where nothing is watched.
func (p *Page) Curves(s curves.Settings, points []curves.Point, toml []byte) *scenes.Curves {
	if p == nil {
		return nil
	}
	return scenes.NewCurves(p.work(false), s, points, string(toml))
}

// Sweep begins the scene of a sweep; nil where nothing is watched.
func (p *Page) Sweep(plan sweep.Plan, s *sweeps.Sweep) *scenes.Sweep {
	if p == nil {
		return nil
	}
	return scenes.NewSweep(p.work(false), plan, s.States)
}

// Report begins the scene of the paper's report, which o is of, and whose lines of progress go
// on to w. It returns w where nothing is watched, and what says how the report has ended.
func (p *Page) Report(o *paper.Options, e *sweeps.Engine, w io.Writer) (io.Writer, func(error) error) {
	if p == nil {
		return w, func(err error) error { return err }
	}
	r := scenes.NewReport(p.work(false), o.Out, e.Status)
	o.Observer = r.Observer()
	return io.MultiWriter(w, r), r.End
}

// Close ends the page.
func (p *Page) Close() error {
	if p == nil {
		return nil
	}
	p.Board.Close()
	return p.door.Close()
}
