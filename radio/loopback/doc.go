// Package loopback joins transmitters and one receiver in memory, on one sample
// clock.
//
// It takes in what each device transmits, a gain, a delay and a distortion a
// device, a noise and a converter at the receiver; it gives
//
//	y[n] = convert( sum_i g_i path_i(x_i)[n - d_i] + noise[n] )
//
// to the sample, n counted from the making of the Medium. It knows nothing of
// symbols or of what the distortions model.
//
// # As fast as it can
//
// Without a clock, reads drive time. A read of [n0, n1) waits until each device
// has written up to n1 - d_i, or promised by Idle to be silent until then, or is
// closed or muted. A configured device that nobody has opened yet is waited for
// as well: otherwise what is received would depend on who came first. So the
// samples, gaps and events are a function of what is written, of the lengths of
// the reads and of nothing else. A write waits while its device has Window
// samples in store that were not read. Thus one goroutine may write frames of up
// to Window samples a device and then read them; anything longer needs a reader
// beside the writers. It had better read up to the frame's end by ReadUntil: a read
// that steps over a loss, or begins late, waits for writers beyond it.
//
// A device that is closed and opened again goes on where the reader is by then,
// which only the program's own order of calls can make repeatable.
//
// # In real time
//
// With a Clock, a read of [n0, n1) waits until n1 on the clock, and what a device
// has not written by then is zeros: an underrun if it is within a burst. A
// receiver that is not read for more than ReceiveBuffer samples overruns, and the
// gap says how much was lost.
//
// # Faults
//
// Drop, Underrun, Retune, RetuneReceiver and SetGain happen at a given index, so
// that they too are repeatable; they fail if the index was passed. There are no
// goroutines in this package: everything happens in those of the callers.
package loopback
