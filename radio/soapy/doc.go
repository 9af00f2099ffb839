// Package soapy drives boards through SoapySDR: any for which there is a module of it, as
// USRPs, bladeRFs, LimeSDRs, AD936x boards, HackRFs and RTL-SDRs. It takes a Backend, which
// makes SoapySDR's own calls, and gives radio.Devices. It does not know how the calls are
// made: package remote does so over the network, in plain Go, and package native through
// the library, in a build with the tag soapy.
package soapy
