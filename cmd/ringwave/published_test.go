package main

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/dataset"
	"ringwave/learner/experiment/experimenttest"
)

// randomMNIST writes random images of two classes under the names of MNIST's files.
func randomMNIST(t *testing.T) string {
	t.Helper()
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	for i, file := range dataset.MNIST().Files {
		content := []byte{0, 0, 8, 1, 0, 0, 0, 100}
		if i%2 == 0 {
			content = []byte{0, 0, 8, 3, 0, 0, 0, 100, 0, 0, 0, 28, 0, 0, 0, 28}
		}
		for k := range 100 {
			if i%2 == 1 {
				content = append(content, byte(k%2))
				continue
			}
			for range 28 * 28 {
				content = append(content, byte(rnd.Uint32()))
			}
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		writeFile(t, b.Bytes(), dir, file.Name)
	}
	return dir
}

// Files that only go by a published set's name run, and are said loudly not to be it:
// at the start, in the result and in summary.json.
func TestUnpublishedDataAreSaid(t *testing.T) {
	experimenttest.NoData(t)
	few := []string{"--set", "optimizer.rounds=2", "--set", "optimizer.batch_size=10", "--set", "experiment.aggregator=none"}
	for _, x := range []struct {
		config, data, set, says string
		args                    []string
	}{
		{experimenttest.LoopbackConfig, randomMNIST(t), "mnist", "the files of mnist are not the published ones (4 of 4 differ; train-images-idx3-ubyte.gz: SHA-256 ", few},
		{experimenttest.CIFARConfig, experimenttest.FewImages(t), "cifar10", "the files of cifar10 are not the published ones (6 of 6 differ; data_batch_1.bin: 61460 bytes, published 30730000)", few},
		{experimenttest.LoopbackConfig, "", "strokes", "", append(slices.Clone(few), "--set", "task.dataset=strokes")},
	} {
		out := filepath.Join(t.TempDir(), "run")
		args := append([]string{"run", x.config, "--out", out}, x.args...)
		if x.data != "" {
			args = append(args, "--data", x.data)
		}
		stdout, stderr := mustRun(t, args...)
		s := summaryOf(t, out)
		notes, warns := strings.Join(s.Notes, "\n"), x.says != ""
		loud := "*** DATA SET " + strings.ToUpper(x.set) + " IS NOT THE PUBLISHED ONE"
		if s.Dataset != x.set || s.DataUnpublished != warns {
			t.Errorf("%s: summary.json has data set %s, unpublished %v", x.set, s.Dataset, s.DataUnpublished)
		}
		for text, want := range map[string]string{stderr: loud, stdout: "(WARNING: not the published files", notes: "WARNING: the files of"} {
			if strings.Contains(text, want) != warns || !strings.Contains(text, x.says) {
				t.Errorf("%s: want %q, %q:\n%s", x.set, want, x.says, text)
			}
		}
	}
}
