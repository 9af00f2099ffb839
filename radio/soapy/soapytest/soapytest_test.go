package soapytest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/soapy/soapytest"
)

// TestSoapySDRUtil: SoapySDR's own program finds the boards that there are, and reads what
// they can.
func TestSoapySDRUtil(t *testing.T) {
	folder := soapytest.Build(t)
	util, err := exec.LookPath("SoapySDRUtil")
	if err != nil {
		radiotest.Missing(t, "SoapySDRUtil is not installed (on Debian: apt-get install soapysdr-tools)")
	}
	state := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command(util, args...)
		cmd.Env = append(os.Environ(), soapytest.PluginPath+"="+folder, "RINGTEST_BOARDS=A,B", "RINGTEST_STATE="+state)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("SoapySDRUtil %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if found := run("--find=driver=ringtest"); !strings.Contains(found, "serial = A") || !strings.Contains(found, "serial = B") {
		t.Errorf("it finds:\n%s", found)
	}
	probed := run("--probe=driver=ringtest,serial=B,channels=2")
	for _, want := range []string{"Channels: 2 Rx, 2 Tx", "Timestamps: YES", "Native format: CS16 [full-scale=32768]", "PAD gain range: [0, 50, 1] dB", "ref_locked: true"} {
		if !strings.Contains(probed, want) {
			t.Errorf("it reads no %q:\n%s", want, probed)
		}
	}
	s, err := soapytest.ReadState(state, "B")
	if err != nil || s != (soapytest.State{Hertz: 100e6}) {
		t.Errorf("behind it the state is %+v, %v", s, err)
	}
}
