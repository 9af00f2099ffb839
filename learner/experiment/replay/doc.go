// Package replay decodes the recordings of a run again.
//
// It takes in a run's folder, or one recording and the configuration of its receiver, and
// gives for each transmission what the run received and what the receiver gives now: the
// digest of its ring elements, or why there are none; and all of it as text. It needs no
// key and no data set.
package replay
