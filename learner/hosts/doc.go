// Package hosts makes runs of learner/experiment whose devices are on other hosts.
//
// A Bench is the server's side: it takes in the folder or the identity that the bench was
// enrolled with, and is the Fleet of an experiment.Lab, so that a run is begun, recorded and
// resumed as any other. RunDevice is a device's side: it takes in its identity and where its
// data are, and takes part in the runs that the server begins. RunAir is the simulated
// channel, where that is no part of the server's process. All of them compute what they have
// in common from the run's configuration, and speak over learner/hosts/bus.
package hosts
