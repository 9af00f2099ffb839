package sweeps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
	"ringwave/radio/intake"
)

// Options that nothing can be done with are refused in a sentence, and leave nothing behind.
func TestOptionsRefused(t *testing.T) {
	bench := filepath.Join(t.TempDir(), "bench")
	if _, err := identity.Create(bench, identity.Options{Devices: 1}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for want, o := range map[string]sweeps.EngineOptions{
		"--workers is 99999: allowed are -1 for none":    {Workers: 99999},
		"--workers is -2: allowed are -1 for none":       {Workers: -2},
		"--workers is -1 without --listen or --join":     {Workers: -1},
		"--silence is 1ns: allowed is 2s or more":        {Broker: jobs.BrokerOptions{Silence: 1}},
		`the address of the bus is "nonsense"`:           {Listen: "nonsense"},
		"--join wants --bench":                           {URL: "tls://x:1"},
		"--join names another":                           {URL: "tls://x:1", Bench: bench, Listen: ":0"},
		"is that of devices; allowed is a folder that":   {Bench: bench},
		"nothing/enrolment.toml: the registry cannot be": {Bench: "nothing"},
	} {
		o.Folder, o.Say = filepath.Join(out, "queue"), func(string) {}
		_, err := sweeps.Open(t.Context(), o)
		if !intake.IsUserError(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v in place of %s", err, want)
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("%s: something is left: %v", want, err)
			_ = os.RemoveAll(out)
		}
	}
}
