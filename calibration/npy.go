package calibration

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/sbinet/npyio/npy"
)

// WriteGains writes the complex gains of each device, in the order of blocks and, within
// a block, of looks, into dir as gains-1.npy, gains-2.npy and so on, for NumPy: one
// dimension, complex128, NaN where a gain is missing. numpy.load(file).reshape(-1, looks)
// has a row a block. It gives the files written, on an error those so far; each is there
// whole or not at all.
func WriteGains(dir string, gains [][]complex128) ([]string, error) {
	var paths []string
	for i, g := range gains {
		path := filepath.Join(dir, fmt.Sprintf("gains-%d.npy", i+1))
		var b bytes.Buffer
		if err := npy.Write(&b, g); err != nil {
			return paths, fmt.Errorf("writing %s: %w", path, err)
		}
		if err := writeFile(path, b.Bytes()); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
