package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/report"
)

// setsShares is tau of the listed figures: 400 rounds, one share each.
const setsShares = 400

// setsLink is the link that the listed figures hold for: the paper's ten
// devices at sigma = 1.
func setsLink(devices int, alpha float64) xmkckks.Link {
	l := xmkckks.Link{Alpha: alpha, DeltaMax: 1, Shares: setsShares}
	for range devices {
		l.Mu = append(l.Mu, 1)
		l.Omega = append(l.Omega, 2)
	}
	return l
}

func newSetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sets",
		Short: "List the parameter sets: security, flooding, sizes",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printSets(cmd.OutOrStdout())
		},
	}
}

func printSets(w io.Writer) error {
	for _, p := range xmkckks.Sets() {
		devices, alpha := 10, 256.0
		d, err := xmkckks.NewDesign(p, p.Form, setsLink(devices, alpha))
		if err != nil { // the smallest set has no room for the paper's channel
			devices, alpha = 3, 1
			if d, err = xmkckks.NewDesign(p, p.Form, setsLink(devices, alpha)); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%s: %s\n", p.Name, p.Note)
		printSet(w, d)
		fmt.Fprintf(w, "  (witnesses and flooding for %d devices, sigma = 1, alpha = %v)\n\n", devices, alpha)
	}
	fmt.Fprint(w, floodingNotion)
	return nil
}

// floodingNotion says what the bits of flooding are, and are not.
const floodingNotion = `Bits of flooding are bits of advantage: whoever tells shares as they are from shares
without the decryption noise, with whatever computing power, has the advantage of
Micciancio and Walter 2^-s at most (eprint 2022/816). The statistical distance is near
the square root of that. Each device floods on its own, which is liberal security
(eprint 2025/395) against servers that follow the protocol, for as many shares of a
key as are stated.
`

// printSet prints what a parameter set is and costs.
func printSet(w io.Writer, d xmkckks.Design) {
	p := d.Params
	fmt.Fprintf(w, "  ring               n = %d, log2 q = %.1f in %s, Lambda = 2^%d\n", p.N, p.LogQ(), report.Counted(len(p.Primes), "prime"), p.LogLambda)
	for j, prime := range p.Primes {
		fmt.Fprintf(w, "  %-18s %d = %#x\n", map[bool]string{true: "primes"}[j == 0], prime, prime)
	}
	fmt.Fprintf(w, "  modulus q          %v\n", p.Modulus())
	security := p.Security()
	fmt.Fprintf(w, "  security, 2018     %s (HomomorphicEncryption.org; classical, ternary secrets)\n", security.ByStandard())
	fmt.Fprintf(w, "  security, 2024     %s (eprint 2024/463)\n", security.ByNewer())
	if c := security.Caveat(); c != "" {
		fmt.Fprintf(w, "                     %s\n", c)
	}
	fmt.Fprintf(w, "  distributions      secret %v (variance %.3f), v %v, errors %v (variance %.4g)\n", p.Secret, p.Secret.Variance(), p.Ephemeral, p.KeyError, p.KeyError.Variance())
	fmt.Fprintf(w, "  flooding           %s\n", floodingText(d))
	fmt.Fprintf(w, "  ciphertext         %d bytes, %.0f times a float64\n", p.CiphertextBytes(), p.ExpansionFactor())
	messages := d.Link.Messages
	fmt.Fprintf(w, "  uplink a round     %d bits a device in the %v form, witnesses %d; %d whole, %d short\n",
		d.UplinkBits(), d.Form, d.Witnesses, p.UplinkBits(xmkckks.Whole, messages, d.Witnesses), p.UplinkBits(xmkckks.Short, messages, d.Witnesses))
}

func floodingText(d xmkckks.Design) string {
	variance, err := d.Params.ShareVariance()
	if err != nil {
		return err.Error()
	}
	std := math.Sqrt(variance)
	if d.Params.LogFlood == 0 {
		return fmt.Sprintf("%s: e* has deviation %.2f only", floodingBits(d), std)
	}
	return fmt.Sprintf("%s over %d shares of one key: e* has deviation 2^%.1f", floodingBits(d), d.Link.Shares, math.Log2(std))
}

// floodingBits says how well shares are flooded, and in which sense.
func floodingBits(d xmkckks.Design) string {
	if d.FloodingDistance == 1 {
		return "0 bits"
	}
	return fmt.Sprintf("%.0f bits of statistical security (advantage; distance at most 2^%.1f)", math.Floor(d.FloodingBits), math.Log2(d.FloodingDistance))
}
