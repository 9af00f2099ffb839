package scenes

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/watch"
)

// Work is the scene of work that counts units: what calibrations, curves, sweeps and reports
// have in common.
type Work struct {
	scene *watch.Scene
	meter Meter

	mu     sync.Mutex
	status watch.Status
	first  float64 // the share that was behind when this sitting began
}

// WorkOptions are what a Work is made of.
type WorkOptions struct {
	Board *watch.Board
	Meter Meter // nil for none
	// CarriersOff takes all carriers off; nil where there are none. Stop ends the work where
	// it can go on.
	CarriersOff, Stop func()
}

func newWork(o WorkOptions, kind watch.Kind, title, unit string) *Work {
	w := &Work{scene: o.Board.Add(kind, title), meter: o.Meter, first: -1}
	w.status = watch.Status{State: watch.StatePreparing, Unit: unit, Began: time.Now(), SecondsLeft: -1}
	stop := func(text string, do func()) func() {
		if do == nil {
			return nil
		}
		return func() {
			do()
			w.asked(text)
		}
	}
	w.scene.SetControls(watch.Controls{
		CarriersOff: stop("carriers off was asked for in the browser", o.CarriersOff),
		Stop:        stop("a stop was asked for in the browser", o.Stop),
	})
	w.tell()
	return w
}

// asked says that a viewer has asked for an end.
func (w *Work) asked(text string) {
	w.scene.Event(watch.EventWarning, text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.State == watch.StatePreparing || w.status.State == watch.StateRunning { // it may have ended meanwhile
		w.status.State = watch.StateStopping
		w.tell()
	}
}

// tell brings the status to those who look. The caller has mu, or is alone.
func (w *Work) tell() {
	w.scene.SetStatus(w.status)
	if w.meter != nil {
		w.meter.Progress(w.status)
	}
}

// Progress says how far the work is: so many units of all, and a share of the work.
func (w *Work) Progress(unit string, done, of int, share float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first < 0 || w.status.Unit != unit {
		w.first, w.status.Began = share, time.Now()
	}
	if w.status.State == watch.StatePreparing {
		w.status.State = watch.StateRunning
	}
	w.status.Unit, w.status.Done, w.status.Of, w.status.Share, w.status.SecondsLeft = unit, done, of, share, -1
	if share > w.first {
		w.status.SecondsLeft = time.Since(w.status.Began).Seconds() / (share - w.first) * (1 - share)
	}
	w.tell()
	w.scene.Touch()
}

// Doing says in words what is being done.
func (w *Work) Doing(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Text = text
}

// Say tells of something as an event.
func (w *Work) Say(text string) { w.scene.Event(watch.EventInfo, text) }

// End says how the work has ended, and returns its error.
func (w *Work) End(err error) error {
	if w == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.State, w.status.SecondsLeft, w.status.Text = endState(err), -1, ""
	if err == nil {
		w.status.Share = 1
	} else if !errors.Is(err, experiment.ErrInterrupted) {
		w.status.Text = err.Error()
		w.scene.Event(watch.EventWarning, w.status.Text)
	}
	w.scene.SetControls(watch.Controls{})
	w.tell()
	w.scene.Touch()
	return err
}

// drawn returns pictures as plots.
func drawn(view watch.View, pictures []chart.Picture, captions []string) (list []watch.Plot) {
	for k, p := range pictures {
		plot := watch.Plot{Name: p.Name, View: view, Title: titleOf(p.Name), Draw: p.WriteSVG}
		if k < len(captions) {
			plot.Caption = captions[k]
		}
		list = append(list, plot)
	}
	return list
}

// counted writes a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// titleOf returns what a plot shows, in words, by its name.
func titleOf(name string) string {
	if t, ok := titles()[name]; ok {
		return t
	}
	return strings.ReplaceAll(name, "-", " ")
}

// titles are what plots show that their names do not say.
func titles() map[string]string {
	return map[string]string{
		"loss": "training loss", "accuracy": "test accuracy", "decoded-noise": "decoded noise in its band",
		"message": "message M and its noiseless value", "decoded-noise-histogram": "distribution of the decoded noise",
		"quality": "quality of the lattice", "retries": "attempts and frames sent again", "misfit": "misfit of the worst device", "gains": "gains of the devices",
		"success-snr": "read at the first attempt, against SNR", "success-retry": "read within all attempts, against SNR",
		"success-devices": "read at the first attempt, against the number of devices", "success-sigma": "read at the first attempt, against the gains' deviation", "misfit-snr": "misfit against SNR",
		"gain-clouds": "gains in the complex plane", "gain-histogram": "effective gains, and the law fitted", "gain-time": "gain over time", "phase-time": "phase over time",
		"delay-time": "delay over time", "offset-time": "carrier offset over time", "autocorrelation": "autocorrelation of the gains", "allan": "Allan deviations", "noise": "noise of phase and gain",
	}
}
