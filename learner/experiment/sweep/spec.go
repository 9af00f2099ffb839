package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// Plan is what the file of a sweep asks for.
type Plan struct {
	Name   string
	Keys   []string // the keys swept, in the order of the file, without the seed
	Axes   []Axis   // of the combinations, the first outermost; their keys together are Keys
	Seeds  []int64  // of every combination, ascending
	Points []Point  // every combination, seeds innermost
}

// Axis is keys whose values go together: a key of [grid], or those of one [[zip]].
type Axis struct {
	Keys   []string
	Values [][]string // of Keys, at each of its places
}

// Point is one run.
type Point struct {
	Values []string      // of Plan.Keys, as a config shows them
	Config config.Config // resolved, seed included
}

const (
	// maxSpec bounds the file of a sweep, which is written by hand.
	maxSpec = 1 << 20
	// mostPoints keeps a product that grew from asking for years.
	mostPoints = 100_000
	// seedKey is what a sweep has seeds for.
	seedKey = "experiment.seed"
)

// Load reads the file of a sweep, SWEEP.toml. set has overrides section.key=value of every
// run.
func Load(l experiment.Lab, path string, set []string) (Plan, error) {
	p, err := load(l, path, set)
	return p, sentence(err)
}

// sentence returns err as one line, which a file may have given others.
func sentence(err error) error {
	if err == nil {
		return nil
	}
	return intake.UserError(errors.New(intake.Sentence(err.Error())))
}

func load(l experiment.Lab, path string, set []string) (Plan, error) {
	text, err := readSpec(path)
	if err != nil {
		return Plan{}, err
	}
	s, err := parse(path, text)
	if err != nil {
		return Plan{}, err
	}
	for _, o := range set {
		if err := s.override(o); err != nil {
			return Plan{}, err
		}
	}
	from := s.base
	if !filepath.IsAbs(from) {
		from = filepath.Join(filepath.Dir(path), from)
	}
	base, err := l.LoadBase(from)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: [sweep] base = %q: %w", path, intake.Sentence(s.base), err)
	}
	return s.plan(base)
}

func readSpec(path string) (string, error) {
	text, err := intake.ReadFile(path, maxSpec)
	var excess *intake.Excess
	var pe *os.PathError
	switch {
	case errors.As(err, &excess):
		return "", fmt.Errorf("%s: the sweep: %w", path, excess)
	case errors.As(err, &pe):
		return "", fmt.Errorf("%s: the sweep cannot be read: %w", path, pe.Err)
	}
	return string(text), err
}

// spec is a file of a sweep as it was read: its values are not known to be any
// configuration's.
type spec struct {
	path, name, base string
	seeds            []int64 // nil for the base's
	set              []config.Change
	axes             []axis
	taken            map[string]string // where each key is given
}

// axis is keys with a list of values each, all of one length.
type axis struct {
	from  string // as errors begin
	keys  []string
	lists [][]any
}

// parse reads the text of a file.
func parse(path, text string) (spec, error) {
	if err := intake.CheckTOML(text); err != nil {
		return spec{}, fmt.Errorf("%s: %w", path, err)
	}
	var all map[string]any
	meta, err := toml.Decode(text, &all)
	if err != nil {
		return spec{}, notTOML(path, err)
	}
	s := spec{path: path, taken: map[string]string{}}
	order := orderOf(meta)
	for _, table := range order.tables {
		if err := s.read(table, all[table], order); err != nil {
			return spec{}, err
		}
	}
	if s.base == "" {
		return spec{}, fmt.Errorf(`%s: [sweep] has no base: must be the path of a configuration, as in base = "hw-configs/loopback.toml", from the folder of this file on`, path)
	}
	s.name = cmp.Or(s.name, strings.TrimSuffix(filepath.Base(path), ".toml"))
	slices.SortStableFunc(s.axes, func(a, b axis) int { return cmp.Compare(order.place[a.keys[0]], order.place[b.keys[0]]) })
	return s, nil
}

func notTOML(path string, err error) error {
	var at toml.ParseError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: line %d: not TOML: %s", path, at.Position.Line, at.Message)
	}
	return fmt.Errorf("%s: not TOML: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
}

