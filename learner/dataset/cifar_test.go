package dataset

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cifarBytes returns records of the given labels; pixel j of record i is i + j.
func cifarBytes(labels ...uint8) []byte {
	var out []byte
	for i, label := range labels {
		out = append(out, label)
		for j := range cifarDim {
			out = append(out, uint8(i+j))
		}
	}
	return out
}

func TestReadCIFAR10(t *testing.T) {
	content := cifarBytes(3, 0, 9, 3)
	all, err := ReadCIFAR10("a.bin", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all.Labels, []uint8{3, 0, 9, 3}) || len(all.Pixels) != 4*cifarDim {
		t.Errorf("got labels %v and %d pixels", all.Labels, len(all.Pixels))
	}
	some, err := ReadCIFAR10("a.bin", bytes.NewReader(content), 9, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(some.Labels, []uint8{3, 9, 3}) || !bytes.Equal(some.Pixels[cifarDim:2*cifarDim], content[2*cifarRecord+1:3*cifarRecord]) {
		t.Errorf("got labels %v, or not their pixels", some.Labels)
	}
	none, err := ReadCIFAR10("a.bin", bytes.NewReader(content), 5)
	if err != nil || len(none.Labels) != 0 {
		t.Errorf("got %v, %v of a class that is not there", none.Labels, err)
	}
}

func TestReadCIFAR10Errors(t *testing.T) {
	good := cifarBytes(1, 2)
	bad := slices.Clone(good)
	bad[cifarRecord] = 10
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":       {nil, "the length is 0 bytes; allowed is one or more records of 3073 bytes"},
		"cut":         {good[:len(good)-1], "the length is 6145 bytes; allowed is one or more records"},
		"one more":    {append(slices.Clone(good), 1), "the length is 6147 bytes"},
		"label":       {bad, "byte 3073 (label of record 2) is 10; allowed is 0 to 9"},
		"two a label": {append([]byte{1}, good...), "byte 3073 (label of record 2) is 255; allowed is 0 to 9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadCIFAR10("folder/a.bin", bytes.NewReader(c.content))
			var format *FormatError
			if !errors.As(err, &format) || !strings.HasPrefix(err.Error(), "folder/a.bin: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	broken := errors.New("the disk is on fire")
	_, err := ReadCIFAR10("a.bin", io.MultiReader(bytes.NewReader(good[:5000]), errReader{broken}))
	var format *FormatError
	if !errors.Is(err, broken) || errors.As(err, &format) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// writeCIFAR writes the six files into a folder, each with the given labels.
func writeCIFAR(t *testing.T, dir string, labels ...uint8) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range cifarFiles() {
		write(t, filepath.Join(dir, name), cifarBytes(labels...))
	}
}

func TestCIFAR10Find(t *testing.T) {
	for _, sub := range []string{"", "cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"} {
		empty, root := t.TempDir(), t.TempDir()
		writeCIFAR(t, filepath.Join(root, sub), 0, 1)
		found, err := FindCIFAR10([]string{empty, root})
		if err != nil {
			t.Fatal(err)
		}
		if found.Root != root || len(found.Train) != 5 || found.Test != filepath.Join(root, sub, "test_batch.bin") {
			t.Errorf("in %q: got %+v", sub, found)
		}
		if err := os.Remove(found.Train[4]); err != nil {
			t.Fatal(err)
		}
		_, err = FindCIFAR10([]string{empty, root})
		var missing *MissingError
		if !errors.As(err, &missing) || !slices.Equal(missing.Looked[1].Files, []string{"data_batch_5.bin"}) ||
			!strings.Contains(err.Error(), "`ringwave data fetch cifar10`") {
			t.Errorf("in %q: got %v", sub, err)
		}
	}
}

func TestCIFAR10Binary(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 4, 0, 7, 4)
	source, err := FindCIFAR10([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	task, err := source.Load([]int{7, 4})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(task.Test.Y, []uint8{1, 0, 1}) || task.Train.Len() != 15 || len(task.Files) != 6 {
		t.Errorf("got classes %v, %d training samples, %d files", task.Test.Y, task.Train.Len(), len(task.Files))
	}
	if set := task.Test; !slices.Equal(set.Classes, []string{"horse", "deer"}) || !slices.Equal(set.Shape, []int{3, 32, 32}) || set.Dim != 3072 {
		t.Errorf("got %v of %v, %d", set.Classes, set.Shape, set.Dim)
	}
	// Sample 1 was record 2: the first pixels of its planes are 2, 2+1024 and 2+2048,
	// all 2 modulo 256.
	for c, want := range []float64{(2./255 - 0.4914) / 0.2470, (2./255 - 0.4822) / 0.2435, (2./255 - 0.4465) / 0.2616} {
		if got := task.Test.Row(1)[1024*c]; math.Abs(got-want) > 1e-15 {
			t.Errorf("channel %d begins with %v, want %v", c, got, want)
		}
	}
	values, channels := task.Test.Bytes()
	if len(values) != 3*3072 || task.Test.Values() != len(values) || values[3072+1024] != 2 || len(channels) != 3 || channels[1].Of(2) != task.Test.Row(1)[1024] {
		t.Errorf("got %d bytes in %v", len(values), channels)
	}
	if half := task.Test.Subset([]int{2, 1}); half.Row(1)[1024] != task.Test.Row(1)[1024] || !slices.Equal(half.Y, []uint8{1, 0}) || half.Values() != 2*3072 {
		t.Errorf("a subset has classes %v and %d features", half.Y, half.Values())
	}
	for want, classes := range map[string][]int{
		"10 is no class of this set; allowed is 0 to 9": {1, 10},
		"7 is given twice": {7, 7},
		"the number of samples of class 5 in data_batch_1.bin to data_batch_5.bin is 0; allow": {4, 5},
	} {
		if _, err := source.Load(classes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	write(t, source.Test, cifarBytes(4))
	if _, err := source.Load([]int{7, 4}); err == nil || !strings.Contains(err.Error(), "of class 7 in test_batch.bin is 0") {
		t.Errorf("got %v", err)
	}
}

// TestCIFAR10 reads what is there of the published files: of airplanes and automobiles
// there are 5,000 and 1,000 each.
func TestCIFAR10(t *testing.T) {
	root := os.Getenv("RINGWAVE_DATA")
	if root == "" {
		t.Skip("RINGWAVE_DATA not set: it names the folder with the CIFAR-10 files")
	}
	source, err := FindCIFAR10([]string{root})
	if err != nil {
		t.Skip(err)
	}
	task, err := source.Load([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	// They are not published in this form, of two classes.
	for _, f := range task.Files {
		if f.Bytes != cifarFile && (f.Published || !strings.Contains(f.Differs, "published 30730000")) {
			t.Errorf("%s with %d bytes: published %v, differs in %q", f.Path, f.Bytes, f.Published, f.Differs)
		}
	}
	for set, want := range map[*Set]int{task.Train: 5000, task.Test: 1000} {
		ones := 0
		for _, y := range set.Y {
			ones += int(y)
		}
		if ones != want || set.Len() != 2*want {
			t.Errorf("%d samples, %d of class 1, want %d each", set.Len(), ones, want)
		}
	}
	// These two classes are a little brighter than all ten.
	for c := range 3 {
		var sum float64
		for i := range task.Train.Len() {
			for _, x := range task.Train.Row(i)[1024*c : 1024*(c+1)] {
				sum += x
			}
		}
		if mean := sum / 1024 / 10000; math.Abs(mean) > 0.5 {
			t.Errorf("channel %d has mean %v", c, mean)
		}
	}
}

// archiveOf returns an archive as the published one is made, and what it is known by.
func archiveOf(t *testing.T, files map[string][]byte) (KnownFile, []byte) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: cifarFolder + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: cifarFolder + "/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed := gzipped(t, b.Bytes())
	sum := sha256.Sum256(packed)
	return KnownFile{"tiny.tar.gz", int64(len(packed)), hex.EncodeToString(sum[:])}, packed
}

// mirrored is an archive on a mirror.
type mirrored struct {
	files   map[string][]byte
	set     Known
	archive KnownFile
	packed  []byte
	asked   int
}

func mirrorArchive(t *testing.T) *mirrored {
	p := &mirrored{files: map[string][]byte{"readme.html": []byte("hello"), "../../evil": []byte("no")}}
	for i, name := range cifarFiles() {
		p.files[name] = cifarBytes(uint8(i), 1)
	}
	p.archive, p.packed = archiveOf(t, p.files)
	mirror := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asked++
		w.Write(p.packed)
	}))
	p.set = Known{Name: "cifar10", Mirrors: []string{mirror}}
	return p
}

func TestFetchArchive(t *testing.T) {
	p := mirrorArchive(t)
	dir := t.TempDir()
	for range 2 { // the second finds them there
		if err := fetchArchive(t.Context(), p.set, p.archive, 2*cifarRecord, dir, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, filepath.Join(dir, "cifar10")); !slices.Equal(got, append([]string{cifarSums}, cifarFiles()...)) || p.asked != 1 {
		t.Errorf("the folder has %v after %d downloads", got, p.asked)
	}
	found, err := FindCIFAR10([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(found.Test); err != nil || !bytes.Equal(got, p.files["test_batch.bin"]) {
		t.Errorf("the test batch is not as published (%v)", err)
	}
	checksOf(t, found.Test, sha256.Sum256(p.files["test_batch.bin"]))
	write(t, found.Test, cifarBytes(5, 2))
	if err := fetchArchive(t.Context(), p.set, p.archive, 2*cifarRecord, dir, nil, nil); err != nil || p.asked != 2 {
		t.Errorf("a changed file was not mended: %d downloads, %v", p.asked, err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"cifar10"}) {
		t.Errorf("besides, there are %v", got)
	}
}

func TestFetchArchiveRefuses(t *testing.T) {
	p := mirrorArchive(t)
	// An archive that lacks a file, or has it in another size, is refused.
	for want, spoil := range map[string]func(map[string][]byte){
		"what it lacks is [data_batch_3.bin]":                           func(f map[string][]byte) { delete(f, "data_batch_3.bin") },
		"the size of cifar-10-batches-bin/test_batch.bin is 1; allowed": func(f map[string][]byte) { f["test_batch.bin"] = []byte{1} },
	} {
		spoilt := map[string][]byte{}
		for name, content := range p.files {
			spoilt[name] = content
		}
		spoil(spoilt)
		p.archive, p.packed = archiveOf(t, spoilt)
		if err := fetchArchive(t.Context(), p.set, p.archive, 2*cifarRecord, t.TempDir(), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	// A wrong checksum leaves nothing behind.
	p.archive.SHA256 = strings.Repeat("0", 64)
	empty := t.TempDir()
	var wrong *ChecksumError
	if err := fetchArchive(t.Context(), p.set, p.archive, 2*cifarRecord, empty, nil, nil); !errors.As(err, &wrong) {
		t.Errorf("got %v, want a ChecksumError", err)
	}
	if got := names(t, filepath.Join(empty, "cifar10")); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// checksOf reads the checksum that was kept of an unpacked file.
func checksOf(t *testing.T, path string, sum [sha256.Size]byte) {
	t.Helper()
	// A file that is no more what was in the archive is told from one that is.
	// Checksums beyond what six lines take are none.
	sums := filepath.Join(filepath.Dir(path), cifarSums)
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sums, append(text, make([]byte, maxSums)...), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := unpackedSum(path); got != "" {
		t.Errorf("of a long file of checksums %q is taken", got)
	}
	if err := os.WriteFile(sums, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := unpackedSum(path); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the test batch was unpacked with SHA-256 %q, want %x", got, sum)
	}
}

func FuzzCIFAR10(f *testing.F) {
	f.Add(cifarBytes(0, 1, 9), byte(1))
	f.Add(cifarBytes(10), byte(0))
	f.Add(cifarBytes(1)[:3000], byte(0))
	f.Add([]byte{}, byte(0))
	f.Fuzz(func(t *testing.T, content []byte, class byte) {
		all, err := ReadCIFAR10("fuzz.bin", bytes.NewReader(content))
		some, someErr := ReadCIFAR10("fuzz.bin", bytes.NewReader(content), int(class))
		if err != nil {
			if !strings.Contains(err.Error(), "fuzz.bin") || strings.Contains(err.Error(), "\n") || someErr == nil {
				t.Errorf("the error is %v, and of one class %v", err, someErr)
			}
			return
		}
		// What was read is what is there.
		var again []byte
		count := 0
		for i, label := range all.Labels {
			again = append(append(again, label), all.Pixels[i*cifarDim:(i+1)*cifarDim]...)
			if label == class {
				count++
			}
		}
		if !bytes.Equal(again, content) || len(some.Labels) != count || someErr != nil {
			t.Errorf("the records are not the content, or %d of %d are of class %d", len(some.Labels), count, class)
		}
	})
}

// Of a part only its files are opened, and a device may have samples of one class alone.
func TestCIFAR10Parts(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 4, 0, 4)
	found, err := FindCIFAR10([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	noTest, noTrain := found, found
	noTest.Test, noTrain.Train = "not/there", []string{"not/there"}
	for _, x := range []struct {
		source      CIFAR10
		train, test int
	}{{noTest.Only(TrainOnly), 15, 0}, {noTrain.Only(TestOnly), 0, 3}, {found.Only(Whole), 15, 3}} {
		task, err := x.source.Load([]int{0, 4})
		if err != nil {
			t.Fatal(err)
		}
		if (task.Train != nil) != (x.train > 0) || (task.Test != nil) != (x.test > 0) || len(task.Files) != x.train/3+x.test/3 {
			t.Errorf("%+v: got %+v", x.source, task)
		}
		extent, err := x.source.Extent([]int{0, 4})
		if err != nil || extent.Samples != x.train+x.test {
			t.Errorf("%+v: the extent is %+v (%v)", x.source, extent, err)
		}
		x.source.OneClass = true
		if _, err := x.source.Load([]int{7, 4}); err != nil {
			t.Errorf("one class: %v", err)
		}
		if _, err := x.source.Load([]int{7, 8}); err == nil || !strings.Contains(err.Error(), "the number of samples of class 7") {
			t.Errorf("no class: %v", err)
		}
	}
	if _, err := noTest.Load([]int{0, 4}); err == nil {
		t.Error("the whole was read of half of the files")
	}
}
