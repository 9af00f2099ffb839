package paper

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/tuneinsight/lattigo/v5/core/rlwe"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/report"
)

// timedTurns is how many encryptions of either kind are timed, in turns, so that what
// else the machine does weighs on both.
const timedTurns = 60

// timeEncryption makes the row of Table II that a clock gives, with lattigo's own
// encryption beside it.
func (r *reproduction) timeEncryption() error {
	t := report.Table{
		Caption: fmt.Sprintf("One encryption, whole form, one thread: medians of %d, in turns with lattigo's rlwe encryptor in the same ring. The paper's times are of another machine, and seem to be of more than one encryption.", timedTurns),
		Head:    []string{"n", "paper", "here", "lattigo", "here over lattigo"},
	}
	for _, p := range []struct{ set, paper string }{{"paper-4096", "23.92 ms"}, {"paper-8192", "55.56 ms"}} {
		ours, theirs, n, err := r.encryptions(p.set)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, report.Row{Cells: []string{fmt.Sprint(n), p.paper, milliseconds(ours), milliseconds(theirs), fmt.Sprintf("%.2f", ours/theirs)}})
	}
	r.timing = append(r.timing, t)
	return nil
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3f ms", 1e3*seconds) }

// encryptions returns the median seconds of an encryption here and of lattigo's.
func (r *reproduction) encryptions(name string) (ours, theirs float64, n int, err error) {
	set, ok := xmkckks.Lookup(name)
	if !ok {
		return 0, 0, 0, fmt.Errorf("the set %s is not there", name)
	}
	ctx, err := xmkckks.NewContext(set, xmkckks.Whole, 1, 1, seedOf("public"))
	if err != nil {
		return 0, 0, 0, err
	}
	seed := seedOf("device")
	device, err := ctx.NewDevice(xmkckks.DeviceConfig{Mu: 1, DeltaMax: 1, Seed: &seed, Guard: xmkckks.NewLedger(1)})
	if err != nil {
		return 0, 0, 0, err
	}
	defer device.Close()
	params, err := rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{LogN: bits.Len(uint(set.N)) - 1, Q: set.Primes, NTTFlag: true})
	if err != nil {
		return 0, 0, 0, fmt.Errorf("lattigo's parameters: %w", err)
	}
	_, public := rlwe.NewKeyGenerator(params).GenKeyPairNew()
	encryptor := rlwe.NewEncryptor(params, public)
	plain, cipher := rlwe.NewPlaintext(params, params.MaxLevel()), rlwe.NewCiphertext(params, 1, params.MaxLevel())
	plain.IsNTT = false
	key := ctx.NewAggregatedKey()
	var here, there []float64
	for turn := range uint32(timedTurns) {
		began := time.Now()
		if err := device.Prepare(1, turn); err != nil {
			return 0, 0, 0, err
		}
		ctx.SetKey(key, device.PublicKey())
		if _, err := device.Encrypt(key, []float64{0.25}); err != nil {
			return 0, 0, 0, err
		}
		here = append(here, time.Since(began).Seconds())
		began = time.Now()
		if err := encryptor.Encrypt(plain, cipher); err != nil {
			return 0, 0, 0, fmt.Errorf("lattigo's encryption: %w", err)
		}
		there = append(there, time.Since(began).Seconds())
	}
	_, ours, _ = chart.Quartiles(here)
	_, theirs, _ = chart.Quartiles(there)
	return ours, theirs, set.N, nil
}
