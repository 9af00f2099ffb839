package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"ringwave/radio/intake"
)

// Job is something to compute.
type Job struct {
	ID    string // what it is computed from, as NewID makes it
	Kind  string // which of the kinds knows how
	Title string // for people
	Body  []byte // what the kind takes in
}

// NewID names a job by what it is computed from: the program and parts such as its
// configuration and the digests of its data.
func NewID(program string, parts ...[]byte) string {
	h := sha256.New()
	for _, part := range append(parts, []byte(program)) {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Kind is what jobs can be.
type Kind interface {
	// Compute computes the body of a job into a folder that is there, and which may hold what
	// an interrupted computation of it has left. It tells how much of how much is done. It
	// ends with ctx's error where ctx did, and with what Other returns where this host has
	// other data than the job wants.
	Compute(ctx context.Context, body []byte, dir string, progress func(done, of int)) error
	// Result returns the names of the files of a folder that are the result.
	Result(dir string) ([]string, error)
	// Check says why a folder is no result of the body.
	Check(body []byte, dir string) error
}

// Program names what computes: two that have the same name give the same bytes. It is the
// revision of the source, or without one the digest of the program's file, and what compiled
// it for which processor: a compiler may round x*y+z once on one and twice on another.
func Program() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("naming this program: it was built without modules")
	}
	settings, words := map[string]string{}, []string{info.GoVersion}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		if strings.HasPrefix(s.Key, "GO") && s.Key != "GOOS" { // GOARCH, GOAMD64 and such
			words = append(words, s.Key+"="+s.Value)
		}
	}
	what := "revision " + settings["vcs.revision"]
	if settings["vcs.revision"] == "" || settings["vcs.modified"] != "false" {
		sum, err := digestOfProgram()
		if err != nil {
			return "", fmt.Errorf("naming this program: %w", err)
		}
		what = "build " + sum
	}
	return what + ", " + strings.Join(words, " "), nil
}

func digestOfProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// class says what kept a job from its end.
type class string

const (
	bad     class = "bad"     // what the job asks for: it would fail everywhere
	crash   class = "crash"   // its process, or its own work
	data    class = "data"    // the host has other data
	machine class = "machine" // the host's disk or memory
	stopped class = "stopped" // the worker ends
)

// classes are what a child may say.
var classes = []class{bad, crash, data, machine, stopped}

// otherData is an error of class data.
type otherData struct{ error }

// Other returns an error that says that this host has other data than a job wants.
func Other(err error) error { return otherData{err} }

// classOf returns what an error of Compute says.
func classOf(err error) class {
	var other otherData
	switch {
	case errors.Is(err, context.Canceled):
		return stopped
	case errors.As(err, &other):
		return data
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENOMEM):
		return machine
	case intake.IsUserError(err):
		return bad
	}
	return crash
}

// Failure says why a job was set aside.
type Failure struct {
	Job Job
	Why string // a sentence
	Log string // the last that its process said
}

// Error returns the sentence, with the job's title.
func (f *Failure) Error() string { return f.Job.Title + ": " + f.Why }
