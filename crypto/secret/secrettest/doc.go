// Package secrettest searches the memory of the process itself, or of another, for secrets.
// It is for tests, and works on Linux alone.
package secrettest
