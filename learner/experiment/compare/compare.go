package compare

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/calibration"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// errNone is a comparison of nothing.
var errNone = errors.New("there are no run folders to compare, and one or more are needed")

// Merge puts into the lines of a run what its server did not know, whose devices were on
// other hosts. Dir is the run's folder.
type Merge func(dir string, rows []runfolder.Row) ([]runfolder.Row, error)

// Read compares the runs of some folders, in the order given. What is no run, as curves, a
// calibration or an earlier comparison that lie beside runs, is skipped, and told in
// Skipped; a run that has not ended, or is damaged, is an error. accuracies are the test
// accuracies, as shares, to which rounds are counted; without any it chooses them. What
// is wrong with a folder is the user's to mend.
func Read(dirs []string, accuracies []float64, merge Merge) (Comparison, error) {
	if len(dirs) == 0 {
		return Comparison{}, intake.UserError(errNone)
	}
	var runs []string
	var skipped []Skipped
	for _, dir := range dirs {
		if why := noRun(dir); why != "" {
			skipped = append(skipped, Skipped{dir, why})
			continue
		}
		runs = append(runs, dir)
	}
	if len(runs) == 0 {
		return Comparison{}, intake.UserError(fmt.Errorf("%w: %v", errNone, skipped[0]))
	}
	groups, err := readRuns(runs, merge)
	if err != nil {
		return Comparison{}, err
	}
	c := compareGroups(groups, accuracies)
	c.Skipped = skipped
	return c, nil
}

// Skipped is what was given as a run folder and is none, and why.
type Skipped struct{ Path, Why string }

// String returns the sentence that tells of it.
func (s Skipped) String() string { return s.Path + " is no run folder: " + s.Why }

// noRun says why there is no run at a path; "" where one is or may be. A run has both
// files from its beginning or its end on: where one is left, the other is missing.
func noRun(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "" // what is mistyped is not to be passed over
	}
	if !info.IsDir() {
		return "it is a file"
	}
	for _, name := range []string{runfolder.MetricsName, runfolder.SummaryName} {
		if _, err := os.Lstat(filepath.Join(path, name)); !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
	}
	return fmt.Sprintf("it has neither %s nor %s", runfolder.MetricsName, runfolder.SummaryName)
}

// group is the runs of one configuration with different seeds.
type group struct {
	label string
	cfg   config.Config
	runs  []run
	// calibration is a digest of the file that the runs went by; empty without.
	calibration string
	// data identifies what was learned from.
	data string
}

type run struct {
	summary runfolder.Summary
	rows    []runfolder.Row
}

// groupKey is what the runs of a group have in common: the configuration but for
// seed and name, the data in use, and the calibration itself in place of its file's
// name. Two runs of one seed are no two samples of
// anything: the second is another group.
type groupKey struct {
	digest      [32]byte
	dataset     string
	data        string
	calibration string
	repeat      int
}

// readRuns reads run folders and groups them, in the order given.
func readRuns(dirs []string, merge Merge) ([]*group, error) {
	var groups []*group
	byKey := map[groupKey]*group{}
	for _, dir := range dirs {
		cfg, read, key, err := readRun(dir, merge)
		if err != nil {
			return nil, err
		}
		for byKey[key] != nil && byKey[key].hasSeed(read.summary.Seed) {
			key.repeat++
		}
		if byKey[key] == nil {
			byKey[key] = &group{label: cfg.Experiment.Name, cfg: cfg, calibration: key.calibration, data: dataOf(cfg, key)}
			groups = append(groups, byKey[key])
		}
		byKey[key].runs = append(byKey[key].runs, read)
	}
	return groups, tellApart(groups)
}

