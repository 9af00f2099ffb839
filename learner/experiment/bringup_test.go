package experiment

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/calibration/bringup"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio"
)

// packed returns the files of an archive.
func packed(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, pack := map[string]string{}, tar.NewReader(zip)
	for {
		h, err := pack.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(pack)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// What is to be sent back has what helps, and neither folders of the user's nor the seed from
// which keys may come.
func TestArchiveGivesNothingAway(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	c, err := Load(experimenttest.VirtualBenchConfig, "experiment.seed=987654321", "calibration.file="+filepath.Join(home, "secret", "calibration.toml"), "link.regime=blind")
	if err != nil {
		t.Fatal(err)
	}
	nobody := Radios{Registry: func(context.Context, radio.TransmitPermit) (*radio.Registry, error) {
		return nil, errors.New("reading " + filepath.Join(home, "rules") + ": it is not there")
	}}
	u, err := Lab{Radios: nobody}.NewBringUp(c, BringUpOptions{Steps: []string{"boards", "silence"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "out")
	r, err := u.Run(t.Context(), dir, bringup.Observer{})
	if err != nil || r.Passed || len(r.Results) != 2 || r.Results[0].Verdict != bringup.Fail || r.Results[1].Verdict != bringup.Skipped {
		t.Fatalf("%v, %+v", err, r)
	}
	files := packed(t, filepath.Join(dir, BringUpArchiveName))
	for _, name := range []string{"config.toml", "results.json", "report.html", "versions.json"} {
		if files["bringup/"+name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	for name, text := range files {
		if strings.Contains(text, home) || strings.Contains(text, "987654321") {
			t.Errorf("%s names the user's home or the seed:\n%s", name, text)
		}
	}
	if !strings.Contains(files["bringup/config.toml"], `file = "calibration.toml"`) || !strings.Contains(files["bringup/results.json"], "~/rules") {
		t.Errorf("%s\n%s", files["bringup/config.toml"], files["bringup/results.json"])
	}
}

// Samples and spectra of a step that failed are packed and drawn.
func TestFilesOfAStep(t *testing.T) {
	c, err := Load(experimenttest.VirtualBenchConfig)
	if err != nil {
		t.Fatal(err)
	}
	u, err := Lab{}.NewBringUp(c, BringUpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &bringup.Spectrum{Name: "transmitter 1", Rate: 2e6, Centre: 433e6, Power: make([]float64, 4096), Lines: []bringup.Line{{Name: "tone", Frequency: 1e5, Power: 0.1}}}
	s.Levels[3] = 1
	out := BringUpResult{Results: []bringup.Result{
		{Step: "levels", Title: "levels", Verdict: bringup.Fail, Spectra: []*bringup.Spectrum{s},
			Recordings: []bringup.Recording{{Name: "transmitter 1 tone", Rate: 2e6, Samples: []complex64{1, 1i}}}},
		{Step: "images", Title: "images", Verdict: bringup.OK, Spectra: []*bringup.Spectrum{s}},
		{Step: "starts", Title: "starts", Verdict: bringup.OK, Delays: [][]float64{{0, 1}, {0, 2}}},
	}}
	if u.folder, err = runfolder.Create(filepath.Join(t.TempDir(), "b")); err != nil {
		t.Fatal(err)
	}
	defer u.folder.Close()
	if err := u.write(&out, time.Now()); err != nil {
		t.Fatal(err)
	}
	files := packed(t, filepath.Join(u.folder.Path(), BringUpArchiveName))
	if got := files["bringup/iq/levels-transmitter-1-tone.cf32"]; len(got) != 16 {
		t.Errorf("%d bytes of samples", len(got))
	}
	drawn, err := filepath.Glob(filepath.Join(u.folder.Path(), "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range drawn {
		drawn[i] = filepath.Base(name)
	}
	if want := []string{"images-1.png", "levels.png", "starts.png"}; !slices.Equal(drawn, want) {
		t.Errorf("drawn: %q", drawn)
	}
}
