package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/radio/intake"
)

func newDataCommand() *cobra.Command {
	data := &cobra.Command{
		Use:     "data",
		Example: `  ringwave data fetch mnist`,
		Short:   "Fetch data sets",
		Args:    exactly(0, "a subcommand, such as fetch"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	var asJSON bool
	fetch := &cobra.Command{
		Use: "fetch NAME",
		Example: `  ringwave data fetch mnist
  ringwave data fetch cifar10 --dir /data/sets`,
		Short: "Download a data set, with its checksums verified",
		Long:  "Download a data set (mnist or cifar10) into the user's cache, or --dir, and\nverify its SHA-256.",
		Args:  exactly(1, "one data set's NAME, such as mnist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fetchData(cmd, args[0], dir, asJSON)
		},
	}
	fetch.Flags().StringVar(&dir, "dir", "", "folder to put it in (default: the user's cache)")
	fetch.Flags().BoolVar(&asJSON, "json", false, "print what was fetched as JSON")
	data.AddCommand(fetch)
	return data
}

func fetchData(cmd *cobra.Command, name, dir string, asJSON bool) error {
	set, fetch, err := dataset.Publication(name)
	if err != nil {
		return intake.UserError(err)
	}
	if dir == "" {
		cache := experiment.DataCache()
		if cache == "" {
			return intake.UserError(fmt.Errorf("the system names no cache folder: give one with --dir"))
		}
		dir = cache
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return intake.PathError(fmt.Errorf("making the folder for data sets: %w", err))
	}
	c := console.New(cmd)
	fmt.Fprintf(c.Writer(), "%s, licence: %s\nfrom %s\ninto %s\n", set.Name, set.Licence, strings.Join(set.Mirrors, " or "), dir)
	heard, stop := c.Steps("MB")
	err = fetch(cmd.Context(), dir, http.DefaultClient, func(done, total int64) {
		heard(int(done/1e6), int(max(total, done)/1e6))
	})
	stop()
	if cmd.Context().Err() != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "Stopped. Nothing half-written was kept.")
		return experiment.ErrInterrupted
	}
	var wrong *dataset.ChecksumError
	if errors.As(err, &wrong) {
		return intake.UserError(err)
	}
	if err != nil {
		return err
	}
	return show(cmd.OutOrStdout(), asJSON, fetched{set.Name, set.Licence, dir}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "Fetched and verified:", dir)
		return err
	})
}

// fetched is what data fetch --json prints.
type fetched struct {
	Name    string `json:"name"`
	Licence string `json:"licence"`
	Dir     string `json:"dir"`
}
