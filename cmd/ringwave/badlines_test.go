package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"ringwave/learner/experiment/experimenttest"
)

// goWords are those of Go and of a shell's C library that no user should have to read.
var goWords = regexp.MustCompile(`strconv|[^.](json|toml): |\*[a-z]+\.[A-Z]|&\{|goroutine|panic|runtime error|%!|cannot unmarshal|\b(u?int(8|16|32|64)?|float64|bool|nil|struct|interface|slice|stringArray)\b|invalid syntax|0x[0-9a-f]{6}`)

// bad is a command line that is refused.
type bad struct {
	name string
	args []string
}

// whole returns arguments with which a command gets as far as its flags.
func whole(name, config string) []string {
	switch name {
	case "run", "plan", "calibrate":
		return []string{name, config}
	case "data fetch":
		return []string{"data", "fetch", "mnist"}
	case "compare", "replay":
		return []string{name, "nowhere"}
	}
	return strings.Fields(name)
}

// badFlags are flags that no command has, or that have no value or one of another kind.
func badFlags(config string) (list []bad) {
	for _, c := range everyCommand() {
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "ringwave"), " ")
		add := func(what string, args ...string) {
			list = append(list, bad{strings.TrimSpace(name + " " + what), append(whole(name, config), args...)})
		}
		add("unknown flag", "--fast")
		add("unknown letter", "-x")
		add("a flag with blanks", "--no such=flag")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return
			}
			if f.NoOptDefVal == "" {
				add("--"+f.Name+" without a value", "--"+f.Name)
			}
			if f.Value.Type() != "string" && f.Value.Type() != "stringArray" {
				add("--"+f.Name+" of a wrong kind", "--"+f.Name+"=x\x01y")
				add("--"+f.Name+" of none", "--"+f.Name+"=")
			}
		})
		if c.HasSubCommands() {
			add("unknown command", "gpu")
			if !strings.Contains(c.Use, " ") { // else the word is an argument
				add("help of an unknown command", "gpu", "--help")
			}
		}
	}
	return list
}

// badArguments are too many and too few, and values that are not allowed.
func badArguments(config string) (list []bad) {
	for _, line := range []string{
		"run", "run C C", "plan", "plan C C", "calibrate", "calibrate C C", "curves C C", "replay", "replay a b", "compare", "data fetch", "data fetch mnist mnist",
		"data fetch imagenet", "sets more", "bench more", "reproduce more", "attack nothing", "attack ghost nothing", "attack --seed -1", "devices x:y:z", "devices nothing", "run --resume nowhere C",
		"calibrate --resume nowhere C", "bench --devices 0", "bench --devices 10001", "bench --rounds 0", "bench --rounds -3", "bench --parameter-set tiny", "bench --set lean-2048", "reproduce --only nothing",
		"reproduce --seeds -1", "reproduce --cifar-seeds 0", "reproduce --rounds -1", "compare nowhere --accuracy 2", "compare nowhere --accuracy 0", "compare nowhere --accuracy nan",
		"curves --devices 0", "curves --devices 1.5", "curves --devices 9999999", "curves --sigma -1", "curves --snr 1:0:1", "curves --snr 0:1e9:1", "curves --snr a", "curves --blocks 0", "curves --attempts 0", "curves --devices 1:1000:1 --snr 0:100:1",
		"run C --seed -1", "run C --seed 99999999999999999999", "run C --rounds 0", "run C --rounds -1", "run C --rounds 1000000000", "run C --seeds 3-1", "run C --seeds 1-99999", "run C --seeds 1 --seed 1", "run C --seeds 1 --set experiment.seed=1",
		"run C --set x", "run C --set =", "run C --set x=1", "run C --set devices.count=x", "run C --set devices=1", "run C --set devices.count=", "run C --set channel.std=nan", "run C --set channel.std=inf",
		"plan C --seed -1", "plan C --set x=1", "calibrate C --set x=1", "calibrate C --set calibration.blocks=0", "curves C --set x=1", "curves --seed -1",
		"run --resume nowhere", "run --resume nowhere --rounds 0", "run --resume nowhere --seeds 1-2", "run --resume nowhere --out x", "run --resume nowhere --set channel.std=1", "calibrate --resume nowhere --set channel.std=1", "runs nowhere",
		"sets -q -v", "run C -qv",
	} {
		list = append(list, bad{line, strings.Fields(strings.ReplaceAll(line, "C", config))})
	}
	return list
}

