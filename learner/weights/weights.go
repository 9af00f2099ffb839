// Package weights writes and reads models: theta as an array for NumPy, and as named
// tensors in a safetensors file, which PyTorch, JAX and others read.
//
// It takes in theta and the tensors that it consists of, and gives bytes; from outside it
// takes bytes and gives theta back, where names and shapes are those of the model. It
// knows nothing of what a model computes, nor of run folders.
package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/sbinet/npyio/npy"

	"ringwave/learner/model"
	"ringwave/radio/intake"
)

// EncodeNPY returns theta as a .npy file: one dimension of float64.
func EncodeNPY(theta []float64) ([]byte, error) {
	var b bytes.Buffer
	if err := npy.Write(&b, theta); err != nil {
		return nil, fmt.Errorf("encoding theta for NumPy: %w", err)
	}
	return b.Bytes(), nil
}

// entry is a tensor in the header of a safetensors file.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // of its bytes, behind the header
}

// metadataKey is the header's key of what describes the file, in texts.
const metadataKey = "__metadata__"

// EncodeSafetensors returns theta as a safetensors file of float64 tensors, which together
// have its length, with metadata of texts.
func EncodeSafetensors(theta []float64, tensors []model.Tensor, metadata map[string]string) ([]byte, error) {
	header, at := map[string]any{}, 0
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	for _, t := range tensors {
		header[t.Name] = entry{"F64", t.Shape, [2]int64{int64(8 * at), int64(8 * (at + t.Size()))}}
		at += t.Size()
	}
	if at != len(theta) {
		return nil, fmt.Errorf("theta has %d values, and its tensors have %d", len(theta), at)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encoding the header of a safetensors file: %w", err)
	}
	// The tensors' bytes begin at a multiple of 8.
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	out = append(out, text...)
	for _, x := range theta {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return out, nil
}

// maxHeader bounds the header of a safetensors file, in bytes.
const maxHeader = 1 << 20

// MaxBytes returns the most that a safetensors file of some tensors may have.
func MaxBytes(tensors []model.Tensor) int64 {
	total := int64(8 + maxHeader)
	for _, t := range tensors {
		total += 8 * int64(t.Size())
	}
	return total
}

// DecodeSafetensors returns theta of a safetensors file that has the tensors, in numbers
// of float64 or float32, and none besides.
func DecodeSafetensors(data []byte, tensors []model.Tensor) ([]float64, error) {
	header, body, err := split(data)
	if err != nil {
		return nil, err
	}
	var theta []float64
	for _, t := range tensors {
		e, ok := header[t.Name]
		if !ok {
			return nil, fmt.Errorf("tensor %q is missing: it must have the shape %v", t.Name, t.Shape)
		}
		delete(header, t.Name)
		if !slices.Equal(e.Shape, t.Shape) {
			return nil, fmt.Errorf("tensor %q has the shape %v: must be %v", t.Name, e.Shape, t.Shape)
		}
		if theta, err = e.append(theta, t, body); err != nil {
			return nil, err
		}
	}
	for name := range header {
		return nil, fmt.Errorf("tensor %q is not one of the model's %d", name, len(tensors))
	}
	return theta, nil
}

// split takes a file apart into its header and the tensors' bytes.
func split(data []byte) (header map[string]entry, body []byte, err error) {
	if len(data) < 8 {
		return nil, nil, fmt.Errorf("%d bytes are no safetensors file: it begins with 8 bytes of its header's length", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, nil, fmt.Errorf("the header's length is %d: must be at most %d, and the file has %d bytes behind it", n, maxHeader, len(data)-8)
	}
	text, body := data[8:8+n], data[8+n:]
	if err := intake.CheckJSON("the header", text, intake.JSONLimits{Depth: 3, Members: 1 << 12, Elements: 16}); err != nil {
		return nil, nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, nil, fmt.Errorf("the header is no JSON object: it begins with %.20q", text)
	}
	delete(raw, metadataKey)
	header = map[string]entry{}
	for name, r := range raw {
		var e entry
		if err := json.Unmarshal(r, &e); err != nil {
			return nil, nil, fmt.Errorf("tensor %q is not described by dtype, shape and data_offsets", name)
		}
		header[name] = e
	}
	return header, body, nil
}

// append adds the tensor's values to theta.
func (e entry) append(theta []float64, t model.Tensor, body []byte) ([]float64, error) {
	width := map[string]int{"F64": 8, "F32": 4}[e.DType]
	if width == 0 {
		return nil, fmt.Errorf("tensor %q has dtype %q: must be F64 or F32", t.Name, e.DType)
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || to < from || to > int64(len(body)) || to-from != int64(width*t.Size()) {
		return nil, fmt.Errorf("tensor %q lies at bytes %d to %d of %d: must be %d bytes within the file", t.Name, from, to, len(body), width*t.Size())
	}
	for b := body[from:to]; len(b) > 0; b = b[width:] {
		if width == 8 {
			theta = append(theta, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		} else {
			theta = append(theta, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	}
	return theta, nil
}
