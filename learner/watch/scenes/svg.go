package scenes

import (
	"errors"
	"io"
	"os"
	"strings"

	"ringwave/learner/watch"
)

// mostPlots bounds the plots of a folder.
const mostPlots = 200

// svgPlots returns the SVG files of a folder as plots; none where it cannot be read. What is
// drawn is the file as it is then.
func svgPlots(dir string, view watch.View) (list []watch.Plot) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".svg")
		if !ok || !e.Type().IsRegular() || !plotName(name) || len(list) == mostPlots {
			continue
		}
		list = append(list, watch.Plot{Name: name, View: viewOfFile(name, view), Title: titleOf(strings.TrimPrefix(name, "sweep-")), Draw: func(w io.Writer) error { return copySVG(w, dir, name+".svg") }})
	}
	return list
}

// viewOfFile returns where the plot of a file of a run's folder is shown.
func viewOfFile(name string, usual watch.View) watch.View {
	if usual != watch.ViewLearning {
		return usual
	}
	switch strings.TrimPrefix(name, "lost-") {
	case "loss", "accuracy", "decoded-noise", "decoded-noise-histogram", "message":
		return watch.ViewLearning
	case "gains":
		return watch.ViewBench
	}
	return watch.ViewAir
}

// plotName reports whether a name is one of letters, digits and hyphens.
func plotName(name string) bool {
	return name != "" && len(name) <= 100 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	}) < 0
}

// copySVG copies a file of a folder, which has not become anything else since it was found.
func copySVG(w io.Writer, dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return errors.New(name + " is no file of its own")
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f) // who draws takes so much at most
	return err
}
