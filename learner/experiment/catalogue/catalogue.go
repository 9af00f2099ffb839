// Package catalogue is the parameter sets in words and figures, as ringwave sets and plan print
// them.
package catalogue

import (
	"fmt"
	"io"
	"math"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
)

// shares is tau of the listed figures: 400 rounds, one share each.
const shares = 400

// link is the link that the listed figures hold for: the paper's ten
// devices at sigma = 1.
func link(devices int, alpha float64) xmkckks.Link {
	l := xmkckks.Link{Alpha: alpha, DeltaMax: 1, Shares: shares}
	for range devices {
		l.Mu = append(l.Mu, 1)
		l.Omega = append(l.Omega, 2)
	}
	return l
}

// Designs returns each parameter set at the listed link.
func Designs() (designs []xmkckks.Design, err error) {
	for _, p := range xmkckks.Sets() {
		d, err := xmkckks.NewDesign(p, p.Form, link(10, 256))
		if err != nil { // the smallest set has no room for the paper's channel
			if d, err = xmkckks.NewDesign(p, p.Form, link(3, 1)); err != nil {
				return nil, err
			}
		}
		designs = append(designs, d)
	}
	return designs, nil
}

// Print prints all of them.
func Print(w io.Writer, designs []xmkckks.Design) {
	for _, d := range designs {
		fmt.Fprintf(w, "%s: %s\n", d.Params.Name, d.Params.Note)
		PrintSet(w, d)
		fmt.Fprintf(w, "  (witnesses and flooding for %d devices, sigma = 1, alpha = %v)\n\n", len(d.Link.Mu), d.Link.Alpha)
	}
	fmt.Fprint(w, floodingNotion)
}

// Figures is a parameter set as sets --json prints it: witnesses, flooding and uplink
// for so many devices at sigma = 1 and alpha, and so many shares of a key.
type Figures struct {
	Name             string          `json:"name"`
	Note             string          `json:"note"`
	N                int             `json:"n"`
	Modulus          string          `json:"modulus"` // decimal digits
	Primes           []uint64        `json:"primes"`
	Log2Q            float64         `json:"log2_q"`
	Log2Lambda       int             `json:"log2_lambda"`
	Security2018     string          `json:"security_2018"`
	Security2024     string          `json:"security_2024"`
	Caveat           string          `json:"caveat"`
	Form             string          `json:"form"`
	CiphertextBytes  int             `json:"ciphertext_bytes"`
	Devices          int             `json:"devices"`
	Alpha            float64         `json:"alpha"`
	Shares           int             `json:"shares"`
	Witnesses        int             `json:"witnesses"`
	UplinkBits       int             `json:"uplink_bits_per_round"`
	FloodingBits     runfolder.Float `json:"flooding_bits"`
	FloodingDistance runfolder.Float `json:"flooding_distance"`
}

// FiguresOf returns the figures of sets.
func FiguresOf(designs []xmkckks.Design) []Figures {
	list := []Figures{}
	for _, d := range designs {
		p, s := d.Params, d.Params.Security()
		list = append(list, Figures{
			Name: p.Name, Note: p.Note, N: p.N, Modulus: p.Modulus().String(), Primes: p.Primes, Log2Q: p.LogQ(), Log2Lambda: p.LogLambda,
			Security2018: s.ByStandard(), Security2024: s.ByNewer(), Caveat: s.Caveat(),
			Form: d.Form.String(), CiphertextBytes: p.CiphertextBytes(),
			Devices: len(d.Link.Mu), Alpha: d.Link.Alpha, Shares: d.Link.Shares, Witnesses: d.Witnesses, UplinkBits: d.UplinkBits(),
			FloodingBits: runfolder.Float(d.FloodingBits), FloodingDistance: runfolder.Float(d.FloodingDistance),
		})
	}
	return list
}

// floodingNotion says what the bits of flooding are, and are not.
const floodingNotion = `Bits of flooding are bits of advantage: whoever tells shares as they are from shares
without the decryption noise, with whatever computing power, has the advantage of
Micciancio and Walter 2^-s at most (eprint 2022/816). The statistical distance is near
the square root of that. Each device floods on its own, which is liberal security
(eprint 2025/395) against servers that follow the protocol, for as many shares of a
key as are stated.
`

// PrintSet prints what a parameter set is and costs.
func PrintSet(w io.Writer, d xmkckks.Design) {
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
		return fmt.Sprintf("%s: e* has deviation %.2f only", Flooding(d), std)
	}
	return fmt.Sprintf("%s over %d shares of one key: e* has deviation 2^%.1f", Flooding(d), d.Link.Shares, math.Log2(std))
}

// Flooding says how well shares are flooded, and in which sense.
func Flooding(d xmkckks.Design) string {
	if d.FloodingDistance == 1 {
		return "0 bits"
	}
	return fmt.Sprintf("%.0f bits of statistical security (advantage; distance at most 2^%.1f)", math.Floor(d.FloodingBits), math.Log2(d.FloodingDistance))
}
