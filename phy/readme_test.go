package phy

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	simulated "ringwave/phy/bench"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
)

// readme returns the sections of README.md by their numbers.
func readme(t *testing.T) map[int]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[int]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		number, rest, ok := strings.Cut(part, ". ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n != len(sections)+1 {
			t.Fatalf("section %q does not follow section %d", number, len(sections))
		}
		sections[n] = rest
	}
	return sections
}

// rows returns the cells of the tables of a text, without heads.
func rows(text string) (list [][]string) {
	head := true
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
			continue
		case strings.HasPrefix(line, "|---"):
			head = false
			continue
		case head:
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		list = append(list, cells)
	}
	return list
}

// The table of constants is the code's, all of it and nothing else.
// Longer, or of more branches, than most because it is a table of constants.
func TestReadmeConstants(t *testing.T) {
	var cfg WaveformConfig
	cfg.setDefaults()
	minimum := func(of func(n int) bool, from int) int {
		for !of(from) {
			from++
		}
		return from
	}
	preamble := func(n int) bool { _, err := detectorOf(n, 8); return err == nil }
	sps := func(n int) bool { _, err := detectorOf(127, n); return err == nil }
	want := map[string]float64{
		"guard symbols":              guardSymbols,
		"cyclic symbols, flat-top":   float64(cyclicOf(modem.FlatTop{Edge: 2, Tolerance: 1})),
		"header symbols":             frame.HeaderSymbols,
		"pattern granularity":        float64(frame.NewPatterns(1, keystream.Seed{}).Symbols()),
		"transmissions of a round":   slot.Transmissions,
		"most times sent again":      slot.MaxAgain,
		"largest attempt":            slot.MaxAttempt,
		"shortest preamble":          float64(minimum(preamble, 1)),
		"longest preamble":           float64(modem.MaxPreamble),
		"usual preamble":             float64(modem.DefaultPreamble),
		"least base":                 digit.MinBase,
		"largest base":               digit.MaxBase,
		"block symbols by default":   float64(cfg.BlockSymbols),
		"bits of soundness":          frame.SoundnessBits,
		"least samples a symbol":     float64(minimum(sps, 1)),
		"most samples a symbol":      modem.MaxSamplesPerSymbol,
		"largest integer of a digit": digit.MaxSuperposed,
		"least retry gain":           RetryLeast,
		"largest group factor":       float64(cfg.GroupScale),
		"agreement of groups":        groupMismatch,
		"frame format":               float64(frame.Present),
	}
	// These are held by tests of lattice and modem, which do not tell them.
	elsewhere := map[string]bool{"candidates of a search": true, "bins of a block": true, "least margin of teeth": true, "symbols that settle windows": true}
	got := map[string]float64{}
	for _, r := range rows(readme(t)[13]) {
		v, err := strconv.ParseFloat(r[1], 64)
		if err != nil {
			t.Errorf("%s is %q", r[0], r[1])
		}
		if !elsewhere[r[0]] {
			got[r[0]] = v
		}
		delete(elsewhere, r[0])
	}
	if len(elsewhere) > 0 {
		t.Errorf("the table has no %v", elsewhere)
	}
	if !reflect.DeepEqual(got, want) {
		for name, v := range want {
			if w, ok := got[name]; !ok || w != v {
				t.Errorf("%s is %v in README.md (there: %v), and %v in the code", name, w, ok, v)
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("the code has no constant %q", name)
			}
		}
	}
	if digit.MaxSuperposed != lattice.MaxLevel || simulated.GroupScale != cfg.GroupScale {
		t.Error("two constants of the code that README.md has as one differ")
	}
}

// detectorOf makes a detector of preambles of a length and of so many samples a symbol.
func detectorOf(preamble, samples int) (*modem.Detector, error) {
	// Short preambles want more false alarms.
	return modem.NewDetector(modem.Config{
		SamplesPerSymbol: samples, Pulse: modem.FlatTop{}, Preamble: modem.Preamble{Length: modem.Symbols(preamble)},
	}, modem.Search{FalseAlarm: 1e-3})
}

// cyclicOf returns the cyclic symbols to either side of a pulse's preamble.
func cyclicOf(p modem.Pulse) int {
	c := modem.Config{SamplesPerSymbol: 8, Pulse: p, Preamble: modem.Preamble{Length: 127}}
	return (len(c.PreambleSymbols()) - 127) / 2
}

