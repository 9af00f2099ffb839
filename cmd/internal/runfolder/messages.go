package runfolder

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
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

// OpenMessages opens messages.csv, or makes it, for rounds of so many directions, and
// returns what is in it by round. A last line that was cut off is taken out.
func (f *Folder) OpenMessages(directions int) (*Messages, map[int][]float64, error) {
	path := f.file(MessagesName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", path, cause(err))
	}
	m := &Messages{lines: lineFile{f: file, path: path}, directions: directions}
	kept, err := m.read(file)
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
func (m *Messages) read(file *os.File) (map[int][]float64, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", m.lines.path, cause(err))
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if err := truncate(file, m.lines.path, int64(len(whole))); err != nil {
		return nil, err
	}
	m.lines.end = int64(len(whole))
	kept := map[int][]float64{}
	if len(whole) == 0 {
		if err := m.lines.add([]byte(m.header())); err != nil {
			return nil, fmt.Errorf("writing the header of %s: %w", m.lines.path, err)
		}
		return kept, nil
	}
	lines := strings.SplitAfter(string(whole), "\n")
	if lines[0] != m.header() {
		return nil, fmt.Errorf("%s line 1: the header is not round and m_1 to m_%d", m.lines.path, m.directions)
	}
	for n, line := range lines[1 : len(lines)-1] {
		round, values, err := m.parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", m.lines.path, n+2, err)
		}
		kept[round] = values
	}
	return kept, nil
}

func (m *Messages) parse(line string) (round int, values []float64, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != m.directions+1 {
		return 0, nil, fmt.Errorf("%d fields, but the header names %d", len(fields), m.directions+1)
	}
	if round, err = parseCount(fields[0]); err != nil {
		return 0, nil, fmt.Errorf("column round is %s, but must be %w", excerpt(fields[0]), err)
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
