package paper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/airhe"
	"ringwave/crypto/attack"
	"ringwave/crypto/heairfed"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
)

// systemFacts is a column of Table I.
type systemFacts struct {
	scheme, keys, n, q, csi, equal, payload, curious string
}

// table1 fills Table I: scheme, dimensions and moduli are settings, and everything else
// is what the programs did when they were tried.
func (r *reproduction) table1(ctx context.Context) (report.Table, error) {
	t := report.Table{
		Caption: "Table I, the paper's words in the last column. Scheme, dimension and modulus are what the programs were set to be, read from the rings that they compute in: settings, and no results. Keys and the last row: a client tries its own key on another's ciphertext. Channel state: whether the sums of a round change when the pilots' error does. Pre-equalisation: whether the same values, sent over other gains, give the same sum. Payload: how many numbers each device hands to the uplink.",
		Head:    []string{"", "airhe", "heairfed", "xmk-ckks", "paper"},
	}
	var facts []systemFacts
	for _, name := range []string{config.AirHE, config.HEAirFed, config.XMKCKKS} {
		f, err := r.factsOf(ctx, name)
		if err != nil {
			return t, fmt.Errorf("trying %s: %w", name, err)
		}
		facts = append(facts, f)
	}
	for _, row := range []struct {
		name    string
		of      func(systemFacts) string
		paper   [3]string
		setting bool // what the programs were written to be, or given
	}{
		{"scheme", func(f systemFacts) string { return f.scheme }, [3]string{"LWE", "CKKS", "xMK-CKKS"}, true},
		{"keys", func(f systemFacts) string { return f.keys }, [3]string{"single", "single", "multi-key"}, false},
		{"dimension n", func(f systemFacts) string { return f.n }, [3]string{"9", "4096", "4096, 8192"}, true},
		{"modulus q", func(f systemFacts) string { return f.q }, [3]string{"6560", "2³⁰", "2¹⁰⁹, 2²¹⁸"}, true},
		{"channel state needed", func(f systemFacts) string { return f.csi }, [3]string{"yes", "yes", "no"}, false},
		{"pre-equalisation", func(f systemFacts) string { return f.equal }, [3]string{"yes", "yes", "no"}, false},
		{"encrypted payload", func(f systemFacts) string { return f.payload }, [3]string{"scalar", "gradient", "scalar"}, false},
		{"honest-but-curious client", func(f systemFacts) string { return f.curious }, [3]string{"vulnerable", "vulnerable", "secure"}, false},
	} {
		cells, equal := []string{row.name}, true
		for k, f := range facts {
			cells = append(cells, row.of(f))
			equal = equal && row.of(f) == row.paper[k]
		}
		cells = append(cells, fmt.Sprintf("%s | %s | %s", row.paper[0], row.paper[1], row.paper[2]))
		t.Rows = append(t.Rows, table1Row(cells, equal, row.setting))
	}
	last := &t.Rows[len(t.Rows)-1]
	last.Why = "of what a client alone can do; see the attacks for clients that work with the server"
	return t, nil
}

// table1Row judges a row. A setting that is the paper's is no result; one that is not
// would be a difference.
func table1Row(cells []string, equal, setting bool) report.Row {
	if setting && equal {
		return report.Row{Cells: cells, Verdict: report.Setting}
	}
	return report.Row{Cells: cells, Verdict: same(equal), Against: report.PaperValue}
}

