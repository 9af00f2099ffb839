//go:build !purego

package vector

import "golang.org/x/sys/cpu"

// lacks says what the processor, or its operating system, has not. AVX512 stands for what
// all processors have that have AVX-512 since 2017.
func lacks(p Path) string {
	has := cpu.X86
	switch {
	case !has.HasAVX2 || !has.HasFMA:
		return "AVX2 and FMA"
	case p == AVX512 && !(has.HasAVX512F && has.HasAVX512DQ && has.HasAVX512BW && has.HasAVX512VL):
		return "AVX512F, DQ, BW and VL"
	}
	return ""
}

// HasIFMA reports whether the processor multiplies integers of 52 bits in vectors.
func HasIFMA() bool { return cpu.X86.HasAVX512IFMA }
