package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Part is which sets of a task are wanted.
type Part int

// The parts of a task.
const (
	Whole     Part = iota // the training and the test set
	TrainOnly             // the training set alone
	TestOnly              // the test set alone
)

// Paths are the four idx files of an image classification task: images of three
// dimensions (samples, rows, columns) and labels of one. The two of a set that is not
// wanted are empty.
type Paths struct {
	TrainImages, TrainLabels string
	TestImages, TestLabels   string
}

func (p Paths) list() [4]string {
	return [4]string{p.TrainImages, p.TrainLabels, p.TestImages, p.TestLabels}
}

// Reads returns the paths of the files that Load reads.
func (s Source) Reads() []string {
	list := s.Paths.list()
	return slices.DeleteFunc(list[:], func(path string) bool { return path == "" })
}

func pathsOf(list [4]string) Paths {
	return Paths{list[0], list[1], list[2], list[3]}
}

// Source is where a task's files lie. A Source with Paths alone reads any four
// idx files.
type Source struct {
	// Known is the name of a published data set, or empty for files of no
	// published checksum.
	Known string
	// Root is the folder in which Find found the files, empty otherwise.
	Root  string
	Paths Paths
	// Verify makes a checksum that is not the published one an error. It is
	// meant for the folder that Fetch fills, and needs Known.
	Verify bool
	// OneClass says that samples of one of the classes are enough, as one device may
	// have no others.
	OneClass bool
}

// Only returns the source of a part, whose other files are not opened.
func (s Source) Only(p Part) Source {
	if p == TrainOnly {
		s.Paths.TestImages, s.Paths.TestLabels = "", ""
	}
	if p == TestOnly {
		s.Paths.TrainImages, s.Paths.TrainLabels = "", ""
	}
	return s
}

// File is what was read, for the record of a run.
type File struct {
	Path      string
	Bytes     int64
	SHA256    string // lower-case hexadecimal
	Published bool   // the checksum is the one published for this file
	// Differs says in what the file is not the published one of its name. It is empty
	// where nothing is published, or nothing to compare the file with is at hand.
	Differs string
}

// Task is a training set, a test set of the same features and classes, and the
// files that both came from. A set that was not wanted is nil.
type Task struct {
	Train, Test *Set
	Files       []File
}

// ChecksumError says that a file is not the published one.
type ChecksumError struct {
	File      string
	Got, Want string // SHA-256, lower-case hexadecimal
}

// Error returns one sentence with the file and both checksums.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s: SHA-256 is %s; allowed is %s, the published one", e.File, e.Got, e.Want)
}

// Load reads the four files and keeps the samples of two classes or more, relabelled c for
// classes[c]; classes are labels in the files, 0 to 255. Pixels 0..255 become features 0..1.
//
// An error is a *FormatError where a file's content is at fault, and a
// *ChecksumError where Verify is set and a file is not the published one.
func (s Source) Load(classes []int) (*Task, error) {
	if err := checkClasses(classes, 256); err != nil {
		return nil, err
	}
	published, err := s.published()
	if err != nil {
		return nil, err
	}
	paths := s.Paths.list()
	// The two halves are read at the same time: decompression takes longest.
	var train, test half
	done := make(chan struct{})
	go func() {
		defer close(done)
		test = s.readHalf(paths[2], paths[3], published[2], published[3], classes)
	}()
	train = s.readHalf(paths[0], paths[1], published[0], published[1], classes)
	<-done
	for _, h := range []half{train, test} {
		if h.err != nil {
			return nil, h.err
		}
	}
	if err := s.sameShape(train.set, test.set); err != nil {
		return nil, err
	}
	return &Task{Train: train.set, Test: test.set, Files: append(train.files, test.files...)}, nil
}

// sameShape refuses images of two sizes.
func (s Source) sameShape(train, test *Set) error {
	if train == nil || test == nil {
		return nil
	}
	if a, b := train.Shape, test.Shape; a[0] != b[0] || a[1] != b[1] {
		return &FormatError{File: s.Paths.TestImages, Where: "the size of an image", Value: fmt.Sprintf("%d x %d", b[0], b[1]),
			Allowed: fmt.Sprintf("%d x %d, that of %s", a[0], a[1], s.Paths.TrainImages)}
	}
	return nil
}

