//go:build soapy && cgo

package native_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/native"
	"ringwave/radio/soapy/soapytest"
	"ringwave/radio/virtual"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bench makes a session with boards of the module in this process. All tests share what the
// library has loaded.
func bench(t testing.TB) *soapytest.Bench {
	t.Helper()
	if os.Getenv("SOAPY_SDR_PLUGIN_PATH") == "" {
		ok(t, os.Setenv("SOAPY_SDR_PLUGIN_PATH", soapytest.Build(t)))
	}
	states := t.TempDir()
	ok(t, os.Setenv("RINGTEST_STATE", states))
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, 1e6, 40)
	ok(t, err)
	session, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	return &soapytest.Bench{
		Backend: native.New(), Opener: soapy.NewOpener(session, native.New(), permit, virtual.NewGuard()), States: states,
		Args: func(serial string) soapy.Args { return soapy.Args{"driver": soapytest.Driver, "serial": serial} },
		URI: func(serial, params string) radio.URI {
			u, err := radio.ParseURI("soapy:driver=" + soapytest.Driver + ",serial=" + serial + "?" + params)
			ok(t, err)
			return u
		},
	}
}

// Three transmitters whose clocks show different times start at one sample: what each sends at
// an index is heard at one.
func TestPulsedStart(t *testing.T) {
	b := bench(t)
	t.Setenv("RINGTEST_BOARDS", "A,B,C,R")
	devices, err := radio.NewRegistry(map[string]radio.Opener{"soapy": b.Opener})
	ok(t, err)
	uri := func(serial string, offset int) string {
		return fmt.Sprintf("soapy:driver=%s,serial=%s,pps_ms=200,offset_ns=%d,gain=0.25", soapytest.Driver, serial, offset)
	}
	const rate = 1e6
	a, err := array.Open(t.Context(), devices, array.Config{
		Transmitters: []string{uri("A", 1234567), uri("B", 987654321), uri("C", 55_555_555_555)}, Receiver: uri("R", 42),
		Rate: rate, Frequency: 435e6, Clock: array.ExternalClock, Trigger: array.PulsedStart,
	})
	ok(t, err)
	defer func() { ok(t, a.Close()) }()
	ok(t, a.Start(t.Context()))
	var earliest radio.SampleIndex
	for _, tx := range a.Transmitters() {
		earliest = max(earliest, tx.(radio.Pacer).Earliest())
	}
	at := earliest + rate/5
	for i, tx := range a.Transmitters() {
		x := make([]complex64, 200)
		x[0], x[100+10*i] = 1, 1
		_, err := tx.Write(t.Context(), x, radio.TxMeta{Timed: true, Start: at, BurstEnd: true})
		ok(t, err)
	}
	rx := a.Receiver()
	x := make([]complex64, 1000)
	var heard []radio.SampleIndex
	for index := radio.SampleIndex(0); index < at+1000; {
		n, meta, err := rx.Read(t.Context(), x)
		ok(t, err)
		for k := range n {
			if v := real(x[k]); v > 0.2 {
				heard = append(heard, meta.Index(k)-at)
				if meta.Index(k) == at && (v < 0.74 || v > 0.76) {
					t.Errorf("at the common index there is %v; allowed is 0.75 of three", v)
				}
			}
			index = meta.Index(k)
		}
	}
	if want := []radio.SampleIndex{0, 100, 110, 120}; !slices.Equal(heard, want) {
		t.Errorf("heard at %v behind the index, and not at %v", heard, want)
	}
}

// Whatever happens to a board, calls return and its carrier is off at the end.
func TestFaultSchedules(t *testing.T) {
	n := uint64(20)
	if os.Getenv("RINGWAVE_LONG") == "1" {
		n = 200
	}
	from := uint64(0)
	if v, err := strconv.ParseUint(os.Getenv("RINGWAVE_FAULT_FROM"), 10, 32); err == nil {
		from, n = v, v+1
	}
	b := bench(t)
	for seed := from; seed < n; seed++ {
		t.Setenv("RINGTEST_BOARDS", soapytest.Serial(seed))
		b.Schedule(t, seed)
	}
}
