package calibration

import (
	"bytes"
	"fmt"

	"github.com/sbinet/npyio/npy"
)

// EncodeGains returns a device's complex gains, in the order of blocks and, within a
// block, of looks, as a .npy file for NumPy: one dimension, complex128, NaN where a gain
// is missing. numpy.load(file).reshape(-1, looks) has a row a block.
func EncodeGains(gains []complex128) ([]byte, error) {
	var b bytes.Buffer
	if err := npy.Write(&b, gains); err != nil {
		return nil, fmt.Errorf("encoding gains for NumPy: %w", err)
	}
	return b.Bytes(), nil
}
