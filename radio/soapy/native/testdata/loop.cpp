// Reads or writes samples that count, in whole blocks of the stream, as rx_sdr does, for the
// test of the same: what a C++ program takes over the same module. Prints samples lost, breaks
// of the count, and the share of a core.
#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Logger.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/resource.h>
#include <vector>

int main(int, char **argv) {
	const int direction = strcmp(argv[2], "tx") == 0 ? SOAPY_SDR_TX : SOAPY_SDR_RX;
	const long long samples = atoll(argv[3]);
	SoapySDR::setLogLevel(SOAPY_SDR_WARNING);
	auto *d = SoapySDR::Device::make(argv[1]);
	d->setSampleRate(direction, 0, 20e6);
	auto *s = d->setupStream(direction, SOAPY_SDR_CS16);
	const size_t mtu = d->getStreamMTU(s);
	std::vector<uint32_t> block(mtu);
	void *buffers[] = {block.data()};
	if (d->activateStream(s) != 0) return 1;
	timespec began;
	clock_gettime(CLOCK_MONOTONIC, &began);
	uint32_t count = 0;
	long long lost = 0, breaks = 0, moved = 0;
	while (moved < samples) {
		int flags = 0;
		long long at = 0;
		if (direction == SOAPY_SDR_TX) {
			for (size_t i = 0; i < mtu; i++) block[i] = count + (uint32_t)i;
			size_t done = 0;
			while (done < mtu) {
				const void *from[] = {block.data() + done};
				int n = d->writeStream(s, from, mtu - done, flags, 0, 1000000);
				if (n < 0 && n != SOAPY_SDR_TIMEOUT) return 1;
				if (n > 0) done += (size_t)n;
			}
			count += (uint32_t)mtu;
			moved += (long long)mtu;
			continue;
		}
		int n = d->readStream(s, buffers, mtu, flags, at, 1000000);
		if (n == SOAPY_SDR_OVERFLOW || n == SOAPY_SDR_TIMEOUT) continue;
		if (n < 0) return 1;
		for (int i = 0; i < n; i++) {
			if (block[i] != count) breaks++, lost += block[i] - count;
			count = block[i] + 1;
		}
		moved += n;
	}
	timespec ended;
	clock_gettime(CLOCK_MONOTONIC, &ended);
	rusage u;
	getrusage(RUSAGE_SELF, &u);
	const double took = double(ended.tv_sec - began.tv_sec) + double(ended.tv_nsec - began.tv_nsec) / 1e9;
	const double used = double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + double(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	if (direction == SOAPY_SDR_TX) lost = atoll(d->readSensor("tx_lost").c_str());
	printf("%lld samples, %lld lost, %lld breaks, %.2f s, %.0f %% of a core\n", moved, lost, breaks, took, 100 * used / took);
	d->deactivateStream(s);
	d->closeStream(s);
	SoapySDR::Device::unmake(d);
}
