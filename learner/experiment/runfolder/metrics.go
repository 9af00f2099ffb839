package runfolder

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"ringwave/radio/intake"
)

// requiredColumns begin the header of every metrics.csv, in this order.
const requiredColumns = "round,train_loss,test_accuracy,m,m_ideal,eps,eps_std_predicted,attempts"

// metricsHeader is the header of every run that this program writes.
const metricsHeader = requiredColumns + ",skipped,clipped,eta,gamma,alpha,frames_repeated,quality,misfit,zero_gains,wrong_signs,means_left"

// Layout is which columns a metrics.csv has behind those of every run.
type Layout int

// The layouts.
const (
	InMemory  Layout = iota // none
	OfHosts                 // how many devices took part, of a run whose devices are on other hosts, and nothing that a device keeps to itself
	Validated               // how well the model does on samples that are held out
)

// further returns the further columns of a layout.
func (l Layout) further() string {
	return [...]string{InMemory: "", OfHosts: ",present", Validated: ",validation_loss,validation_accuracy"}[l]
}

// header returns the header that this program writes.
func (l Layout) header() string { return metricsHeader + l.further() }

// Row is what one round reports: a line of metrics.csv. Where a number is
// allowed to be missing, NaN stands for it here and nothing in the file.
type Row struct {
	Round           int     // >= 0, rising from row to row
	TrainLoss       float64 // may be infinite if training diverged; missing where devices keep it to themselves
	TestAccuracy    float64 // in [0, 1]; missing where not evaluated
	M               float64 // the decoded message; missing where the round was skipped
	MIdeal          float64 // the message's noiseless value; may be missing
	Eps             float64 // the decoded noise; missing where the round was skipped
	EpsStdPredicted float64 // >= 0, 0 where nothing is predicted; may be missing
	Attempts        int     // >= 0, how often the round was tried
	Skipped         bool    // given up after the last attempt; 1 or 0 in the file
	Clipped         int     // >= 0, devices whose message was clipped; missing where Present is not 0
	Eta             float64 // step size; may be missing
	Gamma           float64 // smoothing radius; may be missing

	Present int // devices that took part, of other hosts; 0, and no column, where all are in one process

	Validation *ValidationRow // of samples that are held out; nil, and missing, where not evaluated, and no columns where none are

	Link *LinkRow // nil, and missing in the file, for links that have no frames
}

// ValidationRow is how well the model does on samples that are held out.
type ValidationRow struct {
	Loss     float64 // may be infinite
	Accuracy float64 // in [0, 1]
}

// LinkRow is what a link with frames reports of a round. What is missing is NaN.
type LinkRow struct {
	Alpha          float64 // the lattice scale; missing where the round was skipped
	FramesRepeated float64 // frames that were sent again, in all attempts
	Quality        float64 // the worst transmission's mean cos(2 pi alpha y), -1 to 1
	Misfit         float64 // the largest |H_i/alpha - h_i|/|h_i|; simulation only
	ZeroGains      float64 // devices with H_i = 0
	WrongSigns     float64 // devices whose H_i has a sign that their mean has not
	MeansLeft      float64 // devices whose mean gain so far is outside its interval
}

// noLink has everything missing.
func noLink() LinkRow {
	nan := math.NaN()
	return LinkRow{nan, nan, nan, nan, nan, nan, nan}
}

// line returns the row as a line of metrics.csv.
func (r Row) line(layout Layout) []byte {
	b := strconv.AppendInt(nil, int64(r.Round), 10)
	for _, v := range []float64{r.TrainLoss, r.TestAccuracy, r.M, r.MIdeal, r.Eps, r.EpsStdPredicted} {
		b = appendOptional(b, v)
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.Attempts), 10)
	if r.Skipped {
		b = append(b, ",1,"...)
	} else {
		b = append(b, ",0,"...)
	}
	if layout != OfHosts { // else it is each device's own
		b = strconv.AppendInt(b, int64(r.Clipped), 10)
	}
	link := noLink()
	if r.Link != nil {
		link = *r.Link
	}
	for _, v := range []float64{r.Eta, r.Gamma, link.Alpha, link.FramesRepeated, link.Quality, link.Misfit, link.ZeroGains, link.WrongSigns, link.MeansLeft} {
		b = appendOptional(b, v)
	}
	switch layout {
	case OfHosts:
		b = strconv.AppendInt(append(b, ','), int64(r.Present), 10)
	case Validated:
		v := ValidationRow{math.NaN(), math.NaN()}
		if r.Validation != nil {
			v = *r.Validation
		}
		b = appendOptional(appendOptional(b, v.Loss), v.Accuracy)
	}
	return append(b, '\n')
}

