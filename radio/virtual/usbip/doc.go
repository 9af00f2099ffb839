// Package usbip plugs virtual boards into a real Linux kernel, by the wire of USB/IP
// into its virtual host controller (module vhci-hcd). It needs root.
//
// It takes in a board and a connection on whose other side a kernel is, and answers
// what the kernel asks. Everything above is then the real thing: enumeration, usbfs,
// permissions, udev. It knows nothing of usbip's network service: the connection is
// a socket pair that Attach hands to the kernel, or any other.
//
// Messages are those of Documentation/usb/usbip_protocol.rst in Linux's source.
package usbip
