// A SoapySDR module for tests: boards of the driver key ringtest, whose samples meet on an air
// that all boards of a process share, and which fail as they are told to. What they can be told
// is in the documentation of package soapytest.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Logger.hpp>
#include <SoapySDR/Registry.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <vector>

using SoapySDR::Kwargs;
using SoapySDR::Range;
using SoapySDR::RangeList;
using std::string;
using Strings = std::vector<string>;
using Lock = std::unique_lock<std::mutex>;
using Sample = std::complex<float>;

namespace {

const int64_t second = 1000000000;
const int TX = SOAPY_SDR_TX, RX = SOAPY_SDR_RX;

int64_t monotonic() {
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * second + t.tv_nsec;
}

// Index of the sample at a time, and the reverse, by a rate of the air's common clock.
int64_t indexOf(int64_t ns, double rate) { return (int64_t)floorl((long double)ns * rate / second + 0.5L); }
int64_t timeOf(int64_t index, double rate) { return (int64_t)floorl((long double)index * second / rate + 0.5L); }

// What was sent, from an index of the common clock on.
struct Burst {
	double frequency, rate;
	int64_t start;
	float amplitude;
	std::vector<Sample> samples;
};

// The air of all boards of the process. Boards of one pace share one.
struct Air {
	std::mutex m;
	std::deque<Burst> bursts;
	size_t held = 0;
	std::atomic<int64_t> freeNow{10 * second};

	void send(Burst b, int64_t now, bool real) {
		std::lock_guard<std::mutex> l(m);
		held += b.samples.size();
		bursts.push_back(std::move(b));
		// Receivers have had what is older than their longest buffer.
		while (!bursts.empty()) {
			Burst &old = bursts.front();
			bool past = real && old.start + (int64_t)old.samples.size() + (1 << 22) < indexOf(now, old.rate);
			if (!past && held < (1u << 26)) break;
			held -= old.samples.size();
			bursts.pop_front();
		}
	}

	void receive(double frequency, double rate, int64_t start, float amplitude, std::vector<Sample> &out) {
		std::lock_guard<std::mutex> l(m);
		for (const Burst &b : bursts) {
			if (std::abs(b.frequency - frequency) > 1 || b.rate != rate) continue;
			int64_t first = std::max(start, b.start), last = std::min(start + (int64_t)out.size(), b.start + (int64_t)b.samples.size());
			float a = amplitude * b.amplitude;
			for (int64_t i = first; i < last; i++) out[i - start] += a * b.samples[i - b.start];
		}
	}

	void advance(int64_t to) {
		int64_t now = freeNow;
		while (now < to && !freeNow.compare_exchange_weak(now, to)) {
		}
	}
};

Air &air(bool real) {
	static Air realAir, freeAir;
	return real ? realAir : freeAir;
}

long number(const string &s) { return std::strtol(s.c_str(), nullptr, 10); }

struct Channel {
	double frequency = 100e6, rate = 1e6, bandwidth = 1e6;
	string antenna;
	std::map<string, double> gains;
	bool automatic = false;
};

struct News {
	int code, flags;
	long long at;
};

struct Flow { // a stream
	int direction;
	size_t channel;
	string format;
	size_t size; // of a sample
	bool active = false;
	int64_t next = 0;      // index of the next sample
	int64_t origin = 0;    // where a counter is 0
	int64_t left = -1;     // samples of a burst that is received, -1 for no end
	int64_t begun = 0;     // where the burst that is sent begins
	bool inBurst = false, dropping = false;
	std::deque<std::pair<int64_t, int64_t>> sent; // bursts that are complete
	std::deque<News> news;
	uint32_t expected = 0;
};

class Ringtest : public SoapySDR::Device {
	mutable std::mutex m;
	mutable std::condition_variable changed;
	std::map<string, string> options;
	string serial;
	int lockFile = -1;
	std::vector<Channel> channels[2];
	std::vector<Flow *> flows;
	string clockSource = "internal", timeSource = "internal";
	bool real = true, duplex = true, timed = true, gone = false, pulses = true, locked = true, late = false, stuck = false, status = true, counter = false, burstCarrier = false;
	double gain = 1, noise = 0, rate0 = 1e6;
	int64_t pulse = second, buffer = 1 << 20, txBuffer = 1 << 16, latency = 1000000;
	size_t mtu = 4096, least = 0; // least: of a write, 0 for no bound
	std::map<string, int64_t> hangs;
	std::map<string, bool> throws;
	std::map<string, long> left; // faults that are yet to happen, by name
	mutable int64_t offset = 0, setTo = 0, setAt = -1, frozen = 0;
	int64_t deafUntil = 0, hangUntil = 0; // streams take and give nothing; no call ends
	int64_t stolen = 0, lost = 0, txSamples = 0, txLost = 0, txBreaks = 0;
	uint64_t random = 88172645463325252ull;
	std::thread player;
	std::atomic<bool> over{false};
	string shown;

