package main

import (
	"io"

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
			return show(cmd.OutOrStdout(), asJSON, catalogue.FiguresOf(designs), func(w io.Writer) error {
				catalogue.Print(w, designs)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the sets as JSON")
	return cmd
}
