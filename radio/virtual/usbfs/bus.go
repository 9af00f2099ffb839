//go:build linux

package usbfs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// Bus is an emulated USB bus in a folder. It is safe for use by several
// goroutines.
type Bus struct {
	dir     string
	lock    *os.File // held as long as dir is in use
	preload string

	// viewing is over what is in the folders by which programs see the boards, the
	// first of which is dir. It is taken after mu.
	viewing sync.Mutex
	views   []string

	mu      sync.Mutex
	closed  bool
	last    int // the number of the board that was plugged in last
	devices [maxDevices + 1]*device
}

// maxDevices is how many devices a USB bus can have; they are counted from 1.
const maxDevices = 127

// ErrNoPreload: umockdev's preload library is not there.
var ErrNoPreload = errors.New("umockdev's preload library, libumockdev-preload.so.0, is not installed (on Debian: apt-get install umockdev)")

// Preload finds umockdev's preload library; ErrNoPreload if there is none.
func Preload() (path string, err error) {
	const name = "libumockdev-preload.so.0"
	for _, pattern := range []string{"/usr/lib/*/" + name, "/usr/lib64/" + name, "/usr/lib/" + name, "/usr/local/lib/" + name} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", ErrNoPreload
}

// NewBus makes a bus without boards, in a temporary folder of its own. Folders of
// programs that were killed are taken away.
func NewBus() (*Bus, error) {
	preload, err := Preload()
	if err != nil {
		return nil, err
	}
	sweep()
	dir, lock, err := newFolder()
	if err != nil {
		return nil, fmt.Errorf("making a folder for virtual USB: %w", err)
	}
	b := &Bus{dir: dir, lock: lock, preload: preload, views: []string{dir}}
	if err := makeView(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("making a folder for virtual USB: %w", err), b.Close())
	}
	return b, nil
}

// Env returns an environment by which a program sees the boards, as NAME=value. Programs
// that may start at the same time need one each, from a call each: umockdev's preload
// library puts files of the same names into the folder that it is given.
func (b *Bus) Env() ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	dir, err := b.newView()
	if err != nil {
		return nil, fmt.Errorf("making a program's folder for virtual USB: %w", err)
	}
	return []string{"LD_PRELOAD=" + b.preload, "UMOCKDEV_DIR=" + dir}, nil
}

// Dir returns the bus's folder. As UMOCKDEV_DIR it shows the boards to one program, as
// this one: see Enter.
func (b *Bus) Dir() string { return b.dir }

var errClosed = errors.New("virtual USB: the bus was closed")

// Plug plugs a board in. Boards have addresses from 001/001 on; one that was
// unplugged and closed by all programs leaves its own to others, when all have been
// used.
func (b *Bus) Plug(board virtual.Board) (usb.Address, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return usb.Address{}, errClosed
	}
	number, err := b.free()
	if err != nil {
		return usb.Address{}, err
	}
	d := &device{bus: b, number: number, board: virtual.Queued(board), conns: map[*conn]bool{}}
	if err := d.plug(); err != nil {
		d.close()
		d.leave()
		return usb.Address{}, fmt.Errorf("plugging in virtual board %d: %w", number, err)
	}
	b.devices[number], b.last = d, number
	return usb.Address{Bus: 1, Device: number}, nil
}

// free returns the next number that no board has.
func (b *Bus) free() (int, error) {
	for i := range maxDevices {
		number := (b.last+i)%maxDevices + 1
		d := b.devices[number]
		if d == nil {
			return number, nil
		}
		if d.left() {
			d.close()
			b.devices[number] = nil
			return number, nil
		}
	}
	return 0, fmt.Errorf("virtual USB: there are %d boards; allowed are no more", maxDevices)
}

// Unplug unplugs the board at an address.
func (b *Bus) Unplug(at usb.Address) error {
	b.mu.Lock()
	var d *device
	if at.Bus == 1 && at.Device >= 1 && at.Device <= maxDevices {
		d = b.devices[at.Device]
	}
	b.mu.Unlock()
	if d == nil {
		return fmt.Errorf("virtual USB: there is no board at %v", at)
	}
	d.board.Unplug()
	d.vanish()
	return nil
}

// Close unplugs what programs have open, and takes the folder away. The boards
// themselves stay as they are. A second Close does nothing.
func (b *Bus) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	for _, d := range b.devices {
		if d != nil {
			d.close()
		}
	}
	err := os.RemoveAll(b.dir)
	b.lock.Close()
	if err != nil {
		return fmt.Errorf("removing the folder of virtual USB: %w", err)
	}
	return nil
}

// major is that of Linux's USB devices; the minor counts devices from 0.
const major = 189

// name returns the device's name in sysfs, and its number in dev.
func (d *device) name() string { return fmt.Sprintf("1-%d", d.number) }
func (d *device) node() string { return fmt.Sprintf("bus/usb/001/%03d", d.number) }

