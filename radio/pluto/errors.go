package pluto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// The errors that callers tell apart, by errors.Is; what the board itself refuses
// is an Errno.
var (
	// ErrTimeout: the board did not answer in time.
	ErrTimeout = errors.New("the board did not answer in time")
	// ErrDisconnected: the connection to the board was lost, as by unplugging it.
	ErrDisconnected = errors.New("the connection to the board was lost")
	// ErrUnreachable: there is no board, or no iiod, at the address.
	ErrUnreachable = errors.New("no board can be reached")
	// ErrProtocol: an answer that iiod does not give.
	ErrProtocol = errors.New("the answer is not one of iiod's")
	// ErrOtherBoard: another board answers at the address of the one that was
	// opened.
	ErrOtherBoard = errors.New("another board answers at this address")
)

// Errno is an error number with which the board refused a request. Numbers are
// those of the board's Linux, whatever this machine runs.
type Errno int

// The numbers that the driver acts upon.
const (
	errnoNoEntry Errno = 2
	errnoInvalid Errno = 22
)

// errnos are the numbers that iiod and the board's drivers give, in words.
var errnos = map[Errno]string{
	1:   "it is not permitted",
	2:   "there is no such attribute",
	5:   "the board's driver failed",
	6:   "there is no such channel",
	9:   "the stream is not open on the board",
	11:  "the board is not ready",
	12:  "the board is out of memory",
	13:  "the attribute cannot be changed",
	14:  "bad address",
	16:  "the board is in use, by another program perhaps",
	19:  "there is no such device on the board",
	22:  "the board does not take this value or does not know the request",
	28:  "the board is out of space",
	32:  "the board ended the stream",
	34:  "the value is out of range",
	38:  "the board's firmware does not have this",
	95:  "the board does not support this",
	104: "the board ended the connection",
	110: "the board's converter gave or took nothing in time",
	121: "the board's transceiver does not answer",
	125: "the request was cancelled on the board",
}

// Error returns the number in words.
func (e Errno) Error() string {
	words, ok := errnos[e]
	if !ok {
		words = "the board refused"
	}
	return fmt.Sprintf("%s (errno %d)", words, int(e))
}

// lost returns what an error of the connection means.
func lost(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ETIMEDOUT):
		return ErrDisconnected
	}
	var network net.Error
	if errors.As(err, &network) {
		return fmt.Errorf("%w (%v)", ErrDisconnected, err)
	}
	return err
}
