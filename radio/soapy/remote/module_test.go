//go:build linux

package remote_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"

	"ringwave/radio"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/remote"
	"ringwave/radio/soapy/soapytest"
	"ringwave/radio/virtual"
)

// Whatever happens to a board behind Debian's server, calls return and its carrier is off at the
// end.
func TestFaultSchedules(t *testing.T) {
	from, n := uint64(0), uint64(10)
	if os.Getenv("RINGWAVE_LONG") == "1" {
		n = 200
	}
	if v, err := strconv.ParseUint(os.Getenv("RINGWAVE_FAULT_FROM"), 10, 32); err == nil {
		from, n = v, v+1
	}
	plugins := soapytest.Build(t)
	for seed := from; seed < n; seed++ {
		// A server each: Debian's ends with SIGSEGV now and then.
		t.Run(soapytest.Serial(seed), func(t *testing.T) { schedule(t, plugins, seed) })
	}
}

func schedule(t *testing.T, plugins string, seed uint64) {
	states := t.TempDir()
	address := soapytest.Serve(t, "SOAPY_SDR_PLUGIN_PATH="+plugins, "RINGTEST_STATE="+states, "RINGTEST_BOARDS="+soapytest.Serial(seed))
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, 1e6, 40)
	if err != nil {
		t.Fatal(err)
	}
	session, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	backend := remote.New(&net.Dialer{})
	b := &soapytest.Bench{
		Backend: backend, Opener: soapy.NewRemoteOpener(session, backend, permit, virtual.NewGuard(), remote.Parameters()...), States: states,
		Args: func(serial string) soapy.Args { return soapy.Args{"driver": soapytest.Driver, "serial": serial} },
		URI: func(serial, params string) radio.URI {
			u := radio.URI{Scheme: "soapy-remote", Name: address}
			if u.Params, err = url.ParseQuery(params); err != nil {
				t.Fatal(err)
			}
			u.Params.Set("driver", soapytest.Driver)
			u.Params.Set("serial", serial)
			return u
		},
	}
	b.Schedule(t, seed)
}
