package array

import "time"

// SetStarting sets how long a stream may take to start.
func (a *Array) SetStarting(d time.Duration) { a.starting = d }
