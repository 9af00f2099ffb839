package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// published is a small data set: its files, and a mirror that serves them.
type published struct {
	known   Known
	content map[string][]byte
	asked   atomic.Int32
}

func newPublished(mirrors ...string) *published {
	p := &published{content: map[string][]byte{}}
	p.known = Known{Name: "tiny", Mirrors: mirrors}
	for i := range p.known.Files {
		name := fmt.Sprintf("part-%d.gz", i)
		content := bytes.Repeat([]byte{byte(i), 1, 2}, 1000*(i+1))
		sum := sha256.Sum256(content)
		p.content[name] = content
		p.known.Files[i] = KnownFile{name, int64(len(content)), hex.EncodeToString(sum[:])}
	}
	return p
}

func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	content, ok := p.content[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Write(content)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/"
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func (p *published) checkAll(t *testing.T, dir string) {
	t.Helper()
	if got := names(t, dir); len(got) != len(p.content) {
		t.Errorf("the folder has %v", got)
	}
	for name, want := range p.content {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as published (%v)", name, err)
		}
	}
}

// Every name that can be downloaded has its publication, and no other has.
func TestPublication(t *testing.T) {
	for _, name := range Published() {
		if set, fetch, err := Publication(name); err != nil || fetch == nil || set.Name != name || len(set.Mirrors) == 0 || set.Licence == "" {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	if _, _, err := Publication("nothing"); err == nil {
		t.Error("a set that nobody published has a publication")
	}
}

func TestFetch(t *testing.T) {
	p := newPublished()
	p.known.Mirrors = []string{serve(t, p)}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	var last, total int64
	progress := func(done, all int64) {
		if done < last || done > all {
			t.Errorf("progress went from %d to %d of %d", last, done, all)
		}
		last, total = done, all
	}
	if err := p.known.Fetch(t.Context(), dir, nil, progress); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, dir)
	if last != total || total != 30000 {
		t.Errorf("progress ended at %d of %d, want 30000", last, total)
	}
	asked := p.asked.Load()
	write(t, filepath.Join(dir, "part-2.gz"), []byte("damaged"))
	if err := p.known.Fetch(t.Context(), dir, http.DefaultClient, nil); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, dir)
	if got := p.asked.Load() - asked; got != 1 {
		t.Errorf("one damaged file made %d requests", got)
	}
}

func TestFetchSecondMirror(t *testing.T) {
	p := newPublished()
	good := serve(t, p)
	other := newPublished()
	for name := range other.content {
		other.content[name][0] ^= 1
	}
	for name, first := range map[string]http.Handler{
		"not found": http.NotFoundHandler(),
		"wrong":     other,
		"truncated": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3000")
			w.Write(make([]byte, 10))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			p.known.Mirrors = []string{serve(t, first), good}
			dir := t.TempDir()
			if err := p.known.Fetch(t.Context(), dir, nil, nil); err != nil {
				t.Fatal(err)
			}
			p.checkAll(t, dir)
		})
	}
}

func TestFetchFails(t *testing.T) {
	sum := sha256.Sum256(make([]byte, 3000))
	zeros := hex.EncodeToString(sum[:])
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"wrong":     {func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 3000)) }, "part-0.gz: SHA-256 is " + zeros},
		"short":     {func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 30)) }, "the size is 30 bytes; allowed is 3000"},
		"long":      {func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 3001)) }, "the size is more than 3000 bytes; allowed is 3000"},
		"not found": {http.NotFound, "the answer is 404 Not Found; allowed is 200 OK"},
		"truncated": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3000")
			w.Write(make([]byte, 10))
		}, "after 10 of 3000 bytes: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublished(serve(t, c.serve))
			dir := t.TempDir()
			err := p.known.Fetch(t.Context(), dir, nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p.known.Mirrors[0]+"part-0.gz") {
				t.Errorf("got %v, want the address and %q", err, c.want)
			}
			if left := names(t, dir); len(left) > 0 {
				t.Errorf("%v was left behind", left)
			}
		})
	}
}

func TestFetchCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newPublished()
	stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		w.Write(make([]byte, 10))
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	p.known.Mirrors = []string{stop, stop}
	dir := t.TempDir()
	err := p.known.Fetch(ctx, dir, nil, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled context", err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("%v was left behind", left)
	}
	if p.asked.Load() != 1 {
		t.Error("a second mirror was asked after the cancellation")
	}
	if err := p.known.Fetch(ctx, dir, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled context", err)
	}
}

func TestFetchLocalFailure(t *testing.T) {
	p := newPublished()
	p.known.Mirrors = []string{serve(t, p), serve(t, p)}
	dir := t.TempDir()
	// A folder that has the name of the file cannot be replaced by it.
	if err := os.MkdirAll(filepath.Join(dir, "part-0.gz", "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.known.Fetch(t.Context(), dir, nil, nil); err == nil || !strings.Contains(err.Error(), "naming the downloaded file") {
		t.Errorf("got %v", err)
	}
	if p.asked.Load() != 1 {
		t.Errorf("%d requests for a failure of this machine", p.asked.Load())
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("%v was left behind", left)
	}
}

func TestFetchByName(t *testing.T) {
	if _, err := Lookup("nothing"); err == nil {
		t.Error("an unknown name gave no error")
	}
	for _, m := range MNIST().Mirrors {
		if !strings.HasPrefix(m, "https://") || !strings.HasSuffix(m, "/") {
			t.Errorf("mirror %q", m)
		}
	}
}