// Columns returns the names of a metrics.csv.
func (l Layout) Columns() []string { return strings.Split(l.header(), ",") }

// Cells returns the row as metrics.csv has it, in the order of Columns.
func (r Row) Cells(layout Layout) []string {
	return strings.Split(strings.TrimSuffix(string(r.line(layout)), "\n"), ",")
}

func appendOptional(b []byte, v float64) []byte {
	b = append(b, ',')
	if math.IsNaN(v) {
		return b
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Metrics adds rows to metrics.csv. It must not be used from several goroutines
// at once.
type Metrics struct {
	lines  lineFile
	sum    hash.Hash // of all that the file has
	layout Layout
}

func newMetrics(f file, path string) *Metrics {
	return &Metrics{lines: lineFile{f: f, path: path}, sum: sha256.New()}
}

// add writes a line and takes it into the digest.
func (m *Metrics) add(line []byte) error {
	if err := m.lines.add(line); err != nil {
		return err
	}
	m.sum.Write(line)
	return nil
}

// CreateMetrics makes metrics.csv, with its header. It is an error if the file
// is there.
func (f *Folder) CreateMetrics(layout Layout) (*Metrics, error) {
	path := f.file(MetricsName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", path, intake.Cause(err))
	}
	m := newMetrics(file, path)
	m.layout = layout
	if err := m.add([]byte(layout.header() + "\n")); err != nil {
		file.Close()
		return nil, fmt.Errorf("writing the header of %s: %w", path, err)
	}
	return m, nil
}

// OpenMetricsAt opens metrics.csv to go on after its first offset bytes, which must
// have the given digest, as a checkpoint has both; what lies beyond is cut off. It is
// an error if the file is shorter, has another header than this program writes, if a
// line does not end at offset, or if the digest differs.
func (f *Folder) OpenMetricsAt(offset int64, digest Digest) (*Metrics, error) {
	return f.openMetrics(offset, digest, func(*os.File) (int64, error) { return offset, nil })
}

// OpenMetricsAfter is OpenMetricsAt for runs that send no round twice: what lies
// beyond offset stays, but for a last line that was cut off.
func (f *Folder) OpenMetricsAfter(offset int64, digest Digest) (*Metrics, error) {
	return f.openMetrics(offset, digest, func(file *os.File) (int64, error) {
		return wholeLines(file) // a line ends at offset
	})
}

// openMetrics opens metrics.csv of at least offset bytes with the given digest, and
// cuts it where end says.
func (f *Folder) openMetrics(offset int64, digest Digest, end func(*os.File) (int64, error)) (*Metrics, error) {
	path := f.file(MetricsName)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, intake.Cause(err))
	}
	m := newMetrics(file, path)
	if err := m.resume(file, offset, digest, end); err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// resume checks the file's first offset bytes and cuts it where end says.
func (m *Metrics) resume(file *os.File, offset int64, digest Digest, end func(*os.File) (int64, error)) error {
	path := m.lines.path
	if err := m.check(file, path, offset); err != nil {
		return err
	}
	if err := m.take(file, 0, offset); err != nil {
		return err
	}
	if got := m.Digest(); got != digest {
		return fmt.Errorf("%s: the first %d bytes have the SHA-256 %.16s…, but had %.16s… when the checkpoint was written: the file has been changed or damaged, so the run cannot be resumed", path, offset, got, digest)
	}
	last, err := end(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, intake.Cause(err))
	}
	if err := m.take(file, offset, last); err != nil {
		return err
	}
	m.lines.end = last
	return truncate(file, path, last)
}

// take takes the file's bytes from one offset to another into the digest.
func (m *Metrics) take(file *os.File, from, to int64) error {
	if _, err := io.Copy(m.sum, io.NewSectionReader(file, from, to-from)); err != nil {
		return fmt.Errorf("reading %s: %w", m.lines.path, intake.Cause(err))
	}
	return nil
}

