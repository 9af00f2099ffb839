package dataset

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// Extent is how large a task is, as found without reading its images.
type Extent struct {
	Samples  int   // of the classes, of training and test set
	Features int   // of a sample
	Read     int64 // bytes of images that are in memory while samples are taken from them
}

// StrokesExtent is the Extent of what Strokes draws, of so many of its classes.
func StrokesExtent(train, test, classes int) Extent {
	const dim = strokeSide * strokeSide
	all := int64(train) + int64(test)
	return Extent{Samples: int(all * int64(classes) / strokeClasses), Features: dim, Read: 8 * all * dim}
}

// Extent returns that of what Load reads. It reads the labels, and of images their
// header.
func (s Source) Extent(classes []int) (e Extent, err error) {
	paths := s.Paths.list()
	for i := 0; i < len(paths); i += 2 {
		if paths[i] == "" && paths[i+1] == "" {
			continue
		}
		labels, _, err := s.readFile(paths[i+1], "", 1, nil)
		if err != nil {
			return e, err
		}
		chosen, _ := choose(labels.Data, classes)
		dims, err := headerOf(paths[i])
		if err != nil {
			return e, err
		}
		size := int64(1)
		for _, n := range dims {
			size *= int64(n)
		}
		e.Samples += len(chosen)
		e.Read += size / int64(dims[0]) * int64(len(chosen))
		e.Features = max(e.Features, int(size/int64(dims[0])))
	}
	return e, nil
}

// headerOf returns the sizes that an idx file declares.
func headerOf(path string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening an idx file: %w", err)
	}
	defer f.Close()
	d, err := newDecoder(path, f)
	if err != nil {
		return nil, err
	}
	return d.header()
}

// Extent returns that of what Load reads. It reads the labels alone.
func (c CIFAR10) Extent(classes []int) (e Extent, err error) {
	e.Features = cifarDim
	for _, path := range slices.Concat(c.Train, c.test()) {
		n, err := countLabels(path, classes)
		if err != nil {
			return e, err
		}
		e.Samples += n
	}
	e.Read = int64(e.Samples) * cifarDim
	return e, nil
}

// countLabels counts the records of some classes, up to as many as a file may have.
func countLabels(path string, classes []int) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("opening a CIFAR-10 batch: %w", err)
	}
	defer f.Close()
	var label [1]byte
	for i := range int64(maxRecords) {
		_, err := f.ReadAt(label[:], i*cifarRecord)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("reading %s at byte %d: %w", path, i*cifarRecord, err)
		}
		if slices.Contains(classes, int(label[0])) {
			n++
		}
	}
	return n, nil
}
