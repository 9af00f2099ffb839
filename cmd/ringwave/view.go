package main

import (
	"errors"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/watching"
	"ringwave/learner/watch/scenes"
	"ringwave/radio/intake"
)

func newViewCommand() *cobra.Command {
	var watch watching.Flags
	var addr string
	cmd := &cobra.Command{
		Use: "view DIR...",
		Example: `  ringwave view runs/20261120T125703Z-loopback
  ringwave view runs calibrations --at localhost:8080
  ringwave view recorded/iq/round-000001.sigmf-meta`,
		Short: "Show runs, calibrations and recordings in a browser",
		Long: `Show folders in a browser: of runs, calibrations, curves, sweeps and the report,
also while another process writes them; a folder that holds such shows each.
Recordings are played, with time controls: those of a run's folder with the
frames as its receiver has them, and SigMF recordings of anybody, named by one
of their files, as spectrum and waterfall.

The page is that of run --watch. It ends with Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly(1, "one DIR or several")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			page, err := watch.OpenAt(cmd, hostVersion(), addr)
			if err != nil {
				return intake.UserError(err)
			}
			defer page.Close()
			for _, path := range args {
				if err := scenes.Folder(page.Board, path); err != nil {
					return err
				}
			}
			if page.Board.Scenes() == 0 {
				return intake.UserError(errors.New("there is nothing to show"))
			}
			<-ctx.Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "at", "localhost:0", "where the page is: `host:port`, where port 0 picks one")
	watch.AddDoor(cmd)
	return cmd
}
