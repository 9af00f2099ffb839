package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Greeting is the body of Hello: what a device is and has.
type Greeting struct {
	// Nonce is drawn anew for each greeting; who answers repeats it.
	Nonce []byte
	// Version is that of the program, Clock the host's time.
	Version string
	Clock   time.Time
	// Nkey, NotBefore, Expires and Statement are of the device's enrolment.
	Nkey      string
	NotBefore time.Time
	Expires   time.Time
	Statement []byte
	// Host names the machine.
	Host string
}

// Run is the body of Welcome: all that a device must know to take part.
type Run struct {
	Nonce []byte // of the Greeting
	// Version is that of the server's program, Clock its time.
	Version string
	Clock   time.Time
	// Config is the resolved configuration, in TOML.
	Config []byte
	// Calibration is the file that the run goes by; nil for none.
	Calibration []byte
	// Dataset names the data set in use, which may be the configuration's fallback.
	Dataset string
	Devices int
	// Rounds have been recorded so far.
	Rounds int
	// Sounds says that this is no run: the bench is calibrated, for which devices have their
	// radios play soundings, and need neither data nor keys.
	Sounds bool
}

// Readiness is the body of Ready.
type Readiness struct {
	Nonce []byte // of the Greeting that was welcomed
	// Rounds is how many the device's model has taken in, Devices the run's N.
	Rounds, Devices int
	// Data is the digest of the data that the device's shard comes from, and Own that
	// they are its own.
	Data string
	Own  bool
	// Samples counts them, Radio names the transmitter; "" for none.
	Samples int
	Radio   string
}

// Host is one line of a census.
type Host struct {
	Index   int           `json:"index"`
	Nkey    string        `json:"nkey"`
	Host    string        `json:"host"`
	Version string        `json:"version"`
	State   string        `json:"state"` // present, lost, refused, revoked, never seen
	Why     string        `json:"why,omitempty"`
	Seen    time.Time     `json:"last_seen,omitzero"`
	Offset  time.Duration `json:"clock_offset_ns"` // of its clock from the server's, the way of a message included
	Data    string        `json:"data_digest"`
	Own     bool          `json:"own_data"`
	Samples int           `json:"samples"`
	Radio   string        `json:"radio,omitempty"`
	Rounds  int           `json:"rounds"`
	History int           `json:"history_bytes"` // of records and checkpoints that it was sent, for it had missed rounds
}

// Attendance is what an observer is told.
type Attendance struct {
	Run    string    `json:"run"`
	Name   string    `json:"name"`
	Round  int       `json:"round"`
	Rounds int       `json:"rounds"`
	Clock  time.Time `json:"clock"`
	Hosts  []Host    `json:"hosts"`
}

// AppendJSON returns a body.
func AppendJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return b, nil
}

// ParseJSON reads a body into v: all of it, and nothing that v does not know.
func ParseJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if d.More() {
		return fmt.Errorf("%w: something behind its JSON", ErrMessage)
	}
	return nil
}