func readRun(dir string, merge Merge) (cfg config.Config, read run, key groupKey, err error) {
	if cfg, err = config.Load(filepath.Join(dir, runfolder.ConfigName), nil); err != nil {
		return cfg, read, key, intake.UserError(err)
	}
	if read.summary, err = runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName)); err != nil {
		return cfg, read, key, intake.UserError(fmt.Errorf("%w (has the run ended?)", err))
	}
	if read.rows, err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), cfg.Optimizer.Rounds); err != nil {
		return cfg, read, key, intake.UserError(err)
	}
	if merge != nil && len(read.rows) > 0 && read.rows[0].Present > 0 {
		if read.rows, err = merge(dir, read.rows); err != nil {
			return cfg, read, key, err
		}
	}
	manifest, err := runfolder.ReadManifest(filepath.Join(dir, runfolder.ManifestName))
	if err != nil {
		return cfg, read, key, intake.UserError(err)
	}
	same := cfg
	same.Experiment.Seed, same.Experiment.Name, same.Calibration.File = 0, "any", ""
	if cfg.Calibration.File != "" {
		if key.calibration, err = digestOf(filepath.Join(dir, runfolder.CalibrationName)); err != nil {
			return cfg, read, key, intake.UserError(err)
		}
	}
	key.dataset = read.summary.Dataset
	for _, f := range manifest.Data {
		key.data += f.SHA256.String()
	}
	key.digest, err = same.Digest()
	return cfg, read, key, err
}

// dataOf tells data sets apart: by their files, classes, and the sizes of one that the
// program draws itself.
func dataOf(cfg config.Config, key groupKey) string {
	text := fmt.Sprintln(key.dataset, key.data, cfg.Task.Classes)
	if key.dataset == "strokes" {
		text += fmt.Sprintln(cfg.Task.StrokesTrain, cfg.Task.StrokesTest)
	}
	return text
}

// digestOf returns the first digits of a file's SHA-256.
func digestOf(path string) (string, error) {
	data, err := intake.ReadFile(path, calibration.MaxFile)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}

func (g *group) hasSeed(seed uint64) bool {
	for _, r := range g.runs {
		if r.summary.Seed == seed {
			return true
		}
	}
	return false
}

// tellApart adds to equal labels the keys in which their configurations differ,
// the data set where it does, and a number where nothing else tells them apart.
func tellApart(groups []*group) error {
	byLabel := map[string][]*group{}
	for _, g := range groups {
		byLabel[g.label] = append(byLabel[g.label], g)
	}
	for _, same := range byLabel {
		if len(same) == 1 {
			continue
		}
		differing, err := differences(same)
		if err != nil {
			return err
		}
		taken := map[string]int{}
		for i, g := range same {
			g.label += differing[i]
			if taken[g.label]++; taken[g.label] > 1 {
				g.label = fmt.Sprintf("%s (%d)", g.label, taken[g.label])
			}
		}
	}
	return nil
}

// differences returns for each group ", key=value" for what not all groups share.
func differences(groups []*group) ([]string, error) {
	keys, values, err := differing(groups)
	if err != nil {
		return nil, err
	}
	text := make([]string, len(groups))
	for _, key := range keys {
		_, short, _ := strings.Cut("."+key, ".")
		for i := range groups {
			text[i] += fmt.Sprintf(", %s=%s", short, values[i][key])
		}
	}
	return text, nil
}

// differing returns the keys that not all groups share, sorted, and each group's values.
func differing(groups []*group) (keys []string, values []map[string]string, err error) {
	for _, g := range groups {
		flat, err := g.cfg.Flat()
		if err != nil {
			return nil, nil, err
		}
		flat["data"] = g.runs[0].summary.Dataset
		if g.runs[0].summary.DataUnpublished {
			flat["data"] += " (not the published files)"
		}
		flat["calibration"] = cmp.Or(g.calibration, "none")
		delete(flat, "experiment.seed")
		delete(flat, "calibration.file") // what it holds counts
		values = append(values, flat)
	}
	for _, key := range slices.Sorted(maps.Keys(values[0])) {
		if slices.ContainsFunc(values, func(v map[string]string) bool { return v[key] != values[0][key] }) {
			keys = append(keys, key)
		}
	}
	return keys, values, nil
}
