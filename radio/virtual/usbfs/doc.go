// Package usbfs shows virtual boards to the programs of this machine, as Linux's
// usbfs would: under the preload library of umockdev, without root and without a
// kernel module.
//
// It takes in boards and gives an environment. A program started with it finds the
// boards in /sys and /dev/bus/usb; what it does to them there comes to this
// process over a socket. Programs that go by libusb work unmodified. Go's own
// system calls go past the preload library, so that boards and a driver under test
// can be in one process.
//
// Each call of Bus.Env gives a program a folder of its own by which it sees the boards.
// Programs that share one must not start at the same moment: the preload library names
// sockets there by file descriptors, and a second program takes the first one's away,
// so that libusb does not start. The folders of programs that were killed are taken
// away when the same user makes the next bus.
//
// There is no kernel in between. Not modelled are its limits of memory, its
// splitting of transfers, plugging and unplugging as events (a program sees what
// is there when it looks) and permissions. A program may have at most about 50
// boards open; it must be linked dynamically with glibc.
package usbfs
