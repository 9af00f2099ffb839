// Package secrettest searches the memory of the process itself for secrets. It is for
// tests, and works on Linux alone.
package secrettest
