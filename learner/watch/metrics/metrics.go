// Package metrics counts what a program's work does, for Prometheus.
//
// It takes in rounds as metrics.csv has them, void attempts and the status of a scene, and
// serves them at /metrics in Prometheus' text format, and at /healthz whether the work goes
// on. It knows no experiment. Names follow Prometheus' conventions, and no label grows with
// rounds, devices or runs:
//
//	ringwave_info{version}            1
//	ringwave_rounds_total{result}     rounds of this sitting, result read or skipped
//	ringwave_attempts_total{check}    attempts, check passed or what declared them void
//	ringwave_round_seconds            histogram of the time from a round's end to the next
//	ringwave_frames_repeated_total    frames that were sent again within attempts
//	ringwave_uplink_bytes_total       payload that devices have sent, all attempts counted
//	ringwave_messages_clipped_total   devices' messages that were clipped
//	ringwave_round                    the last round
//	ringwave_train_loss               of the last round
//	ringwave_test_accuracy_ratio      as it was measured last
//	ringwave_decoded_noise            M less its noiseless value, of the last round
//	ringwave_alpha                    lattice scale of the last round that was read
//	ringwave_quality                  of its worst transmission
//	ringwave_misfit_ratio             of its worst device
//	ringwave_zero_gains               devices with a gain of 0 in it
//	ringwave_devices_present          devices that took part in it, of other hosts
//	ringwave_progress_ratio           of the work
//	ringwave_time_left_seconds        an estimate; NaN where there is none
//	ringwave_up_state{state}          1 for the state of the work, 0 for others
//
// beside what client_golang tells of the process and of Go.
package metrics

import (
	"encoding/json"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ringwave/crypto/round"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
)

// states are those that ringwave_up_state has.
var states = [...]watch.State{watch.StatePreparing, watch.StateRunning, watch.StateStopping, watch.StateEnded, watch.StateStopped, watch.StateFailed}

// Metrics counts. Its methods are for any goroutine.
type Metrics struct {
	registry *prometheus.Registry

	rounds, attempts                            *prometheus.CounterVec
	seconds                                     prometheus.Histogram
	repeated, bytes, clipped                    prometheus.Counter
	round, loss, accuracy, noise, alpha         prometheus.Gauge
	quality, misfit, zeros, present, share, due prometheus.Gauge
	state                                       *prometheus.GaugeVec

	mu     sync.Mutex
	status watch.Status
	last   time.Time // when the last round ended
	each   float64   // bytes of an attempt
}

// New returns metrics of a program's version, all 0.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ringwave_" + name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "ringwave_" + name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	m.rounds = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringwave_rounds_total", Help: "Rounds of this sitting by result."}, []string{"result"})
	m.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringwave_attempts_total", Help: "Attempts at rounds by the check that declared them void, or passed."}, []string{"check"})
	m.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ringwave_round_seconds", Help: "Time from the end of a round to that of the next.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)})
	m.state = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ringwave_up_state", Help: "1 for the state of the work."}, []string{"state"})
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ringwave_info", Help: "The program that runs."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.rounds, m.attempts, m.seconds, m.state, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.repeated = counter("frames_repeated_total", "Frames that were sent again within attempts.")
	m.bytes = counter("uplink_bytes_total", "Payload that devices have sent, all attempts counted.")
	m.clipped = counter("messages_clipped_total", "Messages of devices that were clipped.")
	m.round = gauge("round", "The last round.")
	m.loss = gauge("train_loss", "Training loss of the last round.")
	m.accuracy = gauge("test_accuracy_ratio", "Test accuracy as it was measured last, 0 to 1.")
	m.noise = gauge("decoded_noise", "Decoded message of the last round less its noiseless value.")
	m.alpha = gauge("alpha", "Lattice scale of the last round that was read.")
	m.quality = gauge("quality", "Mean cosine of the worst transmission of the last round, -1 to 1.")
	m.misfit = gauge("misfit_ratio", "Misfit of the worst device of the last round.")
	m.zeros = gauge("zero_gains", "Devices with a gain of 0 in the last round.")
	m.present = gauge("devices_present", "Devices of other hosts that took part in the last round.")
	m.share = gauge("progress_ratio", "Share of the work that is done, 0 to 1.")
	m.due = gauge("time_left_seconds", "Estimate of the time that is left; NaN where there is none.")
	for _, result := range []string{"read", "skipped"} {
		m.rounds.WithLabelValues(result)
	}
	m.attempts.WithLabelValues("passed")
	for _, s := range states {
		m.state.WithLabelValues(string(s))
	}
	return m
}

// UplinkBytes says how many bytes all devices together send in an attempt.
func (m *Metrics) UplinkBytes(n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each = n
}

// Row counts a round.
func (m *Metrics) Row(row runfolder.Row) {
	now := time.Now()
	m.mu.Lock()
	if !m.last.IsZero() {
		m.seconds.Observe(now.Sub(m.last).Seconds())
	}
	m.last = now
	each := m.each
	m.mu.Unlock()
	m.round.Set(float64(row.Round))
	m.clipped.Add(float64(row.Clipped))
	m.bytes.Add(each * float64(row.Attempts))
	m.present.Set(float64(row.Present))
	set(m.loss, row.TrainLoss)
	set(m.accuracy, row.TestAccuracy)
	if row.Skipped {
		m.rounds.WithLabelValues("skipped").Inc()
	} else {
		m.rounds.WithLabelValues("read").Inc()
		m.attempts.WithLabelValues("passed").Inc()
		set(m.noise, row.Eps)
	}
	if l := row.Link; l != nil {
		set(m.alpha, l.Alpha)
		set(m.quality, l.Quality)
		set(m.misfit, l.Misfit)
		set(m.zeros, l.ZeroGains)
		if l.FramesRepeated > 0 {
			m.repeated.Add(l.FramesRepeated)
		}
	}
}

// set sets a gauge to what is known; what is not leaves it.
func set(g prometheus.Gauge, x float64) {
	if !math.IsNaN(x) {
		g.Set(x)
	}
}

// Void counts an attempt that a check declared void.
func (m *Metrics) Void(check round.Check) { m.attempts.WithLabelValues(check.String()).Inc() }

// Progress says how far the work is.
func (m *Metrics) Progress(s watch.Status) {
	m.mu.Lock()
	m.status = s
	m.mu.Unlock()
	m.share.Set(s.Share)
	if s.SecondsLeft >= 0 {
		m.due.Set(s.SecondsLeft)
	} else {
		m.due.Set(math.NaN())
	}
	for _, state := range states {
		value := 0.0
		if state == s.State {
			value = 1
		}
		m.state.WithLabelValues(string(state)).Set(value)
	}
}

// Handler serves /metrics and /healthz. The latter answers 503 where the work has failed.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		s := m.status
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if s.State == watch.StateFailed {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(s) // who asks is gone, or hears
	})
	return mux
}