	static uint64_t hash(const string &s) {
		uint64_t h = 1469598103934665603ull;
		for (unsigned char c : s) h = (h ^ c) * 1099511628211ull;
		return h;
	}

	int64_t now() const { return real ? monotonic() : air(false).freeNow.load(); }

	// The last pulse: of the device's own phase, unless it comes from outside.
	int64_t lastPulse() const {
		int64_t phase = timeSource == "internal" ? (int64_t)(hash(serial) % (uint64_t)pulse) : 0;
		int64_t t = now() - phase;
		return t - t % pulse + phase;
	}

	int64_t clockOffset() const {
		if (setAt >= 0 && pulses && now() >= setAt) {
			offset = setTo - setAt;
			setAt = -1;
		}
		return offset;
	}

	// A call begins: it hangs or fails as it was told to.
	void enter(Lock &l, const char *call) const {
		int64_t begun = monotonic();
		while (begun < hangUntil && monotonic() < hangUntil) changed.wait_for(l, std::chrono::nanoseconds(hangUntil - monotonic()));
		for (auto h = hangs.find(call); h != hangs.end(); h = hangs.find(call)) {
			int64_t ns = h->second < 0 ? second : begun + h->second * 1000000 - monotonic();
			if (ns <= 0) break;
			changed.wait_for(l, std::chrono::nanoseconds(ns));
		}
		if (gone) throw std::runtime_error("the board ringtest " + serial + " is gone");
		if (throws.count(call) || throws.count("all")) throw std::runtime_error("the board ringtest " + serial + " refuses " + call);
	}

	bool happens(const char *fault) {
		auto f = left.find(fault);
		if (f == left.end() || f->second == 0) return false;
		f->second--;
		return true;
	}

	void option(const string &key, const string &value) {
		bool on = value == "1" || value == "on" || value == "true";
		if (key == "pace") real = value != "free";
		else if (key == "pps_ms") pulse = std::max(1L, number(value)) * 1000000;
		else if (key == "pps") {
			if (pulses && !on) frozen = lastPulse();
			pulses = on;
			if (on && setAt >= 0) setAt = lastPulse() + pulse;
		}
		else if (key == "ref") locked = value == "locked" || on;
		else if (key == "time") timed = on;
		else if (key == "duplex") duplex = value != "half";
		else if (key == "gain") gain = atof(value.c_str());
		else if (key == "noise") noise = atof(value.c_str());
		else if (key == "offset_ns") offset = atoll(value.c_str());
		else if (key == "epoch_ns") offset = atoll(value.c_str()) - now();
		else if (key == "buffer") buffer = std::max(1L, number(value));
		else if (key == "txbuffer") txBuffer = std::max(1L, number(value));
		else if (key == "latency_us") latency = number(value) * 1000;
		else if (key == "mtu") mtu = (size_t)number(value);
		else if (key == "short") least = (size_t)number(value);
		else if (key == "status") status = on;
		else if (key == "late") late = on;
		else if (key == "stuck_on") stuck = on;
		else if (key == "counter") counter = on;
		else if (key == "carrier") burstCarrier = value == "burst";
		else if (key == "gone") gone = on;
		else if (key == "overflow" || key == "lose" || key == "stream_error" || key == "timeouts" || key == "corrupt") left[key] += number(value);
		else if (key == "steal") stolen += number(value);
		else if (key == "throw") {
			if (value == "none") throws.clear();
			else throws[value] = true;
		}
		else if (key == "hang") { // CALL:MS, or CALL for ever, or none
			size_t colon = value.find(':');
			if (value == "none") hangs.clear();
			else hangs[value.substr(0, colon)] = colon == string::npos ? -1 : number(value.substr(colon + 1));
		}
		else if (key == "fault") {
			size_t equals = value.find('=');
			oneFault(value.substr(0, equals), equals == string::npos ? "1" : value.substr(equals + 1));
		}
		else throw std::runtime_error("ringtest has no setting " + key);
		changed.notify_all();
	}

