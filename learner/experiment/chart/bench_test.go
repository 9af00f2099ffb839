package chart

import (
	"fmt"
	"io"
	"math"
	"testing"

	"ringwave/learner/experiment/runfolder"
)

// What a watched run's plots take, each by itself.
func BenchmarkWriteSVG(b *testing.B) {
	for _, n := range []int{400, 2000, 20000} {
		rows := make([]runfolder.Row, n)
		for k := range rows {
			x := math.Sin(float64(k))
			rows[k] = runfolder.Row{Round: k + 1, TrainLoss: 2 + x, TestAccuracy: math.NaN(), M: x, MIdeal: x * 1.01, Eps: 0.01 * x, EpsStdPredicted: 0.01, Attempts: 1, Link: &runfolder.LinkRow{Alpha: 5, Quality: 0.9, Misfit: 0.1}}
		}
		for _, p := range append(RunPictures("title", rows), LinkPictures("title", rows, RoundGains{})...) {
			b.Run(fmt.Sprintf("%s/%d", p.Name, n), func(b *testing.B) {
				for b.Loop() {
					if err := p.WriteSVG(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
