package scenes

import (
	"fmt"
	"math"
	"math/cmplx"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/calibration/advice"
	"ringwave/calibration/campaign"
	"ringwave/calibration/sounder"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/radio"
)

// Calibration is the scene of a calibration.
type Calibration struct {
	*Work
	k      *experiment.Calibration
	frames *air.Display

	mu      sync.Mutex
	blocks  []sounder.Block
	heard   []heard          // by device
	final   *campaign.Result // nil before all blocks are done
	looking bool             // at blocks so far
	looked  int              // blocks in what is shown
	told    *campaign.Result // what is shown, where it is of all blocks
	rested  time.Time        // when they may be looked at again
}

// heard is what soundings of a device came to.
type heard struct {
	n, missed int
	clipped   int64
	sum       float64 // of magnitudes
	last      complex128
}

// NewCalibration begins the scene of a calibration.
func NewCalibration(o WorkOptions, k *experiment.Calibration) *Calibration {
	cfg := k.Config
	if !cfg.OverRadios() {
		o.CarriersOff = nil
	}
	c := &Calibration{Work: newWork(o, watch.KindCalibration, cfg.CalibrationHeading(), "block"), k: k, heard: make([]heard, cfg.Devices.Count)}
	if text, err := cfg.Encode(); err == nil { // else the command says so
		c.scene.SetConfig(string(text))
	}
	c.frames = air.New(air.Config{SampleRate: radio.Hertz(cfg.Link.SampleRateHz), Centre: radio.Hertz(cfg.Radio.FrequencyHz)})
	c.scene.SetAir(c.frames)
	c.scene.SetRefresh(c.refresh)
	return c
}

// Observer returns what hears of the calibration for its scene, and then for the next.
func (c *Calibration) Observer(next experiment.CalibrationObserver) experiment.CalibrationObserver {
	if c == nil {
		return next
	}
	o := next
	o.Opening = func() radio.Sink { return c.frames }
	o.Block = c.block
	o.Blocks = func(done, total int) {
		c.Progress("block", done, total, share(done, total))
		if next.Blocks != nil {
			next.Blocks(done, total)
		}
	}
	o.Advice = func(done, total int) {
		c.Progress("simulation for advice", done, total, share(done, total))
		if next.Advice != nil {
			next.Advice(done, total)
		}
	}
	o.Result = func(r campaign.Result) {
		c.mu.Lock()
		c.final = &r
		c.mu.Unlock()
		c.scene.Touch()
	}
	return o
}

// Concluded takes in the result.
func (c *Calibration) Concluded(r experiment.CalibrationResult, err error) {
	if c == nil {
		return
	}
	if err == nil {
		for _, v := range r.File.Violations {
			c.scene.Event(watch.EventWarning, v)
		}
	}
	_ = c.End(err) // who calls has it
}

// add takes in a sounding.
func (h *heard) add(r sounder.Record) {
	h.clipped += r.Clipped
	if r.Estimate == nil {
		h.missed++
		return
	}
	h.n++
	h.sum += cmplx.Abs(r.Estimate.Gain)
	h.last = r.Estimate.Gain
}

// block takes in a block.
func (c *Calibration) block(b sounder.Block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks = append(c.blocks, b)
	why := ""
	for k, r := range b.Records {
		c.heard[k%len(c.heard)].add(r)
		if r.Estimate == nil {
			why = r.Missed
		}
	}
	if why != "" {
		c.scene.Event(watch.EventLost, fmt.Sprintf("block %d: soundings were missed: %s", b.Number+1, why))
	}
	c.scene.Touch()
}

// refresh sets what somebody looks at. What blocks say so far is found beside that, and
// takes a small part of a core.
func (c *Calibration) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked == 0 {
		c.scene.SetTables([]watch.Table{heardTable(c.heard)})
	}
	due := c.final != c.told || c.final == nil && len(c.blocks) > c.looked
	switch {
	case !due:
	case c.looking || c.final == nil && time.Now().Before(c.rested):
		c.scene.Touch() // later
	default:
		c.looking = true
		go c.look(c.blocks[:len(c.blocks):len(c.blocks)], c.final)
	}
}

