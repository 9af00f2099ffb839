package experiment

import (
	"path/filepath"
	"time"

	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/radio/intake"
)

// readLinkStats returns the channel statistics that the run uses: of the calibration in
// dir, where that is a run folder, or else of what the configuration names. They are nil
// where the run uses those of its simulation.
func (s *Experiment) readLinkStats(dir string) (*uplink.LinkStats, error) {
	path := s.Config.Calibration.File
	if path == "" {
		return uplink.AssumedLinkStats(s.Config, s.root, s.Channel)
	}
	now := time.Now()
	if dir != "" {
		path = filepath.Join(dir, runfolder.CalibrationName)
	}
	stats, err := uplink.ReadLinkStats(path, s.Config, s.root)
	if err != nil || s.Config.OverRadios() {
		return stats, err // matched once they are open
	}
	if dir != "" {
		now = stats.File.Created // it was valid when the run began, and the bench stays as it is
	}
	want := setup.SimulatedBench(s.Config, s.root)
	want.Now = now
	return stats, intake.UserError(stats.Match(want, s.Config.Calibration.QuickBlocks))
}

// keepCalibration puts the calibration that the run goes by into its folder.
func (s *Experiment) keepCalibration() error {
	if s.known == nil || s.known.File == nil {
		return nil
	}
	return s.folder.WriteAtomic(runfolder.CalibrationName, s.known.File.Text())
}
