package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment/replay"
)

func newReplayCommand() *cobra.Command {
	var asJSON bool
	var configPath string
	cmd := &cobra.Command{
		Use: "replay DIR | RECORDING",
		Example: `  ringwave replay recorded
  ringwave replay recorded/iq/round-000001.sigmf-meta --json
  ringwave replay file:round-000001?checksum=skip --config config.toml`,
		Short: "Decode a recorded run again and compare its ring elements",
		Long: `Decode the recordings of a run that had link.record set, with the receiver of
the run's config.toml, and compare every ring element with what the run
received. No key is needed: the elements are what was on the air.

DIR is a run folder. RECORDING is one recording of a round: the path of one of
its two files, or file:PATH, with or without suffix; file:PATH?checksum=skip
leaves core:sha512 unchecked. In such a name a question mark or a per cent sign
is written %3F or %25. Its config.toml is that of the run folder whose iq/ it
lies in, or --config. It is decoded as if the receiver had just been switched
on: emulated gains may need the timing of earlier rounds, which only DIR has.

With --json the result is one object: rounds, transmissions, agree, read and
void are counts, and verdicts has an object for each transmission with
  round, attempt, transmission (b, c0, c1 or D)
  again      how often it was sent before in this attempt, if it was
  agrees     whether both were void, or both gave the same elements
  then, now  what the run received and what replay did: elements, the SHA-256 of
             the ring elements (residues modulo one prime after the other, 64
             bits each, little-endian), or void, the reason why there are none

Exit status: 0 if all agree to the bit, 1 if some differ, 2 if a recording is
missing, damaged or not of this configuration.`,
		Args: exactly(1, "the folder of one run, or one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := replay.Replay(cmd.Context(), args[0], configPath)
			if err != nil {
				return err
			}
			if err := show(cmd.OutOrStdout(), asJSON, &r, r.WriteText); err != nil {
				return err
			}
			if n := r.Transmissions - r.Agree; n > 0 {
				return fmt.Errorf("%d of %d transmissions differ from what the run received", n, r.Transmissions)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdicts as JSON")
	cmd.Flags().StringVar(&configPath, "config", "", "the `file` with the run's configuration (default: that of the run folder)")
	return cmd
}
