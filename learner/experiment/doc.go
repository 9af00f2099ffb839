// Package experiment runs the experiments of the paper, and those of others.
//
// It takes in a Config, as hw-configs has them as files, and gives a run: its folder with
// configuration, manifest, metrics, summary and plots, which a later sitting can resume;
// a plan of what a run will need and give; and a calibration of the run's bench. A Lab
// makes experiments of systems, models, data sets and radios, those of this module and
// one's own:
//
//	cfg, err := experiment.Load("hw-configs/loopback.toml", "optimizer.rounds=100")
//	e, err := experiment.New(cfg)
//	result, err := e.Run(ctx, "", experiment.Observer{})
//
// What stands below it: config has the keys and what they may be, setup what they stand
// for in the terms of radio, phy and crypto, uplink the links that carry a round, runfolder
// the files and chart the plots. It prints nothing and knows of no command line: an
// Observer hears of a run. What the user can mend is marked by intake.UserError.
package experiment
