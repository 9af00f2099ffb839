package experiment

import (
	"path/filepath"
	"time"

	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/radio/intake"
)

// know reads what the run goes by: from dir, where it is a run folder, or from where the
// configuration says. nil stands for all that the simulation knows.
func (s *Experiment) know(dir string) (*uplink.LinkStats, error) {
	path := s.Config.Calibration.File
	if path == "" {
		return uplink.AssumedLinkStats(s.Config, s.root, s.Channel)
	}
	now := time.Now()
	if dir != "" {
		path = filepath.Join(dir, runfolder.CalibrationName)
	}
	k, err := uplink.ReadLinkStats(path, s.Config, s.root)
	if err != nil || s.Config.OverRadios() {
		return k, err // matched once they are open
	}
	if dir != "" {
		now = k.File.Created // it was valid when the run began, and the bench stays as it is
	}
	want := setup.SimulatedBench(s.Config, s.root)
	want.Now = now
	return k, intake.UserError(k.Match(want, s.Config.Calibration.QuickBlocks))
}

// keepCalibration puts the calibration that the run goes by into its folder.
func (s *Experiment) keepCalibration() error {
	if s.known == nil || s.known.File == nil {
		return nil
	}
	return s.folder.WriteAtomic(runfolder.CalibrationName, s.known.File.Text())
}
