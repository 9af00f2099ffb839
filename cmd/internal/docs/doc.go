// Package docs says that what this module's comments, messages, tests and Markdown name as
// a file of the repository is one. It has no code: its test reads them all.
package docs
