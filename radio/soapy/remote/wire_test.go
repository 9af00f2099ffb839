package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// A request is laid out as SoapyRemote 0.5 reads it.
func TestRequestBytes(t *testing.T) {
	at := soapy.Channel{Direction: radio.Receive, Number: 1}
	got := newRequest(callSetGain).channel(at).text("LNA").number(-20.5).message()
	want := "53525043" + "00000400" + "00000035" + // head
		"0f02000002c0" + "0001" + "0200000001" + "06" + "0200000003" + "4c4e41" + // call, direction, channel, text
		"04" + "0200000005" + "03ffeb800000000000" + // -0.640625 times 2 to the power of 5
		"43505253"
	if hex.EncodeToString(got) != want {
		t.Errorf("\n%x, want\n%s", got, want)
	}
}

// readBack returns the answer of a message.
func readBack(t testing.TB, m []byte) *answer {
	t.Helper()
	h, err := parseHead([headLength]byte(m))
	if err != nil {
		t.Fatal(err)
	}
	return newAnswer(h, m[headLength:])
}

// Numbers of all sizes come as they went.
func TestNumbers(t *testing.T) {
	for _, v := range []float64{0, 1, -1, 2.4e9, 1e-300, math.MaxFloat64, -math.SmallestNonzeroFloat64, 433.92e6, 0.1, 1 << 60} {
		a := readBack(t, reply().number(v).message())
		if got := a.number(); got != v || a.end() != nil {
			t.Errorf("%v, want %v: %v", got, v, a.err)
		}
	}
	a := readBack(t, reply().kind(kindFloat64).integer(5000).long(1<<52).message())
	if a.number(); a.end() == nil {
		t.Error("2 to the power of 5000 is a number")
	}
}

// A server older than 0.5 sends ranges without a step.
func TestRangeOfOlder(t *testing.T) {
	r := reply().kind(kindRange).number(1).number(2)
	old := newAnswer(head{version: 0x000300}, r.message()[headLength:])
	if got := old.span(); got != (soapy.Range{Min: 1, Max: 2}) || old.end() != nil {
		t.Errorf("%v, %v", got, old.err)
	}
	now := readBack(t, r.number(0.5).message())
	if got := now.span(); got != (soapy.Range{Min: 1, Max: 2, Step: 0.5}) || now.end() != nil {
		t.Errorf("%v, %v", got, now.err)
	}
}

// Arguments come as they went.
func TestArgs(t *testing.T) {
	want := soapy.Args{"driver": "x", "": "y", "z": ""}
	a := readBack(t, reply().args(want).message())
	if got := a.args(); !reflect.DeepEqual(got, want) || a.end() != nil {
		t.Errorf("%v, %v", got, a.err)
	}
}

// FuzzAnswer has whatever a server says taken for anything that may be asked for.
func FuzzAnswer(f *testing.F) {
	for name, m := range hostile() {
		if m = sized(name, m); len(m) > headLength {
			f.Add(m[headLength:], byte(0))
		}
	}
	f.Add(reply().args(soapy.Args{"a": "b"}).message()[headLength:], byte(1))
	f.Add(reply().kind(kindRanges).integer(1).kind(kindRange).number(1).number(2).number(3).message()[headLength:], byte(3))
	f.Fuzz(func(t *testing.T, rest []byte, what byte) {
		a := newAnswer(head{version: version, rest: len(rest)}, rest)
		size := 0
		switch what % 8 {
		case 0:
			for _, s := range a.texts() {
				size += 1 + len(s)
			}
		case 1:
			for key, value := range a.args() {
				size += len(key) + len(value)
			}
		case 2:
			for _, args := range a.argsList() {
				size++
				for key, value := range args {
					size += len(key) + len(value)
				}
			}
		case 3:
			size = len(a.spans())
		case 4:
			size = len(a.text())
		case 5:
			if v := a.number(); math.IsInf(v, 0) || math.IsNaN(v) {
				t.Error(v)
			}
		case 6:
			a.long()
			a.truth()
		case 7:
			a.integer()
			a.void()
		}
		if size > len(rest) {
			t.Errorf("%d of %d bytes", size, len(rest))
		}
		if err := a.end(); err != nil && strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("%q", err)
		}
	})
}

// memory is a connection of what is there.
type memory struct{ io.Reader }

func (memory) Write(p []byte) (int, error)      { return len(p), nil }
func (memory) SetReadDeadline(time.Time) error  { return nil }
func (memory) SetWriteDeadline(time.Time) error { return nil }
func (memory) Close() error                     { return nil }

// FuzzBlocks has whatever comes on a connection for samples read as samples.
func FuzzBlocks(f *testing.F) {
	block := make([]byte, frameHead+4)
	frame{bytes: frameHead + 4, elems: 2, flags: soapy.HasTime}.put(block)
	f.Add(block, byte(3))
	f.Add(append(block, block...), byte(9))
	f.Add(block[:frameHead+1], byte(1))
	f.Fuzz(func(t *testing.T, b []byte, room byte) {
		data := memory{bytes.NewReader(b)}
		fl := &flow{link: &link{}, size: 2, most: 1000, data: data, in: bufio.NewReaderSize(data, 1000), window: 8}
		dst, got := make([]byte, 2*(1+int(room)%600)), 0
		for {
			n, _, err := fl.read(context.Background(), dst, time.Second)
			if n%2 != 0 || n < 0 || n > len(dst) || err == nil && n == 0 {
				t.Fatalf("%d bytes, %v", n, err)
			}
			got += n
			var code soapy.Code
			switch {
			case err == nil:
			case !errors.As(err, &code) || errors.Is(err, soapy.ErrCorruption):
				if got > len(b) {
					t.Errorf("%d bytes of %d", got, len(b))
				}
				return
			}
		}
	})
}
