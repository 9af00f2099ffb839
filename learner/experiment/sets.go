package experiment

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"ringwave/learner/dataset"
)

// Sets keeps the data sets loaded that a Lab's experiments have used last, for a program
// that makes many one after the other. A set is loaded anew once a file that it rests on
// has changed. The zero value keeps none yet; it is for several goroutines.
type Sets struct {
	mu   sync.Mutex
	kept []keptSet // the last used is the last
}

// mostSets bounds how many are kept.
const mostSets = 4

// keptSet is one of them, with what it rests on.
type keptSet struct {
	key    string
	files  []fs.FileInfo // nil of one that is not there
	extent dataset.Extent
	task   dataset.Task
}

// source is where a data set comes from.
type source interface {
	Extent(classes []int) (dataset.Extent, error)
	Load(classes []int) (*dataset.Task, error)
	// Reads names the files that Load's result rests on.
	Reads() []string
}

// load returns the classes of a source, kept or loaded, if all that the run needs
// fits. The key names all that the result rests on beside the content of the files. A nil
// Sets keeps nothing.
func (s *Sets) load(r Request, key string, from source) (dataset.Task, error) {
	began := time.Now()
	files, keep := stamps(from.Reads(), began)
	if s == nil || !keep {
		_, task, err := loadFrom(r, from, 0)
		return task, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key = fmt.Sprintf("%s %v", key, r.Task.Classes)
	k := slices.IndexFunc(s.kept, func(k keptSet) bool { return k.key == key })
	var one keptSet
	if k >= 0 {
		one = s.kept[k]
		s.kept = slices.Delete(s.kept, k, k+1)
	}
	if k < 0 || !slices.EqualFunc(one.files, files, sameFile) {
		return s.loadAnew(r, keptSet{key: key, files: files}, from)
	}
	if r.Fits(withOthers(one.extent, s.bytes())) != nil {
		s.kept = nil
		if err := r.Fits(one.extent); err != nil {
			return dataset.Task{}, err
		}
	}
	s.kept = append(s.kept, one)
	return one.task, nil
}

// loadAnew loads a set and keeps it, if no file has changed meanwhile.
func (s *Sets) loadAnew(r Request, one keptSet, from source) (dataset.Task, error) {
	var err error
	if one.extent, one.task, err = loadFrom(r, from, s.bytes()); err != nil && len(s.kept) > 0 {
		s.kept = nil // what is kept may be in its way
		one.extent, one.task, err = loadFrom(r, from, 0)
	}
	if err != nil {
		return one.task, err
	}
	if after, keep := stamps(from.Reads(), time.Now()); keep && slices.EqualFunc(one.files, after, sameFile) {
		s.kept = append(s.kept, one)
		s.kept = s.kept[max(0, len(s.kept)-mostSets):]
	}
	return one.task, nil
}

// bytes is the memory that the kept sets take.
func (s *Sets) bytes() (n int64) {
	for _, k := range s.kept {
		for _, set := range []*dataset.Set{k.task.Train, k.task.Test} {
			if set != nil {
				n += set.Memory()
			}
		}
	}
	return n
}

// withOthers is an extent with other sets in memory, of so many bytes.
func withOthers(e dataset.Extent, bytes int64) dataset.Extent {
	e.Read += bytes
	return e
}

// loadFrom loads the classes of a source, if what they need fits beside other sets.
func loadFrom(r Request, from source, others int64) (e dataset.Extent, out dataset.Task, err error) {
	if e, err = from.Extent(r.Task.Classes); err == nil {
		if err := r.Fits(withOthers(e, others)); err != nil {
			return e, out, err
		}
	}
	loaded, err := from.Load(r.Task.Classes)
	if err != nil {
		return e, out, err
	}
	return e, *loaded, nil
}

// settled is how long ago a file must have changed to be known by its time: what changes
// again at once may have the same.
const settled = 2 * time.Second

// stamps says what files are like. Keep is false where that does not tell whether one will
// change.
func stamps(paths []string, now time.Time) (files []fs.FileInfo, keep bool) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && (!info.Mode().IsRegular() || now.Sub(info.ModTime()) < settled) {
			return nil, false
		}
		files = append(files, info)
	}
	return files, true
}

// sameFile reports whether a file is as it was.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
