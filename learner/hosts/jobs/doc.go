// Package jobs gives jobs to workers on any number of hosts, over the work queue of a bus,
// and takes in their results.
//
// A Broker takes in jobs, each with a name and a body, and gives a folder of files for each,
// or why there is none. A Worker takes jobs, as many at a time as it is told, and has a
// process of its own compute each, so that one that crashes takes nothing with it; ServeChild
// is what such a process does. What the body of a job means, and how it is computed, is a
// Kind's: this package does not know.
//
// The queue has the names of jobs only, and may lose them: the broker is what knows which
// are left, and puts them again. No worker begins a job before the broker has granted it,
// so that a result that exists is never computed again; and a worker says that a job is done
// when the broker has stored its result, so that none is lost. A job whose worker is not
// heard any more is given to another. One that fails again and again is set aside.
//
// Whoever has the worker's identity may take jobs and give results, which are trusted to be
// what they say; their form is not: names, sizes and what Kind.Check looks at are checked.
package jobs
