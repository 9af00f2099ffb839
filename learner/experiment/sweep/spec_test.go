package sweep_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/sweep"
	"ringwave/radio/intake"
)

// specFile writes a sweep over a base of the strokes, which need no files.
func specFile(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	base := "[experiment]\nname = \"small\"\nseed = 9\n[task]\ndataset = \"strokes\"\n[optimizer]\nrounds = 6\n[channel]\nstd = 0.5\n"
	for name, content := range map[string]string{"base.toml": base, "some.toml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "some.toml")
}

const head = "[sweep]\nbase = \"base.toml\"\n"

// Grids and zips multiply, in the order of the file, and seeds are innermost.
func TestPoints(t *testing.T) {
	p, err := sweep.Load(experiment.Lab{}, specFile(t, head+`
name = "both"
seeds = "3,1-2"
[[zip]]
devices.count = [2, 4]
"channel.mean_per_device" = [[1, 1.5], []]
[set]
optimizer.rounds = 4
optimizer.eta0 = 0.1
[grid]
channel.std = [1, 2.5]
experiment.aggregator = ["none", "xmk-ckks"]
[[zip]]
task.partition = ["iid"]
`), []string{"optimizer.rounds=5"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"devices.count", "channel.mean_per_device", "channel.std", "experiment.aggregator", "task.partition"}; p.Name != "both" || !slices.Equal(p.Keys, want) {
		t.Errorf("%s with the keys %q", p.Name, p.Keys)
	}
	var rows []string
	for i, point := range p.Points {
		c := point.Config
		if i%3 == 0 {
			rows = append(rows, strings.Join(point.Values, " "))
		}
		if c.Experiment.Seed != int64(1+i%3) || c.Optimizer.Rounds != 5 || c.Optimizer.Eta0 != 0.1 || c.Experiment.Name != "small" {
			t.Errorf("run %d: seed %d, %d rounds, eta0 %v", i, c.Experiment.Seed, c.Optimizer.Rounds, c.Optimizer.Eta0)
		}
		if given := len(c.Channel.MeanPerDevice); c.Devices.Count == 2 && given != 2 || c.Devices.Count == 4 && given != 0 {
			t.Errorf("run %d: %d devices with %d means", i, c.Devices.Count, given)
		}
	}
	want := []string{
		"2 [1, 1.5] 1 none iid", "2 [1, 1.5] 1 xmk-ckks iid", "2 [1, 1.5] 2.5 none iid", "2 [1, 1.5] 2.5 xmk-ckks iid",
		"4 [] 1 none iid", "4 [] 1 xmk-ckks iid", "4 [] 2.5 none iid", "4 [] 2.5 xmk-ckks iid",
	}
	if !slices.Equal(rows, want) || len(p.Points) != 24 {
		t.Errorf("%d runs, combinations %q", len(p.Points), rows)
	}
}

// What is not said is the file's name and the base's seed; a file may sweep nothing.
func TestSpecDefaults(t *testing.T) {
	p, err := sweep.Load(experiment.Lab{}, specFile(t, head), nil)
	if err != nil || p.Name != "some" || len(p.Points) != 1 || p.Points[0].Config.Experiment.Seed != 9 || !slices.Equal(p.Seeds, []int64{9}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// What is wrong with a file is said in a sentence with the key, the value and what is
// allowed.
func TestBadSpecs(t *testing.T) {
	long := strings.Repeat("1, ", 400)
	for _, c := range []struct{ text, want string }{
		{"", "[sweep] has no base: must be the path of a configuration"},
		{"[sweep]\nbase = \"none.toml\"", `[sweep] base = "none.toml": `},
		{"[sweep]\nbase = 3", "[sweep] base = 3: must be the path of a configuration"},
		{"[sweep]\nbas = \"base.toml\"", `[sweep]: unknown key "bas"; allowed are name, base and seeds, and the nearest is base`},
		{head + "seeds = 5", `[sweep] seeds = 5: must be seeds in quotes, as in "1-20"`},
		{head + "seeds = \"5-1\"", `[sweep] seeds: "5-1" is neither a seed nor a range`},
		{head + "seeds = \"\"", `[sweep] seeds: "" is neither a seed nor a range`},
		{head + "name = \"\"", `[sweep] name = "": must be a text of 1 to 100 characters`},
		{head + "[girds]\na.b = [1]", `unknown table "girds"; allowed are [sweep], [set], [grid] and [[zip]], and the nearest is grid`},
		{"x = 1\n" + head, `unknown table "x"`},
		{"grid = 1\n" + head, "grid: must be a table, [grid] with keys"},
		{head + "[zip]\nchannel.std = [1]", "zip: must be tables, [[zip]] with keys"},
		{head + "[[zip]]", "[[zip]] 1 is empty: must have keys"},
		{head + "[grid]\nchannel.std = 1", "[grid] channel.std = 1: must be a list of values, as in [1, ...]; a single value for every run goes under [set]"},
		{head + "[grid]\nchannel.std = []", "[grid] channel.std = [ ]: must be a list of one or more values"},
		{head + "[grid]\nchannel.sdt = [1]", "[grid]: unknown key channel.sdt; the nearest known one is channel.std"},
		{head + "[grid]\nstd = [1]", "[grid]: unknown key std; the nearest known one is channel.std"},
		{head + "[set]\nchannel.std.x = 1", "[set]: unknown key"},
		{head + "[set]\ndevices.count = 1.5", "[set] devices.count = 1.5: must be a whole number from 1 to 10000"},
		{head + "[grid]\ndevices.count = [3, \"x\"]", `[grid] devices.count = "x": must be a whole number from 1 to 10000`},
		{head + "[grid]\nchannel.std = [1, 2, 1.0]", "[grid] channel.std = 1 is there twice: must be there once"},
		{head + "[[zip]]\nchannel.std = [1, 2, 1]\ndevices.count = [2, 2, 2]", "[[zip]] 1 channel.std = 1, devices.count = 2 is there twice"},
		{head + "[[zip]]\nchannel.std = [1, 2]\ndevices.count = [2, 3, 4]", "[[zip]] 1 devices.count has 3 values: must have 2, as channel.std"},
		{head + "[grid]\nchannel.std = [1]\n\"channel.std\" = [2]", "channel.std is given in [grid] and in [grid]: must be given once"},
		{head + "[set]\nchannel.std = 1\n[grid]\nchannel.std = [2]", "channel.std is given in [set] and in [grid]: must be given once"},
		{head + "[grid]\nchannel.std = [1]\n[[zip]]\nchannel.std = [2]", "channel.std is given in [grid] and in [[zip]] 1: must be given once"},
		{head + "[[zip]]\nchannel.std = [1]\n[[zip]]\nchannel.std = [2]", "channel.std is given in [[zip]] 1 and in [[zip]] 2: must be given once"},
		{head + "[grid]\nexperiment.seed = [1]", `[grid] experiment.seed: must be given as seeds, as in seeds = "1-20"`},
		{head + "[set]\nexperiment.seed = 1", `[set] experiment.seed: must be given as seeds`},
		{head + "[grid]\nexperiment.aggregator = [\"none\", \"ezofl\"]", "combinations 1 and 2 are one configuration, that with experiment.aggregator = none: must differ"},
		{head + "[grid]\nchannel.std = [1, -1]\ndevices.count = [2, 3]", "[grid] channel.std = -1: must be a number from 0 to 1000, in the run with channel.std = -1, devices.count = 2"},
		{head + "[set]\ndevices.minimum = 3\n[grid]\ndevices.count = [4, 2]", "[set] devices.minimum = 3: must be a whole number from 1 to devices.count, 2, or 0 for all, in the run with devices.count = 2"},
		{head + "[grid]\nlink.kind = [\"ring\", \"waveform\"]\nlink.noise_std = [0, 1]", `[grid] link.noise_std = 1: must be 0 with link.kind = "waveform"`},
		{head + "[set]\ntask.model = \"process\"\ntask.dataset = \"process\"\ntask.fallback = \"\"\ntask.command = [\"a\"]\noptimizer.directions = \"philox\"", "task.model = \"process\": must be another: a sweep's runs may be computed on other hosts"},
		{head + "[set]\nradio.transmitters = [\"a\", \"b\"]\nradio.transmit = true\nradio.receiver = \"c\"\nradio.frequency_hz = 1e9\nradio.band_hz = [9e8, 11e8]\nradio.most_gain_db = 0\nradio.secrets_from_seed = true\nlink.kind = \"waveform\"\nchannel.gains = \"continuous\"\ndevices.count = 2", "radio.transmitters = [a, b]: must be [ ]: nothing of a sweep goes on the air"},
		{head + "[grid]\nencryption.randomness = [\"seed\", \"system\"]", `encryption.randomness = "system": must be "seed": a run of a sweep may be computed anywhere`},
		{head + "[grid]\nchannel.std = [" + strings.ReplaceAll(long, "1,", "1e0,") + "1]\ndevices.count = [" + long + "1]", "seeds times values are 1 x 401 x 401 runs: must be at most 100000"},
		{head + "[grid]\nchannel.std = [1,", "not TOML"},
		{head + "[grid]\nchannel.std = [[[[[[1]]]]]]", "nesting"},
		{head + "#" + strings.Repeat("x", 1<<20), "some.toml: the sweep: "},
	} {
		path := specFile(t, c.text)
		_, err := sweep.Load(experiment.Lab{}, path, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !intake.IsUserError(err) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%.200s\n gives %v\n instead of %q", c.text, err, c.want)
		}
	}
	if _, err := sweep.Load(experiment.Lab{}, "none.toml", nil); err == nil || !strings.HasPrefix(err.Error(), "none.toml: the sweep cannot be read: ") {
		t.Errorf("%v", err)
	}
}

// Overrides of every run are refused where the file has values for the key.
func TestSpecOverrides(t *testing.T) {
	path := specFile(t, head+"[set]\nchannel.mean = 2\n[grid]\nchannel.std = [1, 2]")
	for set, want := range map[string]string{
		"channel.std=3":        "--set channel.std: must be a key that is not swept",
		"experiment.seed=3":    "--set experiment.seed: must be another key",
		"channel.sdt=3":        "--set channel.sdt: unknown key channel.sdt",
		"channel.mean=x":       `--set channel.mean = x: must be a number`,
		"channel.mean=0":       "--set channel.mean = 0: must be a number from -1000 to 1000 and not 0, in the run with channel.std = 1",
		"nothing":              "--set nothing: must be section.key=value",
		"radio.transmitters=1": "--set radio.transmitters = 1: must be a list of texts",
	} {
		if _, err := sweep.Load(experiment.Lab{}, path, []string{set}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
	p, err := sweep.Load(experiment.Lab{}, path, []string{"channel.mean=3"})
	if err != nil || p.Points[1].Config.Channel.Mean != 3 || p.Points[1].Config.Channel.Std != 2 {
		t.Errorf("%v", err)
	}
}

// The sweeps of hw-configs are of the paper's experiment, encrypted, and say what they draw
// and need.
func TestSweepsOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../../hw-configs/sweeps/*.toml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := sweep.Load(experiment.Lab{}, path, nil)
		if err != nil || len(p.Keys) != 2 || len(p.Seeds) < 3 {
			t.Errorf("%s: keys %q, seeds %v, %v", path, p.Keys, p.Seeds, err)
			continue
		}
		for _, want := range []string{"# Draws accuracy against ", fmt.Sprintf("\n# Takes: %d runs, ", len(p.Points)), "\n# Data: MNIST\n", "ringwave sweep hw-configs/sweeps/" + filepath.Base(path)} {
			if !strings.Contains("\n"+string(text), want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
		for _, point := range p.Points {
			if c := point.Config; !c.System().Encrypts || c.Optimizer.Rounds != 400 || c.Encryption.ParameterSet != "paper-4096" {
				t.Errorf("%s: %s is no run of the paper's", path, strings.Join(point.Values, ", "))
			}
		}
	}
}

// Ten thousand combinations, and as many runs of few.
func BenchmarkLoad(b *testing.B) {
	var ten, hundred []string
	for i := range 100 {
		hundred = append(hundred, fmt.Sprint(i+1))
	}
	ten = hundred[:10]
	lists := func(keys string, values []string) string { return keys + " = [" + strings.Join(values, ", ") + "]\n" }
	for name, text := range map[string]string{
		"combinations": "[grid]\n" + lists("channel.std", hundred) + lists("devices.count", hundred),
		"seeds":        "seeds = \"1-100\"\n[grid]\n" + lists("channel.std", ten) + lists("devices.count", ten),
	} {
		path := specFile(b, head+text)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if p, err := sweep.Load(experiment.Lab{}, path, nil); err != nil || len(p.Points) != 10_000 {
					b.Fatal(err)
				}
			}
		})
	}
}
