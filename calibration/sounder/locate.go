package sounder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"ringwave/calibration/sounding"
	"ringwave/radio"
)

const (
	// locateTries is how often a device is looked for that is not heard, and troubledTries
	// one that says why.
	locateTries, troubledTries = 4, 8
	// longestLead is how often Lead is doubled at most.
	longestLead = 3
	// leastPlace is the least Guard and Search.Delay of a close look.
	leastPlace = 32
	// pairEvery is the least time from a device's first burst to its second: 50 ppm are 3
	// samples then, and an error of a burst's place by 0.05 is one of 1 ppm.
	pairEvery radio.SampleCount = 1 << 16
	// leastLead is the least Lead: twice what is read in between is less.
	leastLead radio.SampleCount = 1 << 16
	// writing is how long the receiver is left alone for a transmitter that is written to:
	// far less than drivers keep for one who reads late.
	writing = 100 * time.Millisecond
)

// lostCount: what was found of a receiver's index holds no more.
const lostCount trouble = "the receiver lost samples, and not how many is known"

// Locate finds what transmitters that began at different times must add to their own
// indices to have one in common, which is the receiver's up to what its clock has run apart
// when Locate returns. It is for transmitters on one clock that go on by themselves
// (radio.Pacer). One device at a time plays a burst, and another a while later, which the
// receiver hears anywhere up to Reach samples after it was due. When all are found they play
// close behind one another, so that a receiver whose clock runs apart from theirs finds them
// at one time: between devices what is left is less than a sample.
//
// Of the Config it takes Sounding, Devices, Guard, Search, Amplitude, the streams, Lead,
// Reach and Patience. A device that was late, had an underrun or was not heard is looked for
// again, with more Lead, a few times. Errors are a stream's, ErrStalled and *NotHeardError.
func Locate(ctx context.Context, cfg Config) ([]radio.SampleIndex, error) {
	l, err := newLocator(cfg)
	if err != nil {
		return nil, err
	}
	for {
		offsets, err := l.locate(ctx)
		var unheard *NotHeardError
		if err == nil || !errors.As(err, &unheard) || !l.again(unheard) {
			return offsets, err
		}
	}
}

// locator looks for transmitters.
type locator struct {
	s     *Sounder
	tries []int
	found []bool
	// ahead is by how much the receiver's index was ahead of a device's own when that was
	// found, and pairs is where its bursts were by that.
	ahead []radio.SampleIndex
	pairs *follower
	// written is the device's own index so far behind the last burst that it was given that
	// another is not searched for together with that; before it, it would be late.
	written []radio.SampleIndex
}

func newLocator(cfg Config) (*locator, error) {
	cfg.Blocks, cfg.Looks, cfg.Sessions, cfg.First, cfg.Session, cfg.Acquired = 1, 2, 1, 0, 0, nil
	cfg.LookEvery, cfg.BlockEvery = pairEvery/2, 0
	cfg.Guard, cfg.Search.Delay = max(cfg.Guard, leastPlace), max(cfg.Search.Delay, leastPlace)
	cfg.OnLook, cfg.OnBlock, cfg.BlockAt, cfg.Restart = nil, nil, nil, nil
	if len(cfg.Transmitters) == 0 {
		return nil, errors.New("there is no transmitter to locate")
	}
	for i, tx := range cfg.Transmitters {
		if _, ok := tx.(radio.Pacer); !ok {
			return nil, fmt.Errorf("device %d does not go on by itself: it cannot be located", i+1)
		}
	}
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	n := cfg.Devices
	l := &locator{s: s, tries: make([]int, n), found: make([]bool, n), ahead: make([]radio.SampleIndex, n), pairs: newFollower(n), written: make([]radio.SampleIndex, n)}
	l.listenAnew()
	return l, nil
}

// listenAnew takes the receiver as it is now.
func (l *locator) listenAnew() {
	l.s.adrift, l.s.haveEpochs, l.s.rxEpoch = false, true, l.s.cfg.Receiver.Epoch()
}

// trouble is what a device or the receiver says that kept it from being heard.
type trouble string

// Error returns it.
func (t trouble) Error() string { return string(t) }

// again forgets the device that was not heard, or all, and reports whether there is another
// try.
func (l *locator) again(e *NotHeardError) bool {
	for i := range l.found {
		if i == e.Device || e.Device < 0 {
			l.tries[i]++
			l.found[i], l.pairs.trails[i] = false, trail{}
		}
	}
	if e.Device < 0 {
		l.listenAnew()
	}
	if _, told := e.Err.(trouble); told {
		return slices.Max(l.tries) < troubledTries
	}
	return slices.Max(l.tries) < locateTries
}

