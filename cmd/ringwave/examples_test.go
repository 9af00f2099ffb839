package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/sweep"
)

// everyCommand returns the program's commands that users see.
func everyCommand() (list []*cobra.Command) {
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		list = append(list, c)
		for _, below := range c.Commands() {
			add(below)
		}
	}
	add(newRoot())
	return list
}

// Every command's help has examples, of that command, with flags, values and arguments
// that it takes, and configurations that are there.
func TestExamples(t *testing.T) {
	for _, c := range everyCommand() {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
			continue
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			words := strings.Fields(line)
			if line != "  "+strings.Join(words, " ") || len(words) == 0 || words[0] != "ringwave" || len(line) >= 80 {
				t.Errorf("%s: the example %q is none of the form \"  ringwave ...\" within 80 columns", c.CommandPath(), line)
				continue
			}
			tryExample(t, c, words[1:])
		}
	}
}

func tryExample(t *testing.T, of *cobra.Command, words []string) {
	t.Helper()
	c, err := taken(words)
	if err != nil {
		t.Errorf("%v: %v", words, err)
		return
	}
	if of.HasParent() && !strings.HasPrefix(c.CommandPath(), of.CommandPath()) {
		t.Errorf("%v is an example of %s, not of %s", words, c.CommandPath(), of.CommandPath())
	}
}

// taken returns the command of a command line, or why the program would not take it: flags
// and arguments that it does not have, configurations that are not there or have no such
// keys or values.
func taken(words []string) (*cobra.Command, error) {
	root := newRoot()
	if err := console.UnknownCommand(root, words); err != nil {
		return nil, err
	}
	c, rest, err := root.Find(words)
	if err != nil {
		return nil, err
	}
	c.InitDefaultVersionFlag()
	if err := c.ParseFlags(rest); err != nil {
		return nil, err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return nil, err
	}
	set, err := c.Flags().GetStringArray("set")
	if err != nil {
		set = nil // it has none
	}
	for _, arg := range c.Flags().Args() {
		if strings.HasPrefix(arg, "hw-configs") {
			path := filepath.Join("..", "..", arg)
			if c.Name() == "sweep" {
				_, err = sweep.Load(experiment.Lab{}, path, set)
			} else {
				_, err = config.Load(path, set)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if seeds := c.Flags().Lookup("seeds"); seeds != nil && seeds.Changed && c.Name() == "run" {
		if _, err := sweep.ParseSeeds(seeds.Value.String()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// The text of help is no wider than 80 columns, and help shows the examples.
func TestHelpFits(t *testing.T) {
	for _, c := range everyCommand() {
		for line := range strings.SplitSeq(c.Long+"\n"+c.Short, "\n") {
			if n := len([]rune(line)); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if stdout, _ := mustRun(t, append(slices.Clone(strings.Fields(c.CommandPath())[1:]), "--help")...); !strings.Contains(stdout, "Examples:\n"+c.Example) {
			t.Errorf("%s --help does not show the examples:\n%s", c.CommandPath(), stdout)
		}
	}
}
