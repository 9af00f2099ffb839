// Package sweep runs a configuration with several seeds, reads which runs a sweep over
// configurations asks for, and lists the runs of folders.
//
// It takes in a Lab and configurations, one a seed, and gives a folder with a run's folder
// for each, from which an interrupted sweep goes on; of the file of a sweep over values of
// keys, a plan with the configuration of every run; and of any folders which runs are in
// them and how far these are. It knows nothing of how a run is made.
package sweep
