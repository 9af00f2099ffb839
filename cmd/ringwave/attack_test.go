package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/crypto/attack"
	"ringwave/learner/experiment/experimenttest"
)

func TestAttackPrintsAndExits(t *testing.T) {
	status, out, errs := run(t, "attack", "chosen-c1", "heairfed-client", "nearby-c1")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	// In the report's order, whatever that of the arguments.
	last := -1
	for _, want := range []string{"heairfed-client: heairfed", "nearby-c1: xmk-ckks", "guard: decryption share refused", "chosen-c1: xmk-ckks"} {
		at := strings.Index(out, want)
		if at <= last {
			t.Errorf("%q is at %d, after %d, in\n%s", want, at, last, out)
		}
		last = at
	}
	if strings.Contains(out, "xmkckks-client") {
		t.Error("an attack was run that was not named")
	}
}

func TestAttackJSON(t *testing.T) {
	args := []string{"attack", "--json", "--seed", "7", "airhe-client", "chosen-c1"}
	status, out, errs := run(t, args...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	var report attack.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if !report.AsStated || report.Seed != 7 || len(report.Results) != 2 || report.Results[1].Name != "chosen-c1" || report.Results[1].Attack.Exact != 1 {
		t.Errorf("%+v", report)
	}
	if _, again, _ := run(t, args...); again != out {
		t.Error("the same seed printed something else")
	}
}

func TestAttackRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		`there is no attack "nonesuch"; allowed are heairfed-client, `: {"attack", "chosen-c1", "nonesuch"},
		"--seed: -1 is below 0": {"attack", "--seed", "-1"},
	} {
		status, out, errs := run(t, args...)
		if status != exitBadInput || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d, %q, %q", args, status, out, errs)
		}
	}
}

// The folder has the figure and what --json prints; one that is not empty is refused
// before anything runs.
func TestAttackDraws(t *testing.T) {
	out := filepath.Join(t.TempDir(), "attacks")
	printed, _ := mustRun(t, "attack", "--json", "--out", out, "airhe-client", "chosen-c1")
	if got := string(experimenttest.ReadFile(t, out, "attacks.json")); got != printed {
		t.Errorf("attacks.json has\n%s and --json prints\n%s", got, printed)
	}
	picture := string(experimenttest.ReadFile(t, out, "attacks.svg"))
	for _, want := range []string{"airhe-client: airhe", "chosen-c1: xmk-ckks", "seed 1", "recovered exactly", "control"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is not in the figure", want)
		}
	}
	status, stdout, errs := run(t, "attack", "--out", out, "airhe-client")
	if status != exitBadInput || stdout != "" || !strings.Contains(errs, "not empty") || strings.Contains(errs, "attack 1 of") {
		t.Errorf("into a folder that is not empty: status %d, %q, %q", status, stdout, errs)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := filepath.Join(t.TempDir(), "stopped")
	if status := execute(ctx, []string{"attack", "--out", stopped}, &bytes.Buffer{}, &bytes.Buffer{}); status != exitInterrupted {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(stopped); err == nil {
		t.Error("a folder of nothing was left behind")
	}
}

func TestAttackStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if status := execute(ctx, []string{"attack"}, &bytes.Buffer{}, &bytes.Buffer{}); status != exitInterrupted {
		t.Errorf("status %d", status)
	}
}
