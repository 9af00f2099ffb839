package main

import (
	"fmt"
	"io"

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
			keys, err := config.Find(words...)
			if err != nil {
				return fmt.Errorf("%w: see %s", err, cmd.CommandPath())
			}
			return show(cmd.OutOrStdout(), asJSON, keys, func(w io.Writer) error { return config.WriteKeys(w, keys) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the keys as JSON")
	return cmd
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
			c, err := config.LoadUnpermitted(args[0], set)
			if err != nil {
				return intake.UserError(err)
			}
			text, err := c.Marked()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	addSet(cmd.Flags(), &set)
	return cmd
}