// order is that of a file, which a decoded table has lost.
type order struct {
	tables []string
	place  map[string]int // of keys below a table, section.key
}

func orderOf(meta toml.MetaData) order {
	o := order{place: map[string]int{}}
	for i, key := range meta.Keys() {
		if !slices.Contains(o.tables, key[0]) {
			o.tables = append(o.tables, key[0])
		}
		name := strings.Join(key[1:], ".") // a key is written with dots, or as one in quotes
		if _, there := o.place[name]; !there {
			o.place[name] = i
		}
	}
	return o
}

// tables are those that a file of a sweep may have, sweepKeys the keys of the first.
var (
	tables    = []string{"sweep", "set", "grid", "zip"}
	sweepKeys = []string{"name", "base", "seeds"}
)

// read takes in one of the file's tables.
func (s *spec) read(name string, value any, o order) error {
	if !slices.Contains(tables, name) {
		return fmt.Errorf("%s: unknown table %q; allowed are [sweep], [set], [grid] and [[zip]], and the nearest is %s", s.path, shortened(name), intake.Nearest(name, tables))
	}
	if name == "zip" {
		zips, ok := value.([]map[string]any)
		if !ok {
			return fmt.Errorf("%s: zip: must be tables, [[zip]] with keys to lists of one length", s.path)
		}
		for i, zip := range zips {
			if err := s.readZip(i+1, flatten(zip), o); err != nil {
				return err
			}
		}
		return nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %s: must be a table, [%s] with keys", s.path, name, name)
	}
	switch name {
	case "sweep":
		return s.readSweep(table)
	case "set":
		return s.readSet(flatten(table), o)
	}
	return s.readGrid(flatten(table), o)
}

func (s *spec) readSweep(table map[string]any) (err error) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(sweepKeys, key) {
			return fmt.Errorf("%s: [sweep]: unknown key %q; allowed are name, base and seeds, and the nearest is %s", s.path, shortened(key), intake.Nearest(key, sweepKeys))
		}
		text, ok := table[key].(string)
		if !ok {
			must := map[string]string{"name": "a text", "base": "the path of a configuration, in quotes", "seeds": `seeds in quotes, as in "1-20" or "1,3,5-7"`}[key]
			return fmt.Errorf("%s: [sweep] %s = %s: must be %s", s.path, key, shown(table[key]), must)
		}
		switch key {
		case "name":
			s.name, err = text, checkName(text)
		case "base":
			s.base = text
		case "seeds":
			s.seeds, err = parseSeeds("seeds", text)
		}
		if err != nil {
			return fmt.Errorf("%s: [sweep] %w", s.path, err)
		}
	}
	return nil
}

// checkName bounds what becomes part of a folder's name and of titles.
func checkName(name string) error {
	const most = 100
	if len(name) < 1 || len(name) > most || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("name = %q: must be a text of 1 to %d characters in one line", shortened(name), most)
	}
	return nil
}

// keyed are the values of a table, by section.key, a key as often as it is given.
type keyed map[string][]any

// flatten takes tables in tables, as dots in keys make them, for keys.
func flatten(table map[string]any) keyed {
	all := keyed{}
	for name, value := range table {
		inner, is := value.(map[string]any)
		if !is {
			all[name] = append(all[name], value)
			continue
		}
		for below, values := range flatten(inner) {
			all[name+"."+below] = append(all[name+"."+below], values...)
		}
	}
	return all
}

// sorted returns the keys in the order of the file.
func (k keyed) sorted(o order) []string {
	return slices.SortedFunc(maps.Keys(k), func(a, b string) int { return cmp.Or(cmp.Compare(o.place[a], o.place[b]), cmp.Compare(a, b)) })
}

func (s *spec) readSet(table keyed, o order) error {
	const from = "[set]"
	for _, key := range table.sorted(o) {
		if err := s.take(key, from, table); err != nil {
			return err
		}
		s.set = append(s.set, config.Change{Key: key, Value: table[key][0], From: s.path + ": " + from})
	}
	return nil
}

