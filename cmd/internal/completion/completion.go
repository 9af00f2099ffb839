// Package completion lets a shell complete what the commands take: names, keys and their
// values, files of configurations and folders.
//
// It takes in the program's commands, which it knows by their names and flags, and gives
// each what completes its arguments and flags. It runs and prints nothing.
package completion

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/crypto/attack"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/paper"
)

// Add lets a shell complete what the commands take: "ringwave completion bash --help" says
// how it is told.
func Add(root *cobra.Command) error {
	arguments := map[string]cobra.CompletionFunc{
		"run": oneConfig, "plan": oneConfig, "calibrate": oneConfig, "bringup": oneConfig, "curves": oneConfig, "show": oneConfig,
		"attack": words(attackNames), "fetch": first(words(dataset.Published)), "keys": words(config.Keys),
		"compare": folders, "replay": first(folders), "enroll": first(folders),
	}
	flags := map[string]cobra.CompletionFunc{
		"set": overrides, "only": words(paper.Chapters),
		"out": folders, "resume": folders, "data": folders, "dir": folders,
	}
	return eachCommand(root, func(cmd *cobra.Command) error {
		if complete, known := arguments[cmd.Name()]; known {
			cmd.ValidArgsFunction = complete
		}
		for name, complete := range flags {
			if cmd.Flags().Lookup(name) == nil {
				continue
			}
			if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
				return err
			}
		}
		return nil
	})
}

func eachCommand(cmd *cobra.Command, do func(*cobra.Command) error) error {
	if err := do(cmd); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := eachCommand(c, do); err != nil {
			return err
		}
	}
	return nil
}

// first completes the first argument only.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, begun)
	}
}

// words completes those of a list that are not there yet.
func words(list func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return beginning(begun, slices.DeleteFunc(list(), func(w string) bool { return slices.Contains(args, w) })), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(begun string, list []string) (found []string) {
	for _, w := range list {
		if strings.HasPrefix(w, begun) {
			found = append(found, w)
		}
	}
	return found
}

func oneConfig(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func attackNames() (names []string) {
	for _, a := range attack.All() {
		names = append(names, a.Name)
	}
	return names
}

// overrides completes --set: the keys, and behind a key the values that it may have where
// these are few.
func overrides(_ *cobra.Command, _ []string, begun string) (found []string, _ cobra.ShellCompDirective) {
	key, _, given := strings.Cut(begun, "=")
	if !given {
		for _, k := range beginning(begun, config.Keys()) {
			found = append(found, k+"=")
		}
		return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	all := config.Describe()
	at := slices.IndexFunc(all, func(k config.Key) bool { return k.Name == key })
	if at < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	values := all[at].Words
	switch {
	case all[at].Type == "true or false":
		values = []string{"true", "false"}
	case key == "encryption.parameter_set":
		for _, p := range xmkckks.Sets() {
			values = append(values, p.Name)
		}
	}
	for _, v := range values {
		found = append(found, key+"="+v)
	}
	return beginning(begun, found), cobra.ShellCompDirectiveNoFileComp
}
