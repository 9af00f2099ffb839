// A module of SoapySDR for tests: boards in memory that share an air and a pulse, with a
// clock of their own each, and with faults on request. What a board sends it sends at a time
// of the machine's clock, and what a receiver reads is the sum of what all boards of the
// process sent then.
//
// Arguments of a board: serial, offset_ns (of its clock), pps_ms (from pulse to pulse), mtu,
// buffer (samples that wait for a reader), gain (amplitude on the air), noise, duplex=half,
// clock=none.
// The setting "fault" is one of: no_pps, unlocked, no_status, late, short, gone, throw,
// stuck_on, overflow, lose=N, stream, corrupt, deaf=MS, hang=MS, none.
//
// With RINGTEST_STATE a folder has a file a board that says whether its carrier is on, which
// outlives the process as hardware does, and a board is one process's.
#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Registry.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using Sample = std::complex<float>;
const long long second = 1000000000LL;

// now is the common clock.
long long now() {
	return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// position is the sample of a rate whose time is nearest, and timeOf its time.
long long position(long long t, double rate) {
	long long s = t / second, ns = t % second;
	double whole = std::floor(double(s) * rate), rest = double(s) * rate - whole;
	return (long long)whole + llround(rest + double(ns) * rate / double(second));
}
long long timeOf(long long p, double rate) {
	double s = std::floor(double(p) / rate);
	return (long long)s * second + llround((double(p) - s * rate) / rate * double(second));
}

// Air has what all boards send, by the sample. A cell is of the position that was written to
// it last.
class Air {
public:
	static const long long cells = 1 << 22;
	void add(long long p, const Sample *x, size_t n, float gain) {
		std::lock_guard<std::mutex> hold(mutex);
		for (size_t k = 0; k < n; k++) {
			Cell &c = cell[(p + (long long)k) & (cells - 1)];
			if (c.at != p + (long long)k) c = Cell{p + (long long)k, 0};
			c.value += gain * x[k];
		}
	}
	void get(long long p, Sample *x, size_t n) {
		std::lock_guard<std::mutex> hold(mutex);
		for (size_t k = 0; k < n; k++) {
			const Cell &c = cell[(p + (long long)k) & (cells - 1)];
			x[k] = c.at == p + (long long)k ? c.value : Sample(0);
		}
	}
private:
	struct Cell { long long at = -1; Sample value = 0; };
	std::mutex mutex;
	std::vector<Cell> cell = std::vector<Cell>(cells);
};

Air &air() {
	static Air *one = new Air; // threads may outlive statics
	return *one;
}

struct News { int code, flags; long long due, time; };

struct Stream {
	int direction;
	bool floats;
	bool active = false;
	long long next = 0;   // position
	bool inBurst = false, dropping = false, starved = false;
	std::deque<News> news;
	std::vector<Sample> work;
};

double number(const SoapySDR::Kwargs &args, const char *key, double unset) {
	auto it = args.find(key);
	return it == args.end() ? unset : std::atof(it->second.c_str());
}

class Board : public SoapySDR::Device {
public:
	explicit Board(const SoapySDR::Kwargs &args) : args(args), serial(args.count("serial") ? args.at("serial") : "0"),
		offset((long long)number(args, "offset_ns", 0)), pps((long long)(number(args, "pps_ms", 1000) * 1e6)),
		mtu((size_t)number(args, "mtu", 2000)), buffer((long long)number(args, "buffer", 1e6)),
		amplitude((float)number(args, "gain", 1)), noise((float)number(args, "noise", 0)) {
		if (const char *folder = std::getenv("RINGTEST_STATE")) {
			state = std::string(folder) + "/" + serial;
			lock = open((state + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
			if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
				if (lock >= 0) close(lock);
				throw std::runtime_error("the board " + serial + " is in use");
			}
		}
		tell();
	}
	~Board() override {
		if (lock >= 0) close(lock);
	}

	std::string getDriverKey() const override { return "ringtest"; }
	std::string getHardwareKey() const override { return "Ringtest"; }
	SoapySDR::Kwargs getHardwareInfo() const override { return {{"serial", serial}, {"firmware", "1.0"}}; }
	size_t getNumChannels(const int) const override { return 1; }
	bool getFullDuplex(const int, const size_t) const override { return !half(); }

	std::vector<std::string> getStreamFormats(const int, const size_t) const override { return {SOAPY_SDR_CS16, SOAPY_SDR_CF32}; }
	std::string getNativeStreamFormat(const int, const size_t, double &scale) const override { scale = 32768; return SOAPY_SDR_CS16; }

	std::vector<std::string> listAntennas(const int d, const size_t) const override {
		return d == SOAPY_SDR_TX ? std::vector<std::string>{"TX/RX"} : std::vector<std::string>{"TX/RX", "RX2"};
	}
	void setAntenna(const int d, const size_t, const std::string &name) override { check(); antenna[d] = name; }
	std::string getAntenna(const int d, const size_t) const override { return antenna[d]; }

	std::vector<std::string> listGains(const int, const size_t) const override { return {"PGA", "BB"}; }
	SoapySDR::Range getGainRange(const int, const size_t, const std::string &name) const override {
		return name == "PGA" ? SoapySDR::Range(0, 60, 0.5) : SoapySDR::Range(-10, 0, 1);
	}
	void setGain(const int d, const size_t, const std::string &name, const double v) override {
		check();
		gains[d][name] = v;
		tell();
	}
	double getGain(const int d, const size_t, const std::string &name) const override {
		auto it = gains[d].find(name);
		return it == gains[d].end() ? 0 : it->second;
	}

	SoapySDR::RangeList getFrequencyRange(const int, const size_t) const override { return {SoapySDR::Range(70e6, 6e9)}; }
	void setFrequency(const int d, const size_t, const double f, const SoapySDR::Kwargs &) override { check(); frequency[d] = f; tell(); }
	double getFrequency(const int d, const size_t) const override { return frequency[d]; }
	SoapySDR::RangeList getSampleRateRange(const int, const size_t) const override { return {SoapySDR::Range(2e5, 56e6)}; }
	void setSampleRate(const int, const size_t, const double r) override { check(); rate = r; }
	double getSampleRate(const int, const size_t) const override { return rate; }
	SoapySDR::RangeList getBandwidthRange(const int, const size_t) const override { return {SoapySDR::Range(2e5, 56e6)}; }
	void setBandwidth(const int, const size_t, const double b) override { bandwidth = b; }
	double getBandwidth(const int, const size_t) const override { return bandwidth; }

	std::vector<std::string> listClockSources() const override { return {"internal", "external", "gpsdo"}; }
	void setClockSource(const std::string &name) override { check(); clock = name; }
	std::string getClockSource() const override { return clock; }
	std::vector<std::string> listTimeSources() const override {
		return timed() ? std::vector<std::string>{"internal", "external", "gpsdo"} : std::vector<std::string>{};
	}
	void setTimeSource(const std::string &name) override { check(); time = name; }
	std::string getTimeSource() const override { return time; }

	bool hasHardwareTime(const std::string &what) const override { return timed() && (what.empty() || what == "PPS"); }
	long long getHardwareTime(const std::string &what) const override {
		check();
		std::lock_guard<std::mutex> hold(mutex);
		return what == "PPS" ? lastPulse() : own(now());
	}
	void setHardwareTime(const long long t, const std::string &what) override {
		check();
		std::lock_guard<std::mutex> hold(mutex);
		own(now());
		if (what != "PPS") {
			offset = t - now();
			return;
		}
		wanted = t;
		wantedAt = (now() / pps + 1) * pps;
	}

	std::vector<std::string> listSensors() const override { return {"ref_locked"}; }
	std::string readSensor(const std::string &) const override { check(); return fault("unlocked") ? "false" : "true"; }
	std::vector<std::string> listSensors(const int, const size_t) const override { return {"lo_locked"}; }
	std::string readSensor(const int, const size_t, const std::string &) const override { return "true"; }

	void writeSetting(const std::string &key, const std::string &value) override {
		if (key != "fault") return;
		std::lock_guard<std::mutex> hold(mutex);
		auto eq = value.find('=');
		wrong = value.substr(0, eq);
		much = eq == std::string::npos ? 0 : std::atof(value.c_str() + eq + 1);
		since = now();
		if (wrong == "no_pps") stopped = last(now());
	}

	SoapySDR::Stream *setupStream(const int d, const std::string &format, const std::vector<size_t> &, const SoapySDR::Kwargs &) override {
		check();
		if (format != SOAPY_SDR_CF32 && format != SOAPY_SDR_CS16) throw std::runtime_error("setupStream: no format " + format);
		auto *s = new Stream;
		s->direction = d;
		s->floats = format == SOAPY_SDR_CF32;
		return reinterpret_cast<SoapySDR::Stream *>(s);
	}
	void closeStream(SoapySDR::Stream *handle) override {
		auto *s = of(handle);
		stop(s);
		delete s;
	}
	size_t getStreamMTU(SoapySDR::Stream *) const override { return mtu; }

	int activateStream(SoapySDR::Stream *handle, const int flags, const long long t, const size_t) override {
		check();
		auto *s = of(handle);
		std::lock_guard<std::mutex> hold(mutex);
		if (half() && on[1 - s->direction]) return SOAPY_SDR_NOT_SUPPORTED;
		long long at = flags & SOAPY_SDR_HAS_TIME ? common(t) : now();
		if (flags & SOAPY_SDR_HAS_TIME && at < now()) return SOAPY_SDR_TIME_ERROR;
		s->next = position(at, rate);
		s->active = on[s->direction] = true;
		tellLocked();
		return 0;
	}
	int deactivateStream(SoapySDR::Stream *handle, const int, const long long) override {
		hang();
		if (fault("stuck_on")) return SOAPY_SDR_STREAM_ERROR;
		stop(of(handle));
		return 0;
	}

	int readStream(SoapySDR::Stream *handle, void *const *buffs, const size_t n, int &flags, long long &t, const long us) override {
		check();
		hang();
		auto *s = of(handle);
		const long long end = now() + us * 1000LL;
		if (!s->active || fault("deaf", true)) return idle(end);
		if (once("stream")) return SOAPY_SDR_STREAM_ERROR;
		if (once("corrupt")) return SOAPY_SDR_CORRUPTION;
		if (once("lose")) s->next += (long long)much;
		if (once("overflow")) { s->next += 1000; return SOAPY_SDR_OVERFLOW; }
		size_t want = std::min(n, mtu);
		if (fault("short")) want = std::min<size_t>(want, 7);
		// A whole block, or what there is when the time is over.
		const long long full = timeOf(s->next + (long long)want, rate);
		if (full > end) {
			if (timeOf(s->next + 1, rate) > end) return idle(end);
		}
		sleepUntil(std::min(full, end));
		const long long here = position(now(), rate);
		long long there = here - s->next;
		if (there > buffer) {
			s->next = here - buffer / 2;
			return SOAPY_SDR_OVERFLOW;
		}
		want = (size_t)std::min<long long>((long long)want, there);
		if (want == 0) return SOAPY_SDR_TIMEOUT;
		s->work.resize(want);
		air().get(s->next, s->work.data(), want);
		give(s, buffs[0], want);
		flags = 0;
		if (timed()) {
			flags = SOAPY_SDR_HAS_TIME;
			std::lock_guard<std::mutex> hold(mutex);
			t = own(timeOf(s->next, rate));
		}
		s->next += (long long)want;
		return (int)want;
	}

	int writeStream(SoapySDR::Stream *handle, const void *const *buffs, const size_t n, int &flags, const long long t, const long us) override {
		check();
		hang();
		auto *s = of(handle);
		const long long end = now() + us * 1000LL;
		if (!s->active || fault("deaf", true)) return idle(end);
		if (once("stream")) return SOAPY_SDR_STREAM_ERROR;
		size_t want = std::min(n, mtu);
		if (fault("short")) want = std::min<size_t>(want, 7);
		const bool ends = flags & SOAPY_SDR_END_BURST && want == n;
		{
			std::lock_guard<std::mutex> hold(mutex);
			if (flags & SOAPY_SDR_HAS_TIME && timed()) {
				s->next = position(common(t), rate);
				s->dropping = fault("late") || s->next < position(now(), rate);
				s->inBurst = true;
				if (s->dropping) s->news.push_back({SOAPY_SDR_TIME_ERROR, SOAPY_SDR_HAS_TIME, 0, t});
			} else if (!s->inBurst) {
				s->next = position(now(), rate) + (long long)(rate / 1000);
				s->inBurst = true;
			}
			s->starved = false;
		}
		if (!s->dropping) {
			// What the board holds is bounded.
			const long long ahead = std::min<long long>(Air::cells / 4, (long long)(rate / 4));
			while (s->next + (long long)want > position(now(), rate) + ahead) {
				if (now() >= end) return SOAPY_SDR_TIMEOUT;
				sleepUntil(std::min(end, now() + 500000));
			}
			late(s);
			s->work.resize(want);
			take(s, buffs[0], want);
			air().add(s->next, s->work.data(), want, amplitude * (float)std::pow(10, gains[SOAPY_SDR_TX]["PGA"] / 20));
		}
		s->next += (long long)want;
		if (ends) {
			std::lock_guard<std::mutex> hold(mutex);
			if (!s->dropping) {
				long long over = timeOf(s->next, rate);
				s->news.push_back({0, SOAPY_SDR_END_BURST | SOAPY_SDR_HAS_TIME, over, over + offset});
			}
			s->inBurst = s->dropping = false;
		}
		return (int)want;
	}

	int readStreamStatus(SoapySDR::Stream *handle, size_t &, int &flags, long long &t, const long us) override {
		check();
		if (fault("no_status")) return SOAPY_SDR_NOT_SUPPORTED;
		auto *s = of(handle);
		const long long end = now() + us * 1000LL;
		for (;;) {
			late(s);
			{
				std::lock_guard<std::mutex> hold(mutex);
				if (!s->news.empty() && s->news.front().due <= now()) {
					News n = s->news.front();
					s->news.pop_front();
					flags = timed() ? n.flags : n.flags & ~SOAPY_SDR_HAS_TIME;
					t = n.time;
					return n.code;
				}
			}
			if (now() >= end) return SOAPY_SDR_TIMEOUT;
			sleepUntil(std::min(end, now() + 1000000));
		}
	}

private:
	const SoapySDR::Kwargs args;
	const std::string serial;
	mutable std::mutex mutex; // over what follows
	mutable long long offset; // of the board's clock
	const long long pps;
	mutable long long wanted = 0, wantedAt = 0, stopped = 0;
	const size_t mtu;
	const long long buffer;
	const float amplitude, noise;
	std::string wrong, state;
	double much = 0;
	long long since = 0;
	int lock = -1;
	bool on[2] = {false, false};
	std::string antenna[2] = {"TX/RX", "TX/RX"}, clock = "internal", time = "internal";
	std::map<std::string, double> gains[2];
	double frequency[2] = {1e9, 1e9};
	std::atomic<double> rate{1e6};
	double bandwidth = 1e6;
	unsigned random = 1;

	static Stream *of(SoapySDR::Stream *s) { return reinterpret_cast<Stream *>(s); }
	bool timed() const { auto it = args.find("clock"); return it == args.end() || it->second != "none"; }
	bool half() const { auto it = args.find("duplex"); return it != args.end() && it->second == "half"; }

	// fault reports whether one is on; one that ends does so after so many milliseconds.
	bool fault(const char *name, bool ends = false) const {
		return wrong == name && (!ends || now() < since + (long long)(much * 1e6));
	}
	// once reports whether a fault is on, and ends it.
	bool once(const char *name) {
		std::lock_guard<std::mutex> hold(mutex);
		if (wrong != name) return false;
		wrong.clear();
		return true;
	}
	void check() const {
		if (fault("gone")) throw std::runtime_error("the board is gone");
		if (fault("throw")) throw std::runtime_error("a test has it fail");
	}
	void hang() const {
		if (fault("hang", true)) sleepUntil(since + (long long)(much * 1e6));
	}

	// own is what the board's clock shows at a common time. The lock is held.
	long long own(long long t) const {
		if (wantedAt != 0 && now() >= wantedAt && wrong != "no_pps" && time != "internal") {
			offset = wanted - wantedAt;
			wantedAt = 0;
		}
		return t + offset;
	}
	long long common(long long t) const { own(0); return t - offset; }
	long long last(long long t) const { return t / pps * pps; }
	long long lastPulse() const {
		const bool none = wrong == "no_pps" || time == "internal";
		long long p = none ? stopped : last(now());
		return own(p);
	}

	static void sleepUntil(long long t) {
		long long left = t - now();
		if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
	}
	static int idle(long long end) {
		sleepUntil(end);
		return SOAPY_SDR_TIMEOUT;
	}

	// late notices that a burst was not fed in time.
	void late(Stream *s) {
		if (s->direction != SOAPY_SDR_TX) return;
		std::lock_guard<std::mutex> hold(mutex);
		const long long here = position(now(), rate);
		if (!s->active || !s->inBurst || s->dropping || s->next >= here) return;
		if (!s->starved) {
			s->news.push_back({SOAPY_SDR_UNDERFLOW, SOAPY_SDR_HAS_TIME, 0, own(timeOf(s->next, rate))});
			s->starved = true;
		}
	}

	void stop(Stream *s) {
		std::lock_guard<std::mutex> hold(mutex);
		if (!s->active) return;
		s->active = on[s->direction] = false;
		s->inBurst = false;
		tellLocked();
	}

	void tell() {
		std::lock_guard<std::mutex> hold(mutex);
		tellLocked();
	}
	// tellLocked writes whether the carrier is on. The lock is held.
	void tellLocked() {
		if (state.empty()) return;
		std::ofstream f(state + ".new");
		f << (on[SOAPY_SDR_TX] ? "on" : "off") << " " << gains[SOAPY_SDR_TX]["PGA"] << " " << frequency[SOAPY_SDR_TX] << "\n";
		f.close();
		std::rename((state + ".new").c_str(), state.c_str());
	}

	float chance() {
		float sum = 0;
		for (int k = 0; k < 4; k++) {
			random = random * 1664525u + 1013904223u;
			sum += float(random >> 8) / float(1 << 24) - 0.5f;
		}
		return sum * 1.732f;
	}
	void give(Stream *s, void *to, size_t n) {
		for (size_t k = 0; k < n && noise > 0; k++) s->work[k] += noise * Sample(chance(), chance());
		if (s->floats) {
			std::memcpy(to, s->work.data(), n * sizeof(Sample));
			return;
		}
		auto *x = static_cast<int16_t *>(to);
		for (size_t k = 0; k < n; k++) {
			x[2 * k] = limit(s->work[k].real());
			x[2 * k + 1] = limit(s->work[k].imag());
		}
	}
	static int16_t limit(float v) { return (int16_t)std::max(-32768.f, std::min(32767.f, std::nearbyint(v * 32768))); }
	static void take(Stream *s, const void *from, size_t n) {
		if (s->floats) {
			std::memcpy(s->work.data(), from, n * sizeof(Sample));
			return;
		}
		auto *x = static_cast<const int16_t *>(from);
		for (size_t k = 0; k < n; k++) s->work[k] = Sample(x[2 * k] / 32768.f, x[2 * k + 1] / 32768.f);
	}
};

// find lists a board for each serial number that RINGTEST_BOARDS names, by commas, or one.
SoapySDR::KwargsList find(const SoapySDR::Kwargs &args) {
	SoapySDR::KwargsList list;
	const char *names = std::getenv("RINGTEST_BOARDS");
	std::string all = names ? names : "0";
	for (size_t at = 0; at <= all.size();) {
		size_t comma = std::min(all.find(',', at), all.size());
		std::string serial = all.substr(at, comma - at);
		at = comma + 1;
		if (args.count("serial") && args.at("serial") != serial) continue;
		SoapySDR::Kwargs one = args;
		one["serial"] = serial;
		one["label"] = "Ringtest " + serial;
		list.push_back(one);
	}
	return list;
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args) { return new Board(args); }

SoapySDR::Registry registered("ringtest", &find, &make, SOAPY_SDR_ABI_VERSION);

} // namespace