// lead is how far ahead of its board device i is written to.
func (l *locator) lead(i int) radio.SampleCount {
	return max(l.s.cfg.Lead, leastLead) << min(l.tries[i], longestLead)
}

// free returns the device's own index at which it can be given a burst.
func (l *locator) free(i int) radio.SampleIndex {
	earliest := l.s.cfg.Transmitters[i].(radio.Pacer).Earliest()
	return max(l.written[i], earliest+radio.SampleIndex(l.lead(i)))
}

func (l *locator) locate(ctx context.Context) ([]radio.SampleIndex, error) {
	for i, found := range l.found {
		if found {
			continue
		}
		if err := l.search(ctx, i); err != nil {
			return nil, err
		}
	}
	if len(l.found) == 1 {
		return slices.Clone(l.ahead), nil
	}
	return l.lookClosely(ctx)
}

// pairEvery returns the time from the first burst of device i to its second. It tells tries
// apart, as bursts of an earlier one may come yet, and is longer than what is searched at a time.
func (l *locator) pairEvery(i int) radio.SampleCount {
	return pairEvery + radio.SampleCount(4+4*l.tries[i])*l.s.cfg.slot()
}

// search finds device i, wherever it is.
func (l *locator) search(ctx context.Context, i int) error {
	s, tx := l.s, l.s.cfg.Transmitters[i]
	s.events(i, tx) // of what was before
	at := l.free(i)
	bursts := make([][]radio.SampleIndex, s.cfg.Devices)
	bursts[i] = []radio.SampleIndex{at, at + radio.SampleIndex(l.pairEvery(i))}
	w := l.send(ctx, bursts)
	defer w.end()
	pair, err := l.listen(ctx, i, at, w)
	if err != nil {
		return err
	}
	if err := w.wait(); err != nil {
		return err
	}
	if err := l.checkDevice(ctx, i); err != nil {
		return err
	}
	l.found[i], l.ahead[i] = true, radio.SampleIndex(math.Round(pair[0].place))-at
	for k, p := range pair {
		due := float64(bursts[i][k] + l.ahead[i])
		l.pairs.trails[i].add(spot{due, p.place - due}, p.acquired)
	}
	return nil
}

// listen hears the two bursts of device i, of which the first is due at its own index at.
func (l *locator) listen(ctx context.Context, i int, at radio.SampleIndex, w *sending) (*[2]spotted, error) {
	s, e := l.s, &ear{s: l.s}
	wait := l.lead(i) + l.pairEvery(i) + s.cfg.Reach
	due := at + radio.SampleIndex(l.pairEvery(i)+s.cfg.Reach)
	paced := s.cfg.Transmitters[i].(radio.Pacer)
	for heard := radio.SampleCount(0); ; {
		done := w.within(heard+skipped > l.lead(i)/2)
		n, err := e.more(ctx, done)
		if err != nil {
			return nil, err
		}
		heard += n
		if pair, err := e.pair(int(l.pairEvery(i))); pair != nil || err != nil {
			return pair, err
		}
		if !done {
			continue
		}
		if err := w.wait(); err != nil {
			return nil, err
		}
		if reason := s.events(i, s.cfg.Transmitters[i]); reason != "" {
			return nil, &NotHeardError{i, 2, trouble(reason)}
		}
		// Both clocks must have gone by: of what is heard, a part may be from before. One
		// that stands still is not waited for.
		if heard > wait && (paced.Earliest() > due || heard > 8*wait) {
			return nil, &NotHeardError{i, 2, fmt.Errorf("in %d samples there was none", heard)}
		}
	}
}

// checkDevice asks device i for its losses.
func (l *locator) checkDevice(ctx context.Context, i int) error {
	ctx, release := l.s.patient(ctx)
	defer release()
	tx := l.s.cfg.Transmitters[i]
	if err := checkLoss(ctx, tx); err != nil {
		return fmt.Errorf("asking device %d for its losses: %w", i+1, err)
	}
	if reason := l.s.events(i, tx); reason != "" {
		return &NotHeardError{i, 2, trouble(reason)}
	}
	return nil
}

// checkReceiver asks the receiver whether it still counts as it did.
func (l *locator) checkReceiver(ctx context.Context) error {
	ctx, release := l.s.patient(ctx)
	defer release()
	if err := checkLoss(ctx, l.s.cfg.Receiver); err != nil {
		return fmt.Errorf("asking the receiver for its losses: %w", err)
	}
	if l.s.adrift || l.s.cfg.Receiver.Epoch() != l.s.rxEpoch {
		return &NotHeardError{-1, 2, lostCount}
	}
	return nil
}

