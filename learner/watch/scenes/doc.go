// Package scenes makes what there is to see of a program's work.
//
// It takes in what experiments, calibrations, sweeps and folders tell, and sets the parts of
// a scene of package watch: figures, tables, plots, events. It reads and never steers, but
// by the controls that it is given; and it computes next to nothing while nobody looks.
package scenes
