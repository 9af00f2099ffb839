package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// Merger returns Merge from folders of logs, nil where there are none.
func Merger(lab experiment.Lab, logs []string) func(dir string, rows []runfolder.Row) ([]runfolder.Row, error) {
	if len(logs) == 0 {
		return nil
	}
	return func(dir string, rows []runfolder.Row) ([]runfolder.Row, error) { return Merge(lab, dir, logs, rows) }
}

// Merge puts into the lines of a server's metrics.csv what it does not know: losses and
// scalars from the logs of devices, which lie below the folders of logs as devices write
// them, and the gains from the air's. The lines are then those that one process would have
// written. Dir is the run's folder. What no log has stays missing.
func Merge(lab experiment.Lab, dir string, logs []string, rows []runfolder.Row) ([]runfolder.Row, error) {
	c, err := lab.Load(filepath.Join(dir, runfolder.ConfigName))
	if err != nil {
		return nil, err
	}
	common, err := lab.Common(c, dir)
	if err != nil {
		return nil, err
	}
	run, err := runID(dir)
	if err != nil {
		return nil, err
	}
	m := merger{common: common, gains: map[int]gainLine{}, devices: make([]map[int]deviceLine, c.Devices.Count)}
	if err := m.readGains(append([]string{filepath.Join(dir, gainsName)}, findAll(logs, gainsName)...)); err != nil {
		return nil, err
	}
	for i := range m.devices {
		m.devices[i] = map[int]deviceLine{}
		for _, root := range logs {
			if err := m.readDevice(i, filepath.Join(root, run.String(), deviceDir(i+1), deviceLogName)); err != nil {
				return nil, err
			}
		}
	}
	merged := make([]runfolder.Row, len(rows))
	for k, row := range rows {
		merged[k] = m.fill(row)
	}
	return merged, nil
}

// deviceDir names a device's folder of a run.
func deviceDir(index int) string { return fmt.Sprintf("device-%03d", index) }

// findAll returns the files of a name in folders.
func findAll(dirs []string, name string) (paths []string) {
	for _, dir := range dirs {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// merger is what the logs say of a run.
type merger struct {
	common  *experiment.Common
	gains   map[int]gainLine     // of the last attempt at a round
	devices []map[int]deviceLine // of each device and round
}

type gainLine struct {
	alpha float64
	h     []float64
}

type deviceLine struct {
	loss    float64
	clipped int
	delta   []float64
}

// fill returns a line with what the logs know of its round.
func (m *merger) fill(row runfolder.Row) runfolder.Row {
	loss, clipped := 0.0, 0
	var lines []deviceLine
	for _, d := range m.devices {
		line, ok := d[row.Round]
		if !ok {
			return row
		}
		lines = append(lines, line)
		loss, clipped = loss+line.loss, clipped+line.clipped
	}
	row.TrainLoss, row.Clipped = loss/float64(len(lines)), clipped
	g, ok := m.gains[row.Round]
	if m.common.Config.OverWaveform() { // what came of the gains is not known from what they were
		return row
	}
	if !ok || row.Skipped || row.Present < len(lines) {
		return row
	}
	d := m.common.Design
	ideal := 0.0
	for i, h := range g.h {
		ideal += h / g.alpha * (lines[i].delta[0] / d.Link.Mu[i])
	}
	row.MIdeal, row.Eps = ideal, row.M-ideal
	row.EpsStdPredicted = d.ConditionalStdAt(m.common.Context, g.h, g.alpha)
	return row
}

// readGains reads the logs of the air that are there.
func (m *merger) readGains(paths []string) error {
	for _, path := range paths {
		err := readLog(path, gainsHeader, func(f []string) error {
			k, err := strconv.Atoi(f[0])
			if err != nil {
				return err
			}
			line := gainLine{}
			if line.alpha, err = number(f[2]); err != nil {
				return err
			}
			if line.h, err = numbers(f[3], len(m.devices)); err != nil {
				return err
			}
			m.gains[k] = line
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readDevice reads a device's log, if it is there.
func (m *merger) readDevice(i int, path string) error {
	return readLog(path, deviceHeader, func(f []string) error {
		k, err := strconv.Atoi(f[0])
		if err != nil {
			return err
		}
		line := deviceLine{}
		if line.loss, err = number(f[2]); err != nil {
			return err
		}
		if line.clipped, err = strconv.Atoi(f[3]); err != nil {
			return err
		}
		if line.delta, err = numbers(f[4], m.common.Context.Messages); err != nil {
			return err
		}
		m.devices[i][k] = line
		return nil
	})
}

// maxLogLine bounds a line of a log, in bytes.
const maxLogLine = 1 << 22

// readLog calls take with the fields of each line of a log behind its header; of one that is
// not there never. A last line that was cut off is left out.
func readLog(path, header string, take func(fields []string) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return intake.PathError(fmt.Errorf("reading a log: %w", err))
	}
	defer f.Close()
	lines := intake.NewLines(f, intake.LineLimits{Bytes: maxLogLine, Lines: math.MaxInt32})
	columns := strings.Count(header, ",") + 1
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if lines.Number() == 1 {
			if string(line) != header {
				return intake.UserError(fmt.Errorf("%s line 1: the header is %.80q; allowed is %s", path, line, header))
			}
			continue
		}
		fields := strings.Split(string(line), ",")
		if len(fields) != columns {
			return intake.UserError(fmt.Errorf("%s line %d: %d fields; allowed are %d", path, lines.Number(), len(fields), columns))
		}
		if err := take(fields); err != nil {
			return intake.UserError(fmt.Errorf("%s line %d: %w", path, lines.Number(), err))
		}
	}
	if err := lines.Err(); err != nil {
		return intake.PathError(fmt.Errorf("reading %s: %w", path, err))
	}
	return nil
}

// number reads a finite number.
func number(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%.40q; allowed is a finite number", text)
	}
	return x, nil
}

// numbers reads so many of them, with spaces between.
func numbers(text string, n int) ([]float64, error) {
	fields := strings.Fields(text)
	if len(fields) != n {
		return nil, fmt.Errorf("%d numbers; allowed are %d", len(fields), n)
	}
	list := make([]float64, n)
	for i, f := range fields {
		var err error
		if list[i], err = number(f); err != nil {
			return nil, err
		}
	}
	return list, nil
}
