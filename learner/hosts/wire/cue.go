package wire

import (
	"fmt"

	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// The operations of a device's own on its radio, beside those of package remote.
const (
	OpAlign = "align" // what the device makes up for (AppendMakeUp)
	OpSend  = "send"  // send the frame that is due (Cue)
)

// Cue has a device send the frame that is due on its own radio, if it is of its group, and be
// silent if not.
type Cue struct {
	Slot  slot.Slot
	Due   Due
	Times phy.Cue
	// Offset is what an index of Times has more than the device's own stream.
	Offset radio.SampleIndex
}

// Bytes returns the arguments of OpSend.
func (c Cue) Bytes() ([]byte, error) { return AppendJSON(c) }

// ParseCue reads the arguments of OpSend.
func ParseCue(b []byte) (c Cue, err error) {
	if err := ParseJSON(b, &c); err != nil {
		return c, err
	}
	if err := c.Slot.Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return c, nil
}
