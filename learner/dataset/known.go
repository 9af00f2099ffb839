package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Known is a published data set of four idx files.
type Known struct {
	Name string
	// Files are the training images, training labels, test images and test
	// labels, in this order.
	Files [4]KnownFile
	// Mirrors are the addresses to which a file's name is appended, tried in
	// this order.
	Mirrors []string
	// Licence is what the publisher, or who republishes, states.
	Licence string
}

// KnownFile is one published file.
type KnownFile struct {
	Name   string
	Bytes  int64
	SHA256 string // lower-case hexadecimal
}

// MNIST returns the published files of the MNIST data set: 60,000 training and
// 10,000 test images of 28 x 28 grey pixels, in ten classes.
func MNIST() Known {
	return Known{
		Name: "mnist",
		Files: [4]KnownFile{
			{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
			{"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
			{"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
			{"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
		},
		Mirrors: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/",
		},
		Licence: "CC BY-SA 3.0, as given by Keras",
	}
}

// Lookup returns the published data set of the given name.
func Lookup(name string) (Known, error) {
	mnist := MNIST()
	if name == mnist.Name {
		return mnist, nil
	}
	return Known{}, fmt.Errorf("data set %q is not known; allowed is %s or %s", name, mnist.Name, cifarName)
}

// MissingError says which files of a data set each folder lacks.
type MissingError struct {
	Set    string
	Looked []Lacking // in the order of the search
}

// Lacking is one folder of a search and the files that are neither in it nor in
// its subfolder of the data set's name.
type Lacking struct {
	Root  string
	Files []string
}

// Error returns one sentence with what was looked for, where, and the command that
// downloads it.
func (e *MissingError) Error() string {
	fetch := fmt.Sprintf("`ringwave data fetch %s` downloads them", e.Set)
	if len(e.Looked) == 0 {
		return fmt.Sprintf("data set %s: no folder was given in which to look for its files; %s", e.Set, fetch)
	}
	var places []string
	for _, l := range e.Looked {
		places = append(places, fmt.Sprintf("%s (and %s) lacks %s",
			l.Root, filepath.Join(l.Root, e.Set), strings.Join(l.Files, ", ")))
	}
	return fmt.Sprintf("data set %s: no folder has all of its files: %s; %s", e.Set, strings.Join(places, "; "), fetch)
}

// Find looks for the files of a known data set in each root and in its subfolder
// of the set's name. The first root that has all of them wins. It does not look
// into the files. An error is a *MissingError where no root has all files.
func Find(name string, roots []string) (Source, error) {
	known, err := Lookup(name)
	if err != nil {
		return Source{}, err
	}
	missing := &MissingError{Set: name}
	for _, root := range roots {
		paths, lacking, err := known.within(root)
		if err != nil {
			return Source{}, err
		}
		if len(lacking) == 0 {
			return Source{Known: name, Root: root, Paths: pathsOf(paths)}, nil
		}
		missing.Looked = append(missing.Looked, Lacking{Root: root, Files: lacking})
	}
	return Source{}, missing
}

// within returns the paths of the set's files under one root and the names of
// those that are not there.
func (k Known) within(root string) (paths [4]string, lacking []string, err error) {
	for i, file := range k.Files {
		for _, folder := range []string{root, filepath.Join(root, k.Name)} {
			path := filepath.Join(folder, file.Name)
			there, err := isFile(path)
			if err != nil {
				return paths, nil, fmt.Errorf("looking for data set %s: %w", k.Name, err)
			}
			if there {
				paths[i] = path
				break
			}
		}
		if paths[i] == "" {
			lacking = append(lacking, file.Name)
		}
	}
	return paths, lacking, nil
}

func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.Mode().IsRegular(), nil
}