// lookClosely has all devices play one behind the other, which were found at different times,
// and gives their offsets.
func (l *locator) lookClosely(ctx context.Context) ([]radio.SampleIndex, error) {
	if err := l.checkReceiver(ctx); err != nil {
		return nil, err
	}
	s := l.s
	l.pairs.fit()
	at, offsets := l.foresee()
	bursts := make([][]radio.SampleIndex, s.cfg.Devices)
	for i := range bursts {
		s.events(i, s.cfg.Transmitters[i]) // of a look in which another was late, too
		for t := range s.cfg.Looks {
			bursts[i] = append(bursts[i], at-offsets[i]+s.cfg.slotStart(t, i)+radio.SampleIndex(s.cfg.Guard))
		}
	}
	w := l.send(ctx, bursts)
	defer w.end()
	if err := l.await(ctx, w, at); err != nil {
		return nil, err
	}
	near := newFollower(s.cfg.Devices)
	near.slope = l.pairs.slope
	if err := l.hearAll(ctx, at, near); err != nil {
		return nil, err
	}
	near.fit()
	late := make([]float64, s.cfg.Devices)
	for i := range late {
		late[i] = near.line(i, at+radio.SampleIndex(s.cfg.span()/2))
	}
	for i, by := range together(late) {
		offsets[i] += by
	}
	return offsets, nil
}

// foresee returns the receiver's index at which a close look can begin, and what the devices'
// offsets will be then.
func (l *locator) foresee() (at radio.SampleIndex, offsets []radio.SampleIndex) {
	at = l.s.next
	for i := range l.ahead {
		at = max(at, l.free(i)+l.ahead[i])
	}
	for i := range l.ahead {
		offsets = append(offsets, l.ahead[i]+radio.SampleIndex(math.Round(l.pairs.line(i, at))))
	}
	// None may be asked for what it has sent.
	for i, by := range offsets {
		at = max(at, l.free(i)+by)
	}
	return at, offsets
}

// await reads on while transmitters are written to, up to the receiver's index at.
func (l *locator) await(ctx context.Context, w *sending, at radio.SampleIndex) error {
	waste := make([]complex64, skipped)
	for until := at - skipped; !w.within(l.s.next >= until) && l.s.next < until; {
		if _, _, err := l.s.take(ctx, waste, until); err != nil {
			return err
		}
	}
	return w.wait()
}

// hearAll hears a close look that begins at the receiver's index at.
func (l *locator) hearAll(ctx context.Context, at radio.SampleIndex, near *follower) error {
	s := l.s
	var b Block
	for n := range s.cfg.Looks * s.cfg.Devices {
		i := n % s.cfg.Devices
		start := at + s.cfg.slotStart(n/s.cfg.Devices, i)
		slot, _, err := s.hear(ctx, start, &b)
		if err != nil {
			return err
		}
		if slot == nil {
			continue
		}
		place, err := (&ear{s: s, buf: slot}).look(0, l.pairs.trails[i].search(s.cfg.Search, s.cfg.Sounding.Burst()))
		if err != nil {
			return err
		}
		if place != nil {
			near.trails[i].add(spot{float64(start), float64(place.acquired.Delay)}, place.acquired)
		}
	}
	for i := range s.cfg.Devices {
		if err := l.checkDevice(ctx, i); err != nil {
			return err
		}
	}
	if err := l.checkReceiver(ctx); err != nil {
		return err
	}
	for i, t := range near.trails {
		if len(t.spots) == 0 {
			return &NotHeardError{i, s.cfg.Looks, errors.New("it is not where it was found")}
		}
	}
	return nil
}

// together rounds delays to whole samples by a common instant between them for which what is
// left differs least: where each is rounded by itself, two that are nearly alike may come to
// lie a sample apart.
func together(late []float64) []radio.SampleIndex {
	parts := make([]float64, len(late))
	for i, x := range late {
		parts[i] = x - math.Floor(x)
	}
	slices.Sort(parts)
	widest, behind := -1.0, 0.0
	for i, x := range parts {
		next := parts[(i+1)%len(parts)]
		if i == len(parts)-1 {
			next++
		}
		if next-x > widest {
			widest, behind = next-x, next
		}
	}
	centre := behind + (1-widest)/2
	centre -= math.Round(centre)
	out := make([]radio.SampleIndex, len(late))
	for i, x := range late {
		out[i] = radio.SampleIndex(math.Round(x - centre))
	}
	return out
}

// sending is bursts that are being written.
type sending struct {
	done   chan struct{} // closed when all are, or none will be any more
	err    error         // once done
	cancel context.CancelFunc
}