func (s *spec) readGrid(table keyed, o order) error {
	const from = "[grid]"
	for _, key := range table.sorted(o) {
		if err := s.take(key, from, table); err != nil {
			return err
		}
		list, err := s.list(from, key, table[key][0])
		if err != nil {
			return err
		}
		s.axes = append(s.axes, axis{s.path + ": " + from, []string{key}, [][]any{list}})
	}
	return nil
}

func (s *spec) readZip(number int, table keyed, o order) error {
	from := fmt.Sprintf("[[zip]] %d", number)
	a := axis{from: s.path + ": " + from, keys: table.sorted(o)}
	if len(a.keys) == 0 {
		return fmt.Errorf("%s: %s is empty: must have keys to lists of one length", s.path, from)
	}
	for _, key := range a.keys {
		if err := s.take(key, from, table); err != nil {
			return err
		}
		list, err := s.list(from, key, table[key][0])
		if err != nil {
			return err
		}
		a.lists = append(a.lists, list)
		if n := len(a.lists[0]); len(list) != n {
			return fmt.Errorf("%s: %s %s has %d values: must have %d, as %s, with which they go together", s.path, from, key, len(list), n, a.keys[0])
		}
	}
	s.axes = append(s.axes, a)
	return nil
}

// take refuses a key that is given already, or that is not to be swept.
func (s *spec) take(key, from string, table keyed) error {
	if before := s.taken[key]; before != "" || len(table[key]) > 1 {
		return fmt.Errorf("%s: %s is given in %s and in %s: must be given once", s.path, shortened(key), cmp.Or(before, from), from)
	}
	if key == seedKey {
		return fmt.Errorf(`%s: %s %s: must be given as seeds, as in seeds = "1-20" under [sweep]`, s.path, from, key)
	}
	s.taken[key] = from
	return nil
}

func (s *spec) list(from, key string, value any) ([]any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: %s %s = %s: must be a list of values, as in [%s, ...]; a single value for every run goes under [set]", s.path, from, shortened(key), shown(value), shown(value))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %s %s = [ ]: must be a list of one or more values", s.path, from, shortened(key))
	}
	return list, nil
}

// override adds an override of every run, of the form section.key=value.
func (s *spec) override(text string) error {
	change, err := config.ParseChange(text)
	if err != nil {
		return err
	}
	if change.Key == seedKey {
		return fmt.Errorf(`--set %s: must be another key: a sweep has its seeds in %s, as in seeds = "1-20" under [sweep]`, seedKey, s.path)
	}
	if from := s.taken[change.Key]; from != "" && from != "[set]" {
		return fmt.Errorf("--set %s: must be a key that is not swept: %s has values for it in %s", change.Key, s.path, from)
	}
	s.set = append(s.set, change)
	return nil
}

// plan makes every run's configuration.
func (s *spec) plan(base config.Base) (Plan, error) {
	p := Plan{Name: s.name, Seeds: s.seeds}
	runs, err := s.bound()
	if err != nil {
		return Plan{}, err
	}
	p.Points = make([]Point, 0, runs)
	for _, c := range s.set {
		if _, err := base.Try(c); err != nil {
			return Plan{}, err
		}
	}
	for _, a := range s.axes {
		read, err := a.read(base)
		if err != nil {
			return Plan{}, err
		}
		p.Axes, p.Keys = append(p.Axes, read), append(p.Keys, a.keys...)
	}
	seen := map[string]int{} // the number of the combination of each row of values
	for at := range combinations(p.Axes) {
		points, err := s.combine(base, p, at)
		if err != nil {
			return Plan{}, err
		}
		// Values that are written differently can be the same to a configuration.
		values := strings.Join(points[0].Values, "\x00")
		if seen[values] > 0 {
			return Plan{}, fmt.Errorf("%s: combinations %d and %d are one configuration, that with %s: must differ", s.path, seen[values], len(seen)+1, pairs(p.Keys, points[0].Values))
		}
		seen[values] = len(seen) + 1
		p.Points = append(p.Points, points...)
	}
	if p.Seeds == nil {
		p.Seeds = []int64{p.Points[0].Config.Experiment.Seed}
	}
	return p, nil
}

