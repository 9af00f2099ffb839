package usbip

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppear: boards are there when configured and with a node, and each counts
// once.
func TestAppear(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	device := func(name, serial, number string) {
		write("sys/bus/usb/devices/"+name+"/serial", serial+"\n")
		write("sys/bus/usb/devices/"+name+"/busnum", "1\n")
		write("sys/bus/usb/devices/"+name+"/devnum", number+"\n")
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	device("1-1", "aa", "2")
	if err := appear(done, root, []string{"aa"}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "aa") {
		t.Errorf("without a configuration: %v", err)
	}
	write("sys/bus/usb/devices/1-1/bConfigurationValue", "1\n")
	if err := appear(done, root, []string{"aa"}); err == nil {
		t.Error("a board without a node is there")
	}
	write("dev/bus/usb/001/002", "")
	if err := appear(done, root, []string{"aa"}); err != nil {
		t.Error(err)
	}
	if err := appear(done, root, []string{"aa", "aa"}); err == nil {
		t.Error("one board counts as two")
	}
}
