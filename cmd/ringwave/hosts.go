package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/hosts"
	"ringwave/radio/boards"
)

// hostVersion is what all hosts of a bench must have alike.
func hostVersion() string { return strings.Join(strings.Split(versionText(), "\n")[:2], ", ") }

func newServeCommand() *cobra.Command {
	var flags configFlags
	var out, resume string
	var o hosts.BenchOptions
	cmd := &cobra.Command{
		Use: "serve CONFIG",
		Example: `  ringwave serve hw-configs/hosts.toml --bench bench
  ringwave serve hw-configs/hosts.toml --bench bench --join tls://10.0.0.2:4222
  ringwave serve --resume runs/20261120T125703Z-hosts --bench bench`,
		Short: "Lead a run whose devices are on other hosts",
		Long: `Run an experiment as run does, with its devices in processes of their own, on
this host or others (ringwave device). The bench is a folder that ringwave
enroll has made. The message bus is part of this program, unless --join names
a nats-server with the nats-server.conf of the bench.

The server never has a device's samples, losses or key. metrics.csv has what a
server can know; records.bin has the signed M of each round, from which devices
that come late or again replay. The channel is simulated here unless
--air=false leaves it to ringwave air.

A round takes at least devices.minimum devices, by default all; the server waits
for them, and goes on without a device that does not answer within --deadline.
Of servers with one identity, as of a copied folder, the one that leads goes on
and others are refused. Ctrl-C finishes the round; --resume goes on. Exit
statuses are those of run.`,
		Args: configOrResume(&resume),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Version = hostVersion()
			if resume != "" {
				return serve(cmd, o, &flags, func(ctx context.Context, l experiment.Lab, watch experiment.Observer) (experiment.Result, error) {
					return l.Resume(ctx, resume, watch)
				})
			}
			c, err := flags.load(cmd, args[0])
			if err != nil {
				return err
			}
			return serve(cmd, o, &flags, func(ctx context.Context, l experiment.Lab, watch experiment.Observer) (experiment.Result, error) {
				e, err := l.New(c)
				if err != nil {
					return experiment.Result{}, err
				}
				return e.Run(ctx, out, watch)
			})
		},
	}
	flags.add(cmd)
	flags.watch.Add(cmd)
	f := cmd.Flags()
	benchFlags(cmd, &o, "bench")
	f.BoolVar(&o.Air, "air", true, "simulate the channel here")
	f.DurationVar(&o.Deadline, "deadline", 20*time.Second, "how long a step may take a device before the round goes on without it")
	f.DurationVar(&o.Silence, "silence", 5*time.Second, "how long a device may say nothing before it counts as lost")
	f.StringVar(&out, "out", "", "the run's folder, new or empty (default runs/<utc>-<name>)")
	f.StringVar(&resume, "resume", "", "go on with the run in this folder")
	return cmd
}

// benchFlags are those by which a command leads a bench.
func benchFlags(cmd *cobra.Command, o *hosts.BenchOptions, folder string) {
	f := cmd.Flags()
	f.StringVar(&o.Folder, "bench", folder, "the folder of the bench of other hosts, which ringwave enroll has made")
	f.StringVar(&o.Listen, "listen", "", "where the bus listens, as host:port (default the port of the bench's URL)")
	f.StringVar(&o.URL, "join", "", "a nats-server in place of the bus of this program")
}

