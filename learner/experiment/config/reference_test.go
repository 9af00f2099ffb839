package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hw-configs/README.md is what the configurations and the table of keys make of it.
func TestReference(t *testing.T) {
	const dir = "../../../hw-configs"
	path := filepath.Join(dir, "README.md")
	want, err := reference(dir)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("RINGWAVE_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not up to date (%v): run go generate ./learner/experiment/config", path, err)
	}
}

// reference returns the list of a folder's configurations and that of all keys.
func reference(dir string) (string, error) {
	var b strings.Builder
	b.WriteString(`# Configurations

This file is made by ` + "`go generate ./learner/experiment/config`" + ` from the heads of the files beside
it and from the table of keys that the program checks values by. Times are those of a run on
two cores, as ` + "`ringwave plan FILE`" + ` tells for another machine.

| file | what it shows | takes | data |
|---|---|---|---|
`)
	files, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return "", err
	}
	for _, path := range files {
		row, err := fileRow(path)
		if err != nil {
			return "", err
		}
		b.WriteString(row)
	}
	b.WriteString(`
The files in [sweeps](sweeps) ask for many runs, over values of some keys and seeds; what they
may have is in [learner/README.md](../learner/README.md#sweeps).

MNIST and CIFAR-10 come by ` + "`ringwave data fetch mnist`" + ` and ` + "`ringwave data fetch cifar10`" + `.

## Keys

Every key has a default: a file has those that differ. ` + "`ringwave config keys`" + ` prints what
follows, ` + "`ringwave config keys WORD`" + ` a part of it, and ` + "`ringwave config show FILE`" + ` a
file with every key and what in it is not the default. ` + "`--set section.key=value`" + ` changes one key.
A list with a value a device has as many values as devices.count, or none.
`)
	section := ""
	for _, k := range Describe() {
		of, name, _ := strings.Cut(k.Name, ".")
		if of != section {
			section = of
			fmt.Fprintf(&b, "\n### [%s]\n\n| key | type | unit | default | range | meaning |\n|---|---|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s | %s |\n", name, k.Type, k.Unit, k.DefaultText(), cell(k.Range), cell(k.Meaning))
	}
	return b.String(), nil
}

// fileRow returns what the head of a configuration says: its first sentence, and the lines
// that begin with Takes and Data.
func fileRow(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var first []string
	facts := map[string]string{}
	begun := true
	for line := range strings.Lines(string(text)) {
		line, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !comment {
			break
		}
		line = strings.TrimSpace(line)
		if begun = begun && line != ""; begun {
			first = append(first, line)
		}
		if name, fact, found := strings.Cut(line, ": "); found && (name == "Takes" || name == "Data") {
			facts[name] = fact
		}
	}
	shows, _, _ := strings.Cut(strings.Join(first, " ")+" ", ". ")
	shows = strings.TrimRight(shows, ":. ")
	name := filepath.Base(path)
	if shows == "" || facts["Takes"] == "" || facts["Data"] == "" {
		return "", fmt.Errorf("%s: its head does not say what it shows, and in lines of their own \"Takes: ...\" and \"Data: ...\"", name)
	}
	return fmt.Sprintf("| [%s](%s) | %s | %s | %s |\n", name, name, cell(shows), cell(facts["Takes"]), cell(facts["Data"])), nil
}

// cell returns a text as a table of Markdown takes it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
