package vector

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, p := range Paths() {
		got, err := Choose(p.String())
		if lacking := p.Lacks(); lacking != "" {
			if err == nil || !strings.Contains(err.Error(), lacking) {
				t.Errorf("%s: %v, want what the processor lacks", p, err)
			}
			continue
		}
		if err != nil || got != p {
			t.Errorf("%s gives %v, %v", p, got, err)
		}
	}
	best, err := Choose("")
	if err != nil || best.Lacks() != "" {
		t.Errorf("nothing gives %v, %v", best, err)
	}
	for _, p := range Paths() {
		if p > best && p.Lacks() == "" {
			t.Errorf("nothing gives %v, although %v runs", best, p)
		}
	}
	if _, err := Choose("sse"); err == nil || !strings.Contains(err.Error(), `RINGWAVE_KERNEL is "sse": allowed are portable, avx2 and avx512`) {
		t.Errorf("got %v", err)
	}
}
