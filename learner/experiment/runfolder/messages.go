package runfolder

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ringwave/radio/intake"
)

// MessagesName is the file that has M of every direction of a round, where a round
// has several: metrics.csv has that of the first.
const MessagesName = "messages.csv"

// Messages adds M of every direction, round by round, to messages.csv. It must not
// be used from several goroutines at once.
type Messages struct {
	lines      lineFile
	directions int
}

// OpenMessages opens messages.csv, or makes it, for so many rounds of so many directions,
// and returns what is in it by round. A last line that was cut off is taken out.
func (f *Folder) OpenMessages(rounds, directions int) (*Messages, map[int][]float64, error) {
	path := f.file(MessagesName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", path, intake.Cause(err))
	}
	m := &Messages{lines: lineFile{f: file, path: path}, directions: directions}
	kept, err := m.read(file, rounds)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return m, kept, nil
}

// header returns the file's first line.
func (m *Messages) header() string {
	columns := []string{"round"}
	for p := range m.directions {
		columns = append(columns, "m_"+strconv.Itoa(p+1))
	}
	return strings.Join(columns, ",") + "\n"
}

// read takes in what the file has, and leaves it with a header and whole lines.
func (m *Messages) read(file *os.File, rounds int) (map[int][]float64, error) {
	kept, end, err := m.parse(file, rounds)
	if err != nil {
		return nil, err
	}
	if err := truncate(file, m.lines.path, end); err != nil {
		return nil, err
	}
	m.lines.end = end
	if end == 0 {
		if err := m.lines.add([]byte(m.header())); err != nil {
			return nil, fmt.Errorf("writing the header of %s: %w", m.lines.path, err)
		}
	}
	return kept, nil
}

// parse reads the file's whole lines, of which the last ends at end.
func (m *Messages) parse(r io.Reader, rounds int) (kept map[int][]float64, end int64, err error) {
	// Numbers take up to 24 bytes, and a round that was sent again has two lines.
	lines := intake.NewLines(r, intake.LineLimits{Bytes: 32 * (m.directions + 1), Lines: 2*int64(rounds) + 1})
	kept = map[int][]float64{}
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if lines.Number() == 1 {
			if string(line)+"\n" != m.header() {
				return nil, 0, fmt.Errorf("%s line 1: the header is not round and m_1 to m_%d", m.lines.path, m.directions)
			}
			continue
		}
		round, values, err := m.parseLine(string(line), rounds)
		if err != nil {
			return nil, 0, fmt.Errorf("%s line %d: %w", m.lines.path, lines.Number(), err)
		}
		kept[round] = values
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", m.lines.path, intake.Cause(err))
	}
	return kept, lines.End(), nil
}

func (m *Messages) parseLine(line string, rounds int) (round int, values []float64, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != m.directions+1 {
		return 0, nil, fmt.Errorf("%d fields, but the header names %d", len(fields), m.directions+1)
	}
	if round, err = parseCount(fields[0]); err != nil {
		return 0, nil, fmt.Errorf("column round is %s, but must be %w", excerpt(fields[0]), err)
	}
	if round > rounds {
		return 0, nil, fmt.Errorf("column round is %d, but must be at most %d, the rounds of the run", round, rounds)
	}
	for p, field := range fields[1:] {
		v, err := parseNumber(field)
		if err != nil {
			return 0, nil, fmt.Errorf("column m_%d is %s, but must be %w", p+1, excerpt(field), err)
		}
		values = append(values, v)
	}
	return round, values, nil
}

// Add writes M of a round, at once, every bit of it.
func (m *Messages) Add(round int, values []float64) error {
	if len(values) != m.directions {
		return fmt.Errorf("writing round %d to %s: %d values for %d directions", round, m.lines.path, len(values), m.directions)
	}
	b := strconv.AppendInt(nil, int64(round), 10)
	for _, v := range values {
		b = append(b, ',')
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	if err := m.lines.add(append(b, '\n')); err != nil {
		return fmt.Errorf("writing round %d to %s (the file ends after the round before): %w", round, m.lines.path, err)
	}
	return nil
}

// Sync brings the lines to disk.
func (m *Messages) Sync() error { return m.lines.sync() }

// Close closes the file.
func (m *Messages) Close() error { return m.lines.close() }