	// One fault at a time, instead of those there were.
	void oneFault(const string &name, const string &much) {
		hangs.clear();
		throws.clear();
		left.clear();
		gone = late = stuck = false;
		status = locked = true;
		least = 0;
		if (!pulses) option("pps", "on");
		deafUntil = hangUntil = 0;
		if (name == "no_pps") option("pps", "off");
		else if (name == "unlocked") locked = false;
		else if (name == "no_status") status = false;
		else if (name == "short") least = 7;
		else if (name == "throw") throws["all"] = true;
		else if (name == "stream") left["stream_error"] = 1;
		else if (name == "overflow") left["overflow"] = much == "1" ? 1000 : number(much);
		else if (name == "hang") hangUntil = monotonic() + number(much) * 1000000;
		else if (name == "deaf") deafUntil = monotonic() + number(much) * 1000000;
		else if (name != "none") option(name, much);
	}

	const Channel &channel(int direction, size_t n) const {
		if (n >= channels[direction].size()) throw std::runtime_error("ringtest has no channel " + std::to_string(n));
		return channels[direction][n];
	}
	Channel &channel(int direction, size_t n) {
		return const_cast<Channel &>(static_cast<const Ringtest *>(this)->channel(direction, n));
	}

	static double total(const Channel &c) {
		double sum = 0;
		for (auto &g : c.gains) sum += g.second;
		return sum;
	}

	// What others see of the board, in a file that stays when the process is killed.
	void show() {
		const char *folder = getenv("RINGTEST_STATE");
		if (!folder) return;
		bool active = false, burst = false;
		double rate = 1;
		for (Flow *f : flows) {
			if (f->direction != TX) continue;
			rate = channel(TX, f->channel).rate;
			int64_t at = indexOf(now(), rate);
			active |= f->active;
			burst |= f->inBurst && f->begun <= at;
			for (auto &b : f->sent) burst |= b.first <= at;
		}
		const Channel &c = channel(TX, 0);
		std::ostringstream s;
		s.precision(17);
		s << (burst || (active && !burstCarrier) ? "on" : "off") << "\nactive=" << active << "\nburst=" << burst
		  << "\ngain=" << total(c) << "\nfrequency=" << c.frequency << "\n";
		if (s.str() == shown) return;
		shown = s.str();
		string path = string(folder) + "/" + serial, draft = path + ".new";
		if (FILE *f = fopen(draft.c_str(), "w")) {
			fwrite(shown.data(), 1, shown.size(), f);
			fclose(f);
			rename(draft.c_str(), path.c_str());
		}
	}

	void tell(Flow *f, int code, int flags, int64_t index) {
		if (f->news.size() > 4096) f->news.pop_front();
		if (timed) flags |= SOAPY_SDR_HAS_TIME;
		f->news.push_back({code, flags, timed ? timeOf(index, channel(f->direction, f->channel).rate) + clockOffset() : 0});
		changed.notify_all();
	}

	// What has happened on air until now.
	void play(Flow *f) {
		if (f->direction != TX) return;
		int64_t at = indexOf(now(), channel(TX, f->channel).rate);
		if (f->inBurst && at > f->next) {
			tell(f, SOAPY_SDR_UNDERFLOW, 0, f->next);
			f->inBurst = false;
		}
		while (!f->sent.empty() && f->sent.front().second <= at) {
			tell(f, 0, SOAPY_SDR_END_BURST, f->sent.front().second);
			f->sent.pop_front();
		}
	}

	void run() {
		while (!over) {
			{
				Lock l(m);
				for (Flow *f : flows) play(f);
				show();
			}
			std::this_thread::sleep_for(std::chrono::microseconds(500));
		}
	}

	float drawn() { // about normal, of variance 1
		float sum = 0;
		for (int i = 0; i < 4; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			sum += (float)(random >> 40) / (1 << 24) - 0.5f;
		}
		return sum * 1.7320508f;
	}

	static uint32_t mask(const Flow *f) { return f->size == 2 ? 0xffff : 0xffffffff; }

	static void putCounter(const Flow *f, uint32_t k, size_t n, void *to) {
		if (f->format == SOAPY_SDR_CF32) {
			float *x = (float *)to;
			for (size_t i = 0; i < n; i++, k++) x[2 * i] = (float)(k & 0xffff), x[2 * i + 1] = (float)(k >> 16);
		} else if (f->size == 2) {
			uint16_t *x = (uint16_t *)to;
			for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(k + i);
		} else {
			uint32_t *x = (uint32_t *)to;
			for (size_t i = 0; i < n; i++) x[i] = k + (uint32_t)i;
		}
	}