// send begins to write bursts of each device, at the device's own indices. Transmitters of
// other hosts take their time for it, while the receiver must be read.
func (l *locator) send(ctx context.Context, bursts [][]radio.SampleIndex) *sending {
	ctx, cancel := context.WithCancel(ctx)
	w := &sending{done: make(chan struct{}), cancel: cancel}
	errs := make([]error, len(bursts))
	var all sync.WaitGroup
	for i, starts := range bursts {
		if len(starts) == 0 {
			continue
		}
		l.written[i] = starts[len(starts)-1] + skipped + radio.SampleIndex(4*l.s.cfg.slot())
		all.Add(1)
		go func() {
			defer all.Done()
			errs[i] = l.write(ctx, i, starts)
		}()
	}
	go func() {
		defer close(w.done)
		all.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			w.err = errs[i]
		}
	}()
	return w
}

// write writes bursts of device i.
func (l *locator) write(ctx context.Context, i int, starts []radio.SampleIndex) error {
	for _, start := range starts {
		if err := l.s.write(ctx, l.s.cfg.Transmitters[i], radio.TxMeta{Timed: true, Start: start, BurstEnd: true}); err != nil {
			return fmt.Errorf("device %d sends a sounding: %w", i+1, err)
		}
	}
	return nil
}

// within reports whether all is written, and waits for that for a while if it is told to: on
// a bench whose time goes on as it is read, a burst would be late.
func (w *sending) within(patient bool) bool {
	patience := time.Duration(0)
	if patient {
		patience = writing
	}
	select {
	case <-w.done:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
}

// wait waits until all is written.
func (w *sending) wait() error {
	<-w.done
	return w.err
}

// end gives up what is not written.
func (w *sending) end() {
	w.cancel()
	<-w.done
}

// ear is the last samples that were received.
type ear struct {
	s     *Sounder
	buf   []complex64
	first radio.SampleIndex // of buf
}

// spotted is a burst that was found: the receiver's index at which it begins.
type spotted struct {
	place    float64
	acquired sounding.Acquired
}

// more hears on. The transmitters are left alone unless they are idle.
func (e *ear) more(ctx context.Context, idle bool) (radio.SampleCount, error) {
	kept := len(e.buf)
	e.buf = slices.Grow(e.buf, skipped)[:kept+skipped]
	read := e.s.take
	if idle {
		read = e.s.read
	}
	n, meta, err := read(ctx, e.buf[kept:], radio.Forever)
	e.buf = e.buf[:kept+n]
	if err != nil {
		return 0, err
	}
	if e.s.adrift {
		return 0, &NotHeardError{-1, 2, lostCount}
	}
	from := -1 // where what is unbroken begins
	if kept == 0 || meta.First != e.first+radio.SampleIndex(kept) {
		from = 0
	}
	for _, g := range meta.Gaps {
		from = g.At
	}
	if from >= 0 {
		e.first, e.buf = meta.Index(from), e.buf[kept+from:]
	}
	return radio.SampleCount(n), nil
}

// pair looks for two bursts that are so many samples apart; nil if there are none. What was
// searched for the first is dropped. It is searched with a burst more on either side: of one
// that is seen in part, what is like it lies a period beside.
func (e *ear) pair(every int) (*[2]spotted, error) {
	slot, beside := int(e.s.cfg.slot()), e.s.cfg.Sounding.Burst()
	if len(e.buf) < skipped+2*beside+every+slot {
		return nil, nil
	}
	defer func() {
		e.first += skipped
		e.buf = e.buf[:copy(e.buf, e.buf[skipped:])]
	}()
	// What repeats with the sounding's period, whatever its carrier.
	at, ok := e.s.repeats(e.buf[:skipped+2*beside+slot-1], []int{e.s.nominal()}, slot)
	if !ok || at < beside || at >= beside+skipped {
		return nil, nil
	}
	first, err := e.look(at, e.s.cfg.Search)
	if first == nil || err != nil {
		return nil, err
	}
	near := trail{}
	near.add(spot{}, first.acquired)
	second, err := e.look(at+every, near.search(e.s.cfg.Search, e.s.cfg.Sounding.Burst()))
	if second == nil || err != nil {
		return nil, err
	}
	return &[2]spotted{*first, *second}, nil
}

// look looks for a burst in the slot that begins at a position; nil if there is none.
func (e *ear) look(at int, search sounding.Search) (*spotted, error) {
	a, err := e.s.cfg.Sounding.Acquire([][]complex64{e.buf[at : at+int(e.s.cfg.slot())]}, e.s.nominal(), search)
	if errors.Is(err, sounding.ErrNoSounding) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &spotted{float64(e.first) + float64(at+e.s.nominal()) + float64(a.Delay), a}, nil
}
