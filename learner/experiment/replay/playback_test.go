package replay

import (
	"path/filepath"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/uplink"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// A recording is played back with what its own receiver claims.
func TestPlaybackClaimsTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	w, err := sigmf.Create(path, sigmf.Config{Datatype: sigmf.CF32, SampleRate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Record(make([]complex64, 10), radio.Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := radio.NewRegistry(map[string]radio.Opener{uplink.FileScheme: sigmf.Opener{}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.Open(t.Context(), radio.URI{Scheme: uplink.FileScheme, Name: path}.String())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := experimenttest.ClaimsOf(&playback{Receiver: rx}), experimenttest.ClaimsOf(rx); got != want {
		t.Errorf("%+v is %+v when it is played back", want, got)
	}
}
