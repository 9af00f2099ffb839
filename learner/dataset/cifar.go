package dataset

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"ringwave/radio/intake"
)

// The record format of the binary version of CIFAR-10: a label of one byte, then the
// red, the green and the blue plane of an image of 32 x 32, row by row.
const (
	cifarName     = "cifar10"
	cifarFolder   = "cifar-10-batches-bin" // within the archive
	cifarSums     = "SHA256SUMS"           // of the unpacked files, as sha256sum writes it
	cifarClasses  = 10
	cifarSide     = 32
	cifarChannels = 3
	cifarDim      = cifarChannels * cifarSide * cifarSide
	cifarRecord   = 1 + cifarDim
	// cifarFile is the size of a published file, of 10,000 records.
	cifarFile = 10000 * cifarRecord
	// maxSums bounds the file of checksums, which has six lines, in bytes.
	maxSums = 4096
	// maxRecords bounds a file: ten times the published set.
	maxRecords = 600_000
)

// CIFAR10 is where the files of CIFAR-10's binary version lie. Files may hold any
// number of records, of all ten classes or of some.
type CIFAR10 struct {
	// Root is the folder in which FindCIFAR10 found the files, empty otherwise.
	Root  string
	Train []string // usually five; none where the set is not wanted
	Test  string   // "" where the set is not wanted
	// OneClass is that of a Source.
	OneClass bool
}

// Only returns the files of a part; the others are not opened.
func (c CIFAR10) Only(p Part) CIFAR10 {
	if p == TrainOnly {
		c.Test = ""
	}
	if p == TestOnly {
		c.Train = nil
	}
	return c
}

// test returns the files of the test set.
func (c CIFAR10) test() []string {
	if c.Test == "" {
		return nil
	}
	return []string{c.Test}
}

// Reads returns the paths of the files that Binary reads, where they are there.
func (c CIFAR10) Reads() []string {
	paths := slices.Concat(c.Train, c.test())
	var sums []string
	for _, path := range paths {
		if beside := filepath.Join(filepath.Dir(path), cifarSums); !slices.Contains(sums, beside) {
			sums = append(sums, beside)
		}
	}
	return append(paths, sums...)
}

// cifarFiles returns the names of the files, the test batch last.
func cifarFiles() []string {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("data_batch_%d.bin", i+1))
	}
	return append(names, "test_batch.bin")
}

// FindCIFAR10 looks for the six files in each root, in its subfolder cifar10, and in
// the folder cifar-10-batches-bin of either, as the published archive has it. The first
// root that has all of them wins. It does not look into the files. An error is a
// *MissingError where no root has all files.
func FindCIFAR10(roots []string) (CIFAR10, error) {
	missing := &MissingError{Set: cifarName}
	for _, root := range roots {
		var paths, lacking []string
		for _, name := range cifarFiles() {
			found, err := firstFile(name, root, filepath.Join(root, cifarName),
				filepath.Join(root, cifarFolder), filepath.Join(root, cifarName, cifarFolder))
			if err != nil {
				return CIFAR10{}, fmt.Errorf("looking for data set %s: %w", cifarName, err)
			}
			if found == "" {
				lacking = append(lacking, name)
			}
			paths = append(paths, found)
		}
		if len(lacking) == 0 {
			last := len(paths) - 1
			return CIFAR10{Root: root, Train: paths[:last], Test: paths[last]}, nil
		}
		missing.Looked = append(missing.Looked, Lacking{Root: root, Files: lacking})
	}
	return CIFAR10{}, missing
}

// firstFile returns the path of the name in the first folder that has it.
func firstFile(name string, folders ...string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		there, err := isFile(path)
		if err != nil || there {
			return path, err
		}
	}
	return "", nil
}

// Load reads the files and keeps the samples of two classes or more, 0 to 9, relabelled c for
// classes[c], as OfBytes has them. A sample has 3 x 32 x 32 features:
// pixels 0..1, less the mean of their channel over the published training images, in units of
// its deviation (means 0.4914, 0.4822, 0.4465, deviations 0.2470, 0.2435, 0.2616 for red,
// green and blue, whatever the classes), which is between -2.0 and 2.2.
//
// An error is a *FormatError where a file's content is at fault.
func (c CIFAR10) Load(classes []int) (*Task, error) {
	if err := checkClasses(classes, cifarClasses); err != nil {
		return nil, err
	}
	train, trainFiles, err := c.read(c.Train, classes)
	if err != nil {
		return nil, err
	}
	test, testFiles, err := c.read(c.test(), classes)
	if err != nil {
		return nil, err
	}
	return &Task{Train: train, Test: test, Files: append(trainFiles, testFiles...)}, nil
}

