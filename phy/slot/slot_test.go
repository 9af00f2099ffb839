package slot

import "testing"

// Only what a frame's header has room for is a slot.
func TestValidate(t *testing.T) {
	for s, ok := range map[Slot]bool{
		{}: true,
		{Round: 1<<32 - 1, Attempt: MaxAttempt, Transmission: TxShare, Again: MaxAgain}: true,
		{Transmission: -1}:            false,
		{Transmission: Transmissions}: false,
		{Attempt: MaxAttempt + 1}:     false,
		{Again: MaxAgain + 1}:         false,
	} {
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("%+v: %v", s, err)
		}
	}
	// The header's byte holds the transmission and how often it was sent before.
	if most := int(TxShare) + Transmissions*MaxAgain; most > 255 {
		t.Errorf("a header's byte would have to hold %d", most)
	}
}
