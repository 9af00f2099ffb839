// Package device is one device of a bench in a process of its own.
//
// It takes in the device's identity, a bus and a function that makes its part in a run:
// its samples, its key and what frames its transmissions. It greets the server, follows its
// rounds, and gives b, c0, c1 and D to the air. Each step is answered once: asked again,
// the device says the same again, and what is no longer asked for is not answered. It
// never sends its samples, losses or key, and it checks what it is told: the server's
// signature of every message, the records by which its model moves, that b~ and c~1 hide
// what is sent under them, that no other one is asked for in their place, and how many
// others take part. A device that hears nothing of its server lets go of its part and greets
// until there is one. It knows nothing of the server's doings, of other devices, or of gains.
package device
