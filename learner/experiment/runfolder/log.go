package runfolder

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Log writes events to log.jsonl, a JSON object a line, times in UTC. It may be
// used from several goroutines. An event that the disk does not take is left
// out whole; Close then says so.
type Log struct {
	*slog.Logger
	sink *logSink
}

// OpenLog opens log.jsonl to add to it, making it if needed. If a killed
// process left a part of a line at its end, that part is cut off. Handlers besides hear of
// the same events.
func (f *Folder) OpenLog(besides ...slog.Handler) (*Log, error) {
	lines, err := openLines(f.file(LogName), 0o644)
	if err != nil {
		return nil, err
	}
	return newLog(lines, besides...), nil
}

func newLog(lines lineFile, besides ...slog.Handler) *Log {
	sink := &logSink{lines: lines}
	file := slog.NewJSONHandler(sink, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindTime {
				return slog.Time(a.Key, a.Value.Time().UTC().Truncate(time.Millisecond))
			}
			return a
		},
	})
	return &Log{Logger: slog.New(slog.NewMultiHandler(append([]slog.Handler{file}, besides...)...)), sink: sink}
}

// wholeLines returns where the last newline of f ends, 0 if there is none.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 4096)
	for end := info.Size(); end > 0; {
		start := max(0, end-int64(len(block)))
		part := block[:end-start]
		if _, err := f.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == '\n' {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}

// Close closes the file. Its error is the first that a write met, if one did:
// slog has nobody else to tell.
func (l *Log) Close() error {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	err := l.sink.lines.close()
	if l.sink.first != nil {
		return fmt.Errorf("%d events are missing from %s: %w", l.sink.lost, l.sink.lines.path, l.sink.first)
	}
	return err
}

// logSink is the writer below slog, which gives it one event a write.
type logSink struct {
	mu    sync.Mutex
	lines lineFile
	first error
	lost  int
}

func (s *logSink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lines.add(p); err != nil {
		if s.first == nil {
			s.first = err
		}
		s.lost++
		return 0, err
	}
	return len(p), nil
}