// badPaths are things that are not what a path is to name.
func badPaths(t *testing.T, dir, config string) (list []bad) {
	t.Helper()
	things := map[string]string{"nothing": "nowhere/at/all", "an empty path": "", "under a file": "empty/below"}
	write := func(name, text string) {
		things["a file: "+name] = name
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("empty", "")
	write("binary", "\x7fELF\x00\x01\xff\xfe\n\x00"+strings.Repeat("\x80\x00", 999))
	write("prose", "Dear reader,\nthis is no configuration = at all [[\n")
	write("long", strings.Repeat("a", 1<<20))
	things["an empty folder"], things["a folder of other things"] = "folder", "other"
	for _, name := range []string{"folder", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("other/thesis.tex", "x")
	locked := filepath.Join(dir, "locked")
	if err := os.WriteFile(locked, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(locked); err != nil { // the superuser reads all
		things["an unreadable file"] = "locked"
	}
	for what, path := range things {
		add := func(args ...string) { list = append(list, bad{fmt.Sprintf("%v, %s", args, what), args}) }
		isFolder, isFile := path == "folder" || path == "other", strings.HasPrefix(what, "a") && strings.Contains(what, "file")
		if path != "empty" { // a configuration of defaults
			add("run", path)
			add("plan", path)
			add("calibrate", path)
			add("curves", path)
		}
		add("replay", path)
		add("replay", path, "--config", config)
		add("compare", path)
		if path != "" {
			add("run", "--resume", path)
			add("run", "--resume", path, "--rounds", "7")
			add("calibrate", "--resume", path)
			add("calibrate", config, "--recording", path)
			add("run", config, "--data", path, "--set", "task.fallback=")
			add("run", config, "--set", "calibration.file="+path)
			for _, key := range []string{"train_images", "train_labels", "test_images", "test_labels"} {
				args := []string{"run", config, "--set", "task.dataset=idx", "--set", "task.fallback="}
				for _, other := range []string{"train_images", "train_labels", "test_images", "test_labels"} {
					args = append(args, "--set", "task."+other+"="+map[bool]string{true: path, false: "prose"}[other == key])
				}
				add(args...)
			}
		}
		if !isFolder {
			add("runs", path)
		}
		if isFile || path == "other" || what == "under a file" {
			add("run", config, "--out", path)
			add("run", config, "--seeds", "1-2", "--out", path)
			add("calibrate", config, "--out", path)
			add("curves", "--devices", "2", "--snr", "30", "--sigma", "0", "--blocks", "1", "--out", path)
		}
		if isFile || what == "under a file" {
			add("reproduce", "--quick", "--only", "parameters", "--out", path)
			add("data", "fetch", "mnist", "--dir", path)
		}
	}
	slices.SortFunc(list, func(a, b bad) int { return strings.Compare(a.name, b.name) })
	return list
}

// snapshot returns what is below a folder.
func snapshot(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list = append(list, fmt.Sprintf("%s %v %d", path, info.Mode(), map[bool]int64{false: info.Size()}[d.IsDir()]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every bad command line is refused with status 2 and one sentence in words, and leaves
// nothing behind.
func TestBadCommandLines(t *testing.T) {
	experimenttest.NoData(t)
	config, err := filepath.Abs(experimenttest.LoopbackConfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("config.toml", experimenttest.ReadFile(t, filepath.Dir(config), filepath.Base(config)), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := slices.Concat(badFlags("config.toml"), badArguments("config.toml"), badPaths(t, dir, "config.toml"))
	if len(lines) < 150 {
		t.Errorf("%d command lines", len(lines))
	}
	before := snapshot(t, dir)
	for _, l := range lines {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that is taken may run for long
		status := execute(ctx, l.args, &out, &errs)
		cancel()
		stdout, stderr := out.String(), errs.String()
		if text := strings.TrimSuffix(stderr, "\n"); status != exitBadInput || stdout != "" || strings.Contains(text, "\n") || !strings.HasPrefix(text, "ringwave: ") {
			t.Errorf("%s: status %d\n%.400s%.800s", l.name, status, stdout, stderr)
		}
		if word := goWords.FindString(strings.ReplaceAll(stderr, "nan", "")); word != "" {
			t.Errorf("%s: %q is no word for a user:\n%.600s", l.name, word, stderr)
		}
		if len(stderr) > 1500 {
			t.Errorf("%s: a sentence of %d bytes: %.300s", l.name, len(stderr), stderr)
		}
		if after := snapshot(t, dir); !slices.Equal(before, after) {
			t.Errorf("%s: left behind: %v", l.name, without(after, before))
			before = after
		}
	}
	t.Logf("%d command lines", len(lines))
}

// without returns what the second list lacks of the first.
func without(list, of []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(of, s) })
}