// check refuses a file that is not one of this program's, cut at a line's end.
func (m *Metrics) check(file *os.File, path string, offset int64) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, intake.Cause(err))
	}
	if info.Size() < offset {
		return fmt.Errorf("%s has %d bytes, but the checkpoint was written when it had %d: it has been cut, so the run cannot be resumed", path, info.Size(), offset)
	}
	head := make([]byte, max(0, min(offset, int64(len(Validated.header())+1))))
	if _, err := file.ReadAt(head, 0); err != nil {
		return fmt.Errorf("reading the header of %s: %w", path, intake.Cause(err))
	}
	for _, l := range []Layout{OfHosts, Validated} {
		if bytes.HasPrefix(head, []byte(l.header()+"\n")) {
			m.layout = l
		}
	}
	if header := m.layout.header() + "\n"; offset < int64(len(header)) {
		return fmt.Errorf("%s cannot be resumed at byte %d: its header alone takes %d", path, offset, len(header))
	} else if !bytes.HasPrefix(head, []byte(header)) {
		return fmt.Errorf("%s line 1: the header is not the one that this version writes, %s, so the run cannot be resumed", path, metricsHeader)
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], offset-1); err != nil {
		return fmt.Errorf("reading %s at byte %d: %w", path, offset-1, intake.Cause(err))
	}
	if last[0] != '\n' {
		return fmt.Errorf("%s: no line ends at byte %d, where the checkpoint says that one does: the file has been changed, so the run cannot be resumed", path, offset)
	}
	return nil
}

// Add writes r, at once, by one write: a process killed later has lost nothing.
// If the disk does not take all of it, the file is cut back to the last whole
// line and the row is not in it; Add may be called again.
func (m *Metrics) Add(r Row) error {
	if err := m.add(r.line(m.layout)); err != nil {
		return fmt.Errorf("writing round %d to %s (the file ends after the round before): %w", r.Round, m.lines.path, err)
	}
	return nil
}

// Offset returns the file's length in bytes: where the last whole line ends.
func (m *Metrics) Offset() int64 { return m.lines.end }

// Digest returns the SHA-256 of the file's first Offset bytes, without reading them
// again.
func (m *Metrics) Digest() (d Digest) {
	m.sum.Sum(d[:0])
	return d
}

// Sync brings the rows to disk. Call it before a checkpoint with Offset is
// saved, else a power cut may leave a checkpoint of rows that are gone.
func (m *Metrics) Sync() error { return m.lines.sync() }

// Close closes the file.
func (m *Metrics) Close() error { return m.lines.close() }

// maxLine bounds a line of metrics.csv, in bytes: its columns are a tenth of it.
const maxLine = 4096

// ReadMetrics reads the metrics.csv of a run of so many rounds. The header must begin with the columns that
// every such file has; the further ones this program writes are found by name,
// others are ignored, and one that is missing leaves its field zero (Eta and
// Gamma: NaN). Errors name the line, the column, the value and what is allowed.
func ReadMetrics(path string, rounds int) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, intake.Cause(err))
	}
	defer f.Close()
	return parseMetrics(path, f, rounds)
}

func parseMetrics(path string, r io.Reader, rounds int) ([]Row, error) {
	lines := intake.NewLines(r, intake.LineLimits{Bytes: maxLine, Lines: int64(rounds) + 2}) // a header, and rounds from 0
	var columns []string
	var rows []Row
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		var err error
		if columns == nil {
			columns, err = parseHeader(string(line))
		} else {
			rows, err = appendRow(rows, columns, string(line), rounds)
		}
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, lines.Number(), err)
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, fmt.Errorf("reading %s: %w", path, intake.Cause(lines.Err()))
	case lines.Cut():
		return nil, fmt.Errorf("%s line %d: the line is cut off, it does not end in a newline", path, lines.Number()+1)
	case columns == nil:
		return nil, fmt.Errorf("%s is empty: its first line must be %s", path, metricsHeader)
	}
	return rows, nil
}

// appendRow reads a line behind the rows before it.
func appendRow(rows []Row, columns []string, line string, rounds int) ([]Row, error) {
	row, err := parseRow(columns, line)
	if err != nil {
		return nil, err
	}
	if n := len(rows); n > 0 && row.Round <= rows[n-1].Round {
		return nil, fmt.Errorf("round %d follows round %d: rounds must rise", row.Round, rows[n-1].Round)
	}
	if row.Round > rounds {
		return nil, fmt.Errorf("column round is %d, but must be at most %d, the rounds of the run", row.Round, rounds)
	}
	return append(rows, row), nil
}

// Header is the names of a metrics.csv's columns, in their order.
type Header []string

// ParseHeader reads the first line of a metrics.csv, as ReadMetrics does.
func ParseHeader(line string) (Header, error) { return parseHeader(line) }

// Row reads a further line.
func (h Header) Row(line string) (Row, error) { return parseRow(h, line) }

