package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
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
	var report attackReport
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

func TestAttackStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if status := execute(ctx, []string{"attack"}, &bytes.Buffer{}, &bytes.Buffer{}); status != exitInterrupted {
		t.Errorf("status %d", status)
	}
}
