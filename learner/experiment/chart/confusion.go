package chart

import "strconv"

// ConfusionPlot draws, as confusion in dir, for which class a model takes samples: counts[y][c]
// of class y for class c. It returns the files.
func ConfusionPlot(dir, title string, classes []string, counts [][]int) ([]string, error) {
	return save(dir, []Picture{confusionMap(title, classes, counts).Picture("confusion")})
}

// confusionMap has the first class at the top.
func confusionMap(title string, classes []string, counts [][]int) HeatMap {
	h := HeatMap{
		Title: title, XLabel: "class that the model takes a sample for", YLabel: "class of the sample", X: classes,
		Label: "share of the class in %", High: 100,
		Note: "Cells have numbers of test samples, and colours are shares of a row. The right ones lie on the diagonal.",
	}
	for y := len(classes) - 1; y >= 0; y-- {
		all := 0
		for _, n := range counts[y] {
			all += n
		}
		row := make([]Cell, len(classes))
		for c, n := range counts[y] {
			row[c] = Cell{100 * float64(n) / float64(max(all, 1)), strconv.Itoa(n)}
		}
		h.Y, h.Cells = append(h.Y, classes[y]), append(h.Cells, row)
	}
	return h
}