// factsOf tries a system.
func (r *reproduction) factsOf(ctx context.Context, aggregator string) (f systemFacts, err error) {
	if f.scheme, f.n, f.q, err = dimensionsOf(aggregator); err != nil {
		return f, err
	}
	read, err := r.readByClient(ctx, map[string]string{config.AirHE: "airhe-client", config.HEAirFed: "heairfed-client", config.XMKCKKS: "xmkckks-client"}[aggregator])
	if err != nil {
		return f, err
	}
	f.keys, f.curious = "multi-key", "secure"
	if read > 0.5 {
		f.keys, f.curious = "single", "vulnerable"
	}
	exact, err := r.trySystem(ctx, aggregator, 0)
	if err != nil {
		return f, err
	}
	misled, err := r.trySystem(ctx, aggregator, 0.3)
	if err != nil {
		return f, err
	}
	f.csi, f.equal, f.payload = yes(!exact.equal(misled)), yes(exact.sameOverGains()), "scalar"
	if exact.payload > 1 {
		f.payload = "gradient"
	}
	return f, nil
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// dimensionsOf reads a system's constants.
func dimensionsOf(aggregator string) (scheme, n, q string, err error) {
	switch aggregator {
	case config.AirHE:
		return "LWE", fmt.Sprint(airhe.N), fmt.Sprint(airhe.Q), nil
	case config.HEAirFed:
		return "CKKS", fmt.Sprint(heairfed.N), powerOfTwo(math.Log2(heairfed.Q)), nil
	}
	small, okSmall := xmkckks.Lookup("paper-4096")
	large, okLarge := xmkckks.Lookup("paper-8192")
	if !okSmall || !okLarge {
		return "", "", "", errors.New("the paper's sets are not there")
	}
	return "xMK-CKKS", fmt.Sprintf("%d, %d", small.N, large.N), powerOfTwo(small.LogQ()) + ", " + powerOfTwo(large.LogQ()), nil
}

func powerOfTwo(log float64) string { return "2" + report.Superscript(int(math.Round(log))) }

// readByClient returns the share of another's values that a client with its own key reads.
func (r *reproduction) readByClient(ctx context.Context, name string) (float64, error) {
	attacks, err := attack.Choose(name)
	if err != nil {
		return 0, err
	}
	results, err := attack.Run(ctx, attacks, keystream.FromInteger(1), attack.ProgressTo(r.stderr))
	most := 0.0
	for _, res := range results {
		most = math.Max(most, res.Attack.Exact)
	}
	return most, err
}

// tryout is what a system gave when all rounds had the same values to send.
type tryout struct {
	sums    [][]float64 // of each round
	spread  []float64   // expected deviation of a sum from what the values add up to
	payload int         // numbers of a device and round
}

// trialRounds is how many rounds a system is tried for.
const trialRounds = 8

// trySystem sends the same values through a system for some rounds, over gains of sigma
// = 1 and next to no receiver noise, with pilots of some error.
func (r *reproduction) trySystem(ctx context.Context, aggregator string, pilotStd float64) (out tryout, err error) {
	c := r.shortened(paperMNIST())
	c.Experiment.Aggregator, c.Optimizer.Rounds = aggregator, trialRounds // the shares of a key
	c.Channel.PilotStd, c.Link.SNRdB, c.Encryption.DeltaMax = pilotStd, 120, 0.5
	s, err := r.lab().New(c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	carry, payload, err := s.Carrier()
	if err != nil {
		return out, err
	}
	rnd := rand.New(seedOf("values of Table I").Stream())
	values := make([][]float64, c.Devices.Count)
	for i := range values {
		for range payload {
			values[i] = append(values[i], rnd.Float64()-0.5)
		}
	}
	out.payload = payload
	for k := 1; k <= trialRounds; k++ {
		sum, spread, err := carry(ctx, k, values)
		if err != nil {
			return out, err
		}
		out.sums, out.spread = append(out.sums, sum), append(out.spread, spread)
	}
	return out, nil
}

// equal reports whether two trials gave the same to the bit.
func (t tryout) equal(o tryout) bool {
	return bytes.Equal(fmt.Append(nil, t.sums), fmt.Append(nil, o.sums))
}

// sameOverGains reports whether every round gave the same sums, within their noise.
func (t tryout) sameOverGains() bool {
	for k, sums := range t.sums[1:] {
		square := 0.0
		for j, x := range sums {
			square += (x - t.sums[0][j]) * (x - t.sums[0][j]) / float64(len(sums))
		}
		if math.Sqrt(square) > 6*(t.spread[0]+t.spread[k+1]) {
			return false
		}
	}
	return true
}
