package chart

import (
	"fmt"
	"math"

	"ringwave/learner/experiment/runfolder"
)

// RoundGains are the gains that devices had in rounds, in units of what counts as gain 1:
// NaN, or a round left out, where they are not known.
type RoundGains struct {
	Rounds []int
	Gains  [][]float64 // of each round, by device
}

// LinkPlots draws what a radio engineer wants to see of a run into dir, with a title that
// says what ran, and gives the files written, SVG and PNG of each: quality (of the lattice,
// over rounds), retries (attempts and frames sent again), and where they are known misfit
// and gains. On an error it gives the files written so far.
func LinkPlots(dir, title string, rows []runfolder.Row, gains RoundGains) ([]string, error) {
	return save(dir, LinkPictures(title, rows, gains))
}

// LinkPictures returns what LinkPlots draws.
func LinkPictures(title string, rows []runfolder.Row, gains RoundGains) []Picture {
	pictures := []Picture{picture("quality", title, qualityFigure(rows)), picture("retries", title, retriesFigure(rows))}
	if f := misfitFigure(rows); len(f.Series[0].X) > 0 {
		pictures = append(pictures, picture("misfit", title, f))
	}
	if f := gains.figure(); len(f.Series) > 0 {
		pictures = append(pictures, picture("gains", title, f))
	}
	return pictures
}

// latticeNote says what αy is.
const latticeNote = "y are received symbols, and α the scale found for them, at which the superposition of all devices is whole numbers but for noise."

func qualityFigure(rows []runfolder.Row) Figure {
	s := series(rows, func(r runfolder.Row) float64 {
		if r.Link == nil {
			return math.NaN()
		}
		return r.Link.Quality
	})
	s.Style = Points
	return Figure{XLabel: roundLabel, YLabel: "worst transmission's mean cos 2παy", Note: latticeNote + " The mean cosine is 1 where all symbols are whole, and about 0 where they lie anywhere. It decides nothing: a block of poor quality may be right, as symbols are read by the teeth of their density, and the check decides.", Series: []Series{s}}
}

func retriesFigure(rows []runfolder.Row) Figure {
	repeated := series(rows, func(r runfolder.Row) float64 {
		if r.Link == nil {
			return math.NaN()
		}
		return r.Link.FramesRepeated
	})
	repeated.Name, repeated.Style, repeated.Color = "frames sent again", Points, Vermillion
	attempts := series(rows, func(r runfolder.Row) float64 { return float64(r.Attempts) })
	attempts.Name, attempts.Color = "attempts", Sky
	return Figure{XLabel: roundLabel, YLabel: "number in a round", WholeY: true, Note: "An attempt is a round's transmissions, all of them; a frame that was not read may be sent again within one.", Series: []Series{attempts, repeated}}
}

func misfitFigure(rows []runfolder.Row) Figure {
	s := series(rows, func(r runfolder.Row) float64 {
		if r.Link == nil {
			return math.NaN()
		}
		return r.Link.Misfit
	})
	s.Style = Points
	return Figure{XLabel: roundLabel, YLabel: "worst device's |H/α − h| / |h|", Series: []Series{s},
		Note: "H are the whole numbers that a round was decoded with, and h the gains that the simulation knows."}
}

// figure shows the gains of devices over rounds; without series if there are none.
func (g RoundGains) figure() Figure {
	f := Figure{XLabel: roundLabel, YLabel: "gain H/α", Note: "H are the whole numbers that stand for devices' gains in a round, as their patterns show them; a gain of 0 is a device that was not heard."}
	for _, row := range g.Gains {
		for i := range row {
			if i == len(f.Series) {
				f.Series = append(f.Series, Series{Name: fmt.Sprintf("device %d", i+1), Style: Points, Color: paletteAt(i)})
				if i >= mostPanels {
					f.Series[i].Name, f.Series[i].Color = "", Gray
				}
			}
		}
	}
	for k, row := range g.Gains {
		for i, h := range row {
			beside := 0.5 * (float64(i)/float64(len(row)) - 0.5) // equal ones are all to be seen
			f.Series[i].X, f.Series[i].Y = append(f.Series[i].X, float64(g.Rounds[k])+beside), append(f.Series[i].Y, h)
		}
	}
	return f
}
