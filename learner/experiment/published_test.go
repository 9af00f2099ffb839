package experiment

import (
	"strings"
	"testing"

	"ringwave/learner/dataset"
)

// Of CIFAR-10 only the archive's checksum is published: files of the right size that
// nothing vouches for are not called wrong, nor published.
func TestUnpublished(t *testing.T) {
	for _, x := range []struct {
		name  string
		files []dataset.File
		want  string
	}{
		{"mnist", []dataset.File{{Published: true}, {Published: true}}, ""},
		{"mnist", []dataset.File{{Published: true}, {Path: "/a/b", Differs: "size"}}, "are not the published ones (1 of 2 differ; b: size)"},
		{"cifar10", []dataset.File{{Published: true}, {}}, "are not known to be the published ones"},
		{"idx", []dataset.File{{}, {}}, ""},
		{"strokes", nil, ""},
	} {
		got := (&Task{Name: x.name, Files: x.files}).Unpublished()
		if (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s %+v: %q, want %q", x.name, x.files, got, x.want)
		}
	}
}