	void checkCounter(Flow *f, size_t n, const void *from) {
		for (size_t i = 0; i < n; i++) {
			uint32_t k;
			if (f->format == SOAPY_SDR_CF32) k = (uint32_t)((const float *)from)[2 * i] | (uint32_t)((const float *)from)[2 * i + 1] << 16;
			else if (f->size == 2) k = ((const uint16_t *)from)[i];
			else k = ((const uint32_t *)from)[i];
			if (k != f->expected) txBreaks++, txLost += (k - f->expected) & mask(f);
			f->expected = (k + 1) & mask(f);
		}
		txSamples += n;
	}

	static float clamp(float x, float scale) { return std::min(scale - 1, std::max(-scale, std::nearbyint(x * scale))); }

	void put(const Flow *f, const std::vector<Sample> &x, void *to) {
		if (f->format == SOAPY_SDR_CF32) memcpy(to, x.data(), x.size() * sizeof(Sample));
		else for (size_t i = 0; i < 2 * x.size(); i++) {
			float v = ((const float *)x.data())[i];
			if (f->size == 4) ((int16_t *)to)[i] = (int16_t)clamp(v, 32768);
			else ((int8_t *)to)[i] = (int8_t)clamp(v, 128);
		}
	}

	static std::vector<Sample> take(const Flow *f, const void *from, size_t n) {
		std::vector<Sample> x(n);
		if (f->format == SOAPY_SDR_CF32) memcpy(x.data(), from, n * sizeof(Sample));
		else for (size_t i = 0; i < 2 * n; i++) {
			((float *)x.data())[i] = f->size == 4 ? ((const int16_t *)from)[i] / 32768.f : ((const int8_t *)from)[i] / 128.f;
		}
		return x;
	}

	static float amplitude(double dB) { return (float)std::pow(10, dB / 20); }

