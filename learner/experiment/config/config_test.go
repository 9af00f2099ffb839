package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestShippedConfigsAreValid(t *testing.T) {
	paths, err := filepath.Glob("../../../hw-configs/*.toml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configurations found: %v", err)
	}
	for _, path := range paths {
		_, err := Load(path, nil)
		// Benches of real boards are shipped so that they do not send.
		if strings.HasPrefix(filepath.Base(path), "bench-") {
			if err == nil || !strings.Contains(err.Error(), "radios send only with radio.transmit = true") {
				t.Errorf("%s: %v; expected is that it does not send as it is", path, err)
			}
			_, err = Load(path, []string{"radio.transmit=true"})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestEncodeIsAFixedPoint(t *testing.T) {
	c, err := Parse("test", []byte("[channel]\nstd = 10.0\nmean_per_device = [1.0, 2.0]\n[devices]\ncount = 2\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("encoded", first, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("writing and reading changed the configuration:\n%s\n%s", first, second)
	}
	for _, key := range Keys() {
		_, name, _ := strings.Cut(key, ".")
		if !strings.Contains(string(first), name+" = ") {
			t.Errorf("the resolved configuration lacks %s", key)
		}
	}
	if again.Mean(1) != 2 || again.Std(1) != 10 {
		t.Errorf("device 2 has mean %v and std %v", again.Mean(1), again.Std(1))
	}
}

func TestOverrides(t *testing.T) {
	c, err := Parse("test", nil, []string{"channel.std=10", "experiment.aggregator=none", `experiment.name="a = b"`, "encryption.modulus_bits=[54, 55]", "channel.std=3.5"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Channel.Std != 3.5 || c.Experiment.Aggregator != "none" || c.Experiment.Name != "a = b" || len(c.Encryption.ModulusBits) != 2 {
		t.Errorf("the overrides were not applied: %+v", c)
	}
}

// Every refusal is one line that names the file or flag, and the key.
// Longer, or of more branches, than most because it is a table of what is refused.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, text string
		set        []string
		want       []string
	}{
		{"unknown key", "[optimizer]\nruonds = 3\n", nil, []string{"x.toml", "optimizer.ruonds", "optimizer.rounds"}},
		{"key of another section", "[experiment]\nrounds = 3\n", nil, []string{"x.toml: unknown key experiment.rounds; the nearest known one is optimizer.rounds"}},
		{"misspelt key of another section", "[experiment]\nruonds = 3\n", nil, []string{"unknown key experiment.ruonds; the nearest known one is optimizer.rounds"}},
		{"key of two other sections", "[encryption]\nmodel = 3\n", nil, []string{"unknown key encryption.model; the nearest known ones are task.model and channel.model"}},
		{"key of no section", "rounds = 3\n", nil, []string{"unknown key rounds; the nearest known one is optimizer.rounds"}},
		{"key of an unknown section", "", []string{"training.rounds=3"}, []string{"--set training.rounds: unknown key training.rounds; the nearest known one is optimizer.rounds"}},
		{"value for a section", "experiment = 3\n", nil, []string{"x.toml: line 1: experiment = 3: must be a section, [experiment] with keys"}},
		{"list of sections", "\n[[optimizer]]\nrounds = 3\n", nil, []string{"x.toml: line 2: optimizer = [{...}]: must be a section"}},
		{"number too large for any machine", "[optimizer]\nrounds = 99999999999999999999\n", nil, []string{"x.toml: line 2: optimizer.rounds = 99999999999999999999: must be a whole number from 1 to 10000000"}},
		{"no quotes", "[link]\nkind = waveform\n", nil, []string{`x.toml: line 2: link.kind = waveform: must be "ring" or "waveform" (not TOML:`}},
		{"key given twice", "[optimizer]\nrounds = 3\nrounds = 4\n", nil, []string{"x.toml: line 3: optimizer.rounds = 4: must be given once"}},
		{"date", "[channel]\nstd = 2020-01-01\n", nil, []string{"x.toml: line 2: channel.std = 2020-01-01T00:00:00Z: must be a number from 0 to 1000"}},
		{"nothing in --set", "", []string{"optimizer.rounds="}, []string{`--set optimizer.rounds = "": must be a whole number`}},
		{"override that loses", "[optimizer]\nrounds = 0\n", []string{"optimizer.rounds=-3"}, []string{"--set optimizer.rounds = -3: must be"}},
		{"gain given twice", "[radio]\ntransmit_gains_db = [\"lna=1\", \"lna=2\"]\n", nil, []string{`line 2: radio.transmit_gains_db = ["lna=1", "lna=2"]: must be a list of texts "stage=dB"`}},
		{"unknown section", "[optimiser]\nrounds = 3\n", nil, []string{"optimiser", "nearest"}},
		{"section of another case", "[Optimizer]\nrounds = 3\n", nil, []string{"x.toml: unknown key Optimizer; the nearest known one is optimizer"}},
		{"empty section of another case", "[OPTIMIZER]\n", nil, []string{"x.toml: unknown key OPTIMIZER; the nearest known one is optimizer"}},
		{"sections of two cases", "[optimizer]\nrounds = 3\n[Optimizer]\nrounds = 4\n", nil, []string{"unknown key Optimizer; the nearest known one is optimizer"}},
		{"section of another case first", "[Optimizer]\nrounds = 3\n[optimizer]\nrounds = 4\n", nil, []string{"unknown key Optimizer; the nearest known one is optimizer"}},
		{"key of another case", "[optimizer]\nRounds = 3\n", nil, []string{"unknown key optimizer.Rounds; the nearest known one is optimizer.rounds"}},
		{"keys of two cases", "[optimizer]\nrounds = 3\nROUNDS = 4\n", nil, []string{"unknown key optimizer.ROUNDS; the nearest known one is optimizer.rounds"}},
		{"field name for a key", "[optimizer]\nEvaluateEvery = 3\n", nil, []string{"unknown key optimizer.EvaluateEvery"}},
		{"inline section of another case", "Optimizer = {rounds = 3}\n", nil, []string{"unknown key Optimizer"}},
		{"dotted section of another case", "Optimizer.rounds = 3\n", nil, []string{"unknown key Optimizer.rounds; the nearest known one is optimizer.rounds"}},
		{"key of a value", "[optimizer]\nrounds.x = 3\n", nil, []string{"line 2: optimizer.rounds = {...}: must be a whole number"}},
		{"key with a dot in it", "\"optimizer.rounds\" = 3\n", nil, []string{"unknown key \"optimizer.rounds\""}},
		{"case in --set", "", []string{"optimizer.Rounds=3"}, []string{"unknown key optimizer.Rounds; the nearest known one is optimizer.rounds"}},
		{"section's case in --set", "", []string{"Optimizer.rounds=3"}, []string{"unknown key Optimizer.rounds; the nearest known one is optimizer.rounds"}},
		{"header in --set", "", []string{"[optimizer]#.=3"}, []string{"unknown key [optimizer]#."}},
		{"deep --set", "", []string{"optimizer.rounds=" + strings.Repeat("[", 50_000)}, []string{"--set optimizer.rounds: line 1: the nesting of tables and lists is 5 deep or more; allowed is a depth of 4"}},
		{"deep file", "[optimizer]\nrounds = " + strings.Repeat("[", 50_000), nil, []string{"x.toml: line 2: the nesting of tables and lists is 5 deep or more; allowed is a depth of 4"}},
		{"tables in --set", "", []string{"optimizer.rounds=" + strings.Repeat("{a=", 40_000)}, []string{"--set optimizer.rounds: line 1: the nesting of tables and lists is 5 deep or more"}},
		{"long --set", "", []string{"optimizer.rounds=" + strings.Repeat("1", 50_000)}, []string{"optimizer.rounds"}},
		{"long text in --set", "", []string{"task.dataset=" + strings.Repeat("x", 50_000)}, []string{"task.dataset"}},
		{"long key in --set", "", []string{"optimizer." + strings.Repeat("x", 50_000) + "=1"}, []string{"--set optimizer.xxx", "the nearest known one is"}},
		{"wrong type", "[optimizer]\nrounds = \"many\"\n", nil, []string{"line 2", "optimizer.rounds"}},
		{"no TOML", "[optimizer\n", nil, []string{"x.toml", "line 2"}},
		{"fraction for a count", "[devices]\ncount = 1.5\n", nil, []string{"devices.count"}},
		{"minimum above N", "[link]\nkind = \"waveform\"\n[channel]\ngains = \"continuous\"\n[devices]\ncount = 3\nminimum = 4\n", nil, []string{"devices.minimum = 4: must be a whole number from 1 to devices.count, 3, or 0 for all"}},
		{"negative minimum", "[link]\nkind = \"waveform\"\n[channel]\ngains = \"continuous\"\n", []string{"devices.minimum=-1"}, []string{"devices.minimum = -1: must be a whole number from 1 to"}},
		{"minimum without encryption", "", []string{"experiment.aggregator=none", "devices.minimum=1"}, []string{`devices.minimum = 1: must be 0 with experiment.aggregator = "none"`}},
		{"disagreement", "", []string{"devices.disagreement=ignore"}, []string{`devices.disagreement = "ignore": must be "warn" or "refuse"`}},
		{"refusal on the ring", "", []string{"devices.disagreement=refuse"}, []string{`devices.disagreement = "refuse": must be "warn" without link.kind = "waveform"`}},
		{"one side of one point", "", []string{"experiment.aggregator=ezofl-one-point", "optimizer.estimator=one-sided"}, []string{`optimizer.estimator = "one-sided": must be "two-point" with experiment.aggregator = "ezofl-one-point"`}},
		{"pairs of one side", "", []string{"optimizer.estimator=one-sided", "optimizer.train_loss=pairs"}, []string{`optimizer.train_loss = "pairs": must be "exact" with optimizer.estimator = "one-sided"`}},
		{"fzoo of one scalar", "", []string{"optimizer.step=fzoo"}, []string{`optimizer.packed_directions = 1: must be 2 or more with optimizer.step = "fzoo"`}},
		{"fzoo in units of the gradient", "", []string{"optimizer.step=fzoo", "optimizer.packed_directions=2", "optimizer.estimate=gradient"}, []string{`optimizer.estimate = "gradient": must be "sum" with optimizer.step = "fzoo"`}},
		{"one side of gradients", "", []string{"experiment.aggregator=heairfed", "optimizer.estimator=one-sided"}, []string{`optimizer.estimator = "one-sided": must be "two-point" with experiment.aggregator = "heairfed", which sends gradients`}},
		{"units of gradients", "", []string{"experiment.aggregator=heairfed", "optimizer.estimate=gradient"}, []string{`optimizer.estimate = "gradient": must be "sum" with experiment.aggregator = "heairfed"`}},
		{"momentum of gradients", "", []string{"experiment.aggregator=heairfed", "optimizer.momentum=0.5"}, []string{`optimizer.momentum = 0.5: must be 0 with experiment.aggregator = "heairfed"`}},
		{"momentum of 1", "", []string{"optimizer.momentum=1"}, []string{`optimizer.momentum = 1: must be a number from 0 to 0.999`}},
		{"unknown law", "", []string{"optimizer.step_law=linear"}, []string{`optimizer.step_law = "linear": must be "power", "theorem2", "constant" or "cosine"`}},
		{"N = 0", "[devices]\ncount = 0\n", nil, []string{"devices.count = 0: must be a whole number from 1 to"}},
		{"n no power of two", "[encryption]\nn = 3000\n", nil, []string{"encryption.n = 3000: must be", "power of two"}},
		{"negative sigma", "[channel]\nstd = -1.0\n", nil, []string{"channel.std", "-1"}},
		{"NaN sigma", "[channel]\nstd = nan\n", nil, []string{"channel.std = nan"}},
		{"zero mean", "[channel]\nmean = 0.0\n", nil, []string{"channel.mean", "not 0"}},
		{"per device", "[channel]\nstd_per_device = [1.0]\n", nil, []string{"std_per_device = [1]", "one a device (devices.count = 10), or none"}},
		{"negative seed", "[experiment]\nseed = -1\n", nil, []string{"experiment.seed"}},
		{"aggregator", "[experiment]\naggregator = \"magic\"\n", nil, []string{"magic", "xmk-ckks"}},
		{"stale keys of an epoch", "[experiment]\naggregator = \"stale-key\"\n[encryption]\nkey_epoch_rounds = 7\n", nil, []string{"encryption.key_epoch_rounds = 7: must be 0", "stale-key"}},
		{"zf over a waveform", "[experiment]\naggregator = \"zf\"\n[link]\nkind = \"waveform\"\n", nil, []string{`link.kind = "waveform": must be "ring"`, "zf"}},
		{"zf of gains that drift", "[experiment]\naggregator = \"zf\"\n[channel]\ndrift = \"after-key\"\n", nil, []string{`channel.drift = "after-key": must be "none"`, "zf"}},
		{"heairfed of system keys", "[experiment]\naggregator = \"heairfed\"\n[encryption]\nrandomness = \"system\"\n", nil, []string{"encryption.randomness", "heairfed", "seed"}},
		{"airhe over a waveform", "[experiment]\naggregator = \"airhe\"\n[link]\nkind = \"waveform\"\n", nil, []string{"airhe", "link.kind", "ring"}},
		{"antennas", "[channel]\nantennas = 0\n", nil, []string{"channel.antennas = 0: must be a whole number from 1 to 1024"}},
		{"antennas' fading", "[channel]\nantenna_fading = \"fog\"\n", nil, []string{"channel.antenna_fading", `must be "los" or "rayleigh"`}},
		{"mmse of continuous gains", "[experiment]\naggregator = \"mmse\"\n[channel]\ngains = \"continuous\"\n", nil, []string{`channel.gains = "continuous": must be "lattice"`, "mmse"}},
		{"pilots", "[channel]\npilot_std = -0.1\n", nil, []string{"channel.pilot_std = -0.1: must be a number from 0 to 1000"}},
		{"same classes", "[task]\nclasses = [3, 3]\n", nil, []string{"task.classes", "differ"}},
		{"one class", "[task]\nclasses = [1]\n", nil, []string{"task.classes = [1]: must be two classes or more that differ"}},
		{"no classes", "[task]\nclasses = []\n", nil, []string{"task.classes", "two classes or more"}},
		{"a class twice of three", "[task]\nclasses = [1, 2, 1]\n", nil, []string{"task.classes = [1, 2, 1]: must be two classes or more that differ"}},
		{"a plateau of nothing", "[optimizer]\nend_after_plateau_evaluations = 3\n", nil, []string{"optimizer.end_after_plateau_evaluations = 3: must be 0 with task.validation_share = 0"}},
		{"all held out", "[task]\nvalidation_share = 0.6\n", nil, []string{"task.validation_share = 0.6: must be a number from 0 to 0.5"}},
		{"strokes classes", "[task]\ndataset = \"strokes\"\nclasses = [0, 7]\n", nil, []string{"0 to 3"}},
		{"CIFAR-10 classes", "[task]\ndataset = \"cifar10\"\nclasses = [0, 10]\n", nil, []string{"task.classes", "0 to 9"}},
		{"lenet on MNIST", "[task]\nmodel = \"lenet\"\n", nil, []string{`task.model = "lenet"`, "mnist", "cifar10"}},
		{"lenet with a fallback", "[task]\ndataset = \"cifar10\"\nmodel = \"lenet\"\nfallback = \"strokes\"\n", nil, []string{"task.fallback", "strokes"}},
		{"gradients of lenet", "[experiment]\naggregator = \"heairfed\"\n[task]\ndataset = \"cifar10\"\nmodel = \"lenet\"\n", nil, []string{`task.model = "lenet"`, "heairfed"}},
		{"gradients of sums", "[experiment]\naggregator = \"heairfed\"\n[task]\nloss = \"sum\"\n", nil, []string{`task.loss = "sum": must be "mean"`, "heairfed"}},
		{"directions of gradients", "[experiment]\naggregator = \"heairfed\"\n[optimizer]\npacked_directions = 2\n", nil, []string{"optimizer.packed_directions = 2: must be 1", "heairfed"}},
		{"packed directions", "[optimizer]\npacked_directions = 0\n", nil, []string{"optimizer.packed_directions = 0: must be a whole number from 1 to 65536"}},
		{"training loss", "[optimizer]\ntrain_loss = \"some\"\n", nil, []string{"optimizer.train_loss", `must be "exact" or "pairs"`}},
		{"clip", "[optimizer]\nclip = -1.0\n", nil, []string{"optimizer.clip = -1: must be"}},
		{"loss", "[task]\nloss = \"median\"\n", nil, []string{"task.loss", `must be "mean" or "sum"`}},
		{"idx without files", "[task]\ndataset = \"idx\"\n", nil, []string{"train_images"}},
		{"set without =", "", []string{"channel.std"}, []string{"--set", "section.key=value"}},
		{"set unknown", "", []string{"channel.sdt=1"}, []string{"--set channel.sdt", "channel.std"}},
		{"set two lines", "", []string{"channel.std=1\n[devices]\ncount=3"}, []string{"single line"}},
		{"converter of 1 bit", "[devices]\nconverter_bits = 1\n", nil, []string{"devices.converter_bits = 1: must be a whole number from 2 to 24, or 0 for no converter"}},
		{"converter of device 2", "[devices]\ncount = 2\nconverter_bits_per_device = [8, 25]\n", nil, []string{"line 3: devices.converter_bits_per_device = [8, 25]: must be a list of whole numbers from 2 to 24, or 0"}},
		{"offsets", "[devices]\ncarrier_offset_per_device_hz = [1.0]\n", nil, []string{"carrier_offset_per_device_hz = [1]", "one a device (devices.count = 10), or none"}},
		{"offset beyond Nyquist", "[devices]\ncarrier_offset_hz = 6e6\n", nil, []string{"devices.carrier_offset_hz = 6e6", "5e6"}},
		{"linewidth", "[devices]\nlinewidth_hz = -1.0\n", nil, []string{"devices.linewidth_hz"}},
		{"NaN offset", "[devices]\ndc_offset = nan\n", nil, []string{"devices.dc_offset = nan"}},
		{"regime", "[link]\nregime = \"clairvoyant\"\n", nil, []string{"link.regime", "mean-aligned"}},
		{"blind on a lattice", "[link]\nkind = \"waveform\"\nregime = \"blind\"\n", nil, []string{"link.regime", "channel.gains", "continuous"}},
		{"emulated without one", "[link]\nkind = \"waveform\"\nregime = \"emulated\"\n[channel]\ngains = \"continuous\"\n", nil, []string{"link.regime", "channel.gains", "lattice"}},
		{"rounded twice", "[link]\nkind = \"waveform\"\nrecord = \"ci8\"\nreceiver_converter_bits = 12\n", nil, []string{"link.receiver_converter_bits = 12: must be from 2 to 8", "link.record", "cf32_le"}},
		{"two full scales", "[link]\nkind = \"waveform\"\nrecord = \"ci8\"\nreceiver_converter_bits = 8\nrecord_full_scale = 2.0\n", nil, []string{"record_full_scale", "receiver_full_scale"}},
		{"rounds", "[optimizer]\nrounds = 0\n", nil, []string{"x.toml: line 2: optimizer.rounds = 0: must be a whole number from 1 to 10000000"}},
		{"eta", "[optimizer]\neta0 = 0.0\n", nil, []string{"optimizer.eta0 = 0: must be a number above 0"}},
	} {
		_, err := Parse("x.toml", []byte(c.text), c.set)
		if err == nil {
			t.Errorf("%s: taken", c.name)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", c.name, err)
		}
		if len(err.Error()) >= 1000 {
			t.Errorf("%s: a sentence of %d bytes", c.name, len(err.Error()))
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml"), nil); err == nil || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("a missing file: %v", err)
	}
}

// Whatever is accepted is in range and can be written and read again.
func FuzzConfig(f *testing.F) {
	files, _ := filepath.Glob("../../../hw-configs/*.toml")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte("[channel]\nstd = 1e400\n"))
	f.Add([]byte("experiment = 3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz", data, nil)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1100 {
				t.Fatalf("more than one short line: %q", err)
			}
			return
		}
		encoded, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("encoded", encoded, nil); err != nil {
			t.Fatalf("%v in\n%s", err, encoded)
		}
	})
}

// TestAggregatorSynonym: ezofl is none, and gives the same run folder.
func TestAggregatorSynonym(t *testing.T) {
	one, err := Parse("x.toml", []byte("[experiment]\naggregator = \"ezofl\"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse("x.toml", nil, []string{"experiment.aggregator=none"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := one.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := other.Digest(); err != nil || a != b {
		t.Errorf("ezofl gives %v, none %v", one.Experiment, other.Experiment)
	}
	for _, s := range Systems() {
		name := s.Name
		if _, err := Parse("x.toml", nil, []string{"experiment.aggregator=" + name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file longer than any that is written by hand is not read.
func TestLongFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.toml")
	for size, want := range map[int]string{maxFile: "", maxFile + 1: path + ": the configuration: the length is more than 1048576 bytes; allowed is at most 1048576 bytes"} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("\n"), size), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, nil); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Configurations that are made of one base have nothing in common but its values, and values
// are written in full.
func TestBase(t *testing.T) {
	base, err := Names{}.parseBase("b.toml", []byte("[devices]\ncount = 2\n[channel]\nmean_per_device = [1, 2]\n"))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := base.With(Change{Key: "channel.mean_per_device", Value: []any{int64(3), 4.5}}, Change{Key: "task.classes", Value: []any{int64(2), int64(3)}}, Change{Key: "link.bandwidth_hz", Value: 1e12})
	if err != nil {
		t.Fatal(err)
	}
	same, err := base.With()
	if err != nil || Text(same.Value("channel.mean_per_device")) != "[1, 2]" || !slices.Equal(same.Task.Classes, []int{0, 1}) {
		t.Errorf("%+v, %v", same.Channel.MeanPerDevice, err)
	}
	for key, want := range map[string]string{"channel.mean_per_device": "[3, 4.5]", "task.classes": "[2, 3]", "link.bandwidth_hz": "1e12", "link.kind": "ring", "radio.transmit": "false", "devices.count": "2"} {
		if got := Text(changed.Value(key)); got != want {
			t.Errorf("%s is written %s instead of %s", key, got, want)
		}
	}
	for _, none := range []string{"", ".", "devices", "devices.", "devices.x", "x.count", "devices.count.x"} {
		if v := changed.Value(none); v != nil {
			t.Errorf("%q has the value %v", none, v)
		}
	}
	if _, err := base.Try(Change{Key: "devices.count", Value: int64(0)}); err != nil {
		t.Errorf("only the whole says what is out of range: %v", err)
	}
	if _, err := base.With(Change{Key: "devices.count", Value: int64(3), From: "here:"}); err == nil || !strings.HasPrefix(err.Error(), "b.toml: line 4: channel.mean_per_device = [1, 2]: must be ") {
		t.Errorf("%v", err)
	}
}
