package sounder

import "context"

// Together rounds delays alike.
var Together = together

// FindPair returns where in what is received the first of two bursts begins that are so many
// samples apart.
func FindPair(ctx context.Context, cfg Config, every int) (float64, error) {
	s, err := New(cfg)
	if err != nil {
		return 0, err
	}
	e := &ear{s: s}
	for {
		if _, err := e.more(ctx, false); err != nil {
			return 0, err
		}
		pair, err := e.pair(every)
		if err != nil {
			return 0, err
		}
		if pair != nil {
			return pair[0].place, nil
		}
	}
}
