package setup

import (
	"fmt"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// A round's payload has the digits of a ciphertext's two halves: N coefficients of each,
// and those of the messages and of the witnesses.
func TestRoundSymbolsCountMessages(t *testing.T) {
	for _, p := range []int{1, 65} {
		c, err := config.Load("../"+experimenttest.WaveformConfig, []string{fmt.Sprintf("optimizer.packed_directions=%d", p)})
		if err != nil {
			t.Fatal(err)
		}
		ch, err := NewChannel(c, keystream.FromInteger(uint64(c.Experiment.Seed)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := NewDesign(c, ch)
		if err != nil {
			t.Fatal(err)
		}
		want := roundDigits(c, d) * 2 * (d.Params.N + p + d.Witnesses)
		if got := RoundSymbols(c, d); got != want {
			t.Errorf("P = %d: %d payload symbols, expected %d", p, got, want)
		}
	}
}
