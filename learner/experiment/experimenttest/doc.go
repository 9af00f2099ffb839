// Package experimenttest has what the tests of experiments share: paths of configurations
// as seen from a package two folders deep, a machine without data sets, small data sets,
// and what is wanted of texts, files and receivers.
package experimenttest
