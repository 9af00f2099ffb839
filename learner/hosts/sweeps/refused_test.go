package sweeps

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment"
)

// A worker starts no program because of what the bus says.
func TestWorkersStartNoProgram(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	command, err := json.Marshal([]string{"touch", mark})
	if err != nil {
		t.Fatal(err)
	}
	c, err := experiment.Load("../../../hw-configs/loopback.toml", "task.model=process", "task.dataset=process", "task.fallback=", "task.command="+string(command), "optimizer.directions=philox")
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, compute := range map[string]func() error{
		"run": func() error {
			body, err := json.Marshal(runBody{Config: string(text)})
			if err != nil {
				t.Fatal(err)
			}
			return Runs{}.Compute(t.Context(), body, filepath.Join(t.TempDir(), "job"), func(int, int) {})
		},
		"cell": func() error {
			body, err := json.Marshal(cellBody{Config: string(text)})
			if err != nil {
				t.Fatal(err)
			}
			return Cells{}.Compute(t.Context(), body, t.TempDir(), func(int, int) {})
		},
	} {
		if err := compute(); err == nil || !strings.Contains(err.Error(), "nothing that comes over the bus is started") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program ran")
	}
}
