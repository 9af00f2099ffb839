package outside_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/phy/outside"
)

// recorded runs a round of a configuration and gives the name of its recording.
func recorded(t *testing.T, file string, sets ...string) string {
	t.Helper()
	cfg, err := experiment.Load("../../hw-configs/"+file, append([]string{
		"task.dataset=strokes", "task.strokes_train=400", "task.strokes_test=200", "optimizer.rounds=1", "link.record=cf32_le",
	}, sets...)...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := e.Run(context.Background(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "iq", "round-*.sigmf-meta"))
	if err != nil || len(names) != 1 {
		t.Fatalf("recordings %v: %v", names, err)
	}
	return strings.TrimSuffix(names[0], ".sigmf-meta")
}

// Whoever has phy/README.md and a recording finds every frame in it, reads its header, and
// gets the very elements that the server got, by the digest in the metadata, without the
// secret of the checks.
func TestOutsiderDecodes(t *testing.T) {
	const waveform, aligned = "waveform-mnist.toml", "waveform-aligned.toml"
	for _, c := range []struct {
		name, file string
		frames     int // of a round
		sets       []string
	}{
		{"emulated", waveform, 4, []string{"channel.gains=lattice", "channel.gain_lattice_bits=2", "link.snr_db=50"}},
		{"blind", waveform, 4, nil},
		{"blind, both signs", waveform, 4, []string{"channel.std=1", "link.snr_db=50"}},
		{"blind, two groups, integers", waveform, 8, []string{"devices.count=5", "link.group_size=3", "link.record=ci16_le"}},
		{"blind, base 7, retried", waveform, 10, []string{"link.base=7", "link.snr_db=62", "link.delay_spread_samples=0", "link.max_alpha=6"}},
		{"blind, repeated", waveform, 6, []string{"link.snr_db=20", "devices.count=2", "link.frame_repeats=5"}},
		{"blind, four devices", waveform, 4, []string{"devices.count=4", "link.snr_db=52", "link.delay_spread_samples=0"}},
		{"blind, base 5, long symbols", waveform, 4, []string{"link.base=5", "link.snr_db=52", "link.samples_per_symbol=16", "link.edge_samples=3", "devices.count=2"}},
		{"emulated, both signs", waveform, 4, []string{"channel.gains=lattice", "channel.gain_lattice_bits=1", "channel.std=10", "link.snr_db=60"}},
		{"eight bits", "waveform-8bit.toml", 4, []string{"link.record=ci8", "link.max_alpha=10"}},
		{"blind, primes", waveform, 4, []string{"encryption.parameter_set=ringwave-4096", "devices.count=2"}},
		{"blind, small q", waveform, 4, []string{"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "link.snr_db=50", "devices.count=2"}},
		{"root-raised-cosine", waveform, 4, []string{"link.pulse=root-raised-cosine", "link.span_symbols=24"}},
		{"mean-aligned", aligned, 4, nil},
	} {
		if testing.Short() && c.file == waveform && c.sets != nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			frames, read := decode(t, recorded(t, c.file, c.sets...))
			if frames != c.frames || read != 4 {
				t.Errorf("%d frames and %d transmissions that were read, instead of %d and 4", frames, read, c.frames)
			}
		})
	}
}

// decode compares a recording with its annotations, and gives the number of its frames, and
// of its transmissions that were read.
func decode(t *testing.T, name string) (frames, read int) {
	t.Helper()
	r, err := outside.ReadRecording(name)
	if err != nil {
		t.Fatal(err)
	}
	found, d, err := outside.Frames(r)
	if err != nil {
		t.Fatal(err)
	}
	var said, had []string
	for _, a := range frameAnnotations(r) {
		said = append(said, fmt.Sprintf("%d.%d %s again %d, group %d, %s", a.Round, a.Attempt, a.Phase, a.Again, a.Group, a.Comment))
	}
	for i, f := range found {
		a := frameAnnotations(r)[min(i, len(said)-1)]
		if first, window := outside.Geometry(r, f); a.Count != window || !(f.At-float64(a.Start)-first >= 7-1 && f.At-float64(a.Start)-first <= 7+2) {
			t.Errorf("a frame of %d samples, its first symbol %.2f behind its beginning: %d and %.2f, 7 and a delay of up to a sample are expected", a.Count, f.At-float64(a.Start), window, first)
		}
		if f.Run != 1 {
			t.Errorf("a frame of run %d; the seed is 1", f.Run)
		}
		had = append(had, fmt.Sprintf("%d.%d %s again %d, group %d, repeat %d", f.Round, f.Attempt, []string{"b", "c0", "c1", "D"}[f.Tx], f.Again, f.Group, f.Repeat))
	}
	if !slices.Equal(said, had) {
		t.Fatalf("frames\n%q, and the annotations say\n%q", had, said)
	}
	for _, a := range r.Meta.Annotations {
		want := outside.Want(a)
		if a.Label != "transmission" || want == "" {
			continue
		}
		read++
		if got, err := outside.Decode(d, found, a); err != nil || got != want {
			t.Errorf("round %d, %s: digest %s, the server had %s: %v", a.Round, a.Phase, got, want, err)
		}
	}
	return len(found), read
}

// frameAnnotations returns the annotations of a recording's frames.
func frameAnnotations(r *outside.Recording) (list []outside.Annotation) {
	for _, a := range r.Meta.Annotations {
		if a.Label == "frame" {
			list = append(list, a)
		}
	}
	return list
}

// The decoder is an outsider's: it imports the standard library and nothing else, and
// stands alone in its package but for the package's comment.
func TestDecoderIsAnOutsider(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	inside := 0
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "outside" {
			continue
		}
		inside++
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(path, "/")
			if first == "ringwave" || strings.Contains(first, ".") || first == "C" {
				t.Errorf("%s imports %s", name, path)
			}
		}
		if name == "doc.go" && len(f.Decls) > 0 {
			t.Errorf("%s has code", name)
		}
	}
	if inside != 2 {
		t.Errorf("%d files in package outside, expected are doc.go and the decoder", inside)
	}
	if _, err := os.Stat("decoder_test.go"); err != nil {
		t.Error(err)
	}
}