func parseHeader(line string) ([]string, error) {
	columns := strings.Split(strings.TrimSuffix(line, "\r"), ",")
	required := strings.Split(requiredColumns, ",")
	if len(columns) < len(required) || !slices.Equal(columns[:len(required)], required) {
		return nil, fmt.Errorf("the header is %s, but must begin with %s", excerpt(line), requiredColumns)
	}
	for i, c := range columns {
		if slices.Contains(columns[:i], c) {
			return nil, fmt.Errorf("the column %s is there twice, but each may be there once", excerpt(c))
		}
	}
	return columns, nil
}

func parseRow(columns []string, line string) (Row, error) {
	fields := strings.Split(strings.TrimSuffix(line, "\r"), ",")
	if len(fields) != len(columns) {
		return Row{}, fmt.Errorf("%d fields, but the header names %d", len(fields), len(columns))
	}
	r := Row{Eta: math.NaN(), Gamma: math.NaN()}
	for i, column := range columns {
		if err := r.set(column, fields[i]); err != nil {
			return Row{}, fmt.Errorf("column %s is %s, but must be %w", column, excerpt(fields[i]), err)
		}
	}
	return r, nil
}

// set parses one field. Its error says what the field must be.
func (r *Row) set(column, field string) (err error) {
	switch column {
	case "round":
		r.Round, err = parseCount(field)
	case "train_loss":
		r.TrainLoss, err = parseOptional(field)
	case "test_accuracy":
		r.TestAccuracy, err = parseWithin(field, 1, "empty or a number from 0 to 1")
	case "m":
		r.M, err = parseOptional(field)
	case "m_ideal":
		r.MIdeal, err = parseOptional(field)
	case "eps":
		r.Eps, err = parseOptional(field)
	case "eps_std_predicted":
		r.EpsStdPredicted, err = parseWithin(field, math.Inf(1), "empty or a number of at least 0")
	case "attempts":
		r.Attempts, err = parseCount(field)
	case "skipped":
		r.Skipped, err = parseFlag(field)
	case "clipped":
		if field != "" { // each device's own
			r.Clipped, err = parseCount(field)
		}
	case "present":
		r.Present, err = parseCount(field)
	case "validation_loss":
		if field != "" {
			r.Validation = &ValidationRow{}
			r.Validation.Loss, err = parseNumber(field)
		}
	case "validation_accuracy":
		var v float64
		if v, err = parseWithin(field, 1, "empty or a number from 0 to 1"); r.Validation != nil {
			r.Validation.Accuracy = v
		}
	case "eta":
		r.Eta, err = parseOptional(field)
	case "gamma":
		r.Gamma, err = parseOptional(field)
	case "alpha", "frames_repeated", "quality", "misfit", "zero_gains", "wrong_signs", "means_left":
		err = r.setLink(column, field)
	}
	return err
}

func parseCount(field string) (int, error) {
	n, err := strconv.Atoi(field)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("a whole number from 0 to %d", math.MaxInt)
	}
	return n, nil
}

func parseFlag(field string) (bool, error) {
	if field != "0" && field != "1" {
		return false, fmt.Errorf("0 or 1")
	}
	return field == "1", nil
}

func parseNumber(field string) (float64, error) {
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		return 0, fmt.Errorf("a number that a float64 holds")
	}
	return v, nil
}

func parseOptional(field string) (float64, error) {
	if field == "" {
		return math.NaN(), nil
	}
	v, err := parseNumber(field)
	if err != nil {
		return 0, fmt.Errorf("empty or %w", err)
	}
	return v, nil
}

// parseWithin parses an optional number from 0 to limit.
func parseWithin(field string, limit float64, allowed string) (float64, error) {
	v, err := parseOptional(field)
	if err != nil || v < 0 || v > limit {
		return 0, fmt.Errorf("%s", allowed)
	}
	return v, nil
}

// excerpt quotes a value for a message, cut to a length that can be read.
func excerpt(s string) string {
	const longest = 80
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// setLink reads one of the link's columns; a missing one leaves Link as it is.
func (r *Row) setLink(name, field string) error {
	v, err := parseOptional(field)
	if err != nil || math.IsNaN(v) {
		return err
	}
	if r.Link == nil {
		none := noLink()
		r.Link = &none
	}
	switch name {
	case "alpha":
		r.Link.Alpha = v
	case "frames_repeated":
		r.Link.FramesRepeated = v
	case "quality":
		r.Link.Quality = v
	case "misfit":
		r.Link.Misfit = v
	case "zero_gains":
		r.Link.ZeroGains = v
	case "wrong_signs":
		r.Link.WrongSigns = v
	case "means_left":
		r.Link.MeansLeft = v
	}
	return nil
}
