package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ringwave/calibration/bringup"
	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio/life"
)

// Nothing is opened, sent or written by a bring-up that nobody has permitted, or that has
// nothing to try: one sentence says why.
func TestBringUpRefusals(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "there is no terminal to ask on whether boards may send: give --yes, or only steps that do not send"},
		{[]string{"--steps", "boards,levels"}, "there is no terminal to ask on"},
		{[]string{"--yes", "--set", "radio.transmit=false"}, "radios send only with radio.transmit = true"},
		{[]string{"--yes", "--steps", "bords"}, `--steps: "bords" is no step; allowed is boards, clock, silence,`},
		{[]string{"--yes", "--set", "radio.transmitters=[]", "--set", "radio.transmit=false", "--set", "radio.receiver="}, "radio.transmitters is empty: bringup tries radios"},
		{[]string{"--yes", "--second", "hackrf:72696e6700000001"}, "--second hackrf:72696e6700000001: allowed is a board that takes no part in the bench"},
	} {
		dir := filepath.Join(t.TempDir(), "b")
		status, _, stderr := run(t, append([]string{"bringup", experimenttest.VirtualBenchConfig, "--out", dir}, c.args...)...)
		if status != exitBadInput || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: status %d, %q; expected is %q", c.args, status, stderr, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%q: there is a folder: %v", c.args, err)
		}
	}
}

// Boards that are not there are a step that fails: status 1, with page and archive.
func TestBringUpWithoutBoards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	status, stdout, stderr := run(t, "bringup", experimenttest.VirtualBenchConfig, "--out", dir, "--steps", "boards,clock", "--json",
		"--set", `radio.transmitters=["nosuch:1", "nosuch:2"]`)
	if status != exitFailure || !strings.Contains(stdout, `device \"nosuch:1\" has the scheme \"nosuch\"`) || !strings.Contains(stdout, `"passed": false`) || !strings.Contains(stderr, "ringwave: failed: boards\n") {
		t.Errorf("status %d, %s, %q", status, stdout, stderr)
	}
	for _, name := range []string{"results.json", "report.html", "bringup.tar.gz"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is to be sent is said, and sent only if the answer is yes. An end of the input is a no,
// and nobody need answer once the program is to stop.
func TestBringUpAsks(t *testing.T) {
	ask := func(ctx context.Context, in io.Reader) (string, error) {
		cmd, said := &cobra.Command{}, &strings.Builder{}
		cmd.SetIn(in)
		cmd.SetErr(said)
		err := (&bringUpFlags{}).ask(ctx, cmd, console.New(cmd), "a tone at 433 MHz")
		return said.String(), err
	}
	for answer, want := range map[string]error{"y\n": nil, "YES\n": nil, "n\n": bringup.ErrRefused, "\n": bringup.ErrRefused, "": bringup.ErrRefused, "yesterday\n": bringup.ErrRefused} {
		said, err := ask(t.Context(), strings.NewReader(answer))
		if !errors.Is(err, want) || !strings.Contains(said, "This will be sent: a tone at 433 MHz.") {
			t.Errorf("%q: %v, %q", answer, err, said)
		}
	}
	silent, end := io.Pipe()
	defer end.Close()
	if _, err := ask(life.Ended(), silent); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
