// Package sweeps computes many runs, on this machine and on others that join.
//
// An Engine takes in jobs and gives a folder of files for each: it has a bus, in this program
// or elsewhere, its work queue, and workers on this machine beside those that join over the
// network. A Sweep takes in the plan of package learner/experiment/sweep, and gives a folder
// with a run's folder for each of its points and the report; a run whose folder is there is
// never computed again. Work is what a process on another host does that joins. What is
// computed is the same bytes wherever it is; package jobs is how jobs find workers.
package sweeps
