package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ringwave/crypto/round"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
)

// fed returns metrics of three rounds, one of them skipped, and a void attempt.
func fed() *Metrics {
	m := New("1.2.3")
	m.UplinkBytes(1000)
	link := func(alpha float64) *runfolder.LinkRow {
		return &runfolder.LinkRow{Alpha: alpha, FramesRepeated: 2, Quality: 0.5, Misfit: 0.25, ZeroGains: 1}
	}
	m.Row(runfolder.Row{Round: 1, TrainLoss: 0.7, TestAccuracy: 0.9, Attempts: 1, Eps: 0.5, Clipped: 1, Link: link(4)})
	m.Void(round.LinearCheck)
	m.Row(runfolder.Row{Round: 2, TrainLoss: 0.6, TestAccuracy: math.NaN(), Attempts: 2, Skipped: true, Eps: math.NaN(), Link: link(math.NaN())})
	m.Row(runfolder.Row{Round: 3, TrainLoss: 0.5, TestAccuracy: math.NaN(), Attempts: 1, Eps: -0.25, Link: link(8)})
	m.Progress(watch.Status{State: watch.StateRunning, Share: 0.75, SecondsLeft: 9})
	return m
}

// values are what fed sets.
var values = map[string]string{
	`ringwave_info{version="1.2.3"}`: "1", `ringwave_rounds_total{result="read"}`: "2", `ringwave_rounds_total{result="skipped"}`: "1",
	`ringwave_attempts_total{check="passed"}`: "2", `ringwave_round_seconds_count`: "2", `ringwave_frames_repeated_total`: "6",
	`ringwave_uplink_bytes_total`: "4000", `ringwave_messages_clipped_total`: "1", `ringwave_round`: "3", `ringwave_train_loss`: "0.5",
	`ringwave_test_accuracy_ratio`: "0.9", `ringwave_decoded_noise`: "-0.25", `ringwave_alpha`: "8", `ringwave_quality`: "0.5",
	`ringwave_misfit_ratio`: "0.25", `ringwave_zero_gains`: "1", `ringwave_devices_present`: "0", `ringwave_progress_ratio`: "0.75",
	`ringwave_time_left_seconds`: "9", `ringwave_up_state{state="running"}`: "1", `ringwave_up_state{state="failed"}`: "0",
}

func scrape(t *testing.T, m *Metrics, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// What is served is what was counted, by Prometheus' conventions, and what the documentation
// says.
func TestNames(t *testing.T) {
	_, text := scrape(t, fed(), "/metrics")
	for name, want := range values {
		if !strings.Contains(text, "\n"+name+" "+want+"\n") {
			t.Errorf("%s is not %s", name, want)
		}
	}
	if !strings.Contains(text, fmt.Sprintf("ringwave_attempts_total{check=%q} 1", round.LinearCheck.String())) {
		t.Error("the void attempt is missing")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "ringwave_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := names(regexp.MustCompile(`(?m)^//\s+(ringwave_\w+)`), string(source))
	if served := names(regexp.MustCompile(`(?m)^# TYPE (ringwave_\w+)`), text); !slices.Equal(documented, served) {
		t.Errorf("served are %v, documented %v", served, documented)
	}
}

func names(r *regexp.Regexp, text string) (list []string) {
	for _, m := range r.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return list
}

// Health is 503 once the work has failed.
func TestHealth(t *testing.T) {
	m := fed()
	if code, body := scrape(t, m, "/healthz"); code != 200 || !strings.Contains(body, `"state":"running"`) {
		t.Errorf("%d %s", code, body)
	}
	m.Progress(watch.Status{State: watch.StateFailed})
	if code, _ := scrape(t, m, "/healthz"); code != 503 {
		t.Errorf("%d of work that has failed", code)
	}
}

// A real Prometheus scrapes and answers what was counted.
func TestPrometheus(t *testing.T) {
	path, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal("there is no prometheus: Debian's package of that name has it")
		}
		t.Skip("there is no prometheus: Debian's package of that name has it")
	}
	server := httptest.NewServer(fed().Handler())
	defer server.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n- job_name: ringwave\n  static_configs:\n  - targets: [%q]\n", strings.TrimPrefix(server.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // it takes no port 0
	cmd := exec.CommandContext(t.Context(), path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	}()
	deadline := time.Now().Add(time.Minute)
	for name, want := range values {
		for {
			got := query(addr, name)
			if got == want {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("Prometheus says that %s is %q, want %s", name, got, want)
			}
			<-time.After(20 * time.Millisecond) // it is asked again
		}
	}
}

// query returns what Prometheus says a number is, "" where it says nothing.
func query(addr, name string) string {
	r, err := http.Get("http://" + addr + "/api/v1/query?query=" + strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22", "=", "%3D").Replace(name))
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
