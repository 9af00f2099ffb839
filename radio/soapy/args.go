package soapy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Args are SoapySDR's key and value pairs ("Kwargs").
type Args map[string]string

// ParseArgs takes apart "key=value, key=value", as SoapySDR's own programs do
// (SoapySDR/Types.h, KwargsFromString): blanks around keys and values do not count.
func ParseArgs(s string) (Args, error) {
	args := Args{}
	for _, pair := range strings.Split(s, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, fmt.Errorf("SoapySDR's arguments %q have %q; allowed is key=value, key=value", s, strings.TrimSpace(pair))
		}
		if _, twice := args[key]; twice {
			return nil, fmt.Errorf("SoapySDR's arguments %q have the key %q twice; allowed is once", s, key)
		}
		args[key] = strings.TrimSpace(value)
	}
	return args, nil
}

// String returns what ParseArgs takes apart, in the order of the keys.
func (a Args) String() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		pairs = append(pairs, key+"="+a[key])
	}
	return strings.Join(pairs, ",")
}
