//go:build soapy && cgo

package native

import (
	"time"

	"ringwave/radio/soapy"
)

// Closing bounds how long Close of a board and of its streams waits.
func Closing(b soapy.Board, d time.Duration) { b.(*board).closing = d }
