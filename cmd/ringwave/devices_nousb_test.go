//go:build !usb

package main

import (
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// A build without USB lists what it can, and says how to get one with it.
func TestDevicesThisBuild(t *testing.T) {
	status, stdout, stderr := run(t, "devices")
	if status != exitBadInput || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d, %q", status, stderr)
	}
	experimenttest.WantAll(t, stdout, "this build has no USB", "CGO_ENABLED=1 go install -tags usb ./cmd/ringwave")
	experimenttest.WantAll(t, stderr, "this build has no USB")
	stdout, stderr = mustRun(t, "devices", "rtl_tcp:")
	experimenttest.WantAll(t, stdout, "rtl_tcp:", "this build has no USB")
	if stderr != "" {
		t.Errorf("%q", stderr)
	}
}
