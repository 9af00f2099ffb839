//go:build !unix

package model

import "time"

var start = time.Now()

// processorTime returns the clock on the wall, for want of a better one.
func processorTime() time.Duration { return time.Since(start) }
