package replay

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/uplink"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// script is the channel that is not ours.
const script = "../../../scripts/gnuradio-channel"

// throughGNURadio passes run folders through the script into a new one.
func throughGNURadio(t *testing.T, options []string, from ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "heard")
	args := append(slices.Clone(options), from...)
	if out, err := exec.Command(script, append(args, to)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", options, err, out)
	}
	return to
}

func needsGNURadio(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import numpy; from gnuradio import channels").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: GNU Radio is missing, install the packages gnuradio and python3-numpy: %v %s", err, out)
	}
}

// sent keeps what devices send.
type sent map[slot.Slot][]zq.Vector

// isSum reports whether a digest is that of a sum of two devices' elements with integer
// gains, none of them 0.
func (b *replayBench) isSum(x []zq.Vector, digest string) bool {
	const most = 24 // link.max_alpha is 16
	first := b.mod.NewVector(x[0].Len())
	for h := int64(-most); h <= most; h++ {
		first.Clear()
		b.mod.AddScaled(first, h, x[0])
		b.mod.AddScaled(first, -most-1, x[1])
		for k := int64(-most); k <= most; k++ {
			b.mod.AddScaled(first, 1, x[1])
			if h != 0 && k != 0 && uplink.ElementsDigest(first) == digest {
				return true
			}
		}
	}
	return false
}

// judge replays rounds of a folder and counts those of which all was read, and those of
// which all is as it was. What was read must be a sum of what was sent.
func (b *replayBench) judge(t *testing.T, dir string, rounds int, all sent) (read, same int) {
	t.Helper()
	b.dir = dir
	void, other := map[uint32]bool{}, map[uint32]bool{}
	for _, v := range b.replay(t, rounds) {
		s := slot.Slot{Round: v.Round, Transmission: phase(v.Transmission)}
		void[v.Round] = void[v.Round] || v.Now.Void != ""
		other[v.Round] = other[v.Round] || !v.Agrees
		if v.Now.Void == "" && !v.Agrees && !b.isSum(all[s], v.Now.Elements) {
			t.Errorf("round %d, %s: %v is no sum of what was sent", v.Round, v.Transmission, v.Now)
		}
	}
	for k := range uint32(rounds) {
		if !void[k+1] {
			read++
		}
		if !other[k+1] {
			same++
		}
	}
	return read, same
}

// What GNU Radio's channel model makes of a recording is decoded to sums of what was sent.
// They need not be the sums of before: where other scales fit as well, another may be taken.
func TestThroughGNURadio(t *testing.T) {
	needsGNURadio(t)
	rounds := 6
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 60
	}
	b := newReplayBench(t)
	all := sent{}
	b.sent = func(s slot.Slot, x zq.Vector) { all[s] = append(all[s], x) }
	for k := range rounds {
		b.round(t, uint32(k+1), nil)
	}
	recorded := b.dir
	for _, options := range [][]string{
		nil, {"--offset=0.5"}, {"--offset=100"}, {"--offset=5000"}, {"--echo=8:-20:2"}, {"--clock=20"}, {"--clock=-20"}, {"--noise=0.005"},
		{"--offset=2000", "--echo=8:-20:2", "--clock=20", "--noise=0.003"},
	} {
		read, same := b.judge(t, throughGNURadio(t, options, recorded), rounds, all)
		t.Logf("%v: %d of %d rounds read, %d with the same sums", options, read, rounds, same)
		if 3*read < 2*rounds {
			t.Errorf("%v: only %d of %d rounds were read", options, read, rounds)
		}
	}
}

// What devices send alone, each through a channel model of its own, is added up and
// decoded.
func TestDevicesThroughGNURadio(t *testing.T) {
	needsGNURadio(t)
	const rounds = 6
	all := sent{}
	var b *replayBench
	var alone []string
	for i, options := range [][]string{{"--echo=8:-26:1", "--offset=100"}, {"--echo=5:-30:2", "--echo=11:-34", "--offset=100.01"}} {
		means, stds := []string{"[1, 1e-12]", "[1e-12, 1]"}, []string{"[0.3, 0]", "[0, 0.3]"}
		b = newReplayBench(t, "link.frame_repeats=0", "link.snr_db=150",
			"channel.mean_per_device="+means[i], "channel.std_per_device="+stds[i])
		clear(all)
		b.sent = func(s slot.Slot, x zq.Vector) { all[s] = append(all[s], x) }
		for k := range rounds {
			b.round(t, uint32(k+1), nil)
		}
		alone = append(alone, throughGNURadio(t, options, b.dir))
	}
	read, _ := b.judge(t, throughGNURadio(t, []string{"--noise=0.002"}, alone...), rounds, all)
	t.Logf("%d of %d rounds read", read, rounds)
	if 3*read < 2*rounds {
		t.Errorf("only %d of %d rounds were read", read, rounds)
	}
}

// What the script cannot pass it refuses in a sentence, and leaves nothing behind.
func TestGNURadioChannelRefuses(t *testing.T) {
	needsGNURadio(t)
	b := newReplayBench(t)
	b.round(t, 1, nil)
	codes := newReplayBench(t, "link.record=ci8")
	codes.round(t, 1, nil)
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, uplink.IQFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{b.dir}, {"--offset=x", b.dir}, {"--offset=nan", b.dir}, {"--clock=2000", b.dir}, {"--noise=-1", b.dir}, {"--echo=0:-3", b.dir}, {"--echo=8", b.dir}, {"--echo=8:x", b.dir}, {"--echo=8:inf", b.dir},
		{codes.dir}, {empty}, {filepath.Join(empty, "none")}, {b.dir, codes.dir}, {"--what", b.dir},
	} {
		folder := t.TempDir()
		to := filepath.Join(folder, "to")
		if len(args) == 1 && args[0] == b.dir {
			to = b.dir // which exists
		}
		out, err := exec.Command(script, append(args, to)...).CombinedOutput()
		var status *exec.ExitError
		if !errors.As(err, &status) || status.ExitCode() != 2 || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
			t.Errorf("%v: left are %v (%v)", args, left, err)
		}
	}
}
