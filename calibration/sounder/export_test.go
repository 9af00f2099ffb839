package sounder

// Together rounds delays alike.
var Together = together
