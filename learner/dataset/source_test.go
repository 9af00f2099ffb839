package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/crypto/keystream"
)

// writeTask writes a small task of 2 x 2 images: 6 training and 3 test samples.
func writeTask(t *testing.T, dir string) Paths {
	t.Helper()
	p := Paths{
		TrainImages: filepath.Join(dir, "train-images"), TrainLabels: filepath.Join(dir, "train-labels"),
		TestImages: filepath.Join(dir, "test-images"), TestLabels: filepath.Join(dir, "test-labels"),
	}
	var pixels []uint8
	for i := range 24 {
		pixels = append(pixels, uint8(10*i))
	}
	write(t, p.TrainImages, gzipped(t, idxBytes([]int{6, 2, 2}, pixels)))
	write(t, p.TrainLabels, idxBytes([]int{6}, []uint8{3, 7, 1, 7, 3, 3}))
	write(t, p.TestImages, idxBytes([]int{3, 2, 2}, pixels[:12]))
	write(t, p.TestLabels, idxBytes([]int{3}, []uint8{7, 0, 3}))
	return p
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBinaryFromFiles(t *testing.T) {
	paths := writeTask(t, t.TempDir())
	task, err := Source{Paths: paths}.Load([]int{7, 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint8{1, 0, 0, 1, 1}; !slices.Equal(task.Train.Y, want) {
		t.Errorf("training classes are %v, want %v", task.Train.Y, want)
	}
	if got, want := task.Train.Row(2), []float64{120. / 255, 130. / 255, 140. / 255, 150. / 255}; !slices.Equal(got, want) {
		t.Errorf("row 2 is %v, want %v", got, want)
	}
	if !slices.Equal(task.Test.Y, []uint8{0, 1}) || !slices.Equal(task.Test.Classes, []string{"7", "3"}) {
		t.Errorf("the test set is %+v", task.Test)
	}
	if len(task.Files) != 4 || task.Files[0].Published || len(task.Files[0].SHA256) != 64 {
		t.Errorf("the files are %+v", task.Files)
	}
	if info, _ := os.Stat(paths.TrainImages); task.Files[0].Bytes != info.Size() {
		t.Errorf("the training images have %d bytes, want %d", task.Files[0].Bytes, info.Size())
	}
}

func TestBinaryErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, p *Paths)
		classes []int
		want    string
	}{
		"same class":       {nil, []int{3, 3}, "3 is given twice"},
		"class range":      {nil, []int{3, 256}, "256 is no class of this set; allowed is 0 to 255"},
		"class absent":     {nil, []int{3, 9}, "train-labels: the number of samples of class 9 is 0; allowed is 1 or more"},
		"absent from test": {nil, []int{3, 1}, "test-labels: the number of samples of class 1 is 0"},
		"swapped files": {func(t *testing.T, p *Paths) { p.TrainImages, p.TrainLabels = p.TrainLabels, p.TrainImages }, []int{3, 7},
			"train-images: the content is images, a number for each of them, of their rows and of their columns (3 in byte 3 of the file); allowed is labels, a number each (1 in byte 3 of the file)"},
		"label count": {func(t *testing.T, p *Paths) { write(t, p.TrainLabels, idxBytes([]int{2}, []uint8{3, 7})) }, []int{3, 7},
			"train-labels: the number of labels is 2; allowed is 6, the number of images in"},
		"image sizes": {func(t *testing.T, p *Paths) { write(t, p.TestImages, idxBytes([]int{3, 1, 2}, make([]uint8, 6))) }, []int{3, 7},
			"test-images: the size of an image is 1 x 2; allowed is 2 x 2, that of"},
		"no file": {func(t *testing.T, p *Paths) { p.TestLabels += "x" }, []int{3, 7}, "test-labelsx"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := writeTask(t, t.TempDir())
			if c.spoil != nil {
				c.spoil(t, &paths)
			}
			_, err := Source{Paths: paths}.Load(c.classes)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestVerify has files of MNIST's names with other content, some of which does
// not even parse: the checksum is what must be named.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	for _, f := range MNIST().Files {
		write(t, filepath.Join(dir, f.Name), []byte("not idx"))
	}
	source, err := Find("mnist", []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	source.Verify = true
	_, err = source.Load([]int{0, 1})
	var sum *ChecksumError
	if !errors.As(err, &sum) || !strings.Contains(err.Error(), sum.Got) || !strings.Contains(err.Error(), MNIST().Files[1].SHA256) {
		t.Errorf("got %v, want both checksums", err)
	}
	source.Verify = false
	var format *FormatError
	if _, err = source.Load([]int{0, 1}); !errors.As(err, &format) {
		t.Errorf("got %v, want a FormatError", err)
	}
	if _, err = (Source{Verify: true}).Load([]int{0, 1}); err == nil {
		t.Error("verifying files of no published checksum gave no error")
	}
}

func TestFind(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	files := MNIST().Files
	write(t, filepath.Join(first, files[0].Name), nil)
	if err := os.Mkdir(filepath.Join(second, "mnist"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files[:3] {
		write(t, filepath.Join(second, "mnist", f.Name), nil)
	}
	_, err := Find("mnist", []string{first, second})
	var missing *MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want a MissingError", err)
	}
	if len(missing.Looked) != 2 || !slices.Equal(missing.Looked[1].Files, []string{files[3].Name}) || len(missing.Looked[0].Files) != 3 {
		t.Errorf("got %+v", missing.Looked)
	}
	for _, want := range []string{first, filepath.Join(second, "mnist"), files[3].Name, "`ringwave data fetch mnist`"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	write(t, filepath.Join(second, files[3].Name), nil)
	source, err := Find("mnist", []string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	if source.Root != second || source.Paths.TestLabels != filepath.Join(second, files[3].Name) {
		t.Errorf("got %+v", source)
	}
	if _, err := Find("mnist", nil); err == nil {
		t.Error("no folder gave no error")
	}
	if _, err := Find("minst", []string{second}); err == nil || !strings.Contains(err.Error(), `"minst" is not known; allowed is mnist`) {
		t.Errorf("got %v", err)
	}
}

func TestMNIST(t *testing.T) {
	root := os.Getenv("RINGWAVE_DATA")
	if root == "" {
		t.Skip("RINGWAVE_DATA not set: it names the folder with the MNIST files")
	}
	source, err := Find("mnist", []string{root})
	if err != nil {
		t.Fatal(err)
	}
	source.Verify = true
	start := time.Now()
	task, err := source.Load([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("loading MNIST 0 against 1 took %v", time.Since(start))
	if task.Train.Len() != 12665 || task.Test.Len() != 2115 || task.Train.Dim != 784 {
		t.Errorf("got %d training and %d test samples of %d features", task.Train.Len(), task.Test.Len(), task.Train.Dim)
	}
	for _, f := range task.Files {
		if !f.Published || f.Differs != "" {
			t.Errorf("%s is not the published file", f.Path)
		}
	}
}

func TestSetChoose(t *testing.T) {
	_, set, err := Strokes(keystream.FromInteger(1), 4, 10)
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Choose([]int{3, 0})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Y, []uint8{1, 0, 1, 0, 1}) || !slices.Equal(got.Classes, []string{"zigzag", "ring"}) {
		t.Errorf("got classes %v named %v", got.Y, got.Classes)
	}
	if !slices.Equal(got.Row(1), set.Row(3)) {
		t.Error("sample 1 is not sample 3 of the whole set")
	}
	if got, err = set.Choose([]int{2, 3, 1}); err != nil || !slices.Equal(got.Y, []uint8{2, 0, 1, 2, 0, 1, 2}[:got.Len()]) || got.Len() != 7 || !slices.Equal(got.Classes, []string{"cross", "zigzag", "bar"}) {
		t.Errorf("three classes: %v named %v, %v", got.Y, got.Classes, err)
	}
	for _, classes := range [][]int{{0, 4}, {-1, 0}, {2, 2}, {0, 1, 2, 0}, {1}, nil} {
		if _, err := set.Choose(classes); err == nil {
			t.Errorf("classes %v gave no error", classes)
		}
	}
	three := &Set{X: make([]float64, 2), Y: []uint8{0, 2}, Dim: 1, Shape: []int{1}, Classes: []string{"a", "b", "c"}}
	if _, err := three.Choose([]int{0, 1}); err == nil || !strings.Contains(err.Error(), "no sample of class 1 (b)") {
		t.Errorf("got %v", err)
	}
}

// Of a part only its files are opened: a device has no test files, and a server no
// training files.
func TestOnlyAPart(t *testing.T) {
	paths := writeTask(t, t.TempDir())
	source := Source{Paths: paths}
	both, err := source.Load([]int{7, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []Part{TrainOnly, TestOnly} {
		hidden := source
		if part == TrainOnly {
			hidden.Paths.TestImages, hidden.Paths.TestLabels = "not/there", "nor/this"
		} else {
			hidden.Paths.TrainImages, hidden.Paths.TrainLabels = "not/there", "nor/this"
		}
		if _, err := hidden.Only(Whole).Load([]int{7, 3}); err == nil {
			t.Error("the whole was read of half of the files")
		}
		got, err := hidden.Only(part).Load([]int{7, 3})
		if err != nil {
			t.Fatal(err)
		}
		extent, err := hidden.Only(part).Extent([]int{7, 3})
		if err != nil {
			t.Fatal(err)
		}
		want, files, unwanted := both.Train, both.Files[:2], got.Test
		if part == TestOnly {
			want, files, unwanted = both.Test, both.Files[2:], got.Train
		}
		set := got.Train
		if part == TestOnly {
			set = got.Test
		}
		if unwanted != nil || set == nil || !slices.Equal(set.X, want.X) || !slices.Equal(set.Y, want.Y) || !slices.Equal(got.Files, files) {
			t.Errorf("part %d is %+v", part, got)
		}
		if extent.Samples != want.Len() || extent.Features != 4 {
			t.Errorf("part %d has the extent %+v", part, extent)
		}
	}
}

// A device may have samples of one class alone, but not of none.
func TestOneClass(t *testing.T) {
	paths := writeTask(t, t.TempDir())
	for _, classes := range [][]int{{7, 5}, {5, 7}, {5, 6}} {
		source := Source{Paths: paths}.Only(TrainOnly)
		if _, err := source.Load(classes); err == nil || !strings.Contains(err.Error(), "the number of samples of class") {
			t.Errorf("classes %v: got %v", classes, err)
		}
		source.OneClass = true
		task, err := source.Load(classes)
		if slices.Equal(classes, []int{5, 6}) {
			if err == nil || !strings.Contains(err.Error(), "the number of samples of class 5") {
				t.Errorf("no sample at all: got %v", err)
			}
			continue
		}
		if err != nil || task.Train.Len() != 2 || len(task.Train.Classes) != 2 {
			t.Errorf("classes %v: %v", classes, err)
		}
	}
}
