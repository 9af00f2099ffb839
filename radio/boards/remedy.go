package boards

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"ringwave/radio/usb"
)

// usbBuild is how to get a build with USB.
var usbBuild = []string{
	"sudo apt-get install gcc libc6-dev pkg-config libusb-1.0-0-dev   (on Debian)",
	"CGO_ENABLED=1 go install -tags usb ./cmd/ringwave",
}

// remedy returns what a user can do about an error of a driver's board, nil where there
// is nothing to say; b is nil for what is not on USB.
func (d Driver) remedy(err error, b *usb.Listed) []string {
	var own []string
	if d.Remedy != nil {
		own = d.Remedy(err)
	}
	switch {
	case errors.Is(err, usb.ErrNoUSBBuild):
		return usbBuild
	case b == nil && own != nil:
		return own
	case b == nil:
		return remoteRemedy(err)
	case errors.Is(err, usb.ErrAccess):
		return accessRemedy(b.Identity)
	case errors.Is(err, usb.ErrDriverBound):
		return driverRemedy(*b)
	case errors.Is(err, usb.ErrInUse):
		return []string{
			"end the other program; this names it:",
			fmt.Sprintf("fuser -v /dev/bus/usb/%v", b.Address),
		}
	case own != nil:
		return own
	case errors.Is(err, usb.ErrStall), errors.Is(err, usb.ErrTimeout), errors.Is(err, usb.ErrUnplugged):
		return []string{"unplug the board, plug it in again, and look again"}
	}
	return nil
}

// remoteRemedy is about what was named.
func remoteRemedy(err error) []string {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return []string{"nothing listens there: start the server (rtl_tcp, SoapySDRServer; on a Pluto iiod runs by itself), or mend host and port"}
	case errors.As(err, &network):
		return []string{"look whether host and port are right and the network is up: ping the host"}
	}
	return nil
}

// rulesFile is where the rules belong.
const rulesFile = "/etc/udev/rules.d/70-ringwave.rules"

// accessRemedy is about a board that the user may not open.
func accessRemedy(i usb.Identity) []string {
	return []string{
		"echo '" + Rule(i) + "' | sudo tee -a " + rulesFile,
		"sudo udevadm control --reload && sudo udevadm trigger",
		"and plug the board in again. scripts/70-ringwave.rules has the rules of all boards. Who is not logged in at",
		"the machine itself must also be in the group, and log in again:",
		"sudo usermod -aG plugdev $USER",
	}
}

// Rule returns the rule of udev that lets users open a board: those who sit at the
// machine and those of a group.
func Rule(i usb.Identity) string {
	return fmt.Sprintf(`SUBSYSTEM=="usb", ATTR{idVendor}=="%04x", ATTR{idProduct}=="%04x", MODE="0660", GROUP="plugdev", TAG+="uaccess"`, i.Vendor, i.Product)
}

// driverRemedy is about a board that the kernel's driver does not give up.
func driverRemedy(b usb.Listed) []string {
	if b.Driver == "" {
		return []string{"lsusb -t names the driver; take it off with sudo modprobe -r, and keep it away with a line blacklist in /etc/modprobe.d"}
	}
	return []string{
		"sudo modprobe -r " + b.Driver,
		"and to keep it away:",
		blacklist(b.Driver),
	}
}

// blacklist keeps a driver of the kernel away from now on.
func blacklist(driver string) string {
	return fmt.Sprintf("echo 'blacklist %s' | sudo tee /etc/modprobe.d/ringwave-%s.conf", driver, strings.ReplaceAll(driver, "_", "-"))
}

// boardNotes returns what a board's descriptors alone give away.
func (d Driver) boardNotes(b usb.Listed) (notes []string) {
	if b.Driver != "" {
		notes = append(notes, fmt.Sprintf("the kernel's driver %s has it, and gives it up while it is open here; to keep it away: %s", b.Driver, blacklist(b.Driver)))
	}
	if d.Notes != nil {
		notes = append(notes, d.Notes(b)...)
	}
	return notes
}
