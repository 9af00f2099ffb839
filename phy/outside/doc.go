// Package outside decodes recordings as somebody would who has phy/README.md and nothing
// else of this repository. It has no code but tests: its decoder imports the standard
// library alone, and is fed with recordings that the program makes. What it needs to know
// beyond a recording must be in that file.
package outside
