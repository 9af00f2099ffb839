package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look up what a configuration may say, and what one says",
		Example: `  ringwave config keys optimizer.
  ringwave config show hw-configs/loopback.toml`,
		Args: exactly(0, "a subcommand, such as keys"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysCommand(), newShowCommand())
	return cmd
}

func newKeysCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "keys [WORD...]",
		Short: "List the keys of a configuration: type, unit, default, range and meaning",
		Long: `List every key of a configuration with its type, unit, default, range and
meaning, or those alone that begin with a WORD, as in "keys experiment.", or
have it in their name or meaning. hw-configs/README.md has the same.`,
		Example: `  ringwave config keys optimizer.
  ringwave config keys seed --json`,
		RunE: func(cmd *cobra.Command, words []string) error {
			keys := matching(config.Describe(), words)
			if len(keys) == 0 {
				return intake.UserError(fmt.Errorf("no key has %s in its name or meaning: see %s", eitherOf(words), cmd.CommandPath()))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), keys)
			}
			return printKeys(cmd.OutOrStdout(), keys)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the keys as JSON")
	return cmd
}

// eitherOf returns words in quotation marks, any of which will do.
func eitherOf(words []string) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, fmt.Sprintf("%q", w))
	}
	return strings.Join(texts, " or ")
}

// matching returns the keys of which one of the words is the beginning, or else those that
// have one within; all where there is no word.
func matching(keys []config.Key, words []string) []config.Key {
	if len(words) == 0 {
		return keys
	}
	where := func(has func(k config.Key, word string) bool) (found []config.Key) {
		for _, k := range keys {
			if slices.ContainsFunc(words, func(w string) bool { return has(k, strings.ToLower(w)) }) {
				found = append(found, k)
			}
		}
		return found
	}
	if found := where(func(k config.Key, word string) bool { return strings.HasPrefix(k.Name, word) }); len(found) > 0 {
		return found
	}
	return where(func(k config.Key, word string) bool {
		return strings.Contains(k.Name, word) || strings.Contains(strings.ToLower(k.Meaning), word)
	})
}

func printKeys(w io.Writer, keys []config.Key) error {
	for i, k := range keys {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		facts := []string{k.Type}
		if len(k.Words) > 0 {
			facts = nil // the range says more
		}
		if k.Range != "" {
			facts = append(facts, k.Range)
		}
		text := strings.Join(facts, " ")
		if k.Unit != "" {
			text += " [" + k.Unit + "]"
		}
		if _, err := fmt.Fprintf(w, "%s%s = %s\n  %s\n  %s\n", gap, k.Name, k.DefaultText(), text, k.Meaning); err != nil {
			return err
		}
	}
	return nil
}

func newShowCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "show CONFIG",
		Short: "Print a configuration with every key, and mark what differs from the default",
		Long: `Print a configuration as a run would take it: checked, with every key. A value
that is not the default is marked with the default behind it, as a comment, so
that the output is a configuration, too.`,
		Example: `  ringwave config show hw-configs/loopback.toml
  ringwave config show hw-configs/loopback.toml --set channel.std=0.5`,
		Args: exactly(1, "one CONFIG file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadToShow(args[0], set)
			if err != nil {
				return err
			}
			text, err := marked(c)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one key of the config, as section.key=value (may be given several times)")
	return cmd
}

// loadToShow loads a configuration that may lack the permit to send: showing sends nothing.
func loadToShow(path string, set []string) (config.Config, error) {
	c, err := config.Load(path, set)
	if err == nil {
		return c, nil
	}
	permitted, permittedErr := config.Load(path, append(slices.Clone(set), "radio.transmit=true"))
	if permittedErr != nil {
		return c, intake.UserError(err)
	}
	permitted.Radio.Transmit = false
	return permitted, nil
}

// marked returns a configuration as text with the default behind what differs from it.
func marked(c config.Config) (string, error) {
	given, err := c.Encode()
	if err != nil {
		return "", err
	}
	byDefault, err := config.Default().Encode()
	if err != nil {
		return "", err
	}
	defaults := strings.Split(string(byDefault), "\n")
	lines := strings.Split(string(given), "\n")
	for i := range lines { // all keys are there in both, in one order and a line each
		if name, value, _ := strings.Cut(defaults[i], " = "); lines[i] != defaults[i] {
			lines[i] = fmt.Sprintf("%-40s # default: %s", lines[i], value)
			if !strings.HasPrefix(lines[i], name+" = ") {
				return "", fmt.Errorf("marking what differs: %s stands where the default has %s", lines[i], name)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}
