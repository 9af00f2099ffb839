package experiment

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringwave/calibration/bringup"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/iq"
)

// The files of a bring-up's folder, beside plots.
const (
	BringUpResultsName = "results.json"
	BringUpReportName  = "report.html"
	// BringUpArchiveName has all that one who helps needs.
	BringUpArchiveName = "bringup.tar.gz"
)

// write writes results, plots, page and archive.
func (u *BringUp) write(out *BringUpResult, began time.Time) error {
	anonymise(out.Results)
	plots, err := u.draw(out.Results)
	if err != nil {
		return fmt.Errorf("drawing the plots: %w", err)
	}
	page, err := u.page(out, plots).HTML(u.folder.Path())
	if err != nil {
		return err
	}
	out.Files = append(out.Files, BringUpResultsName, BringUpReportName, BringUpArchiveName)
	// Where the folder lies is nobody's business but the user's.
	shown := *out
	shown.Dir = filepath.Base(out.Dir)
	results, err := json.MarshalIndent(shown, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{BringUpResultsName: append(results, '\n'), BringUpReportName: page}
	for name, data := range files {
		if err := u.folder.WriteAtomic(name, data); err != nil {
			return intake.PathError(err)
		}
	}
	if err := u.addVersions(files, began); err != nil {
		return err
	}
	for _, r := range out.Results {
		for _, rec := range r.Recordings {
			data := make([]byte, len(rec.Samples)*iq.CF32LE.SampleBytes())
			iq.New(iq.Config{Format: iq.CF32LE}).Encode(data, rec.Samples)
			files[fmt.Sprintf("iq/%s-%s.cf32", r.Step, strings.ReplaceAll(rec.Name, " ", "-"))] = data
		}
	}
	data, err := archive(files, began)
	if err != nil {
		return err
	}
	return intake.PathError(u.folder.WriteAtomic(BringUpArchiveName, data))
}

// addVersions adds the configuration and what was built.
func (u *BringUp) addVersions(files map[string][]byte, began time.Time) (err error) {
	if files[runfolder.ConfigName], err = sendable(u.Config).Encode(); err != nil {
		return err
	}
	versions, err := json.MarshalIndent(runfolder.NewManifest(began), "", "  ")
	files["versions.json"] = append(versions, '\n')
	return err
}

// sendable returns a configuration without folders, and without the seed, from which keys
// may come.
func sendable(c config.Config) config.Config {
	c.Experiment.Seed = 0
	for _, path := range []*string{&c.Calibration.File, &c.Task.TrainImages, &c.Task.TrainLabels, &c.Task.TestImages, &c.Task.TestLabels} {
		if *path != "" {
			*path = filepath.Base(*path)
		}
	}
	return c
}

// anonymise takes the user's home out of all sentences.
func anonymise(results []bringup.Result) {
	home, err := os.UserHomeDir()
	if err != nil || len(home) < 2 {
		return
	}
	for i := range results {
		for k := range results[i].Findings {
			f := &results[i].Findings[k]
			f.Text = strings.ReplaceAll(f.Text, home, "~")
		}
	}
}

// archive packs files, in the order of their names.
func archive(files map[string][]byte, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	pack := tar.NewWriter(zip)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h := &tar.Header{Name: "bringup/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: at.Truncate(time.Second), Format: tar.FormatUSTAR}
		if err := pack.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := pack.Write(files[name]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	err := zip.Close()
	return b.Bytes(), err
}

// draw draws the plots of each step, and returns their paths in the folder without suffix.
func (u *BringUp) draw(results []bringup.Result) (plots map[string][]report.Figure, err error) {
	plots = map[string][]report.Figure{}
	drawn := map[*bringup.Spectrum]bool{}
	save := func(step, base, caption string, f chart.Figure) {
		if err == nil {
			err = f.Save(filepath.Join(u.folder.Path(), base))
			plots[step] = append(plots[step], report.Figure{Base: base, Caption: caption})
		}
	}
	for _, r := range results {
		for _, s := range r.Spectra {
			if r.Step == "levels" || drawn[s] {
				continue
			}
			drawn[s] = true
			save(r.Step, fmt.Sprintf("%s-%d", r.Step, len(plots[r.Step])+1), "Spectrum: "+s.Name+".", spectrumFigure(s))
		}
		if r.Step == "levels" && len(r.Spectra) > 0 {
			save(r.Step, r.Step, "How often samples have which magnitude; 1 is the end of the converter.", levelsFigure(r.Spectra))
		}
		if len(r.Delays) > 0 {
			save(r.Step, r.Step, "When each device begins, start by start.", delaysFigure(r.Delays))
		}
	}
	return plots, err
}

// spectrumFigure draws a spectrum with its lines marked.
func spectrumFigure(s *bringup.Spectrum) chart.Figure {
	f := chart.Figure{
		Title: s.Name, XLabel: "kHz from " + s.Centre.String(), YLabel: "dB of full scale",
		Note: "The receiver is tuned beside the transmitters' carrier, so that its own DC and image are told from theirs.",
	}
	power := chart.Series{Name: "received", Color: chart.Gray}
	for k, p := range s.Power {
		power.X = append(power.X, float64(s.Frequency(k))/1e3)
		power.Y = append(power.Y, decibelsOf(p))
	}
	f.Series = append(f.Series, power)
	for _, l := range s.Lines {
		f.Series = append(f.Series, chart.Series{
			Name: l.Name, Style: chart.Points, X: []float64{float64(l.Frequency) / 1e3}, Y: []float64{decibelsOf(float64(l.Power))},
		})
	}
	return f
}

// decibelsOf returns 10 log10 of a power, no less than -200.
func decibelsOf(p float64) float64 { return max(-200, float64(radio.Power(max(p, 0)).Decibels())) }

// levelsFigure draws histograms of magnitudes.
func levelsFigure(list []*bringup.Spectrum) chart.Figure {
	f := chart.Figure{Title: "levels", XLabel: "larger magnitude of I and Q, of full scale", YLabel: "share of samples", LogY: true}
	for _, s := range list {
		series, all := chart.Series{Name: s.Name, Style: chart.LinePoints}, 0
		for _, n := range s.Levels {
			all += n
		}
		for k, n := range s.Levels {
			series.X = append(series.X, (float64(k)+0.5)/float64(len(s.Levels)))
			share := math.NaN() // none is not drawn
			if n > 0 {
				share = float64(n) / float64(all)
			}
			series.Y = append(series.Y, share)
		}
		f.Series = append(f.Series, series)
	}
	return f
}

// delaysFigure draws the delays of devices, start by start.
func delaysFigure(delays [][]float64) chart.Figure {
	f := chart.Figure{Title: "start offsets", XLabel: "start", YLabel: "samples after the first device"}
	for i := range delays[0] {
		s := chart.Series{Name: fmt.Sprintf("device %d", i+1), Style: chart.LinePoints}
		for k := range delays {
			s.X, s.Y = append(s.X, float64(k+1)), append(s.Y, delays[k][i])
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// page returns the page of results.
func (u *BringUp) page(out *BringUpResult, plots map[string][]report.Figure) report.Report {
	p := report.Report{Title: "Bring-up of " + u.Config.Experiment.Name, Lead: []string{
		map[bool]string{true: "All steps were made, and none has failed.", false: "It is not done: look at the steps below that failed or were not made."}[out.Passed],
		fmt.Sprintf("If you ask for help, send %s along: it has the configuration without folders and seed, these results, what was built, and a few samples of steps that failed. It has no key, no model and no data.", BringUpArchiveName),
	}}
	steps := report.Table{Caption: "The steps.", Head: []string{"step", "verdict", "what was found"}}
	for _, r := range out.Results {
		var texts []string
		for _, f := range r.Findings {
			texts = append(texts, f.Text)
		}
		steps.Rows = append(steps.Rows, report.Row{Cells: []string{r.Title, string(r.Verdict), strings.Join(texts, "; ")}})
	}
	p.Sections = append(p.Sections, report.Section{Title: "Steps", Blocks: []report.Block{steps}})
	for _, r := range out.Results {
		p.Sections = append(p.Sections, section(r, plots[r.Step]))
	}
	return p
}

// section returns the part of a page about a step.
func section(r bringup.Result, plots []report.Figure) report.Section {
	s := report.Section{Title: fmt.Sprintf("%s: %s", strings.ToUpper(r.Title[:1])+r.Title[1:], r.Verdict)}
	var list report.List
	for _, f := range r.Findings {
		text := f.Text + "."
		if f.ToDo != "" {
			text += " What to do: " + f.ToDo + "."
		}
		list = append(list, text)
	}
	s.Blocks = append(s.Blocks, list)
	if len(r.Boards) > 0 {
		t := report.Table{Caption: "The boards.", Head: []string{"place", "URI", "model", "firmware", "revision"}}
		for _, b := range r.Boards {
			t.Rows = append(t.Rows, report.Row{Cells: []string{b.Role, b.URI, b.Model, b.Firmware, b.Revision}})
		}
		s.Blocks = append(s.Blocks, t)
	}
	if len(r.Figures) > 0 {
		t := report.Table{Caption: "What was measured.", Head: []string{"figure", "value", "unit", "at least", "at most"}}
		for _, f := range r.Figures {
			t.Rows = append(t.Rows, report.Row{Cells: []string{f.Name, numeral(float64(f.Value)), f.Unit, numeral(float64(f.Least)), numeral(float64(f.Most))}})
		}
		s.Blocks = append(s.Blocks, t)
	}
	for _, p := range plots {
		s.Blocks = append(s.Blocks, p)
	}
	return s
}

// numeral returns a number of four digits, "" for none.
func numeral(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
