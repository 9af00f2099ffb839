package uplink

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// LinkSecretName is the run folder's file with the secret of patterns and check
// weights, where that is not derived from the seed. Without it the run's recordings
// cannot be read, and with it anybody on the air can forge frames of this run.
const LinkSecretName = "link.secret"

// SeedLinkSecret returns the secret of patterns and check weights that the seed gives.
// Recordings of runs that kept none were made with it.
func SeedLinkSecret(root keystream.Seed) keystream.Seed { return root.Derive("public link") }

// NewLinkSecret returns the secret of a new run: that of the seed, or one from the system's
// generator where encryption.randomness is "system". Its error is that generator's.
func NewLinkSecret(c config.Config, root keystream.Seed) (keystream.Seed, error) {
	if c.Encryption.Randomness != "system" {
		return SeedLinkSecret(root), nil
	}
	secret, err := keystream.FromSystem()
	if err != nil {
		return keystream.Seed{}, err
	}
	return *secret, nil // it is in the folder, too, and opens no message
}

// KeepLinkSecret writes the secret of a new run into its folder, readable by its owner
// only, unless the seed gives it. A file that is there is an error and stays as it is.
func KeepLinkSecret(dir string, c config.Config, secret keystream.Seed) error {
	if c.Encryption.Randomness != "system" {
		return nil
	}
	path := filepath.Join(dir, LinkSecretName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keeping the secret of the checks: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(secret[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// ReadLinkSecret returns the secret of a run that began in dir. A file that is missing or
// damaged is the user's to mend (intake.UserError).
func ReadLinkSecret(dir string, c config.Config, root keystream.Seed) (s keystream.Seed, err error) {
	if c.Encryption.Randomness != "system" {
		return SeedLinkSecret(root), nil
	}
	path := filepath.Join(dir, LinkSecretName)
	data, err := intake.ReadFile(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return s, intake.UserError(fmt.Errorf("%s is missing: with encryption.randomness = \"system\" it holds the secret of patterns and checks, without which no frame of the run can be read", path))
	}
	if err != nil {
		return s, intake.PathError(fmt.Errorf("reading %s: %w", path, err))
	}
	text := strings.TrimSuffix(string(data), "\n")
	if n, err := hex.Decode(s[:], []byte(text[:min(len(text), 2*len(s))])); err != nil || n != len(s) || len(text) != 2*len(s) {
		return s, intake.UserError(fmt.Errorf("%s has %d bytes: it must have %d hexadecimal digits", path, len(data), 2*len(s)))
	}
	return s, nil
}
