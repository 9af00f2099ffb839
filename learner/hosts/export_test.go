package hosts

// Reveal has a device give its secret seed to a test.
func (o *DeviceOptions) Reveal(to func(seed []byte)) { o.reveal = to }
