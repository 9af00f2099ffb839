// Package remote makes SoapySDR's calls over the network, to boards of hosts on which
// SoapyRemote's server runs (SoapySDRServer, in Debian's package soapyremote-server), without
// SoapySDR on this one. It is a soapy.Backend, and knows nothing of permits, indices or
// complex samples: samples stay in the server's bytes.
//
// The protocol is that of SoapyRemote 0.5 (github.com/pothosware/SoapyRemote): remote calls
// over TCP, one at a time, and for each stream a connection for samples and one for news, over
// TCP or UDP. What comes from a server is outside input: an answer is 1 MiB at most, each call
// and each wait has an end, and an error names the server.
//
// Debian's server 0.5.2 was tried, with its module for HackRFs on emulated boards, and never
// a real board.
//
// # What a server does besides
//
// The server has a thread for each stream, which reads from the board or writes to it from
// when the stream is made, active or not; some modules switch a board on by that. So a board
// may receive before Activate, and Deactivate closes the stream at the server, so that what
// was on its way does not switch the board on again.
//
// Over UDP what is lost of a receiver's samples is told as soapy.ErrOverflow; what is lost of
// a transmitter's nobody notices.
//
// # When the client ends, stops, or is cut off
//
// A server gives boards back when the connection for calls ends: it closes the streams and
// then the board. So a client that is killed leaves no carrier on, a tenth of a second later.
// The threads of SoapyRemote 0.5.2 read on at the usual end of a TCP stream without end, and
// the server then waits for them with the board in its hands, its carrier on. The connections
// of this package therefore end by a reset, also when the program is killed. The thread can
// still miss that, in the instant in which it acknowledges what it has read; over UDP there is
// no such end.
//
// It takes a server that survives. SoapyHackRF 0.3.3 frees the buffers of a receiver that is
// streaming, and its server often crashes when a client that receives is killed. A board whose
// server has crashed stays as it was.
//
// A client that stands still (SIGSTOP, a host that sleeps) keeps its connections, and the
// server the board: a transmitter goes on to send what its module sends when there are no
// samples, which with a HackRF's is a carrier without modulation. Nothing but the end of the
// program ends that.
//
// A network that breaks is an error here, soapy.ErrGone, within the time of a call. The server
// does not see it, has no limit of time, and sends nothing by which it would: the board stays
// as it is, a transmitter's carrier on, until that server is restarted. Transmitters that must
// not be left alone belong to the host that this program runs on, or on a network as sure as
// that.
//
// A server also hangs, board in hand, where a client dies just between the two connections
// of a stream that is made over TCP.
package remote
