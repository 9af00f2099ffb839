// Package pagetest has a real browser for tests of the page.
//
// It takes in addresses, and gives what a user's browser makes of them: texts, pixels, the
// hosts that were asked, memory. Without a browser tests skip, or fail where
// RINGWAVE_REQUIRE_BENCH is 1. Screenshots are kept in the folder that RINGWAVE_SCREENSHOTS
// names.
package pagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take for anything on a loaded machine.
const patience = time.Minute

// Browser is a browser that tests open tabs of.
type Browser struct {
	// ctx returns the context by which chromedp finds the browser.
	ctx func() context.Context
}

// Start starts a browser, which ends with the test.
func Start(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal("there is no browser: Debian's package chromium has one")
		}
		t.Skip("there is no browser: Debian's package chromium has one")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("ignore-certificate-errors", true), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	return &Browser{func() context.Context { return ctx }}
}

// Tab is a page in a tab of its own.
type Tab struct {
	t     *testing.T
	ctx   func() context.Context // by which chromedp finds the tab
	mu    sync.Mutex
	hosts map[string]bool
	wrong []string // what the page's scripts threw or the browser refused
}

// Open opens an address in a tab of a size in CSS pixels, dark or light.
func (b *Browser) Open(t *testing.T, address string, width, height int64, dark bool) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx())
	t.Cleanup(cancel)
	tab := &Tab{t: t, ctx: func() context.Context { return ctx }, hosts: map[string]bool{}}
	if err := chromedp.Listen(ctx, tab.hear); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	tab.do(
		call(network.Enable, network.EnableParams{}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	return tab
}

// call is a command of the browser's protocol as an action.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// hear takes in what the browser says of the tab.
func (tab *Tab) hear(event any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Host != "" {
			tab.hosts[u.Host] = true
		}
	case *network.EventWebSocketCreated:
		if u, err := url.Parse(e.URL); err == nil {
			tab.hosts[u.Host] = true
		}
	case *runtime.EventExceptionThrown:
		tab.wrong = append(tab.wrong, fmt.Sprintf("%+v", *e.ExceptionDetails))
	}
}

// do runs actions, and fails the test where they fail.
func (tab *Tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx(), patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tab.t.Fatalf("the browser: %v", err)
	}
}

// Eval evaluates an expression of the page, which may be a promise, into v.
func (tab *Tab) Eval(expression string, v any) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx(), patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("(async()=>JSON.stringify(await (%s))??'null')()", expression), chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("%s: %v", expression, err)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		tab.t.Fatalf("%s: %q: %v", expression, text, err)
	}
}

// Text returns what an expression gives.
func (tab *Tab) Text(expression string) (s string) {
	tab.t.Helper()
	tab.Eval(fmt.Sprintf("String(%s)", expression), &s)
	return s
}

// Await waits until an expression is true.
func (tab *Tab) Await(expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx(), patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](fmt.Sprintf("!!(%s)", expression), chromedp.WithPollingInterval(30*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		tab.mu.Lock()
		wrong := tab.wrong
		tab.mu.Unlock()
		tab.t.Fatalf("%s never came to be: %v; the page's errors: %q", expression, err, wrong)
	}
}

// Click clicks on what a selector finds.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.do(chromedp.Click(chromedp.CSS(selector)))
}

// Keys presses keys, as a user would.
func (tab *Tab) Keys(keys string, options ...chromedp.KeyOption) {
	tab.t.Helper()
	tab.do(chromedp.KeyEvent(keys, options...))
}

// Resize gives the tab another size.
func (tab *Tab) Resize(width, height int64) {
	tab.t.Helper()
	tab.do(chromedp.EmulateViewport(width, height))
}

// Hosts returns the hosts that the page has asked.
func (tab *Tab) Hosts() (list []string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for h := range tab.hosts {
		list = append(list, h)
	}
	slices.Sort(list)
	return list
}

// Wrong returns what the page's scripts threw.
func (tab *Tab) Wrong() error {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.wrong) == 0 {
		return nil
	}
	return errors.New(tab.wrong[0])
}

// Heap returns how many bytes the page's scripts hold after a collection.
func (tab *Tab) Heap() (used float64) {
	tab.t.Helper()
	tab.do(call(heapprofiler.CollectGarbage, cdp.Empty{}), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		r, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		used = r.UsedSize + r.BackingStorageSize
		return err
	}))
	return used
}

// Screenshot keeps a picture of the whole page, where RINGWAVE_SCREENSHOTS names a folder.
func (tab *Tab) Screenshot(name string) {
	tab.t.Helper()
	dir := os.Getenv("RINGWAVE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var size struct{ Width, Height, Old int64 }
	tab.Eval(`({width: innerWidth, height: Math.max(innerHeight, document.documentElement.scrollHeight), old: innerHeight})`, &size)
	tab.Resize(size.Width, size.Height) // before the picture, so that what is drawn has its place
	defer tab.Resize(size.Width, size.Old)
	tab.Eval(`new Promise(done => { let n = 0; const next = () => ++n > 4 ? done(true) : requestAnimationFrame(next); next(); })`, nil)
	ctx, cancel := context.WithTimeout(tab.ctx(), patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		tab.t.Fatalf("taking a picture: %v", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		tab.t.Fatal(err)
	}
}