// bound returns how many runs there are, and refuses more than a sweep may have.
func (s *spec) bound() (int, error) {
	runs, text := max(1, len(s.seeds)), fmt.Sprint(max(1, len(s.seeds)))
	for _, a := range s.axes {
		n := len(a.lists[0])
		if text += fmt.Sprintf(" x %d", n); runs > math.MaxInt32/n {
			runs = math.MaxInt32
			continue
		}
		runs *= n
	}
	if runs > mostPoints {
		return 0, fmt.Errorf("%s: seeds times values are %s runs: must be at most %d", s.path, intake.Sentence(text), mostPoints)
	}
	return runs, nil
}

// read holds each value against the key that it is for.
func (a axis) read(base config.Base) (Axis, error) {
	read := Axis{Keys: a.keys, Values: make([][]string, len(a.lists[0]))}
	seen := map[string]bool{}
	for i := range read.Values {
		for k, key := range a.keys {
			text, err := base.Try(config.Change{Key: key, Value: a.lists[k][i], From: a.from})
			if err != nil {
				return Axis{}, err
			}
			read.Values[i] = append(read.Values[i], text)
		}
		row := strings.Join(read.Values[i], "\x00")
		if seen[row] {
			return Axis{}, fmt.Errorf("%s %s is there twice: must be there once", a.from, pairs(a.keys, read.Values[i]))
		}
		seen[row] = true
	}
	return read, nil
}

// combinations yields every combination of places on axes, the last axis fastest.
func combinations(axes []Axis) func(yield func(at []int) bool) {
	return func(yield func(at []int) bool) {
		at := make([]int, len(axes))
		for yield(at) {
			k := len(at) - 1
			for ; k >= 0; k-- {
				if at[k]++; at[k] < len(axes[k].Values) {
					break
				}
				at[k] = 0
			}
			if k < 0 {
				return
			}
		}
	}
}

// combine makes the runs of one combination.
func (s *spec) combine(base config.Base, p Plan, at []int) ([]Point, error) {
	changes := slices.Clone(s.set)
	var asked []string
	for k, a := range s.axes {
		for j, key := range a.keys {
			changes = append(changes, config.Change{Key: key, Value: a.lists[j][at[k]], From: a.from})
		}
		asked = append(asked, p.Axes[k].Values[at[k]]...)
	}
	c, err := base.With(changes...)
	if err == nil {
		err = s.repeatable(c)
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, with(p.Keys, asked))
	}
	var values []string
	for _, key := range p.Keys {
		values = append(values, config.Text(c.Value(key)))
	}
	if s.seeds == nil {
		return []Point{{values, c}}, nil
	}
	var points []Point
	for _, seed := range s.seeds {
		c.Experiment.Seed = seed
		points = append(points, Point{values, c})
	}
	return points, nil
}

// repeatable refuses runs that are not the same bytes wherever and however often they are
// computed.
func (s *spec) repeatable(c config.Config) error {
	if c.OverRadios() {
		return fmt.Errorf("%s: radio.transmitters = %s: must be [ ]: nothing of a sweep goes on the air", s.path, config.Text(c.Radio.Transmitters))
	}
	if c.Task.Model == "process" {
		return fmt.Errorf(`%s: task.model = "process": must be another: a sweep's runs may be computed on other hosts, which start no program because of what they are sent`, s.path)
	}
	if system := c.System(); c.Encryption.Randomness == "system" && (system.Encrypts || system.SharesKey) {
		return fmt.Errorf(`%s: encryption.randomness = "system": must be "seed": a run of a sweep may be computed anywhere and more than once, and must be the same bytes`, s.path)
	}
	return nil
}

// with says which combination a sentence is about; nothing of a sweep over seeds alone.
func with(keys, values []string) string {
	if len(keys) == 0 {
		return ""
	}
	return ", in the run with " + pairs(keys, values)
}

func pairs(keys, values []string) string {
	var parts []string
	for i, key := range keys {
		parts = append(parts, fmt.Sprintf("%s = %s", key, shortened(values[i])))
	}
	return strings.Join(parts, ", ")
}

// shown writes a value that may be none of a configuration.
func shown(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%q", shortened(v))
	case map[string]any, []map[string]any:
		return "{...}"
	}
	return shortened(fmt.Sprint(value))
}

func shortened(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
