// Package sweepreport says what came of a sweep.
//
// It takes in the plan of a sweep and the folders of its finished runs, and writes a folder
// with a report in HTML and Markdown, figures, and every number as CSV: results by the
// values swept, curves over rounds, final accuracy and rounds against each key, and heat
// maps of two. It reads run by run and keeps of each what the report needs, so that ten
// thousand runs take little memory; it knows nothing of how runs are made, or where.
package sweepreport
