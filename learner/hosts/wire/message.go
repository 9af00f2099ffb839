package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"ringwave/phy/slot"
)

// Kind is what a message says.
type Kind uint8

// The messages, with who sends each.
const (
	Hello         Kind = iota + 1 // device: it is here, with what (Greeting)
	Welcome                       // server: the run, to one device (Run)
	Refused                       // server, device: why not, in words
	Ready                         // device: all is made for the run (Readiness)
	Beat                          // device: it is still here
	Prepare                       // server: an attempt begins; with the record of the round before
	Prepared                      // device: it has drawn the attempt's randomness; with its commitment
	Send                          // server: send this transmission (Request)
	Sent                          // device: the air has it
	Frame                         // device to the air: what it sends
	Superposition                 // air: what arrives
	Again                         // server to the air: the superposition once more
	Behind                        // device: it lacks records from this round on; Again where a Checkpoint will do
	History                       // server: records, to one device
	End                           // server: the run is over; with the record of the last round
	Opened                        // device: its b of an epoch that is over
	Greet                         // server: say hello, for it does not know this device
	Differs                       // device: its model is another than the server's
	Listen                        // server to the air: which frame of a transmission is due (Due)
	Pulse                         // server: it is still here (Presence)
	Checkpoint                    // server: theta before a round, with its record, to one device
	Radio                         // server: a request to a device's radio (package remote)
	Radioed                       // device: the answer of its radio
	kinds
)

var kindNames = [kinds]string{
	"", "hello", "welcome", "refusal", "ready", "beat", "prepare", "prepared", "send", "sent", "frame",
	"superposition", "again", "behind", "history", "end", "opened", "call for greetings", "difference", "call for a frame", "pulse", "checkpoint",
	"request to a radio", "answer of a radio",
}

// String names the kind.
func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// RunID names a run: it is drawn when the run begins.
type RunID [16]byte

// String returns the run's name in subjects.
func (r RunID) String() string { return hex.EncodeToString(r[:]) }

// Message is one of them.
type Message struct {
	Kind Kind
	Run  RunID
	// Device is the sender's number from 1 or, of a server's to one device, the addressee's;
	// 0 for all.
	Device, Epoch uint32
	Slot          slot.Slot
	Body          []byte
	// Signature is the server's, of what it sends to devices and air; nil elsewhere.
	Signature []byte
}

const (
	magic         = "RWH1"
	headerSize    = len(magic) + 1 + 16 + 4*4 + 2 + 4
	signatureSize = 64
	// MaxBody bounds the body of a message: more than the largest transmission takes.
	MaxBody = 1 << 26
)

// ErrMessage says that bytes are no message.
var ErrMessage = errors.New("not a message of Ringwave's hosts")

// IsRadio reports whether bytes say of themselves that they are a request to a radio.
func IsRadio(b []byte) bool { return len(b) > len(magic) && Kind(b[len(magic)]) == Radio }

// Bytes returns the message without its signature, which is what is signed.
func (m Message) Bytes() []byte {
	return m.With(len(m.Body), func(b []byte) []byte { return append(b, m.Body...) })
}

// With returns a message whose body, of so many bytes, is appended in its place.
func (m Message) With(size int, body func(b []byte) []byte) []byte {
	b := make([]byte, 0, headerSize+size+signatureSize)
	b = append(append(b, magic...), byte(m.Kind))
	b = append(b, m.Run[:]...)
	for _, x := range []uint32{m.Device, m.Epoch, m.Slot.Round, m.Slot.Attempt} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	b = append(b, byte(m.Slot.Transmission), m.Slot.Again)
	return body(binary.LittleEndian.AppendUint32(b, uint32(size)))
}

// Parse reads a message, signed or not. It keeps b.
func Parse(b []byte) (m Message, err error) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return m, fmt.Errorf("%w: %d bytes that do not begin with a header", ErrMessage, len(b))
	}
	at := len(magic)
	m.Kind = Kind(b[at])
	if m.Kind == 0 || m.Kind >= kinds {
		return m, fmt.Errorf("%w: its kind is %d; allowed are 1 to %d", ErrMessage, b[at], kinds-1)
	}
	at++
	at += copy(m.Run[:], b[at:])
	for _, x := range []*uint32{&m.Device, &m.Epoch, &m.Slot.Round, &m.Slot.Attempt} {
		*x = binary.LittleEndian.Uint32(b[at:])
		at += 4
	}
	m.Slot.Transmission, m.Slot.Again = slot.Transmission(b[at]), b[at+1]
	if err := m.Slot.Validate(); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	at += 2
	body := int64(binary.LittleEndian.Uint32(b[at:]))
	at += 4
	rest := int64(len(b) - at)
	if body > MaxBody || rest != body && rest != body+signatureSize {
		return m, fmt.Errorf("%w: a body of %d bytes is announced and %d are there; allowed are up to %d, and %d of a signature", ErrMessage, body, rest, MaxBody, signatureSize)
	}
	m.Body = b[at : at+int(body)]
	if rest > body {
		m.Signature = b[at+int(body):]
	}
	return m, nil
}

// Signer signs for a purpose.
type Signer interface {
	Sign(purpose string, message []byte) (signature []byte, err error)
}

// Purpose is what a server's signature of a message is for.
const Purpose = "message of the server"

// Seal returns the bytes of a message with its signature.
func Seal(s Signer, m Message) ([]byte, error) {
	b := m.Bytes()
	signature, err := s.Sign(Purpose, b)
	if err != nil {
		return nil, err
	}
	if len(signature) != signatureSize {
		return nil, fmt.Errorf("a signature of %d bytes: it must have %d", len(signature), signatureSize)
	}
	return append(b, signature...), nil
}

// Open reads a message that must be signed, as verify judges.
func Open(b []byte, verify func(purpose string, message, signature []byte) error) (Message, error) {
	m, err := Parse(b)
	if err != nil {
		return m, err
	}
	if m.Signature == nil {
		return m, fmt.Errorf("%w: a %v without the server's signature", ErrMessage, m.Kind)
	}
	return m, verify(Purpose, b[:len(b)-signatureSize], m.Signature)
}
