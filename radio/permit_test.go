package radio

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestTransmitPermit(t *testing.T) {
	band := Span[Hertz]{Min: 433.05e6, Max: 434.79e6}
	p, err := NewTransmitPermit(band, 1e6, 20)
	if err != nil || !p.Allowed() {
		t.Fatal(err)
	}
	for f, allowed := range map[Hertz]bool{
		433.92e6: true, 433.55e6: true, 434.29e6: true,
		433.54e6: false, 434.3e6: false, 2.4e9: false, Hertz(math.NaN()): false, 0: false,
	} {
		if err := p.Frequency(f); (err == nil) != allowed || err != nil && !errors.Is(err, ErrNotPermitted) {
			t.Errorf("%v: %v", f, err)
		}
	}
	for g, allowed := range map[Decibels]bool{-80: true, 20: true, 20.25: false, Decibels(math.NaN()): false, Decibels(math.Inf(1)): false} {
		if err := p.Gain(g); (err == nil) != allowed {
			t.Errorf("%v: %v", g, err)
		}
	}
	var none TransmitPermit
	if none.Allowed() || !errors.Is(none.Frequency(433.92e6), ErrNotPermitted) || !errors.Is(none.Gain(0), ErrNotPermitted) {
		t.Error("the zero value permits")
	}
	for _, c := range []struct {
		band  Span[Hertz]
		width Hertz
		most  Decibels
	}{
		{Span[Hertz]{}, 0, 0}, {Span[Hertz]{Min: 2e9, Max: 1e9}, 0, 0}, {Span[Hertz]{Min: 1e9, Max: Hertz(math.Inf(1))}, 0, 0},
		{band, -1, 0}, {band, 2e6, 0}, {band, 0, Decibels(math.NaN())}, {band, 0, Decibels(math.Inf(1))},
	} {
		if _, err := NewTransmitPermit(c.band, c.width, c.most); err == nil || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := p.Bias(); !errors.Is(err, ErrNotPermitted) || !strings.Contains(err.Error(), "radio.bias_tee = true") {
		t.Error(err)
	}
	if biased := none.WithBias(); biased.Bias() != nil || biased.Allowed() || biased.Frequency(433.92e6) == nil || none.Bias() == nil || biased.String() == none.String() {
		t.Error(biased)
	}
	if p.String() == "" || none.String() != "nothing may be sent" {
		t.Error(p, none)
	}
}