// The sequences that section 8 describes are those that are sent, guards and level too.
func TestReadmeSequences(t *testing.T) {
	section := readme(t)[8]
	seen := 0
	for _, r := range rows(section) {
		m, err := strconv.Atoi(r[0])
		if err != nil || len(r) != 3 {
			continue // of another table
		}
		seen++
		var exponents []int
		for _, e := range strings.Fields(r[2]) {
			i, err := strconv.Atoi(e)
			if err != nil {
				t.Fatal(err)
			}
			exponents = append(exponents, i)
		}
		if p := polynomial(m, exponents); p != r[1] {
			t.Errorf("m = %d: the exponents are those of %s, not %s", m, p, r[1])
		}
		bits := register(m, exponents)
		cfg := modem.Config{SamplesPerSymbol: 8, Pulse: modem.RootRaisedCosine{RollOff: 0.25, Span: 16}, Preamble: modem.Preamble{Length: modem.Symbols(len(bits)), Level: 3}}
		const g = 16/2 + 2 // Span/2 + 2
		var want []float32
		for k := -g; k < len(bits)+g; k++ {
			want = append(want, 3-6*float32(bits[(k+len(bits))%len(bits)]))
		}
		if !slices.Equal(cfg.PreambleSymbols(), want) {
			t.Errorf("m = %d: the preamble is another one", m)
		}
		if m == 7 {
			begins := strings.ReplaceAll(regexp.MustCompile(`For R = 127 the bits begin ([01 ]+)\.`).FindStringSubmatch(section)[1], " ", "")
			if got := strings.Trim(strings.ReplaceAll(fmt.Sprint(bits[:32]), " ", ""), "[]"); got != begins {
				t.Errorf("the bits begin %s, not %s", got, begins)
			}
		}
	}
	if seen != 8 {
		t.Errorf("%d polynomials, not 8", seen)
	}
}

func register(m int, exponents []int) []int {
	bits := make([]int, 1<<m-1)
	bits[0] = 1
	for k := m; k < len(bits); k++ {
		for _, e := range exponents {
			bits[k] ^= bits[k-m+e]
		}
	}
	return bits
}

func polynomial(m int, exponents []int) string {
	s := fmt.Sprintf("x^%d", m)
	for _, e := range slices.Backward(exponents) {
		switch e {
		case 0:
			s += " + 1"
		case 1:
			s += " + x"
		default:
			s += fmt.Sprintf(" + x^%d", e)
		}
	}
	return s
}

// The figures of sections 2 and 3 follow from the code.
func TestReadmeFigures(t *testing.T) {
	all := readme(t)
	for section, want := range map[int][]string{ // whatever the lines
		2: {fmt.Sprintf("%d trits at 109 bits", digitsOf(109)), fmt.Sprintf("109 bits, %d at 54", digitsOf(54))},
		3: {
			fmt.Sprintf("needs %.1f dB at f = 0, %.1f dB at f = 2 and %.1f dB at f = 8", simulated.NeededSNR(3, 1, 8192), simulated.NeededSNR(3, 4, 8192), simulated.NeededSNR(3, 256, 8192)),
			fmt.Sprintf("takes in the mean of that number, %v.", (1+RetryLeast)/2),
		},
		9: {"1.001 times"},
	} {
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(all[section]), " "), w) {
				t.Errorf("section %d does not say %q", section, w)
			}
		}
	}
	m, err := modem.NewModulator(modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2}, Preamble: modem.Preamble{Length: 127}}, modem.Drive{Peak: 1})
	if err != nil || math.Abs(float64(m.Scale())*1.001-1) > 1e-12 {
		t.Errorf("the amplitude of a symbol of 1 is %v: %v", m.Scale(), err)
	}
	if d, half := m.Delay(), modem.Samples(4); d != half+8 || m.Tail() != modem.Symbols(math.Ceil(float64(d+half)/8)+1) {
		t.Errorf("D is %v, t is %v", d, m.Tail())
	}
}

// digitsOf returns the trits of a coefficient of so many bits.
func digitsOf(bits int) int { return int(math.Ceil(float64(bits) / math.Log2(3))) }

// Every section that the code cites is there.
func TestReadmeSections(t *testing.T) {
	if n := len(readme(t)); n != 13 {
		t.Errorf("%d sections", n)
	}
}
