// Package setup says what a configuration stands for.
//
// It takes in a config.Config, and gives what the packages below are made from: the
// simulated channel and bench, the design of the encryption, the modem, what hardware does
// to samples, the soundings of a calibration, the array of radios and what may be sent. It
// refuses what does not go together or does not fit into memory. It knows nothing of runs,
// of their folders or of training.
//
// # Adding a channel model
//
//  1. Write its law in phy/channel, a channel.Fading: how a gain is drawn, and the mean and
//     second moment that the noise budget goes by. What must hold of its parameters goes
//     into validate there.
//  2. Name it at channel.model in config/validate.go. A key of its own is a field of
//     config.Channel, with a value in Default and a range in checkChannel.
//  3. Return the law in FadingOf, channel.go.
//
// Runs over the ring and over a waveform, plan and calibrations of the simulated bench draw
// from it by then. A calibration knows two laws, Gaussian and Rician (calibration/moments),
// and says of gains of another which of them they resemble.
package setup
