package secret_test

import (
	"crypto/rand"
	"testing"

	"ringwave/crypto/secret"
	"ringwave/crypto/secret/secrettest"
)

// Copies on the stack are there after a function has returned, unless Do ran it.
func TestDoOverwritesStack(t *testing.T) {
	if !secrettest.Unpreempted(t) {
		return
	}
	for _, do := range []bool{false, true} {
		held := new([32]byte)
		rand.Read(held[:])
		var needles secrettest.Needles
		needles.Add("copy", held[:])
		// A goroutine of its own has a stack that must grow, and waits until it has
		// been searched.
		ready, done := make(chan bool), make(chan bool)
		go func() {
			work := func() { copyDown(held, 24) }
			if do {
				secret.Do(work)
			} else {
				work()
			}
			clear(held[:])
			ready <- true
			<-done
		}()
		<-ready
		found, err := needles.Find()
		done <- true
		if err != nil {
			t.Fatal(err)
		}
		if left := found["copy"] > 0; left == do {
			t.Errorf("with Do %v: %d copies are left", do, found["copy"])
		}
	}
}

// copyDown leaves copies on the stack, one every half KiB or so.
//
//go:noinline
func copyDown(held *[32]byte, frames int) {
	var room [512]byte
	copied := *held
	if frames > 0 {
		copyDown(&copied, frames-1)
	}
	keep(&copied, &room)
}

//go:noinline
func keep(*[32]byte, *[512]byte) {}