// read returns the set of several files, nil of none.
func (c CIFAR10) read(paths []string, classes []int) (*Set, []File, error) {
	if len(paths) == 0 {
		return nil, nil, nil
	}
	records, files, err := readCIFARs(paths, classes)
	if err != nil {
		return nil, nil, err
	}
	_, count := choose(records.Labels, classes)
	if i := lacking(count, c.OneClass); i >= 0 {
		return nil, nil, &FormatError{File: filepath.Dir(paths[0]), Allowed: "1 or more", Value: "0",
			Where: fmt.Sprintf("the number of samples of class %d in %s", classes[i], filesInWords(paths))}
	}
	set, err := records.standardised(classes)
	return set, files, err
}

// readCIFARs reads the records of some classes from several files, on all processors.
func readCIFARs(paths []string, classes []int) (all Records, files []File, err error) {
	parts, errs := make([]Records, len(paths)), make([]error, len(paths))
	files = make([]File, len(paths))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, path := range paths {
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			parts[i], files[i], errs[i] = readCIFARFile(path, classes)
		})
	}
	wait.Wait()
	for i, part := range parts {
		if errs[i] != nil {
			return Records{}, nil, errs[i]
		}
		all.Labels = slices.Concat(all.Labels, part.Labels)
	}
	all.Pixels = make([]uint8, 0, len(all.Labels)*cifarDim)
	for _, part := range parts {
		all.Pixels = append(all.Pixels, part.Pixels...)
	}
	return all, files, nil
}

func filesInWords(paths []string) string {
	first, last := filepath.Base(paths[0]), filepath.Base(paths[len(paths)-1])
	if first == last {
		return first
	}
	return first + " to " + last
}

