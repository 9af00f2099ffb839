package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/radio/intake"
)

func newDataCommand() *cobra.Command {
	data := &cobra.Command{
		Use:   "data",
		Short: "Fetch data sets",
		Args:  exactly(0, "a subcommand, such as fetch"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	fetch := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Download a data set, with its checksums verified",
		Long:  "Download a data set (mnist or cifar10) into the user's cache, or --dir, and verify its SHA-256.",
		Args:  exactly(1, "one data set's NAME, such as mnist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fetchData(cmd, args[0], dir)
		},
	}
	fetch.Flags().StringVar(&dir, "dir", "", "folder to put it in (default: the user's cache)")
	data.AddCommand(fetch)
	return data
}

func fetchData(cmd *cobra.Command, name, dir string) error {
	set, download, err := published(name)
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
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "%s, licence: %s\nfrom %s\ninto %s\n", set.Name, set.Licence, strings.Join(set.Mirrors, " or "), dir)
	tenth := int64(-1)
	err = download(cmd.Context(), dir, http.DefaultClient, func(done, total int64) {
		if t := 10 * done / max(total, 1); t != tenth {
			tenth = t
			fmt.Fprintf(w, "%3d %% of %.1f MB\n", 100*done/max(total, 1), float64(total)/1e6)
		}
	})
	if cmd.Context().Err() != nil {
		fmt.Fprintln(w, "Stopped. Nothing half-written was kept.")
		return experiment.ErrInterrupted
	}
	var wrong *dataset.ChecksumError
	if errors.As(err, &wrong) {
		return intake.UserError(err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "Fetched and verified:", dir)
	return nil
}

// fetcher downloads a data set into a folder.
type fetcher func(ctx context.Context, dir string, client *http.Client, progress func(done, total int64)) error

// published returns a published data set, and how to download it.
func published(name string) (dataset.Known, fetcher, error) {
	if name == "cifar10" {
		_, mirrors, licence := dataset.CIFAR10Archive()
		return dataset.Known{Name: name, Mirrors: mirrors, Licence: licence}, dataset.FetchCIFAR10, nil
	}
	set, err := dataset.Lookup(name)
	return set, set.Fetch, err
}
