package campaign

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"strings"
	"text/tabwriter"

	"ringwave/calibration"
	"ringwave/calibration/advice"
)

// WriteText writes what came of the campaign for people, all in one Write: a table of the
// links, the assumptions that they violate, and the advice if there is one.
func (r *Result) WriteText(w io.Writer) error {
	var b bytes.Buffer // takes all that is written
	s := r.File.Sounding
	fmt.Fprintf(&b, "\nLinks of %d devices, from %d blocks of %d looks in %d sessions (95 %% intervals)\n", len(r.File.Devices), s.Blocks, s.Looks, s.Sessions)
	for i, t := range r.Tables() {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		t.write(&b)
	}
	if v := r.Links.Violations(); len(v) > 0 {
		fmt.Fprintln(&b, "\nAssumptions that this bench violates:")
		for _, sentence := range v {
			fmt.Fprintf(&b, "  * %s\n", sentence)
		}
	} else {
		fmt.Fprintf(&b, "\nNone of the %d assumptions tested is violated.\n", len(r.Links.Tests))
	}
	if r.Advice != nil {
		writeAdvice(&b, r.Advice)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// column is one of a table, with a cell a device.
type column struct {
	head string
	cell func(calibration.Device) string
}

func gainColumns() []column {
	return []column{
		{"mu", func(d calibration.Device) string { return interval(d.Mu) }},
		{"Omega", func(d calibration.Device) string { return interval(d.Omega) }},
		{"sigma", func(d calibration.Device) string { return interval(d.Sigma) }},
		{"K", func(d calibration.Device) string { return interval(d.KFactor) }},
		{"SNR, dB", func(d calibration.Device) string { return interval(d.SNRdB) }},
	}
}

func linkColumns() []column {
	return []column{
		{"phase, rad", func(d calibration.Device) string { return interval(d.PhaseRad) }},
		{"lasts", func(d calibration.Device) string { return lasting(d.PhaseLasts) }},
		{"delay, samples", func(d calibration.Device) string { return interval(d.DelaySamples) }},
		{"carrier offset, Hz", func(d calibration.Device) string { return interval(d.OffsetHz) }},
		{"law", func(d calibration.Device) string { return string(d.Model) }},
		{"image, dB", func(d calibration.Device) string { return fmt.Sprintf("%.1f", d.ImageDB) }},
		{"missed", func(d calibration.Device) string { return fmt.Sprint(d.Missed) }},
		{"clipped", func(d calibration.Device) string { return fmt.Sprint(d.Clipped) }},
	}
}

// hardwareColumns returns those of what devices make up for themselves.
func hardwareColumns() []column {
	given := func(v *calibration.Value) string {
		if v == nil {
			return "not told"
		}
		return interval(*v)
	}
	return []column{
		{"offset from the common carrier, Hz", func(d calibration.Device) string { return given(d.OffsetFromCommonHz) }},
		{"sample clock, ppm", func(d calibration.Device) string { return given(d.ClockPPM) }},
		{"leakage I", func(d calibration.Device) string { return given(d.LeakageI) }},
		{"leakage Q", func(d calibration.Device) string { return given(d.LeakageQ) }},
		{"echoes, samples late and dB", echoesText},
	}
}

// echoesText says how late and how strong a device's echoes are.
func echoesText(d calibration.Device) string {
	switch {
	case d.EchoDelaysSamples == nil:
		return "not told"
	case len(d.EchoDelaysSamples) == 0:
		return "none"
	}
	var parts []string
	for _, e := range EchoesOf(d) {
		parts = append(parts, fmt.Sprintf("%.2f %.1f", float64(e.Delay), 20*math.Log10(cmplx.Abs(e.Gain))))
	}
	return strings.Join(parts, "; ")
}

// noiseColumns returns those of the phases' noise: L(f) at the first offset, the last and
// one between them, and what all offsets add up to. nil where there are no spectra.
func (r *Result) noiseColumns() []column {
	var offsets []float64
	for _, d := range r.Links.Devices {
		if len(d.PhaseSpectrum.Hertz) > 0 {
			offsets = d.PhaseSpectrum.Hertz
			break
		}
	}
	if offsets == nil {
		return nil
	}
	cell := func(text func(n Noise) string) func(calibration.Device) string {
		return func(d calibration.Device) string {
			n := PhaseNoise(r.Links.Devices[d.Index-1])
			if len(n.Hertz) == 0 {
				return "not readable"
			}
			return text(n)
		}
	}
	var columns []column
	last := len(offsets) - 1
	for _, k := range []int{0, int(math.Sqrt(float64(last))), last} {
		columns = append(columns, column{fmt.Sprintf("L(%.3g Hz), dBc/Hz", offsets[k]), cell(func(n Noise) string {
			v := n.Decibels[k]
			return fmt.Sprintf("%.1f [%.1f, %.1f]", v, v+n.Low, v+n.High)
		})})
	}
	return append(columns,
		column{"of the soundings", cell(func(n Noise) string { return fmt.Sprintf("%.1f", n.Floor) })},
		column{"rms phase, rad", cell(func(n Noise) string { return fmt.Sprintf("%.3g", n.RMS) })})
}

// Table is a part of a result for people: a line a device.
type Table struct {
	Title string
	Head  []string // of the columns, with their units
	Rows  [][]string
}

// Tables returns what the result says of the links: the gains, the links, the hardware and,
// where there are spectra, the noise.
func (r *Result) Tables() []Table {
	list := FileTables(r.File)
	if columns := r.noiseColumns(); columns != nil {
		list = append(list, tableOf("Noise of the phases", r.File, columns))
	}
	return list
}

// FileTables returns those of Tables that a calibration file has.
func FileTables(f calibration.File) []Table {
	return []Table{tableOf("Gains", f, gainColumns()), tableOf("Links", f, linkColumns()), tableOf("Hardware", f, hardwareColumns())}
}

func tableOf(title string, f calibration.File, columns []column) Table {
	t := Table{Title: title, Head: []string{"device"}}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for _, d := range f.Devices {
		row := []string{fmt.Sprint(d.Index)}
		for _, c := range columns {
			row = append(row, c.cell(d))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// write writes the table with columns as wide as they need.
func (t Table) write(b *bytes.Buffer) {
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, line := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintf(w, "  %s\n", strings.Join(line, "\t"))
	}
	w.Flush() // into memory
}

// lasting says whether phases of sessions agree.
func lasting(lasts *bool) string {
	switch {
	case lasts == nil:
		return "unresolved"
	case *lasts:
		return "yes"
	}
	return "no"
}

// interval writes a value and its interval to two digits of the interval's width.
func interval(v calibration.Value) string {
	width := v.High - v.Low
	if !(width > 0) || math.IsInf(width, 0) {
		return fmt.Sprintf("%.4g [%.4g, %.4g]", v.Value, v.Low, v.High)
	}
	decimals := min(12, max(0, 1-int(math.Floor(math.Log10(width)))))
	return fmt.Sprintf("%.*f [%.*f, %.*f]", decimals, v.Value, decimals, v.Low, decimals, v.High)
}

func writeAdvice(b *bytes.Buffer, a *advice.Advice) {
	fmt.Fprintln(b, "\nWhat the bench can carry, best first (simulated rounds; * is this config):")
	fmt.Fprintf(b, "    %-13s %-4s %-4s %-7s %-7s %-15s %-26s %-16s %-9s %-12s %s\n",
		"regime", "G", "B", "samples", "repeats", "set", "read at once", "within attempts", "misfit", "airtime, s", "s a round read")
	if a.Own != nil {
		writeOutlook(b, "*", *a.Own)
	}
	for _, l := range a.Outlooks {
		writeOutlook(b, " ", l)
	}
	if a.OwnRefusal != "" {
		fmt.Fprintf(b, "  * this config: %s\n", a.OwnRefusal)
	}
	if !a.Reached {
		fmt.Fprintln(b, "  None of them is sure to reach the wanted probability of 0.99 within the attempts.")
	}
	for _, s := range a.Refusals {
		fmt.Fprintf(b, "  - %s\n", s)
	}
	if len(a.Suggestions) > 0 {
		fmt.Fprintln(b, "To do better:")
	}
	for _, s := range a.Suggestions {
		fmt.Fprintf(b, "  + %s\n", s.Sentence)
	}
	if len(a.Idle) > 0 {
		fmt.Fprintf(b, "  Nothing to gain from: %s.\n", strings.Join(a.Idle, "; "))
	}
}

func writeOutlook(b *bytes.Buffer, mark string, l advice.Outlook) {
	fmt.Fprintf(b, "  %s %-13s %-4d %-4d %-7d %-7d %-15s %-26s %-16.4f %-9.3g %-12.3g %.3g\n", mark, l.Regime, l.Group, l.Base, l.SamplesPerSymbol, l.Repeats, l.Set,
		fmt.Sprintf("%.4f [%.4f, %.4f]", l.AtOnce, l.Low, l.High), l.Within, l.Misfit, l.AirtimeSeconds, l.RoundSeconds)
}
