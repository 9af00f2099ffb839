// Package layers says which package of this module may import which: data flow from
// learner to crypto to phy to radio and back, and imports run that one way. It has no
// code: its test reads the imports of every file, whatever its build tags, and holds
// them against a table. A new package needs a row there.
package layers