// plug makes the socket, the node, and last the entry in sysfs by which programs
// find the device.
func (d *device) plug() error {
	socket := filepath.Join(d.bus.dir, d.socket())
	if len(socket)+len("/"+viewsName+"/999") > 107 { // sun_path
		return fmt.Errorf("the temporary folder's name is too long for a socket: %s is %d bytes; allowed are 97", socket, len(socket))
	}
	var err error
	if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}); err != nil {
		return err
	}
	node := filepath.Join(d.bus.dir, "dev", d.node())
	if err := syscall.Mkfifo(node, 0o666); err != nil {
		return err
	}
	if d.gate, err = newGate(node); err != nil {
		return err
	}
	link := filepath.Join(d.bus.dir, "dev/.node", strings.ReplaceAll(d.node(), "/", "_"))
	if err := os.Symlink(fmt.Sprintf("%d:%d", major, d.number-1), link); err != nil {
		return err
	}
	d.ended.Add(1)
	go d.serve()
	if err := d.enter(); err != nil {
		return err
	}
	d.bus.viewing.Lock()
	defer d.bus.viewing.Unlock()
	for _, dir := range d.bus.views[1:] {
		if err := d.appear(dir); err != nil {
			return err
		}
	}
	return nil
}

// socket returns the name of the socket in a view.
func (d *device) socket() string { return filepath.Join("ioctl/dev", d.node()) }

// names returns all that a device is in a view, but for its socket: last the entry by
// which programs find it.
func (d *device) names() []string {
	return []string{
		filepath.Join("dev", d.node()), filepath.Join("dev/.node", strings.ReplaceAll(d.node(), "/", "_")),
		filepath.Join("sys/devices/vusb/usb1", d.name()), filepath.Join("sys/bus/usb/devices", d.name()),
	}
}

// appear shows a device in a view as it is in the bus's folder, unless it has gone.
func (d *device) appear(dir string) error {
	if d.isGone() {
		return nil
	}
	for _, name := range append([]string{d.socket()}, d.names()...) {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := mirror(filepath.Join(d.bus.dir, name), to); err != nil {
			return err
		}
	}
	return nil
}

// enter makes the entry in sysfs.
func (d *device) enter() error {
	desc := d.board.Descriptors()
	dir := d.entry()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	uevent := fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=%s\nDEVTYPE=usb_device\nDRIVER=usb\nPRODUCT=%x/%x/%x\nTYPE=0/0/0\nBUSNUM=001\nDEVNUM=%03d\n",
		major, d.number-1, d.node(), desc.Vendor(), desc.Product(), desc.Release(), d.number)
	files := []struct{ name, content string }{
		{"uevent", uevent},
		{"dev", fmt.Sprintf("%d:%d\n", major, d.number-1)},
		{"busnum", "1\n"},
		{"devnum", fmt.Sprintf("%d\n", d.number)},
		{"devpath", fmt.Sprintf("%d\n", d.number)},
		{"speed", "480\n"},
		{"bConfigurationValue", fmt.Sprintf("%d\n", desc.Configuration[5])},
		{"bNumConfigurations", "1\n"},
		{"bDeviceClass", "00\n"},
		{"bcdDevice", fmt.Sprintf("%04x\n", desc.Release())},
		{"idVendor", fmt.Sprintf("%04x\n", desc.Vendor())},
		{"idProduct", fmt.Sprintf("%04x\n", desc.Product())},
		{"manufacturer", desc.String(desc.Device[14]) + "\n"},
		{"product", desc.String(desc.Device[15]) + "\n"},
		{"serial", desc.Serial() + "\n"},
		{"descriptors", string(desc.Device) + string(desc.Configuration)},
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.content), 0o644); err != nil {
			return err
		}
	}
	if err := os.Symlink("../../../../bus/usb", filepath.Join(dir, "subsystem")); err != nil {
		return err
	}
	return os.Symlink("../../../devices/vusb/usb1/"+d.name(), d.link())
}

func (d *device) entry() string {
	return filepath.Join(d.bus.dir, "sys/devices/vusb/usb1", d.name())
}

func (d *device) link() string { return filepath.Join(d.bus.dir, "sys/bus/usb/devices", d.name()) }

// leave takes the entries in sysfs away, and the nodes. What is left in the way of
// failure goes with the folder.
func (d *device) leave() {
	d.bus.viewing.Lock()
	defer d.bus.viewing.Unlock()
	for i, dir := range d.bus.views {
		names := d.names()
		slices.Reverse(names)
		if i > 0 { // the listener takes its own away
			names = append(names, d.socket())
		}
		for _, name := range names {
			_ = os.RemoveAll(filepath.Join(dir, name))
		}
	}
}
