// Package identity is who may be on a bench: what "ringwave enroll" makes, and what each
// host of the bench reads.
//
// Create takes in a number of devices and a URL, and writes a folder: a certificate
// authority of the bench's own, the certificate of its message bus, an identity file for
// each host, a public registry of them all, and a configuration for a nats-server that is
// not ours. Open reads the folder again, to add devices and to revoke some. Load reads one
// identity file on the host that it was given to. Permissions is the one table of who may
// publish and subscribe what.
//
// A bench is named by the public nkey that signs its enrolments. A Statement is such a
// signature: this nkey is device 3 of that bench, from then to then. Whoever knows the name
// of the bench can check it, without the registry. What no statement says is that a device
// was revoked since: the registry does, and the bus keeps those out.
//
// Seeds and the secret of patterns and checks are overwritten by Identity.Wipe; the text
// of the file that they were read from is, too, but not the copies that the decoder of
// TOML has made. The package knows nothing of connections and messages.
package identity