// serve runs an experiment over a bench.
func serve(cmd *cobra.Command, o hosts.BenchOptions, flags *configFlags, run func(context.Context, experiment.Lab, experiment.Observer) (experiment.Result, error)) (err error) {
	l, err := flags.listener(cmd)
	if err != nil {
		return err
	}
	defer l.page.Close()
	o.Say, l.resume = l.say, "ringwave serve --bench "+quoted(o.Folder)+" --resume"
	bench, err := hosts.NewBench(cmd.Context(), o)
	if err != nil {
		return interrupted(err)
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	l.say("Bus: " + bench.URL())
	l.page.Hosts(bench.Attendance)
	local := lab(flags.data)
	local.Fleet, local.Radios.Drivers = bench, []boards.Driver{bench.Driver()}
	result, err := run(cmd.Context(), local, l.observer())
	if errors.Is(err, experiment.ErrInterrupted) && l.progress == nil {
		return err
	}
	return l.report(cmd, result, err, flags.json)
}

func newDeviceCommand() *cobra.Command {
	var o hosts.DeviceOptions
	var data string
	cmd := &cobra.Command{
		Use: "device IDENTITY...",
		Example: `  ringwave device device-001.identity --data /data
  ringwave device bench/device-*.identity --data /data
  ringwave device device-002.identity --join tls://10.0.0.5:4222 --stay
  ringwave device device-003.identity --own --set task.train_images=mine
  ringwave device device-004.identity --radio hackrf: --set radio.transmit=true`,
		Short: "Be a device of a bench of many hosts",
		Long: `Take part in the run of a server (ringwave serve) as the device of an identity
file. The samples are this device's part of the run's data set, or with --own
all of the files that --set names; neither they nor the losses leave this
process. Its key is drawn anew each time it begins. A device that comes late or
returns replays what it has missed, or where that are more than --replay-rounds
takes the model from a checkpoint, whose digest the server's signed record has.

With several identities this process is several devices, each with its own key,
journal and connection; the data set is loaded once for all.

Below --state there is a folder a run and device: shares.journal, the
decryption shares that the device has given, without which it would answer
twice, and device.csv, its own losses and scalars.

A server says every second that it is there. After --silence without a word the
device lets go of its key and waits for the server to come back, as one that is
begun anew; after --patience it ends with status 1, unless it is to --stay.

A run whose secrets come from its seed (encryption.randomness = "seed") protects
nothing: a device takes part in it with --secrets-from-seed only.

Over radios (radio.transmitters of host:1, host:2, ...) this host's is the one
that --radio names, and it sends what --set radio.transmit=true, radio.band_hz
and radio.most_gain_db, all three, allow on this host, in runs and calibrations.
So does radio.bias_tee=true allow a URI with bias=on.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly(1, "one IDENTITY file or several")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Lab, o.Version = lab(data), hostVersion()
			s := console.NewSpeaker(console.New(cmd))
			o.Say = s.Say
			o.Round = func(k, rounds int, loss float64) {
				text := fmt.Sprintf("own loss %.4g", loss)
				if len(args) > 1 {
					text = fmt.Sprintf("as %d devices", len(args))
				}
				s.Round(k, rounds, text)
			}
			err := hosts.RunDevices(cmd.Context(), o, args)
			s.Stop()
			return interrupted(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "join", "", "where the bus is (default the URL of the identity)")
	addData(f, &data)
	f.BoolVar(&o.Own, "own", false, "all training samples of the files are this device's")
	f.StringArrayVar(&o.Set, "set", nil, "override a key of [task], or what may be sent, for this device, as section.key=value (may be given several times)")
	f.StringVar(&o.Radio, "radio", "", "URI of this host's radio, for runs over radios")
	f.StringVar(&o.State, "state", "device-state", "folder of what the device must remember")
	f.BoolVar(&o.SeedSecrets, "secrets-from-seed", false, "allow runs whose secrets come from their seed and protect nothing")
	f.BoolVar(&o.Stay, "stay", false, "wait for the next run when one has ended, and for a server without end")
	f.IntVar(&o.ReplayRounds, "replay-rounds", 10_000, "how many rounds the device replays; where it lacks more it takes a checkpoint of the model; 0 for all")
	f.DurationVar(&o.Silence, "silence", time.Minute, "how long the server may say nothing before the device waits for another; 0 for without end")
	f.DurationVar(&o.Patience, "patience", 10*time.Minute, "how long the device waits for a server; 0 for without end")
	return cmd
}

func newAirCommand() *cobra.Command {
	var flags configFlags
	var o hosts.AirOptions
	cmd := &cobra.Command{
		Use:     "air CONFIG",
		Example: `  ringwave air hw-configs/hosts.toml --identity bench/air.identity`,
		Short:   "Simulate the channel of a bench of many hosts in a process of its own",
		Long: `Superpose what devices send, with the gains of CONFIG, which must be the run's,
and give it to the server: what the air is on a real bench. It knows no secret
of devices or server. ringwave serve does the same by itself unless --air=false.
It ends with Ctrl-C.`,
		Args: exactly(1, "one CONFIG file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.load(cmd, args[0])
			if err != nil {
				return err
			}
			console := console.New(cmd)
			o.Say = func(text string) { console.Say("%s", text) }
			return interrupted(hosts.RunAir(cmd.Context(), lab(""), c, o))
		},
	}
	f := cmd.Flags()
	flags.addConfig(f)
	f.StringVar(&o.Identity, "identity", "bench/air.identity", "the air's identity")
	f.StringVar(&o.URL, "join", "", "where the bus is (default the URL of the identity)")
	f.StringVar(&o.Out, "out", "", "file for the gains of each round (CSV); none unless set")
	return cmd
}

func newHostsCommand() *cobra.Command {
	var o hosts.ObserverOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "hosts",
		Example: `  ringwave hosts
  ringwave hosts --identity observer.identity --join tls://10.0.0.5:4222 --json`,
		Short: "List the devices of a bench of many hosts, and how each is",
		Long: `Ask the server of a bench who is there: state, host, version, clock offset, data
digest, samples, radio, and when each was heard last. The clock offset is that
of a message's arrival: the way on the network included.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := hosts.Ask(cmd.Context(), o)
			if err != nil {
				return interrupted(err)
			}
			return show(cmd.OutOrStdout(), asJSON, a, a.WriteText)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Identity, "identity", "bench/observer.identity", "the observer's identity")
	f.StringVar(&o.URL, "join", "", "where the bus is (default the URL of the identity)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
