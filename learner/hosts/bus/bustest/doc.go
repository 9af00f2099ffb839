// Package bustest lets tests run hosts of a bench over a bus that fails.
//
// New enrols a bench and runs its server within the test's process. An Interposer stands in
// front of a bus.Conn and drops, repeats, delays and reorders what goes through it, by a seed.
// A Proxy stands between hosts and a server that listens, and cuts, stalls and delays
// connections. What fails a Proxy is the network: TCP hides loss from the program, and a
// Proxy shows what it does not hide. It knows nothing of what messages mean.
package bustest
