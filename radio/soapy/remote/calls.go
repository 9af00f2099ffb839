package remote

// call is the number of a remote call.
type call int32

// The calls, by the numbers that they have in SoapyRemote 0.5.
const (
	callFind   call = 0
	callMake   call = 1
	callUnmake call = 2
	callHangUp call = 3

	callDriverKey    call = 100
	callHardwareKey  call = 101
	callHardwareInfo call = 102

	callChannels   call = 202
	callFullDuplex call = 203

	callSetupStream      call = 300
	callCloseStream      call = 301
	callActivateStream   call = 302
	callDeactivateStream call = 303
	callFormats          call = 304
	callNativeFormat     call = 305
	callSetupBypass      call = 307 // a stream without threads

	callAntennas   call = 500
	callSetAntenna call = 501
	callAntenna    call = 502

	callGains       call = 700
	callSetGainMode call = 701
	callSetGain     call = 704 // of an element, as are the next two
	callGain        call = 706
	callGainRange   call = 708
	callHasGainMode call = 709

	callSetFrequency   call = 800
	callFrequency      call = 802
	callFrequencyRange call = 805

	callSetSampleRate   call = 900
	callSampleRate      call = 901
	callSetBandwidth    call = 903
	callBandwidth       call = 904
	callBandwidthRange  call = 906
	callSampleRateRange call = 907

	callClockSources   call = 1002
	callSetClockSource call = 1003
	callClockSource    call = 1004
	callTimeSources    call = 1005
	callSetTimeSource  call = 1006
	callTimeSource     call = 1007

	callHasHardwareTime call = 1100
	callHardwareTime    call = 1101
	callSetHardwareTime call = 1102

	callSensors           call = 1200
	callReadSensor        call = 1201
	callChannelSensors    call = 1202
	callReadChannelSensor call = 1203

	callWriteSetting        call = 1400
	callWriteChannelSetting call = 1403
)
