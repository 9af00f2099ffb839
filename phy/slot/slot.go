// Package slot names the uplink transmissions of a round.
//
// A cipher whose noise differs from one transmission to the next and a link that
// carries them both speak of these names. The package imports nothing of either, so
// that neither needs the other to be built.
package slot

import (
	"fmt"
	"math"
)

// Transmission is one of the four uplink transmissions of a round.
type Transmission int

const (
	TxKey   Transmission = iota // b, phase 1
	TxC0                        // c0, phase 2
	TxC1                        // c1, phase 2
	TxShare                     // D, phase 3
)

// Transmissions is the number of transmissions of a round.
const Transmissions = 4

// String returns the paper's symbol of what is sent.
func (t Transmission) String() string {
	switch t {
	case TxKey:
		return "b"
	case TxC0:
		return "c0"
	case TxC1:
		return "c1"
	case TxShare:
		return "D"
	}
	return "unknown transmission"
}

// Slot names one transmission of one attempt at one round.
type Slot struct {
	Round, Attempt uint32
	Transmission   Transmission
	// Again counts how often the transmission was sent before in this attempt, the
	// same payload under new check weights: a decryption share that was not received
	// is never made anew. It is MaxAgain at most.
	Again uint8
}

// The limits of a Slot: what a frame's header has room for.
const (
	MaxAttempt = math.MaxUint16
	MaxAgain   = math.MaxUint8 / Transmissions
)

// Validate refuses slots that do not exist.
func (s Slot) Validate() error {
	if s.Transmission < 0 || s.Transmission >= Transmissions {
		return fmt.Errorf("transmission %d: a round has %d", s.Transmission, Transmissions)
	}
	if s.Attempt > MaxAttempt || s.Again > MaxAgain {
		return fmt.Errorf("attempt %d, sent again %d times: allowed are %d and %d at most", s.Attempt, s.Again, MaxAttempt, MaxAgain)
	}
	return nil
}
