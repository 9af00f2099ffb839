package scenes_test

import (
	"path/filepath"
	"slices"
	"testing"

	"ringwave/calibration/sounder"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/watch"
	"ringwave/learner/watch/scenes"
	"ringwave/radio"
)

// counter counts the samples that a sink takes.
type counter struct {
	radio.Sink
	n *int
}

func (c counter) Record(samples []complex64, meta radio.Meta) error {
	*c.n += len(samples)
	return c.Sink.Record(samples, meta)
}

// The scene of a calibration shows what its blocks say so far, and in the end what its
// result does; a page sees the same of its folder.
func TestCalibration(t *testing.T) {
	cfg, err := experiment.Lab{}.Load("../../../hw-configs/waveform-aligned.toml", append(slices.Clone(experimenttest.Quickly), "task.dataset=strokes", "devices.count=3")...)
	if err != nil {
		t.Fatal(err)
	}
	k, err := experiment.Lab{}.NewCalibration(cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard()
	c := scenes.NewCalibration(scenes.WorkOptions{Board: b}, k)
	var p *page
	o := c.Observer(experiment.CalibrationObserver{NoAdvice: true, Blocks: func(done, total int) {
		if done != 100 {
			return
		}
		p = open(t, b)
		p.look(0)
		p.until("gains so far", func() bool { return len(p.table("gains").Rows) == 3 && len(p.plots()) > 0 })
		if s := p.status(); s.State != watch.StateRunning || s.Done != 100 || s.Of != 160 {
			t.Errorf("%+v", s)
		}
	}})
	opening, samples := o.Opening, 0
	o.Opening = func() radio.Sink { return counter{opening(), &samples} }
	dir := filepath.Join(t.TempDir(), "c")
	r, err := k.Run(t.Context(), dir, o)
	c.Concluded(r, err)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Tables()[0]
	p.until("the result", func() bool {
		table := p.table("gains")
		return p.status().State == watch.StateEnded && len(table.Rows) == 3 && slices.Equal(table.Rows[2], want.Rows[2])
	})
	wantHeard := func() {
		t.Helper()
		if h := p.table("heard"); len(h.Rows) != 3 || h.Rows[0][1] != "640" || h.Rows[0][2] != "0" {
			t.Errorf("%v", h.Rows)
		}
		for _, plot := range p.plots() {
			p.svg(plot.Name)
		}
	}
	wantHeard()
	if samples < 160*63 {
		t.Errorf("%d samples were shown", samples)
	}

	// Of blocks of an earlier sitting a scene hears, too.
	again, err := experiment.Lab{}.ResumeCalibration(dir)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	if _, err := again.Run(t.Context(), "", experiment.CalibrationObserver{NoAdvice: true, Block: func(sounder.Block) { blocks++ }}); err != nil || blocks != 160 {
		t.Errorf("%d blocks: %v", blocks, err)
	}

	folder := newBoard()
	if err := scenes.Folder(folder, dir); err != nil {
		t.Fatal(err)
	}
	p = open(t, folder)
	p.look(0)
	p.until("the folder", func() bool { return len(p.plots()) > 0 })
	if s := p.status(); s.State != watch.StateEnded || s.Done != 160 || !slices.Equal(p.table("gains").Rows[2], want.Rows[2]) {
		t.Errorf("%+v, %v", s, p.table("gains").Rows)
	}
	wantHeard()
}
