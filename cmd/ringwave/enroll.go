package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

func newEnrollCommand() *cobra.Command {
	var o identity.Options
	var add int
	var revoke []int
	cmd := &cobra.Command{
		Use: "enroll DIR",
		Example: `  ringwave enroll bench --devices 10
  ringwave enroll bench --devices 3 --url tls://10.0.0.5:4222
  ringwave enroll bench --add 2
  ringwave enroll bench --revoke 4,7
  ringwave enroll queue --sweeps --url tls://10.0.0.5:4300`,
		Short: "Give the hosts of a bench their identities",
		Long: `Make the folder DIR for a bench of several hosts: an authority of its own, the
certificate of its message bus, a file that is the identity of each host, and
nats-server.conf for a nats-server in place of the one in this program. Copy
each device-NNN.identity to its device and to nobody else. ca.key and
enrolment.key enrol more devices later: keep them off the hosts of the bench.

With --sweeps the folder is for sweeps and their workers, which share
worker.identity (ringwave sweep --bench).

--add and --revoke change a folder that is there. The bus in this program takes
that in within a second, and a nats-server when it is told to read its
configuration again (nats-server --signal reload). A folder that exists is never
made anew.`,
		Args: exactly(1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := enroll(cmd.Flags().Changed, args[0], o, add, revoke)
			if err != nil {
				return err
			}
			r := f.Registry
			if r.Sweeps() {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Folder: %s\n  bus        %s\n  workers    share worker.identity\n  valid      until %s\n", f.Dir, r.URL, r.Expires.Format(time.RFC3339))
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Folder: %s\n  bus        %s\n  devices    %d, of which %d may connect\n  valid      until %s\n",
				f.Dir, r.URL, r.Devices(), r.AdmittedDevices(time.Now()), r.Expires.Format(time.RFC3339))
			return err
		},
	}
	cmd.Flags().IntVar(&o.Devices, "devices", 0, "how many devices a new bench has")
	cmd.Flags().BoolVar(&o.Sweeps, "sweeps", false, "make a folder for sweeps and their workers in place of devices")
	cmd.Flags().StringVar(&o.URL, "url", identity.DefaultURL, "where hosts find the bus")
	cmd.Flags().StringArrayVar(&o.Hosts, "host", nil, "a name or address of the bus, of one or several; without it this host's, and always that of --url")
	cmd.Flags().DurationVar(&o.Valid, "valid", 0, fmt.Sprintf("how long identities are (default %v; with --add as long as the bench)", identity.DefaultValid))
	cmd.Flags().IntVar(&add, "add", 0, "enrol so many more devices")
	cmd.Flags().IntSliceVar(&revoke, "revoke", nil, "the indices of devices that may no longer connect")
	return cmd
}

// enroll makes the one change of a folder that the flags given ask for.
func enroll(given func(flag string) bool, dir string, o identity.Options, add int, revoke []int) (f *identity.Folder, err error) {
	asked := slices.DeleteFunc([]string{"devices", "sweeps", "add", "revoke"}, func(flag string) bool { return !given(flag) })
	switch {
	case len(asked) != 1:
		return nil, intake.UserError(fmt.Errorf("enroll has %d of --devices or --sweeps for a new folder, --add and --revoke; allowed is one", len(asked)))
	case asked[0] != "devices" && asked[0] != "sweeps" && (given("url") || given("host")), asked[0] == "revoke" && given("valid"):
		return nil, intake.UserError(fmt.Errorf("--%s is given with what it has no use for; allowed are --url and --host beside --devices or --sweeps only, and --valid beside these or --add", asked[0]))
	case given("valid") && o.Valid == 0:
		return nil, intake.UserError(errors.New("--valid is 0; allowed is a time such as 8760h, from now on"))
	case asked[0] == "devices", asked[0] == "sweeps":
		return identity.Create(dir, o)
	}
	if f, err = identity.Open(dir); err != nil {
		return nil, err
	}
	if asked[0] == "add" {
		return f, f.Add(add, o.Valid)
	}
	return f, f.Revoke(revoke)
}
