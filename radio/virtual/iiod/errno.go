package iiod

import "strconv"

// errno is an error number of Linux, which the protocol sends negative whatever
// system the server runs on.
type errno int

const (
	enoent    errno = 2
	enxio     errno = 6
	eio       errno = 5
	ebadf     errno = 9
	eacces    errno = 13
	ebusy     errno = 16
	enodev    errno = 19
	einval    errno = 22
	etimedout errno = 110
)

// Error returns the number.
func (e errno) Error() string { return "errno " + strconv.Itoa(int(e)) }
