//go:build usb && linux

package air_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/watch/air"
	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

// A receiver at 20 Msps, through libusb, loses no sample while ten look at what it hears.
func TestTwentyMegasamples(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") != "1" {
		t.Skip("it wants a free machine: RINGWAVE_LONG=1 runs it")
	}
	const rate, seconds = 20e6, 20
	board := radiotest.HackRF(t, virtual.HackRFConfig{Serial: "00000000000000000000000000005afe"})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: board}}, Clock: loopback.WallClock()})
	t.Setenv("UMOCKDEV_DIR", radiotest.Bus(t, board).Dir())
	opener := hackrf.NewOpener(t.Context(), usb.System(), radio.TransmitPermit{}, nil)
	uri, err := radio.ParseURI("hackrf:5afe?rate_hz=20e6")
	if err != nil {
		t.Fatal(err)
	}
	device, err := opener.Open(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	display := air.New(air.Config{SampleRate: rate})
	rx := radio.Tee(radiotest.Started(t, device), display)
	stop := make(chan struct{})
	var lookers sync.WaitGroup
	messages := make([]int, 10)
	for k := range messages {
		lookers.Go(func() {
			l := display.Look()
			defer l.Close()
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					messages[k] += len(l.Next(1000))
				}
			}
		})
	}
	block, read, lost := make([]complex64, 1<<15), radio.SampleCount(0), radio.SampleCount(0)
	for read < rate*seconds {
		n, meta, err := rx.Read(t.Context(), block)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range meta.Gaps {
			lost += max(1, g.Length)
		}
		read += radio.SampleCount(n)
		if display.WantsFrame() {
			display.Frame(func() chart.LinkView { return chart.LinkView{Alpha: 1} })
		}
	}
	close(stop)
	lookers.Wait()
	t.Logf("%d samples read, %d lost; messages for each who looks: %v", read, lost, messages)
	if lost > 0 {
		t.Errorf("%d of %d samples were lost", lost, read)
	}
	for k, n := range messages {
		if n < 2*seconds*10 {
			t.Errorf("viewer %d had %d messages", k, n)
		}
	}
}
