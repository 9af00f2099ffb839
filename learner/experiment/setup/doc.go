// Package setup says what a configuration stands for.
//
// It takes in a config.Config, and gives what the packages below are made from: the
// simulated channel and bench, the design of the encryption, the modem, what hardware does
// to samples, the soundings of a calibration, the array of radios and what may be sent. It
// refuses what does not go together or does not fit into memory. It knows nothing of runs,
// of their folders or of training.
//
// To add a channel model: name it at channel.model in config/keys.go, with its keys there and
// in config.Channel, and return its law in FadingOf, channel.go; phy/channel has the laws.
package setup
