// Package paper makes the report that puts the paper's tables, figures and claims beside
// what this module computes.
//
// It takes in Options, and gives a folder with the report as a page and as Markdown, its
// plots, and a cache of results from which an interrupted report goes on. Each chapter is
// one file. It runs experiments as any program does, through learner/experiment, and says
// on a writer how far it is; it knows nothing of the command line. For learner/theory,
// which knows nothing of encryption, it opens links: the protocol's own rounds over ring
// elements, and the same gains with drawn noise.
package paper