// published returns the checksums of the four files, empty where there are none.
func (s Source) published() ([4]string, error) {
	var sums [4]string
	if s.Known == "" {
		if s.Verify {
			return sums, fmt.Errorf("verifying %s: the files have no published checksums", s.Paths.TrainImages)
		}
		return sums, nil
	}
	known, err := Lookup(s.Known)
	if err != nil {
		return sums, err
	}
	for i, f := range known.Files {
		sums[i] = f.SHA256
	}
	return sums, nil
}

// half is the training or the test part of a task.
type half struct {
	set   *Set
	files []File
	err   error
}

func (s Source) readHalf(imagePath, labelPath, imageSum, labelSum string, classes []int) half {
	if imagePath == "" && labelPath == "" {
		return half{}
	}
	labels, labelFile, err := s.readFile(labelPath, labelSum, 1, nil)
	if err != nil {
		return half{err: err}
	}
	chosen, count := choose(labels.Data, classes)
	left := chosen
	images, imageFile, err := s.readFile(imagePath, imageSum, 3, func(i int) bool {
		wanted := len(left) > 0 && left[0] == i
		if wanted {
			left = left[1:]
		}
		return wanted
	})
	if err != nil {
		return half{err: err}
	}
	if labels.Dims[0] != images.Dims[0] {
		return half{err: &FormatError{File: labelPath, Where: "the number of labels", Value: fmt.Sprint(labels.Dims[0]),
			Allowed: fmt.Sprintf("%d, the number of images in %s", images.Dims[0], imagePath)}}
	}
	if c := lacking(count, s.OneClass); c >= 0 {
		return half{err: &FormatError{File: labelPath, Where: fmt.Sprintf("the number of samples of class %d", classes[c]),
			Value: "0", Allowed: "1 or more"}}
	}
	set := fromBytes(images, labels, classes, chosen)
	return half{set: set, files: []File{imageFile, labelFile}}
}

// readFile reads one idx file of the given number of dimensions and its
// checksum, in one pass, and keeps of it what readIDX does.
func (s Source) readFile(path, published string, dims int, keep func(i int) bool) (*Array, File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, File{}, fmt.Errorf("opening an idx file: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	counted := &counter{w: sum}
	tee := io.TeeReader(f, counted)
	array, formatErr := readIDX(path, tee, keep)
	// A file that does not parse is still summed to its end, since a wrong
	// checksum says more about a damaged download than the first odd byte.
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return nil, File{}, fmt.Errorf("reading %s: %w", path, err)
	}
	file := File{Path: absolute(path), Bytes: counted.n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	file.compare(published)
	if s.Verify && !file.Published {
		return nil, File{}, &ChecksumError{File: path, Got: file.SHA256, Want: published}
	}
	if formatErr != nil {
		return nil, File{}, formatErr
	}
	if len(array.Dims) != dims {
		return nil, File{}, &FormatError{File: path, Where: "the content", Value: contentOf(len(array.Dims)), Allowed: contentOf(dims)}
	}
	return array, file, nil
}

// contentOf names what an idx file holds by how many sizes its header has.
func contentOf(dims int) string {
	name, ok := map[int]string{1: "labels, a number each", 3: "images, a number for each of them, of their rows and of their columns"}[dims]
	if !ok {
		name = "neither labels nor images"
	}
	return fmt.Sprintf("%s (%d in byte 3 of the file)", name, dims)
}

// compare notes whether the file has the published checksum, if there is one.
func (f *File) compare(published string) {
	if published == "" {
		return
	}
	if f.Published = f.SHA256 == published; !f.Published {
		f.Differs = fmt.Sprintf("SHA-256 %.16s…, published %.16s…", f.SHA256, published)
	}
}

// absolute returns the path from the root where the system can say it: a run's
// record is read in other folders.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.w.Write(p)
}
