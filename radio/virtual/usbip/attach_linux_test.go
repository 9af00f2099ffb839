package usbip_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/radio/virtual/usbip"
)

// TestAttach: with a folder in place of the kernel's.
func TestAttach(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	if _, err := usbip.Attach(dir, newBoard(t)); err != usbip.ErrNoController {
		t.Errorf("without a controller: %v", err)
	}
	status := "hub port sta spd dev      sockfd local_busid\nhs  0000 006 003 00010002 000003 1-1\nhs  0001 004 000 00000000 000000 0-0\nss  0008 004 000 00000000 000000 0-0\n"
	for name, content := range map[string]string{"status": status, "attach": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := usbip.Attach(dir, newBoard(t))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel did not take its end, so that the connection ends by itself.
	<-a.Done()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, "attach"))
	if err != nil || !strings.HasPrefix(string(line), "1 ") || !strings.HasSuffix(string(line), " 65538 3") {
		t.Errorf("the kernel was told %q, %v", line, err)
	}
	full := strings.ReplaceAll(status, "hs  0001 004", "hs  0001 006")
	if err := os.WriteFile(filepath.Join(dir, "status"), []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := usbip.Attach(dir, newBoard(t)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("without a free port: %v", err)
	}
}
