package round

import "ringwave/crypto/xmkckks"

// openGuard lets every share be given. It keeps nothing, so that a test can run
// for any number of rounds.
type openGuard struct{}

func (openGuard) Answer(xmkckks.ShareRecord) error { return nil }
