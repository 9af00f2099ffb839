package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// stallLimit is how long a mirror may send nothing before the next one is tried.
const stallLimit = 30 * time.Second

// Fetcher downloads a data set into a folder, as Known.Fetch does.
type Fetcher func(ctx context.Context, dir string, client *http.Client, progress func(done, total int64)) error

// Published returns the names of the data sets that can be downloaded.
func Published() []string { return []string{MNIST().Name, cifarName} }

// Publication returns a published data set, and what downloads it.
func Publication(name string) (Known, Fetcher, error) {
	if name == cifarName {
		_, mirrors, licence := cifarArchive()
		return Known{Name: name, Mirrors: mirrors, Licence: licence}, fetchCIFAR, nil
	}
	set, err := Lookup(name)
	return set, set.Fetch, err
}

// Fetch downloads the set's files into dir, which is made if it is not there.
// A file that is there with the published size and checksum is left alone. Every
// other is taken from the first mirror that gives the published bytes, and
// appears under its name only when whole, checked and on disk; a failed download
// leaves nothing behind.
//
// The client may be nil for http.DefaultClient. The progress function may be
// nil; it is called from this goroutine with the bytes done of all files and
// their total. What a failed mirror had given is taken back, so done can fall.
func (k Known) Fetch(ctx context.Context, dir string, client *http.Client, progress func(done, total int64)) error {
	if client == nil {
		client = http.DefaultClient
	}
	if progress == nil {
		progress = func(done, total int64) {}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for data set %s: %w", k.Name, err)
	}
	var done, total int64
	for _, file := range k.Files {
		total += file.Bytes
	}
	for _, file := range k.Files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("downloading data set %s: %w", k.Name, err)
		}
		report := func(bytes int64) { progress(done+bytes, total) }
		if !file.rightAt(filepath.Join(dir, file.Name)) {
			if err := k.fetchFile(ctx, client, dir, file, report); err != nil {
				return fmt.Errorf("downloading data set %s: %w", k.Name, err)
			}
		}
		report(file.Bytes)
		done += file.Bytes
	}
	return nil
}

// fetchFile tries one mirror after the other.
func (k Known) fetchFile(ctx context.Context, client *http.Client, dir string, file KnownFile, report func(int64)) error {
	if len(k.Mirrors) == 0 {
		return fmt.Errorf("%s: the data set has no mirror", file.Name)
	}
	var failures []error
	for _, mirror := range k.Mirrors {
		err := file.download(ctx, client, mirror+file.Name, dir, report)
		if err == nil {
			return nil
		}
		// Neither a cancelled user nor a full disk is helped by another mirror.
		var local *localError
		if ctx.Err() != nil || errors.As(err, &local) {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		failures = append(failures, err)
	}
	return &mirrorsError{file: file.Name, failures: failures}
}

// localError is a failure on this machine's side.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// download takes one file from one address into dir, atomically.
func (f KnownFile) download(ctx context.Context, client *http.Client, url, dir string, report func(int64)) (err error) {
	temp, err := os.CreateTemp(dir, "."+f.Name+"-*.part")
	if err != nil {
		return &localError{fmt.Errorf("making a temporary file: %w", err)}
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
		}
	}()
	if err := f.receive(ctx, client, url, temp, report); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if err := publish(temp, filepath.Join(dir, f.Name)); err != nil {
		return &localError{err}
	}
	return nil
}

// receive copies the file's bytes from url to w and checks their number and sum.
func (f KnownFile) receive(ctx context.Context, client *http.Client, url string, w io.Writer, report func(int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallLimit, func() {
		cancel(fmt.Errorf("nothing was received for %s", stallLimit))
	})
	defer stall.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	// The checksum is that of the file as stored, so nothing on the way may
	// compress it or take its compression off.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s; allowed is 200 OK", response.Status)
	}
	return f.copyChecked(ctx, w, response.Body, func(n int64) {
		stall.Reset(stallLimit)
		report(n)
	})
}

func (f KnownFile) copyChecked(ctx context.Context, w io.Writer, body io.Reader, received func(int64)) error {
	sum := sha256.New()
	// One byte more than is published is enough to know that it is too long.
	body = io.LimitReader(body, f.Bytes+1)
	buffer := make([]byte, 64<<10)
	var n int64
	for {
		got, err := body.Read(buffer)
		sum.Write(buffer[:got])
		if _, err := w.Write(buffer[:got]); err != nil {
			return &localError{fmt.Errorf("writing: %w", err)}
		}
		n += int64(got)
		if got > 0 {
			received(min(n, f.Bytes))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", n, f.Bytes, causeOf(ctx, err))
		}
	}
	if n > f.Bytes {
		return fmt.Errorf("the size is more than %d bytes; allowed is %d", f.Bytes, f.Bytes)
	}
	if n < f.Bytes {
		return fmt.Errorf("the size is %d bytes; allowed is %d", n, f.Bytes)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return &ChecksumError{File: f.Name, Got: got, Want: f.SHA256}
	}
	return nil
}

// causeOf returns the reason why ctx ended, where it did, in place of err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// publish makes the temporary file durable and gives it its name.
func publish(temp *os.File, path string) error {
	if err := temp.Chmod(0o644); err != nil {
		return fmt.Errorf("setting the mode of %s: %w", temp.Name(), err)
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("flushing %s: %w", temp.Name(), err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", temp.Name(), err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("naming the downloaded file: %w", err)
	}
	return nil
}

// rightAt says whether the file at path is the published one.
func (f KnownFile) rightAt(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() != f.Bytes {
		return false
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == f.SHA256
}

// mirrorsError says in one sentence why each mirror failed.
type mirrorsError struct {
	file     string
	failures []error
}

func (e *mirrorsError) Error() string {
	parts := make([]string, len(e.failures))
	for i, f := range e.failures {
		parts[i] = f.Error()
	}
	return fmt.Sprintf("no mirror gave %s: %s", e.file, strings.Join(parts, "; "))
}

func (e *mirrorsError) Unwrap() []error { return e.failures }