// look sets what some blocks say; final is what they came to, nil for blocks so far.
func (c *Calibration) look(blocks []sounder.Block, final *campaign.Result) {
	began, about := time.Now(), "Of all blocks."
	r, err := campaign.Result{}, error(nil)
	if final != nil {
		r = *final
	} else {
		about = fmt.Sprintf("Of the first %d blocks.", len(blocks))
		r, err = c.k.Look(blocks)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	took := time.Since(began)
	c.looking, c.rested = false, time.Now().Add(20*took)
	c.scene.Touch() // there may be more by now
	if c.final != final {
		return
	}
	c.looked, c.told = len(blocks), final
	tables := []watch.Table{heardTable(c.heard)}
	if err != nil {
		tables[0].Note += " Of so few blocks nothing more can be said yet: " + err.Error() + "."
		c.scene.SetTables(tables)
		return
	}
	c.scene.SetTables(append(resultTables(&r, about), tables...))
	c.scene.SetPlots(captioned(about, drawn(watch.ViewBench, chart.CalibrationPictures(c.k.View(r, blocks)), nil)))
}

// captioned sets the caption of plots.
func captioned(caption string, plots []watch.Plot) []watch.Plot {
	for i := range plots {
		plots[i].Caption = caption
	}
	return plots
}

// heardTable says what was heard of each device.
func heardTable(list []heard) watch.Table {
	t := watch.Table{Name: "heard", View: watch.ViewBench, Title: "Soundings of each device", Note: "Gains are received per sent amplitude, in parts of full scale.", Columns: []watch.Column{
		{Label: "device", Numeric: true}, {Label: "heard", Numeric: true}, {Label: "missed", Numeric: true}, {Label: "samples clipped", Numeric: true},
		{Label: "mean |gain|", Numeric: true}, {Label: "last |gain|", Numeric: true}, {Label: "last phase", Unit: "rad", Numeric: true}}}
	for i, h := range list[:min(len(list), mostTableRows)] {
		mean, size, phase := math.NaN(), math.NaN(), math.NaN()
		if h.n > 0 {
			mean, size, phase = h.sum/float64(h.n), cmplx.Abs(h.last), cmplx.Phase(h.last)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), strconv.Itoa(h.n), strconv.Itoa(h.missed), strconv.FormatInt(h.clipped, 10), short(mean), short(size), short(phase)})
	}
	return t
}

// resultTables are those of a result, with a note on what it is of.
func resultTables(r *campaign.Result, note string) []watch.Table {
	list := campaignTables(r.Tables(), note)
	if v := r.Links.Violations(); len(v) > 0 {
		list = append(list, sentences("violations", "Assumptions that this bench violates", v))
	}
	if r.Advice != nil {
		list = append(list, adviceTables(r.Advice)...)
	}
	return list
}

// campaignTables are tables of a campaign's.
func campaignTables(all []campaign.Table, note string) (list []watch.Table) {
	for _, t := range all {
		out := watch.Table{Name: strings.ToLower(strings.ReplaceAll(t.Title, " ", "-")), View: watch.ViewBench, Title: t.Title, Note: note + " In brackets are 95 % intervals.", Rows: t.Rows[:min(len(t.Rows), mostTableRows)]}
		for _, head := range t.Head {
			label, unit, _ := strings.Cut(head, ", ")
			out.Columns = append(out.Columns, watch.Column{Label: label, Unit: unit, Numeric: true})
		}
		list = append(list, out)
	}
	return list
}

// sentences is a table of sentences.
func sentences(name, title string, list []string) watch.Table {
	t := watch.Table{Name: name, View: watch.ViewBench, Title: title, Columns: []watch.Column{{Label: "what"}}}
	for _, s := range list[:min(len(list), mostTableRows)] {
		t.Rows = append(t.Rows, []string{s})
	}
	return t
}

// adviceTables say what the bench can carry.
func adviceTables(a *advice.Advice) []watch.Table {
	t := watch.Table{Name: "advice", View: watch.ViewBench, Title: "What the bench can carry, best first", Note: "Of simulated rounds; this configuration comes first, marked by *.", Columns: append([]watch.Column{{Label: ""}, {Label: "regime"}}, []watch.Column{
		{Label: "group", Numeric: true}, {Label: "base", Numeric: true}, {Label: "samples a symbol", Numeric: true}, {Label: "repeats", Numeric: true}, {Label: "set"},
		{Label: "read at once", Numeric: true}, {Label: "within attempts", Numeric: true}, {Label: "misfit", Numeric: true}, {Label: "airtime", Unit: "s", Numeric: true}, {Label: "airtime of a round read", Unit: "s", Numeric: true}}...)}
	add := func(mark string, l advice.Outlook) {
		t.Rows = append(t.Rows, []string{mark, fmt.Sprint(l.Regime), strconv.Itoa(l.Group), strconv.Itoa(l.Base), strconv.Itoa(l.SamplesPerSymbol), strconv.Itoa(l.Repeats), fmt.Sprint(l.Set),
			fmt.Sprintf("%.4f [%.4f, %.4f]", l.AtOnce, l.Low, l.High), fmt.Sprintf("%.4f", l.Within), fmt.Sprintf("%.3g", l.Misfit), fmt.Sprintf("%.3g", l.AirtimeSeconds), fmt.Sprintf("%.3g", l.RoundSeconds)})
	}
	if a.Own != nil {
		add("*", *a.Own)
	}
	for _, l := range a.Outlooks {
		add("", l)
	}
	var words []string
	if a.OwnRefusal != "" {
		words = append(words, "this configuration: "+a.OwnRefusal)
	}
	words = append(words, a.Refusals...)
	for _, s := range a.Suggestions {
		words = append(words, s.Sentence)
	}
	list := []watch.Table{t}
	if len(words) > 0 {
		list = append(list, sentences("suggestions", "What stands in the way, and what would help", words))
	}
	return list
}
