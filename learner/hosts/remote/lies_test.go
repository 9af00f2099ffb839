package remote_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
)

// liar is a carrier whose answers are true until lie says something else.
type liar struct {
	direct
	lie atomic.Pointer[string]
}

// Call implements remote.Caller.
func (l *liar) Call(ctx context.Context, b []byte) ([]byte, error) {
	if text := l.lie.Load(); text != nil {
		return remote.Answer(b, *text), nil
	}
	return l.direct.Call(ctx, b)
}

// An answer that cannot be is an error, and nothing goes on for ever.
func TestLies(t *testing.T) {
	for text, want := range map[string]string{
		`{"again":true}`:                                   "that for 5s there was no room",
		`{"missing":true}`:                                 "misses a burst that it was given",
		`{"taken":-1}`:                                     "-1 samples were taken",
		`{"taken":1048577}`:                                "1048577 samples were taken",
		`{"took_ns":-1}`:                                   "it took -1ns",
		`{"took_ns":200000000000}`:                         "it took 3m20s",
		`{"more":1}`:                                       "unknown field",
		`{} {}`:                                            "something behind its JSON",
		`{"stream":{"number":1,"state":4}}`:                "a stream is in state 4",
		`{"stream":{"number":1,"earliest":-1}}`:            "at index -1",
		`{"stream":{"number":1,"left":1}}`:                 "0 events and of 1 to come",
		`{"stream":{"number":1,"events":[{"Kind":9}]}}`:    "an event of kind 9",
		`{"device":{"rates":true,"sample_rate":0}}`:        "a sample rate of 0 Hz",
		`{"error":"a\u001b[31m bad\nthing"}`:               "a [31m bad thing",
		`{"error":"x","kinds":["of another version"]}`:     "x",
		`{"stream":{"number":1,"earliest":` + big() + `}}`: "allowed is 0 to",
	} {
		c := &liar{direct: direct{host: hostOf(t, newFake(), nil)}}
		tx := running(t, opened(t, c))
		c.lie.Store(&text)
		if _, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected is %q", text, err, want)
		}
		c.lie.Store(nil)
		_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
		ok(t, err)
	}
}

func big() string { return fmt.Sprint(int64(math.MaxInt64)) }

// What is no request gets no answer, does nothing, and is told.
func TestNoRequest(t *testing.T) {
	f := newFake()
	var said []string
	h := hostOf(t, f, func(c *remote.HostConfig) { c.Say = func(text string) { said = append(said, text) } })
	d := opened(t, &direct{host: h})
	tx := running(t, d)
	good := remote.Request(math.MaxUint64, `{"op":"status"}`, nil)
	sum := `"` + strings.Repeat("A", 43) + `="`
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"a short header":    good[:10],
		"another magic":     append([]byte("RWrx"), good[4:]...),
		"another version":   append([]byte("RWrr\x02"), good[5:]...),
		"an answer":         append([]byte("RWrr\x01\x02"), good[6:]...),
		"cut short":         good[:len(good)-1],
		"too long":          append(good[:len(good):len(good)], make([]byte, remote.MaxMessage)...),
		"not JSON":          remote.Request(1<<63, `[1]`, nil),
		"an unknown field":  remote.Request(1<<63, `{"op":"status","more":1}`, nil),
		"a wait below 0":    remote.Request(1<<63, `{"op":"status","wait_ns":-1}`, nil),
		"no burst":          remote.Request(1<<63, `{"op":"write"}`, nil),
		"a burst too many":  remote.Request(1<<63, `{"op":"status","burst":{"digest":`+sum+`,"samples":0}}`, nil),
		"a short digest":    remote.Request(1<<63, `{"op":"write","burst":{"digest":"AAAA","samples":1}}`, nil),
		"a long burst":      remote.Request(1<<63, `{"op":"write","burst":{"digest":`+sum+`,"samples":1048577}}`, nil),
		"less than none":    remote.Request(1<<63, `{"op":"write","burst":{"digest":`+sum+`,"samples":-1}}`, nil),
		"from behind":       remote.Request(1<<63, `{"op":"write","burst":{"digest":`+sum+`,"samples":1,"from":2}}`, nil),
		"fewer samples":     remote.Request(1<<63, `{"op":"write","burst":{"digest":`+sum+`,"samples":2,"whole":true}}`, make([]byte, 8)),
		"samples beside it": remote.Request(1<<63, `{"op":"write","burst":{"digest":`+sum+`,"samples":1}}`, make([]byte, 8)),
	} {
		said = nil
		if a := h.Handle(limited(t), b); a != nil || len(said) != 1 {
			t.Errorf("%s: answer %q, said %q", name, a, said)
		}
	}
	// Of a session that is not there, nothing is done, whatever its number.
	if a := h.Handle(limited(t), good); a == nil || len(said) != 1 {
		t.Errorf("answer %q, said %q", a, said)
	}
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
}
