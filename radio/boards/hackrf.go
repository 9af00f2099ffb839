package boards

import (
	"context"
	"errors"
	"fmt"

	"ringwave/radio"
	"ringwave/radio/guard"
	"ringwave/radio/hackrf"
	"ringwave/radio/usb"
)

// The oldest firmware of a HackRF that tells of losses and stops sending when samples
// stop coming, and the newest that the driver knows of.
const (
	hackrfCounts hackrf.API = 0x0106
	hackrfNewest hackrf.API = 0x0112
)

const hackrfUpdate = "hackrf_spiflash -w hackrf_one_usb.bin (Debian's package hackrf, and the file of a firmware release)"

func hackrfDriver(host usb.Host, opener radio.Opener) Driver {
	return Driver{
		Scheme: "hackrf", Opener: opener, Board: true,
		Kinds: []Kind{
			{Name: "HackRF", Is: hackrf.IsBoard},
			{
				Name: "NXP boot loader", Is: identified(0x1fc9, 0x000c),
				Problem: "this is a boot loader, as a HackRF is in DFU mode, and no radio",
				ToDo: []string{
					"press the board's reset button, and not DFU with it; if it comes back like this its flash is empty. With",
					"the firmware of a HackRF release and Debian's packages dfu-util and hackrf:",
					"dfu-util --device 1fc9:000c --alt 0 --download hackrf_one_usb.dfu --reset",
					"hackrf_spiflash -w hackrf_one_usb.bin",
				},
			},
		},
		OpenSwitch: func(ctx context.Context, u radio.URI) (guard.Switch, error) { return hackrf.OpenSwitch(ctx, host, u) },
		Notes:      hackrfNotes,
		API:        func(i usb.Identity) string { return hackrf.API(i.Release).String() },
		Remedy: func(err error) []string {
			if errors.Is(err, hackrf.ErrOldFirmware) {
				return []string{hackrfUpdate}
			}
			return nil
		},
	}
}

// hackrfNotes says what a HackRF's descriptors alone give away.
func hackrfNotes(b usb.Listed) (notes []string) {
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
