package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/radio/intake"
)

// Extend goes on with the run of a folder, to so many rounds in place of those that it
// began with. Its first rounds are those of the longer run, but that the last of them was
// evaluated. It is refused where they would not be: see extended.
func (l Lab) Extend(ctx context.Context, dir string, rounds int, o Observer) (Result, error) {
	s, err := resumeSession(ctx, l, dir, rounds, o)
	if err != nil {
		return Result{Dir: dir}, err
	}
	return s.run(ctx)
}

// extended returns the configuration of a folder with more rounds. Where a step or the
// flooding of shares was made for a number of rounds, those that have been are not of a
// longer run, and it is refused.
func extended(lab Lab, folder *runfolder.Folder, c config.Config, rounds int) (config.Config, error) {
	refuse := func(format string, args ...any) (config.Config, error) {
		return c, intake.UserError(fmt.Errorf("%s cannot be extended to %d rounds: %s", folder.Path(), rounds, fmt.Sprintf(format, args...)))
	}
	longer := c
	longer.Optimizer.Rounds = rounds
	if err := longer.With(lab.names()).Check(); err != nil {
		return c, intake.UserError(err)
	}
	switch before := c.Optimizer.Rounds; {
	case rounds < before:
		return refuse("it has %d, and none is taken back", before)
	case rounds == before:
		if at, err := runfolder.Look(folder.Path(), before); err == nil && at.Round == before {
			return refuse("it has them")
		}
		return c, nil // stopped on its way there
	case c.Optimizer.NeedsRounds():
		return refuse("the steps of optimizer.step_law = %q are of all %d rounds, so that those of the first would have been others", c.Optimizer.StepLaw, before)
	case c.System().Encrypts:
		same, why, err := sameProtection(lab, folder.Path(), c, longer)
		if err != nil {
			return c, err
		}
		if !same {
			return refuse("%s; with encryption.key_epoch_rounds a new run can be extended by whole keys", why)
		}
	}
	return longer, nil
}

// sameProtection reports whether ciphertexts and shares are the same in the longer run,
// and flooded to the same promise, and says why not.
func sameProtection(lab Lab, dir string, c, longer config.Config) (same bool, why string, err error) {
	s := &Experiment{lab: lab, Config: c.With(lab.names())}
	s.root = rootOf(c)
	if s.Channel, err = setup.NewChannel(s.Config, s.root); err != nil {
		return false, "", err
	}
	if s.known, err = s.readLinkStats(dir); err != nil {
		return false, "", err
	}
	is, err := setup.NewDesign(s.Config, s.links())
	if err != nil {
		return false, "", err
	}
	wants, err := setup.NewDesign(longer.With(lab.names()), s.links())
	if err != nil {
		return false, "", err
	}
	shares := wants.Link.Shares
	wants.Link.Shares = is.Link.Shares
	if reflect.DeepEqual(is, wants) {
		return true, "", nil
	}
	return false, fmt.Sprintf("its decryption shares are flooded for %d of one key, and %d would be given", is.Link.Shares, shares), nil
}

// keepExtension writes down that the run has other rounds than it began with, in an order
// in which it can be resumed wherever it is broken off: a checkpoint of the shorter run is
// known by the manifest.
func (s *Experiment) keepExtension(from config.Config) error {
	m, err := s.folder.ReadManifest()
	if err != nil {
		return intake.PathError(err)
	}
	before, err := from.Digest()
	if err != nil {
		return err
	}
	if e := (runfolder.Extension{Rounds: from.Optimizer.Rounds, ConfigDigest: before}); !slices.Contains(m.Extended, e) {
		m.Extended = append(m.Extended, e) // else an extension was broken off
	}
	m.ConfigDigest = s.digest
	if err := s.keepShorter(); err != nil {
		return err
	}
	if err := s.folder.WriteManifest(m); err != nil {
		return intake.PathError(err)
	}
	encoded, err := s.Config.Encode()
	if err != nil {
		return err
	}
	if err := s.folder.WriteAtomic(runfolder.ConfigName, encoded); err != nil {
		return intake.PathError(err)
	}
	return intake.PathError(s.folder.DropSummary())
}

// keepShorter keeps what an extension changes of the folder.
func (s *Experiment) keepShorter() error {
	s.shorter = map[string][]byte{}
	for _, name := range []string{runfolder.ManifestName, runfolder.ConfigName, runfolder.SummaryName} {
		data, err := os.ReadFile(filepath.Join(s.folder.Path(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a run that was stopped has no summary
		}
		if err != nil {
			return intake.PathError(fmt.Errorf("keeping what is extended: %w", err))
		}
		s.shorter[name] = data
	}
	return nil
}

// undoExtension puts the folder back to what it was, where a run could not go on and its
// checkpoint is the shorter run's.
func (s *Experiment) undoExtension() error {
	if s.shorter == nil {
		return nil
	}
	if point, err := s.folder.LoadCheckpoint(); err != nil || point.ConfigDigest == s.digest {
		return nil // the extension has begun
	}
	var errs []error
	for _, name := range []string{runfolder.ConfigName, runfolder.ManifestName, runfolder.SummaryName} {
		if data, ok := s.shorter[name]; ok {
			errs = append(errs, s.folder.WriteAtomic(name, data))
		}
	}
	return errors.Join(errs...)
}

// readFormerEnds takes from the manifest which rounds were the last before extensions.
func (s *Experiment) readFormerEnds() error {
	m, err := s.folder.ReadManifest()
	if err != nil {
		return intake.PathError(err)
	}
	for _, e := range m.Extended {
		s.formerEnds = append(s.formerEnds, e.Rounds)
	}
	return nil
}

// sameRun refuses a checkpoint of another configuration than the folder's, or than one
// that was extended to it.
func (s *Experiment) sameRun(point runfolder.Checkpoint) error {
	if s.digest == point.ConfigDigest {
		return nil
	}
	if s.extends != nil {
		if before, err := s.extends.Digest(); err != nil || before == point.ConfigDigest {
			return err
		}
	}
	m, err := s.folder.ReadManifest()
	if err != nil {
		return intake.PathError(err)
	}
	shorter := func(e runfolder.Extension) bool {
		return e.ConfigDigest == point.ConfigDigest && e.Rounds < s.Config.Optimizer.Rounds
	}
	if m.ConfigDigest == s.digest && slices.ContainsFunc(m.Extended, shorter) {
		return nil
	}
	return intake.UserError(fmt.Errorf("%s: the checkpoint belongs to another configuration (digest %.16s…, that of %s is %.16s…), or to a version of the program with other settings: restore the file, or go on with that version, or start a new run",
		filepath.Join(s.folder.Path(), runfolder.CheckpointName), point.ConfigDigest, runfolder.ConfigName, s.digest))
}
