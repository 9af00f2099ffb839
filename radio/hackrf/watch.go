package hackrf

import (
	"sync"
	"time"
)

// watch calls look every now and then until stop is closed or it fails.
func watch(stop <-chan struct{}, every time.Duration, look func() error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if look() != nil {
				return
			}
		}
	}
}

// watcher compares what a board counts with what it had counted.
type watcher struct {
	mu                  sync.Mutex // one question at a time; it is held over both
	shortfalls, longest uint32
	noClock             bool
	seen                int64 // the byte up to which all is known
}

// news is what has happened since the last question.
type news struct {
	asked      bool
	state      m0State
	shortfalls uint32
	// longest is the length of the shortfall in bytes where it was one and the
	// longest so far, 0 where it is not known.
	longest             uint32
	unlocked, clockLost bool
}

// ask asks the board for its counters, and for its clock where that matters. The
// watcher's lock is held.
func (w *watcher) ask(d *Device, armed bool) (n news, err error) {
	if d.api < apiM0 {
		return n, nil
	}
	if n.state, err = d.m0(); err != nil {
		return n, err
	}
	n.asked = true
	n.shortfalls = n.state.shortfalls - w.shortfalls
	if n.shortfalls == 1 && n.state.longestShortfall > w.longest {
		n.longest = n.state.longestShortfall
	}
	w.shortfalls, w.longest = n.state.shortfalls, n.state.longestShortfall
	if d.ClockSource() != clockExternal || armed {
		return n, nil
	}
	there, err := d.clockThere()
	if err != nil {
		return n, err
	}
	n.unlocked = !there
	n.clockLost = n.unlocked && !w.noClock
	w.noClock = n.unlocked
	return n, nil
}
