package hosts

// Reveal has a device give its secret seed to a test.
func (o *DeviceOptions) Reveal(to func(seed []byte)) { o.reveal = to }

// RunIDOf returns the name of a folder's run, as a string.
func RunIDOf(dir string) (string, error) {
	id, err := runID(dir)
	return id.String(), err
}
