//go:build usb && linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/watch/page/pagetest"
)

// A real browser looks at a run over emulated boards, through libusb, and takes their
// carriers off.
func TestWatchLibusb(t *testing.T) {
	browser := pagetest.Start(t)
	program, s := buildProgram(t), newScene(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-this-test"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // it is the program's now
	r := s.startAs(t, func(args []string) *exec.Cmd {
		return exec.Command(program, append(args, "--watch", addr, "--watch-token", token)...)
	})
	experimenttest.Until(t, "the page", func() bool {
		answer, err := http.Get("http://" + addr + "/healthz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == 200
	})
	tab := browser.Open(t, "http://"+addr+"/?token=a-token-of-this-test", 1300, 900, false)
	tab.Await(`Number(document.querySelector("#view-learning table")?.rows[1].cells[0].textContent) >= 1`)
	tab.Keys("2")
	tab.Await(`/^round \d+, attempt \d+, (b|c0|c1|D): read; α = /.test(document.getElementById("frame-name").textContent)`)
	tab.Await(`document.getElementById("spectrum").getAttribute("aria-label").startsWith("Spectrum: the average is strongest at ")`)
	tab.Screenshot("boards-air")
	tab.Keys("3")
	serials := fmt.Sprintf("%s,%s,%s", safetySerial(0), safetySerial(1), safetySerial(2)) // the receiver's is the last
	tab.Await(fmt.Sprintf(`[...document.querySelector("#view-bench table")?.rows ?? []].slice(1).map(r => r.cells[2].textContent).join() === %q`, serials))
	tab.Screenshot("boards-bench")
	s.onAir(t, r)
	since := s.sent()
	tab.Click("#off")
	r.end(t, exitInterrupted)
	s.switchedOff(t, since, safetyRate.Samples(2*time.Second))
	tab.Await(`document.getElementById("lost").textContent.startsWith("The program has ended")`)
	experimenttest.WantAll(t, r.output.String(), "ringwave run --resume "+r.folder)
	if err := tab.Wrong(); err != nil {
		t.Error(err)
	}
}