func readCIFARFile(path string, classes []int) (Records, File, error) {
	f, err := os.Open(path)
	if err != nil {
		return Records{}, File{}, fmt.Errorf("opening a CIFAR-10 file: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	counted := &counter{w: sum}
	buffered := bufio.NewReaderSize(f, 1<<16)
	records, err := ReadCIFAR10(path, io.TeeReader(buffered, counted), classes...)
	if err != nil {
		return Records{}, File{}, err
	}
	file := File{Path: absolute(path), Bytes: counted.n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if file.Bytes != cifarFile {
		file.Differs = fmt.Sprintf("%d bytes, published %d", file.Bytes, cifarFile)
		return records, file, nil
	}
	file.compare(unpackedSum(path))
	return records, file, nil
}

// unpackedSum returns the checksum that a file had when it was unpacked from the
// published archive, which lies beside it; "" where there is none. The publisher gives
// that of the archive only.
func unpackedSum(path string) string {
	data, err := intake.ReadFile(filepath.Join(filepath.Dir(path), cifarSums), maxSums)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && name == filepath.Base(path) {
			return sum
		}
	}
	return ""
}

// Records are images of 3 x 32 x 32 with their labels.
type Records struct {
	Labels []uint8 // 0 to 9
	// Pixels has 3072 bytes an image: the red, green and blue plane, row by row.
	Pixels []uint8
}

// ReadCIFAR10 reads records until r ends and keeps those of the given classes, or all
// where none is given, in their order. There must be one or more, and no part of one.
// The name is for errors only. No more memory is taken than a small multiple of the
// bytes that have arrived.
//
// What is wrong with the content is a *FormatError; what is wrong with reading is r's
// error, wrapped.
func ReadCIFAR10(name string, r io.Reader, classes ...int) (Records, error) {
	const allowed = "records of 3073 bytes, a label and 3072 pixels"
	var out Records
	record := make([]byte, cifarRecord)
	for i := 0; ; i++ {
		at := int64(i) * cifarRecord
		n, err := io.ReadFull(r, record)
		if err == io.EOF && i > 0 {
			return out, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Records{}, &FormatError{File: name, Where: "the length", Value: fmt.Sprintf("%d bytes", at+int64(n)), Allowed: "one or more " + allowed}
		}
		if err != nil {
			return Records{}, fmt.Errorf("reading %s at byte %d: %w", name, at+int64(n), err)
		}
		if i == maxRecords {
			return Records{}, &FormatError{File: name, Where: "the number of records", Value: fmt.Sprintf("more than %d", maxRecords), Allowed: fmt.Sprintf("1 to %d", maxRecords)}
		}
		label := record[0]
		if label >= cifarClasses {
			return Records{}, &FormatError{File: name, Where: fmt.Sprintf("byte %d (label of record %d)", at, i+1), Value: fmt.Sprint(label), Allowed: "0 to 9, at the start of each of the " + allowed}
		}
		if len(classes) == 0 || slices.Contains(classes, int(label)) {
			out.Labels = append(out.Labels, label)
			out.Pixels = append(out.Pixels, record[1:]...)
		}
	}
}

// standardised returns the samples of some classes, of which all records are.
func (r Records) standardised(classes []int) (*Set, error) {
	// Over the published training images, for pixels 0..1, as commonly given.
	mean := [cifarChannels]float64{0.4914, 0.4822, 0.4465}
	std := [cifarChannels]float64{0.2470, 0.2435, 0.2616}
	scales := make([]Scale, cifarChannels)
	for c := range scales {
		scales[c] = Scale{1 / (255 * std[c]), -mean[c] / std[c]}
	}
	y := slices.Clone(r.Labels)
	relabel(y, classes)
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = cifarClassNames()[c]
	}
	return OfBytes(r.Pixels, y, scales, []int{cifarChannels, cifarSide, cifarSide}, names)
}

// cifarClassNames names the classes as their publisher does.
func cifarClassNames() [cifarClasses]string {
	return [cifarClasses]string{
		"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
	}
}

// cifarArchive returns the published archive of CIFAR-10's binary version, and from where
// it is.
func cifarArchive() (archive KnownFile, mirrors []string, licence string) {
	return KnownFile{"cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
		[]string{"https://www.cs.toronto.edu/~kriz/"}, "none stated"
}

// fetchCIFAR downloads the published archive, verifies it, and unpacks the six files
// into the folder cifar10 of dir, with their checksums. It does nothing where all are
// there as they were unpacked. A failed download leaves nothing
// behind. Client and progress are as for Known.Fetch.
func fetchCIFAR(ctx context.Context, dir string, client *http.Client, progress func(done, total int64)) error {
	archive, mirrors, _ := cifarArchive()
	return fetchArchive(ctx, Known{Name: cifarName, Mirrors: mirrors}, archive, cifarFile, dir, client, progress)
}

func fetchArchive(ctx context.Context, set Known, archive KnownFile, size int64, dir string, client *http.Client, progress func(done, total int64)) error {
	if client == nil {
		client = http.DefaultClient
	}
	if progress == nil {
		progress = func(done, total int64) {}
	}
	dir = filepath.Join(dir, set.Name)
	if allThere(dir, size) {
		progress(archive.Bytes, archive.Bytes)
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for data set %s: %w", set.Name, err)
	}
	report := func(done int64) { progress(done, archive.Bytes) }
	// The archive is kept only until it is unpacked.
	packed := filepath.Join(dir, archive.Name)
	if !archive.rightAt(packed) {
		if err := set.fetchFile(ctx, client, dir, archive, report); err != nil {
			return fmt.Errorf("downloading data set %s: %w", set.Name, err)
		}
	}
	if err := unpackCIFAR(ctx, packed, dir, size); err != nil {
		return fmt.Errorf("unpacking data set %s: %w", set.Name, err)
	}
	report(archive.Bytes)
	return os.Remove(packed)
}

// allThere reports whether the six files are in dir as they were unpacked.
func allThere(dir string, size int64) bool {
	for _, name := range cifarFiles() {
		path := filepath.Join(dir, name)
		if !(KnownFile{Name: name, Bytes: size, SHA256: unpackedSum(path)}).rightAt(path) {
			return false
		}
	}
	return true
}

// unpackCIFAR writes the six files of an archive into dir, each whole or not at all,
// and nothing else of it but, at the end, their checksums.
func unpackCIFAR(ctx context.Context, archive, dir string, size int64) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	var sums strings.Builder
	left := cifarFiles()
	entries := tar.NewReader(unzipped)
	for len(left) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		entry, err := entries.Next()
		if err == io.EOF {
			return &FormatError{File: archive, Where: "what it lacks", Value: fmt.Sprint(left), Allowed: "nothing"}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		i := slices.Index(left, path.Base(entry.Name))
		if i < 0 || entry.Typeflag != tar.TypeReg {
			continue
		}
		if entry.Size != size {
			return &FormatError{File: archive, Where: "the size of " + entry.Name, Value: fmt.Sprint(entry.Size), Allowed: fmt.Sprint(size)}
		}
		sum := sha256.New()
		if err := unpackFile(io.TeeReader(entries, sum), filepath.Join(dir, left[i])); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), left[i])
		left = slices.Delete(left, i, i+1)
	}
	return unpackFile(strings.NewReader(sums.String()), filepath.Join(dir, cifarSums))
}

// unpackFile writes one file, atomically.
func unpackFile(r io.Reader, path string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.part")
	if err != nil {
		return fmt.Errorf("making a temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
		}
	}()
	if _, err := io.Copy(temp, r); err != nil {
		return fmt.Errorf("writing %s: %w", temp.Name(), err)
	}
	return publish(temp, path)
}
