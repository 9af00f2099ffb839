// Package console is where a command speaks of its work, beside its results and errors:
// lines, and how far something long is.
package console
