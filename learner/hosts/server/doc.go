// Package server is the server's side of a bench of many hosts.
//
// It takes in the server's identity, a bus and what devices must know of a run, and gives
// the devices as participants of crypto/round, each of which answers over the bus or is
// absent. Its Herald says every second that the server is there, and finds out whether another
// process is the same server. It says who is there, keeps the records by which late devices catch up, and
// checks at the end that each b was the one that its device had committed to. The bus may
// lose, repeat, delay and reorder anything: what is asked for is asked for again until it is
// answered or the deadline has passed, and an answer counts once. A device that refuses is
// left alone for a deadline, so that it does not cost one round after the other. Who lacks very
// many rounds is sent a checkpoint of theta, which is Offered to it from elsewhere. The server
// never sees a device's samples, losses or key, nor what one device alone sends.
package server
