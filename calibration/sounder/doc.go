// Package sounder plays soundings over a radio session, each device in turn, and
// estimates what the receiver hears of each.
//
// It takes in running streams, or a recording of them, and gives blocks of records:
// a record is one burst of one device, fitted. A block stands for one round of the
// protocol: within it every device sends Looks bursts, look t where the round's
// transmission t (b, c0, c1, D) would be, so that what changes within a round shows.
// Blocks are grouped in sessions, whose streams stayed open and whose tuning epochs
// stayed as they were: phases hold within a session (phy/README.md, section 6).
//
// In each session the first bursts of a device are searched together for its delay
// and carrier offset; every burst is then fitted at these, which is linear in the
// samples, so that a gain near 0 is not overestimated.
//
// Locate finds transmitters that began at different times, so that they can be given an
// index in common before a session begins.
//
// The package knows nothing of what the gains are for, of statistics over blocks, or
// of files.
package sounder
