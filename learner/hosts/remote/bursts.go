package remote

import (
	"crypto/sha256"
	"slices"
)

// What a host keeps of bursts that were sent.
const (
	keptBursts  = 8
	keptSamples = 2 * MaxSamples
)

// kept are bursts by their digests, the last one used at the end. A proxy keeps the digests
// alone, to know what the host is likely to have.
type kept struct {
	all []keptBurst
}

type keptBurst struct {
	digest  [sha256.Size]byte
	samples int
	x       []complex64 // nil at the proxy
}

// find returns a burst, which is now the last one used.
func (k *kept) find(digest [sha256.Size]byte) (keptBurst, bool) {
	i := slices.IndexFunc(k.all, func(b keptBurst) bool { return b.digest == digest })
	if i < 0 {
		return keptBurst{}, false
	}
	found := k.all[i]
	k.all = append(slices.Delete(k.all, i, i+1), found)
	return found, true
}

// add keeps a burst, and lets go of those that were not used for longest.
func (k *kept) add(b keptBurst) {
	if _, ok := k.find(b.digest); ok {
		return
	}
	k.all = append(k.all, b)
	total := 0
	for _, b := range k.all {
		total += b.samples
	}
	for len(k.all) > keptBursts || total > keptSamples {
		total -= k.all[0].samples
		k.all = slices.Delete(k.all, 0, 1) // which clears what is behind: it can be collected
	}
}

// forget lets go of a burst.
func (k *kept) forget(digest [sha256.Size]byte) {
	k.all = slices.DeleteFunc(k.all, func(b keptBurst) bool { return b.digest == digest })
}
