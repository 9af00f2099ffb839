package curves

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseList reads values and ranges first:last:step, and gives them ascending, each
// once. Errors begin with the name of the flag that has them.
func ParseList(flag, text string, least, most float64) ([]float64, error) {
	var list []float64
	for _, part := range strings.Split(text, ",") {
		values, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is neither a number nor a range first:last:step of at most %d values", flag, part, longestRange)
		}
		for _, v := range values {
			if !(v >= least && v <= most) {
				return nil, fmt.Errorf("%s: %v is not allowed: allowed are %v to %v", flag, v, least, most)
			}
		}
		list = append(list, values...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// longestRange keeps a slip of the pen from asking for years.
const longestRange = 1000

func parseRange(text string) ([]float64, error) {
	var ends []float64
	for _, field := range strings.Split(text, ":") {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		ends = append(ends, v)
	}
	if len(ends) == 1 {
		return ends, nil
	}
	if len(ends) != 3 || !(ends[2] > 0) || !(ends[1] >= ends[0]) || !((ends[1]-ends[0])/ends[2] < longestRange) {
		return nil, errors.New("no range")
	}
	var values []float64
	const slack = 1e-9 // of a step: rounding must not lose the last
	for i := 0.0; ends[0]+i*ends[2] <= ends[1]+slack*ends[2]; i++ {
		// 0.1 + 2 x 0.1 is to be the 0.3 that one writes.
		v, err := strconv.ParseFloat(strconv.FormatFloat(ends[0]+i*ends[2], 'g', 12, 64), 64)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
