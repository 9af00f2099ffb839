package main

import (
	"github.com/spf13/cobra"

	"ringwave/learner/experiment/catalogue"
)

func newSetsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "sets",
		Example: `  ringwave sets
  ringwave sets --json`,
		Short: "List the parameter sets: security, flooding, sizes",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			designs, err := catalogue.Designs()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), catalogue.FiguresOf(designs))
			}
			catalogue.Print(cmd.OutOrStdout(), designs)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the sets as JSON")
	return cmd
}
