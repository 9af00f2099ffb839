package main

import (
	"io"

	"github.com/spf13/cobra"
)

func newEvaluateCommand() *cobra.Command {
	var flags struct {
		set         []string
		data, model string
		json        bool
	}
	cmd := &cobra.Command{
		Use:   "evaluate DIR",
		Short: "Say how well a run's model decides, on its own or other data",
		Long: `Load the model of a run's folder, that of its last checkpoint, and decide the
test and training samples of its data set with it. A run that has ended has its
model in model.npy (numpy.load reads it) and in model.safetensors as named
tensors.

--model FILE takes the weights of a safetensors file instead, which must have
the same tensors; --set task.key=value takes other data, such as your own files.`,
		Example: `  ringwave evaluate runs/20260102T030405Z-loopback
  ringwave evaluate runs/A --model runs/B/model.safetensors
  ringwave evaluate runs/A --set task.dataset=strokes`,
		Args: exactly(1, "the folder of one run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := lab(flags.data).Evaluate(args[0], flags.model, flags.set...)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), flags.json, e, func(w io.Writer) error { return e.WriteText(w, flags.model) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&flags.set, "set", nil, "override one key of [task], as task.key=value (may be given several times)")
	addData(f, &flags.data)
	f.StringVar(&flags.model, "model", "", "the safetensors `file` with the weights, in place of the run's")
	f.BoolVar(&flags.json, "json", false, "print the result as JSON")
	return cmd
}
