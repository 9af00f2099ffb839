package scenes

import (
	"strconv"
	"time"

	"ringwave/learner/hosts/wire"
	"ringwave/learner/watch"
)

// HostsTable says how the devices of other hosts are.
func HostsTable(a wire.Attendance) watch.Table {
	t := watch.Table{Name: "hosts", View: watch.ViewBench, Title: "Hosts", Columns: []watch.Column{
		{Label: "device", Numeric: true}, {Label: "state"}, {Label: "host"}, {Label: "radio"}, {Label: "last seen", Unit: "s ago", Numeric: true},
		{Label: "rounds", Numeric: true}, {Label: "clock offset", Unit: "ms", Numeric: true}, {Label: "samples", Numeric: true}, {Label: "why"},
	}, Note: "The clock offset is that of a message's arrival: the way on the network included."}
	for _, h := range a.Hosts {
		seen := ""
		if !h.Seen.IsZero() {
			seen = strconv.FormatFloat(a.Clock.Sub(h.Seen).Seconds(), 'f', 1, 64)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(h.Index), h.State, h.Host, h.Radio, seen, strconv.Itoa(h.Rounds), short(float64(h.Offset) / float64(time.Millisecond)), strconv.Itoa(h.Samples), h.Why})
	}
	return t
}
