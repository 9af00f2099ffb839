// Package compare puts finished runs side by side.
//
// It takes in run folders as runfolder keeps them, and gives groups of runs that differ
// in nothing but the seed, with median and quartiles, differences on the same seeds, and
// rounds and airtime to chosen accuracies; and it writes them into a new folder, as plots
// and as a report in HTML and Markdown, and as text where it is told to. It goes by the
// files alone: it trains nothing, knows no system of the experiment by name but in its
// labels, and prints nothing.
package compare
