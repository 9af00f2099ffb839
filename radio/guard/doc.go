// Package guard keeps carriers from outliving the program that switched them on.
//
// A guard is a second process, in a session of its own, so that neither the terminal's
// signals nor its end reach it. It has a way of its own to each board that may send, which
// it opens before the board's transmit chain is switched on, and a pipe from the program.
// It switches boards off when the pipe ends, which it does however the program dies
// (a panic, kill -9, any signal that is not caught), and when nothing has come through it
// for the least of the boards' limits: a program that is stopped (Ctrl-Z, SIGSTOP, a
// debugger) closes no pipe. What has fired once stays so: the program is told, at each
// sign of life boards are switched off again, and the program's streams fail.
//
// The other way round a program whose guard has died, or does not answer, sends nothing:
// see radio.Watch.
//
// # Signs of life
//
// They come from a goroutine of the program that does nothing else, eight within the
// limit: they say that the process runs, and not that it does what it should. What a
// program makes of its work, and the stuck stream of a program that otherwise runs, is
// for the drivers' own deadlines and the boards' own limits. A guard counts time only
// while it runs itself, so that one that stood still, too, first looks into its pipe.
//
// # What it does not help against
//
// A machine that hangs or loses its power, and a kill of both processes at once (that of
// a control group, as by systemd or for want of memory). What a board does then is in the
// documentation of its driver.
//
// # Wire
//
// Both ways go lines of at most MaxLine bytes. To the guard:
//
//	watch ID MILLISECONDS URI
//	leave ID
//	alive N
//
// and from it
//
//	guard 1                 first of all
//	watching ID
//	refused ID WHY
//	alive N
//	fired WHY
package guard
