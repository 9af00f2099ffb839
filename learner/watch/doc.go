// Package watch shows in a browser what a program is doing while it does it.
//
// It takes in scenes, each of which is one thing to look at (a run, a calibration, a sweep,
// a recording that is played), and gives them as a page: status, figures, tables, plots,
// events, and what changes fast. It knows how to bring these to viewers and nothing of
// what they mean: no experiment, no radio. Package gate is its door, package air makes what
// changes fast, package scenes makes scenes.
//
// Who works tells its scene by setting parts, which costs little and never waits. Each
// viewer takes what is newest when it can take something: who is slow misses what was
// between, and holds up nobody.
//
// # Protocol
//
// The page is at /, and opens a WebSocket at /socket. From the program come text messages,
// each a Message: a part of a scene, whole, but for PartEvents, which has those that are
// new. At first comes PartHello. After it comes nothing of a scene before the viewer has
// said by a Wish which it looks at. What changes fast are binary messages: a uint32,
// little-endian, the length of a JSON object that begins behind it and is filled up with
// spaces to a multiple of 4 bytes, then numbers as the object says.
//
// A plot of PartPlots is at /scenes/ID/plots/NAME.svg. A POST without a body to
// /scenes/ID/carriers-off takes all carriers off, one to /scenes/ID/stop has the work end
// where it can go on later; both answer 204, or 409 where the scene has no such control.
package watch