	// Waits a little, no longer than until a time; says whether there is more of it.
	bool wait(Lock &l, int64_t until, int64_t wanted) {
		int64_t t = monotonic();
		if (t >= until) return false;
		int64_t ns = std::min(until - t, std::max<int64_t>(wanted, 50000));
		changed.wait_for(l, std::chrono::nanoseconds(ns));
		return true;
	}

public:
	Ringtest(const Kwargs &args) : serial(args.at("serial")) {
		if (const char *folder = getenv("RINGTEST_STATE")) {
			lockFile = open((string(folder) + "/" + serial + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
			if (lockFile < 0 || flock(lockFile, LOCK_EX | LOCK_NB) != 0) {
				if (lockFile >= 0) close(lockFile);
				throw std::runtime_error("the board ringtest " + serial + " is in use by another program");
			}
		}
		if (args.count("fails")) {
			SoapySDR::log(SOAPY_SDR_WARNING, "ringtest: the firmware is too old");
			if (lockFile >= 0) close(lockFile);
			throw std::runtime_error("ringtest: " + args.at("fails"));
		}
		SoapySDR::log(SOAPY_SDR_INFO, "ringtest: opened " + serial);
		offset = (int64_t)(hash(serial) % (uint64_t)(1000 * second));
		random ^= hash(serial);
		size_t n = args.count("channels") ? std::min(4L, std::max(1L, number(args.at("channels")))) : 1;
		for (int d : {TX, RX}) {
			channels[d].resize(n);
			for (Channel &c : channels[d]) {
				c.antenna = listAntennas(d, 0)[0];
				for (const string &g : listGains(d, 0)) c.gains[g] = 0;
			}
		}
		if (args.count("pace")) option("pace", args.at("pace"));
		for (auto &a : args) {
			static const Strings others = {"driver", "serial", "label", "channels", "fails", "pace", "remote", "type"};
			if (std::find(others.begin(), others.end(), a.first) == others.end() && a.first.find(':') == string::npos && a.first.find("soapy_remote") == string::npos) option(a.first, a.second);
		}
		show();
		if (real) player = std::thread([this] { run(); });
	}

	~Ringtest() {
		over = true;
		if (player.joinable()) player.join();
		Lock l(m);
		for (Flow *f : flows) delete f;
		flows.clear();
		show();
		if (lockFile >= 0) close(lockFile);
		SoapySDR::log(SOAPY_SDR_INFO, "ringtest: closed " + serial);
	}

	string getDriverKey() const override { return "ringtest"; }
	string getHardwareKey() const override {
		Lock l(m);
		enter(l, "getHardwareKey");
		return "Ringtest";
	}
	Kwargs getHardwareInfo() const override { return {{"serial", serial}, {"fw_version", "1.2"}}; }

	size_t getNumChannels(const int d) const override { return channels[d].size(); }
	bool getFullDuplex(const int, const size_t) const override { return duplex; }

	Strings getStreamFormats(const int, const size_t) const override { return {SOAPY_SDR_CF32, SOAPY_SDR_CS16, SOAPY_SDR_CS8}; }
	string getNativeStreamFormat(const int, const size_t, double &fullScale) const override {
		fullScale = 32768;
		return SOAPY_SDR_CS16;
	}

	SoapySDR::Stream *setupStream(const int d, const string &format, const std::vector<size_t> &list, const Kwargs &) override {
		Lock l(m);
		enter(l, "setupStream");
		if (list.size() > 1) throw std::runtime_error("ringtest has streams of one channel");
		size_t n = list.empty() ? 0 : list[0];
		channel(d, n);
		auto formats = getStreamFormats(d, n);
		if (std::find(formats.begin(), formats.end(), format) == formats.end()) throw std::runtime_error("ringtest has no format " + format);
		for (Flow *f : flows) {
			if (f->direction == d && f->channel == n) throw std::runtime_error("ringtest has that stream already");
			if (!duplex && f->direction != d) throw std::runtime_error("ringtest does not send while it receives");
		}
		Flow *f = new Flow;
		f->direction = d, f->channel = n, f->format = format, f->size = SoapySDR::formatToSize(format);
		flows.push_back(f);
		return (SoapySDR::Stream *)f;
	}

	void closeStream(SoapySDR::Stream *s) override {
		Lock l(m);
		enter(l, "closeStream");
		flows.erase(std::remove(flows.begin(), flows.end(), (Flow *)s), flows.end());
		delete (Flow *)s;
		show();
	}

	size_t getStreamMTU(SoapySDR::Stream *) const override { return mtu; }

	int activateStream(SoapySDR::Stream *s, const int flags, const long long at, const size_t n) override {
		Lock l(m);
		enter(l, "activateStream");
		Flow *f = (Flow *)s;
		double rate = channel(f->direction, f->channel).rate;
		int64_t here = indexOf(now(), rate);
		f->next = here;
		if (flags & SOAPY_SDR_HAS_TIME) {
			if (!timed) return SOAPY_SDR_NOT_SUPPORTED;
			f->next = indexOf(at - clockOffset(), rate);
			if (f->next < here || late) return SOAPY_SDR_TIME_ERROR;
		}
		f->origin = f->next;
		f->left = f->direction == RX && flags & SOAPY_SDR_END_BURST ? (int64_t)n : -1;
		f->active = true, f->inBurst = f->dropping = false;
		f->sent.clear();
		f->expected = 0;
		show();
		return 0;
	}

	int deactivateStream(SoapySDR::Stream *s, const int, const long long) override {
		Lock l(m);
		enter(l, "deactivateStream");
		if (stuck) return SOAPY_SDR_STREAM_ERROR;
		Flow *f = (Flow *)s;
		f->active = f->inBurst = f->dropping = false;
		f->sent.clear();
		show();
		changed.notify_all();
		return 0;
	}

	int readStream(SoapySDR::Stream *s, void *const *buffs, const size_t numElems, int &flags, long long &timeNs, const long timeoutUs) override {
		Lock l(m);
		enter(l, "readStream");
		Flow *f = (Flow *)s;
		flags = 0;
		int64_t until = monotonic() + timeoutUs * 1000;
		if (monotonic() < deafUntil || happens("timeouts")) {
			while (wait(l, until, second)) {
			}
			return SOAPY_SDR_TIMEOUT;
		}
		if (happens("stream_error")) return SOAPY_SDR_STREAM_ERROR;
		if (happens("corrupt")) return SOAPY_SDR_CORRUPTION;
		const Channel &c = channel(RX, f->channel);
		size_t n = std::min(numElems, std::max<size_t>(mtu, 1));
		if (f->left >= 0) n = (size_t)std::min<int64_t>(n, f->left);
		for (;;) {
			if (gone) return SOAPY_SDR_STREAM_ERROR;
			if (f->active && n > 0) {
				if (!real) break;
				int64_t behind = indexOf(now(), c.rate) - f->next;
				if (behind > buffer || left["overflow"] > 0) {
					int64_t skip = left["overflow"] > 0 ? left["overflow"] : behind;
					left["overflow"] = 0;
					timeNs = timed ? timeOf(f->next, c.rate) + clockOffset() : 0;
					flags = timed ? SOAPY_SDR_HAS_TIME : 0;
					lost += skip;
					f->next += skip;
					return SOAPY_SDR_OVERFLOW;
				}
				if (behind >= (int64_t)n) break;
			}
			int64_t missing = f->active ? timeOf(f->next + (int64_t)n, c.rate) - now() : second;
			if (!wait(l, until, missing)) {
				int64_t behind = f->active ? indexOf(now(), c.rate) - f->next : 0;
				if (behind <= 0 || n == 0) return SOAPY_SDR_TIMEOUT;
				n = (size_t)std::min<int64_t>(n, behind);
				break;
			}
		}
		f->next += left["lose"];
		lost += left["lose"];
		left["lose"] = 0;
		if (timed) {
			flags |= SOAPY_SDR_HAS_TIME;
			timeNs = timeOf(f->next, c.rate) + clockOffset();
		}
		if (counter) putCounter(f, (uint32_t)(f->next - f->origin + stolen), n, buffs[0]);
		else {
			std::vector<Sample> x(n);
			air(real).receive(c.frequency, c.rate, f->next + stolen, amplitude(total(c)), x);
			if (noise > 0) for (Sample &v : x) v += Sample((float)noise * drawn(), (float)noise * drawn());
			put(f, x, buffs[0]);
		}
		f->next += n;
		if (!real) air(false).advance(timeOf(f->next, c.rate));
		if (f->left >= 0 && (f->left -= n) == 0) flags |= SOAPY_SDR_END_BURST, f->active = false;
		return (int)n;
	}

	int writeStream(SoapySDR::Stream *s, const void *const *buffs, const size_t numElems, int &flags, const long long timeNs, const long timeoutUs) override {
		Lock l(m);
		enter(l, "writeStream");
		Flow *f = (Flow *)s;
		if (gone || !f->active || happens("stream_error")) return SOAPY_SDR_STREAM_ERROR;
		int64_t until = monotonic() + timeoutUs * 1000;
		const Channel &c = channel(TX, f->channel);
		bool ends = flags & SOAPY_SDR_END_BURST;
		play(f);
		if (monotonic() < deafUntil || happens("timeouts")) {
			while (wait(l, until, second)) {
			}
			return SOAPY_SDR_TIMEOUT;
		}
		if (f->dropping) {
			f->dropping = !ends;
			return (int)numElems;
		}
		if (!f->inBurst && numElems > 0) {
			int64_t here = indexOf(now(), c.rate);
			if (flags & SOAPY_SDR_HAS_TIME && timed) {
				int64_t at = indexOf(timeNs - clockOffset(), c.rate);
				if (at < here || late) {
					tell(f, SOAPY_SDR_TIME_ERROR, 0, at);
					f->dropping = !ends;
					return (int)numElems;
				}
				f->next = at;
			} else {
				f->next = std::max(f->next, indexOf(now() + (real ? latency : 0), c.rate));
			}
			f->begun = f->next;
			f->inBurst = true;
		}
		size_t n = numElems;
		if (least > 0) n = std::min(n, least);
		while (real && n > 0) {
			int64_t held = f->next - std::max(f->begun, indexOf(now(), c.rate));
			if (held < txBuffer) {
				n = (size_t)std::min<int64_t>(n, txBuffer - std::max<int64_t>(0, held));
				break;
			}
			if (!wait(l, until, timeOf(f->next, c.rate) - timeOf(txBuffer - std::min<int64_t>(txBuffer, (int64_t)n), c.rate) - now())) return SOAPY_SDR_TIMEOUT;
			if (gone || !f->active) return SOAPY_SDR_STREAM_ERROR;
		}
		if (counter) checkCounter(f, n, buffs[0]);
		else if (n > 0) air(real).send({c.frequency, c.rate, f->next, (float)gain * amplitude(total(c)), take(f, buffs[0], n)}, now(), real);
		f->next += n;
		if (ends && n == numElems && f->inBurst) {
			f->inBurst = false;
			f->sent.push_back({f->begun, f->next});
		}
		if (!real && !(flags & SOAPY_SDR_HAS_TIME) && !ends) air(false).advance(timeOf(f->next, c.rate));
		return (int)n;
	}

	int readStreamStatus(SoapySDR::Stream *s, size_t &mask, int &flags, long long &timeNs, const long timeoutUs) override {
		Lock l(m);
		enter(l, "readStreamStatus");
		Flow *f = (Flow *)s;
		if (!status || f->direction != TX) return SOAPY_SDR_NOT_SUPPORTED;
		int64_t until = monotonic() + timeoutUs * 1000;
		do {
			if (gone) return SOAPY_SDR_STREAM_ERROR;
			if (!real && f->news.empty() && !f->sent.empty()) air(false).advance(timeOf(f->sent.front().second, channel(TX, f->channel).rate));
			play(f);
			if (!f->news.empty()) {
				News n = f->news.front();
				f->news.pop_front();
				mask = 1, flags = n.flags, timeNs = n.at;
				return n.code;
			}
		} while (wait(l, until, second));
		return SOAPY_SDR_TIMEOUT;
	}

	Strings listAntennas(const int d, const size_t) const override { return d == TX ? Strings{"TX/RX", "CAL"} : Strings{"RX2", "TX/RX"}; }
	void setAntenna(const int d, const size_t n, const string &name) override {
		Lock l(m);
		enter(l, "setAntenna");
		auto there = listAntennas(d, n);
		if (std::find(there.begin(), there.end(), name) == there.end()) throw std::runtime_error("ringtest has no antenna " + name);
		channel(d, n).antenna = name;
	}
	string getAntenna(const int d, const size_t n) const override {
		Lock l(m);
		return channel(d, n).antenna;
	}

	Strings listGains(const int d, const size_t) const override { return d == TX ? Strings{"PAD", "IAMP"} : Strings{"LNA", "PGA"}; }
	Range getGainRange(const int, const size_t, const string &name) const override {
		if (name == "PAD") return Range(0, 50, 1);
		if (name == "IAMP") return Range(0, 12, 2);
		if (name == "LNA") return Range(0, 30, 1);
		if (name == "PGA") return Range(0, 40, 0.5);
		throw std::runtime_error("ringtest has no gain " + name);
	}
	Range getGainRange(const int d, const size_t) const override { return d == TX ? Range(0, 62, 1) : Range(0, 70, 0.5); }
	using SoapySDR::Device::setGain;
	using SoapySDR::Device::getGain;
	void setGain(const int d, const size_t n, const string &name, const double dB) override {
		Lock l(m);
		enter(l, "setGain");
		auto r = getGainRange(d, n, name);
		auto g = channel(d, n).gains.find(name);
		if (g == channel(d, n).gains.end()) throw std::runtime_error("ringtest has no gain " + name);
		g->second = std::round(std::min(r.maximum(), std::max(r.minimum(), dB)) / r.step()) * r.step();
		show();
	}
	double getGain(const int d, const size_t n, const string &name) const override {
		Lock l(m);
		auto g = channel(d, n).gains.find(name);
		if (g == channel(d, n).gains.end()) throw std::runtime_error("ringtest has no gain " + name);
		return g->second;
	}
	bool hasGainMode(const int d, const size_t) const override { return d == RX; }
	void setGainMode(const int d, const size_t n, const bool on) override {
		Lock l(m);
		enter(l, "setGainMode");
		channel(d, n).automatic = on;
	}
	bool getGainMode(const int d, const size_t n) const override {
		Lock l(m);
		return channel(d, n).automatic;
	}

	Strings listFrequencies(const int, const size_t) const override { return {"RF"}; }
	RangeList getFrequencyRange(const int, const size_t) const override { return {Range(10e6, 6e9)}; }
	RangeList getFrequencyRange(const int d, const size_t n, const string &) const override { return getFrequencyRange(d, n); }
	void setFrequency(const int d, const size_t n, const double hz, const Kwargs &) override {
		Lock l(m);
		enter(l, "setFrequency");
		if (!(hz >= 10e6 && hz <= 6e9)) throw std::runtime_error("ringtest has no such frequency");
		channel(d, n).frequency = hz;
		show();
	}
	void setFrequency(const int d, const size_t n, const string &, const double hz, const Kwargs &a) override { setFrequency(d, n, hz, a); }
	double getFrequency(const int d, const size_t n) const override {
		Lock l(m);
		return channel(d, n).frequency;
	}
	double getFrequency(const int d, const size_t n, const string &) const override { return getFrequency(d, n); }

	RangeList getSampleRateRange(const int, const size_t) const override { return {Range(1e5, 61.44e6)}; }
	void setSampleRate(const int d, const size_t n, const double hz) override {
		Lock l(m);
		enter(l, "setSampleRate");
		if (!(hz >= 1e5 && hz <= 61.44e6)) throw std::runtime_error("ringtest has no such sample rate");
		channel(d, n).rate = hz;
		for (Flow *f : flows) {
			if (f->direction == d && f->channel == n) f->next = f->origin = indexOf(now(), hz), f->inBurst = false;
		}
	}
	double getSampleRate(const int d, const size_t n) const override {
		Lock l(m);
		return channel(d, n).rate;
	}

	RangeList getBandwidthRange(const int, const size_t) const override { return {Range(200e3, 56e6)}; }
	void setBandwidth(const int d, const size_t n, const double hz) override {
		Lock l(m);
		enter(l, "setBandwidth");
		channel(d, n).bandwidth = std::min(56e6, std::max(200e3, hz));
	}
	double getBandwidth(const int d, const size_t n) const override {
		Lock l(m);
		return channel(d, n).bandwidth;
	}

	Strings listClockSources() const override { return {"internal", "external", "gpsdo"}; }
	void setClockSource(const string &name) override {
		Lock l(m);
		enter(l, "setClockSource");
		auto there = listClockSources();
		if (std::find(there.begin(), there.end(), name) == there.end()) throw std::runtime_error("ringtest has no clock source " + name);
		clockSource = name;
	}
	string getClockSource() const override {
		Lock l(m);
		return clockSource;
	}
	Strings listTimeSources() const override { return {"internal", "external", "gpsdo"}; }
	void setTimeSource(const string &name) override {
		Lock l(m);
		enter(l, "setTimeSource");
		auto there = listTimeSources();
		if (std::find(there.begin(), there.end(), name) == there.end()) throw std::runtime_error("ringtest has no time source " + name);
		timeSource = name;
	}
	string getTimeSource() const override {
		Lock l(m);
		return timeSource;
	}

	bool hasHardwareTime(const string &what) const override {
		Lock l(m);
		enter(l, "hasHardwareTime");
		return timed && (what == "" || what == "PPS");
	}
	long long getHardwareTime(const string &what) const override {
		Lock l(m);
		enter(l, "getHardwareTime");
		if (!timed) throw std::runtime_error("ringtest has no clock");
		if (what == "") return now() + clockOffset();
		return (pulses ? lastPulse() : frozen) + clockOffset();
	}
	void setHardwareTime(const long long t, const string &what) override {
		Lock l(m);
		enter(l, "setHardwareTime");
		if (!timed) throw std::runtime_error("ringtest has no clock");
		clockOffset();
		if (what == "") offset = t - now(), setAt = -1;
		else if (what == "PPS") setTo = t, setAt = lastPulse() + pulse;
		else throw std::runtime_error("ringtest has no clock " + what);
	}

	using SoapySDR::Device::readSensor;
	Strings listSensors() const override { return {"ref_locked", "tx_samples", "tx_lost", "tx_breaks", "rx_lost"}; }
	string readSensor(const string &name) const override {
		Lock l(m);
		enter(l, "readSensor");
		if (name == "ref_locked") return locked ? "true" : "false";
		if (name == "tx_samples") return std::to_string(txSamples);
		if (name == "tx_lost") return std::to_string(txLost);
		if (name == "tx_breaks") return std::to_string(txBreaks);
		if (name == "rx_lost") return std::to_string(lost);
		throw std::runtime_error("ringtest has no sensor " + name);
	}
	Strings listSensors(const int, const size_t) const override { return {"lo_locked"}; }
	string readSensor(const int, const size_t, const string &name) const override {
		if (name != "lo_locked") throw std::runtime_error("ringtest has no sensor " + name);
		return "true";
	}

	using SoapySDR::Device::writeSetting;
	void writeSetting(const string &key, const string &value) override {
		Lock l(m);
		if (throws.count("writeSetting") && key != "fault") throw std::runtime_error("the board ringtest " + serial + " refuses writeSetting");
		option(key, value);
	}
	void writeSetting(const int, const size_t, const string &key, const string &value) override { writeSetting(key, value); }
};

std::vector<Kwargs> find(const Kwargs &args) {
	Strings there;
	const char *boards = getenv("RINGTEST_BOARDS");
	std::istringstream list(boards ? boards : "R0");
	for (string s; std::getline(list, s, ',');) there.push_back(s);
	auto wanted = args.find("serial");
	if (wanted != args.end()) {
		bool known = !boards || std::find(there.begin(), there.end(), wanted->second) != there.end();
		there = known ? Strings{wanted->second} : Strings{};
	}
	std::vector<Kwargs> found;
	for (const string &s : there) found.push_back({{"serial", s}, {"label", "ringtest " + s}});
	return found;
}

// SoapySDR asks for boards that were not found, too.
SoapySDR::Device *make(const Kwargs &args) {
	if (!args.count("serial") || find(args).empty()) throw std::runtime_error("there is no such board ringtest");
	return new Ringtest(args);
}

SoapySDR::Registry registered("ringtest", &find, &make, SOAPY_SDR_ABI_VERSION);

} // namespace
