package experiment

import (
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// No image of the training set is in the test set, whatever the data set.
func TestSetsAreDisjoint(t *testing.T) {
	experimenttest.NoData(t)
	for _, test := range []struct {
		config, dir string
		settings    []string
		train, test int
	}{
		{experimenttest.LoopbackConfig, "", []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300"}, 300, 150},
		{experimenttest.CIFARConfig, experimenttest.FewImages(t), nil, 100, 20},
	} {
		c, err := config.Load(test.config, test.settings)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := Lab{Data: test.dir}.LoadTask(c, keystream.FromInteger(1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{loaded.Train.Len(), loaded.Test.Len()}; got != [2]int{test.train, test.test} {
			t.Errorf("%s: %d training and %d test images, expected %d and %d", loaded.Name, got[0], got[1], test.train, test.test)
		}
		if i, j, shared := sharedImage(loaded.Train, loaded.Test); shared {
			t.Errorf("%s: training image %d is test image %d", loaded.Name, i, j)
		}
	}
}

// sharedImage finds an image that is in both sets.
func sharedImage(train, test *dataset.Set) (i, j int, shared bool) {
	for i := range train.Len() {
		for j := range test.Len() {
			if slices.Equal(train.Row(i), test.Row(j)) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

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
