package runfolder

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"ringwave/radio/intake"
)

// Manifest is what a run was made of: manifest.json. It names no host and no
// absolute path, so that a run folder can be given away.
type Manifest struct {
	Program      Module            `json:"program"`
	Revision     string            `json:"revision"` // of the version control; empty if the build had none
	Modified     bool              `json:"modified"` // built from files that differ from Revision
	Go           string            `json:"go"`
	OS           string            `json:"os"`
	Arch         string            `json:"arch"`
	CPUs         int               `json:"cpus"`
	Dependencies []Module          `json:"dependencies"`
	Started      time.Time         `json:"started"` // UTC
	ConfigDigest Digest            `json:"config_digest"`
	Seeds        map[string]uint64 `json:"seeds"` // by what they seed
	Data         []DataFile        `json:"data"`
	Calibration  string            `json:"calibration"` // file, relative; empty where none was used

	// Modulus is q in decimal digits and Primes its factors, of runs that encrypt;
	// manifests of before these were kept have neither.
	Modulus string   `json:"modulus,omitempty"`
	Primes  []uint64 `json:"primes,omitempty"`

	// Extended is what the run was before it was given more rounds, first to last.
	Extended []Extension `json:"extended,omitempty"`
}

// Extension is the configuration of a run before it was given more rounds.
type Extension struct {
	Rounds       int    `json:"rounds"`
	ConfigDigest Digest `json:"config_digest"`
}

// Module is a Go module of the program and its version; Sum is its checksum as
// in go.sum, empty for the program itself and for local replacements.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// DataFile is a file that a run read.
type DataFile struct {
	Name   string `json:"name"` // base name
	Bytes  int64  `json:"bytes"`
	SHA256 Digest `json:"sha256"`
}

// NewManifest returns a manifest of this program and this machine. The caller
// adds ConfigDigest, Seeds, Data, Calibration, Modulus and Primes.
func NewManifest(started time.Time) Manifest {
	m := Manifest{
		Go:           runtime.Version(),
		OS:           runtime.GOOS,
		Arch:         runtime.GOARCH,
		CPUs:         runtime.NumCPU(),
		Dependencies: []Module{},
		Started:      started.UTC().Truncate(time.Millisecond),
		Seeds:        map[string]uint64{},
		Data:         []DataFile{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	m.Revision = "unknown: the program was built without version control information"
	m.Program = Module{Path: info.Main.Path, Version: info.Main.Version}
	for _, d := range info.Deps {
		m.Dependencies = append(m.Dependencies, moduleOf(d))
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			m.Revision = s.Value
		case "vcs.modified":
			m.Modified = s.Value == "true"
		}
	}
	return m
}

func moduleOf(d *debug.Module) Module {
	if d.Replace == nil {
		return Module{Path: d.Path, Version: d.Version, Sum: d.Sum}
	}
	// Without a version the replacement is a folder, whose path stays here.
	if d.Replace.Version == "" {
		return Module{Path: d.Path, Version: d.Version + " (replaced by a local folder)"}
	}
	return Module{Path: d.Replace.Path, Version: d.Replace.Version, Sum: d.Replace.Sum}
}

// WriteManifest replaces manifest.json, atomically. It is an error if a data
// file or the calibration is named by an absolute path.
func (f *Folder) WriteManifest(m Manifest) error {
	for i, d := range m.Data {
		if absolute(d.Name) {
			return fmt.Errorf("writing %s: data[%d].name is the absolute path %s, but must be a file's name alone", f.file(ManifestName), i, d.Name)
		}
	}
	if absolute(m.Calibration) {
		return fmt.Errorf("writing %s: calibration is the absolute path %s, but must be a relative one", f.file(ManifestName), m.Calibration)
	}
	return f.writeJSON(ManifestName, m)
}

func absolute(path string) bool {
	return filepath.IsAbs(path) || strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`)
}

// ReadManifest reads the folder's manifest.json.
func (f *Folder) ReadManifest() (Manifest, error) { return ReadManifest(f.file(ManifestName)) }

// ReadManifest reads the manifest at path.
func ReadManifest(path string) (Manifest, error) {
	data, err := intake.ReadFile(path, maxJSON)
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: reading the manifest: %w", path, intake.Cause(err))
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: the manifest is no valid JSON: %w", path, jsonCause(err, data))
	}
	if err := intake.CheckJSON("the manifest", data, jsonLimits()); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
