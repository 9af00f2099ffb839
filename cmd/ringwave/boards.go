package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"ringwave/radio/hackrf"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/usb"
)

// The drivers of boards, by their schemes.
const (
	driverHackRF = "hackrf"
	driverRTLSDR = "rtlsdr"
	driverRTLTCP = "rtl_tcp"
	driverPluto  = "pluto"
)

// tried tells whether a driver was ever tried on a real board; nil if it is of no
// board.
func tried(driver string) *bool {
	switch driver {
	case driverHackRF, driverRTLSDR, driverRTLTCP, driverPluto:
		return new(bool)
	}
	return nil
}

// kind is a sort of board on USB.
type kind struct {
	name    string
	is      func(usb.Identity) bool
	driver  string // empty for what no driver opens over USB
	problem string // why not
	toDo    []string
}

// kinds are those that are told apart.
var kinds = []kind{
	{name: "HackRF", is: hackrf.IsBoard, driver: driverHackRF},
	{name: "RTL-SDR", is: rtlsdr.Matches, driver: driverRTLSDR},
	{
		name: "NXP boot loader", is: identified(0x1fc9, 0x000c),
		problem: "this is a boot loader, as a HackRF is in DFU mode, and no radio",
		toDo: []string{
			"press the board's reset button, and not DFU with it; if it comes back like this its flash is empty. With",
			"the firmware of a HackRF release and Debian's packages dfu-util and hackrf:",
			"dfu-util --device 1fc9:000c --alt 0 --download hackrf_one_usb.dfu --reset",
			"hackrf_spiflash -w hackrf_one_usb.bin",
		},
	},
	{
		name: "ADALM-Pluto", is: identified(0x0456, 0xb673),
		problem: "this board is not opened over USB but over the network that its plug also is",
		toDo:    []string{"ringwave devices --probe pluto:192.168.2.1"},
	},
	{
		name: "ADALM-Pluto in DFU mode", is: identified(0x0456, 0xb674),
		problem: "this is a boot loader and no radio",
		toDo:    []string{"unplug the board and plug it in again, without pressing its button"},
	},
}

func identified(vendor, product uint16) func(usb.Identity) bool {
	return func(i usb.Identity) bool { return i.Vendor == vendor && i.Product == product }
}

// isKnown tells whether kindOf knows a board.
func isKnown(i usb.Identity) bool { return kindOf(i).name != "" }

func kindOf(i usb.Identity) kind {
	for _, k := range kinds {
		if k.is(i) {
			return k
		}
	}
	return kind{}
}

// The oldest firmware of a HackRF that tells of losses and stops sending when samples
// stop coming, and the newest that the driver knows of.
const (
	hackrfCounts hackrf.API = 0x0106
	hackrfNewest hackrf.API = 0x0112
)

// boardNotes says what a board's descriptors alone give away.
func boardNotes(k kind, b usb.Listed) (notes []string) {
	if b.Driver != "" {
		notes = append(notes, fmt.Sprintf("the kernel's driver %s has it, and gives it up while it is open here; to keep it away: %s", b.Driver, blacklist(b.Driver)))
	}
	if k.driver != driverHackRF {
		return notes
	}
	switch api := hackrf.API(b.Identity.Release); {
	case api < hackrfCounts:
		notes = append(notes, fmt.Sprintf("its firmware has USB API %v, before %v of 2022.09: it tells of no losses and does not stop sending when samples stop coming, so that it only receives unless opened with limit_ms=0; update it: %s", api, hackrfCounts, hackrfUpdate))
	case api > hackrfNewest:
		notes = append(notes, fmt.Sprintf("its firmware has USB API %v, after %v, the newest that the driver was written for", api, hackrfNewest))
	}
	if b.Serial == "RunningFromRAM" {
		notes = append(notes, "its firmware runs from RAM and is gone when it is unplugged; write it to flash: "+hackrfUpdate)
	}
	return notes
}

const hackrfUpdate = "hackrf_spiflash -w hackrf_one_usb.bin (Debian's package hackrf, and the file of a firmware release)"

// usbBuild is how to get a build with USB.
var usbBuild = []string{
	"sudo apt-get install gcc libc6-dev pkg-config libusb-1.0-0-dev   (on Debian)",
	"CGO_ENABLED=1 go install -tags usb ./cmd/ringwave",
}

// remedy says what a user can do about an error of a board, nil where there is
// nothing to say; b is nil for what is not on USB.
func remedy(err error, b *usb.Listed) []string {
	switch {
	case errors.Is(err, usb.ErrNoUSBBuild):
		return usbBuild
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
	case errors.Is(err, hackrf.ErrOldFirmware):
		return []string{hackrfUpdate}
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
		return []string{"nothing listens there: start the server (rtl_tcp; on a Pluto iiod runs by itself), or mend host and port"}
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
		"echo '" + rule(i) + "' | sudo tee -a " + rulesFile,
		"sudo udevadm control --reload && sudo udevadm trigger",
		"and plug the board in again. scripts/70-ringwave.rules has the rules of all boards. Who is not logged in at",
		"the machine itself must also be in the group, and log in again:",
		"sudo usermod -aG plugdev $USER",
	}
}

// rule gives the rule of udev that lets users open a board: those who sit at the
// machine and those of a group.
func rule(i usb.Identity) string {
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
