package identity

import (
	"fmt"
	"time"

	"github.com/nats-io/nkeys"
)

// Statement says that an nkey is a host's of a bench, for a time. It is public.
type Statement struct {
	Bench     string // the public nkey that signs enrolments
	Role      Role
	Index     int    // of a device, from 1; 0 for all others
	Nkey      string // the host's public nkey
	NotBefore time.Time
	Expires   time.Time
	Signature []byte // by Bench, of all of the above
}

// text is what is signed.
func (s Statement) text() []byte {
	return fmt.Appendf(nil, "ringwave enrolment 1\nbench %s\nrole %s\nindex %d\nnkey %s\nfrom %d\nuntil %d\n",
		s.Bench, s.Role, s.Index, s.Nkey, s.NotBefore.Unix(), s.Expires.Unix())
}

// Check says why a statement is none of that bench, or does not hold at a time.
func (s Statement) Check(bench string, now time.Time) error {
	if s.Bench != bench {
		return fmt.Errorf("the enrolment of %s is of another bench, %.8s…; allowed is this one's, %.8s…", s, s.Bench, bench)
	}
	if err := s.genuine(); err != nil {
		return err
	}
	return s.holds(now, "the server's clock")
}

// genuine says why it is not what its bench has signed.
func (s Statement) genuine() error {
	if !nkeys.IsValidPublicAccountKey(s.Bench) || verify(s.Bench, s.text(), s.Signature) != nil {
		return fmt.Errorf("the enrolment of %s is not signed by its bench", s)
	}
	return nil
}

// holds says why it does not hold at the time of a clock.
func (s Statement) holds(now time.Time, whose string) error {
	clock := now.UTC().Format(time.RFC3339)
	if now.Before(s.NotBefore) {
		return fmt.Errorf("the enrolment of %s is valid from %s, and %s says %s, %v before: set the clock, or that of the host that enrolled it, and enrol again",
			s, s.NotBefore.UTC().Format(time.RFC3339), whose, clock, s.NotBefore.Sub(now).Round(time.Minute))
	}
	if !now.Before(s.Expires) {
		return fmt.Errorf("the enrolment of %s expired at %s, and %s says %s: enrol again, or set the clock",
			s, s.Expires.UTC().Format(time.RFC3339), whose, clock)
	}
	return nil
}

// String names the host, as in "device 3" or "the server".
func (s Statement) String() string {
	if s.Role == Device {
		return fmt.Sprintf("device %d", s.Index)
	}
	return "the " + string(s.Role)
}

// verify says whether a signature is that of a public nkey.
func verify(nkey string, text, signature []byte) error {
	public, err := nkeys.FromPublicKey(nkey)
	if err != nil {
		return fmt.Errorf("%q is no public nkey: %w", nkey, err)
	}
	return public.Verify(text, signature)
}
