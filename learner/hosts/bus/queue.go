package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// Queue is the work queue of a bus that has a store: names of jobs, each in it once. A worker
// that takes one has it until it says that it is done, gives it back, or is not heard for
// QueueWait. The store may lose what it has acknowledged: who puts jobs looks what is left
// of them, and puts them again.
type Queue struct {
	js       jetstream.JetStream
	stream   jetstream.Stream   // of who puts jobs
	consumer jetstream.Consumer // of who takes them
}

// QueueWait is how long a worker that has a job may say nothing before it is another's.
const QueueWait = 10 * time.Second

// streamFull is what a server says of a name that is in the queue already: JetStream's
// error 10077, which has no name in its client.
const streamFull jetstream.ErrorCode = 10077

// NewQueue makes the queue that the bus does not have yet, for who puts jobs. What workers had
// taken when whoever put it ended may be taken at once: who grants jobs knows better.
func NewQueue(ctx context.Context, conn Conn) (*Queue, error) {
	q, err := queueOf(conn)
	if err != nil {
		return nil, err
	}
	if err = q.mend(ctx, true); err == nil {
		return q, nil
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return nil, intake.UserError(errors.New("the bus has no store for a queue; allowed is a nats-server with the nats-server.conf of a folder that ringwave enroll --sweeps has made"))
	}
	return nil, fmt.Errorf("making the queue of the bus: %w", plain(err))
}

// Mend makes what a bus that was killed may have forgotten of the queue.
func (q *Queue) Mend(ctx context.Context) error {
	if err := q.mend(ctx, false); err != nil {
		return fmt.Errorf("mending the queue of the bus: %w", plain(err))
	}
	return nil
}

// mend makes the queue where it is not there; anew has all that is in it be taken again.
func (q *Queue) mend(ctx context.Context, anew bool) (err error) {
	stream, err := q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: identity.QueueStream, Subjects: []string{identity.QueueSubjects},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		// A name is in the queue once, however often it is put.
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
	})
	if err != nil {
		return err
	}
	if q.stream == nil { // a handle is of the name: it serves what is made anew, too
		q.stream = stream
	}
	if anew {
		err = stream.DeleteConsumer(ctx, identity.QueueConsumer)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	_, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: identity.QueueConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: QueueWait,
		MaxDeliver: -1, MaxAckPending: 1 << 16,
	})
	return err
}

// OpenQueue finds the queue of the bus, for who takes jobs. The error is ErrNoQueue where
// nobody has made it yet.
func OpenQueue(ctx context.Context, conn Conn) (*Queue, error) {
	q, err := queueOf(conn)
	if err != nil {
		return nil, err
	}
	q.consumer, err = q.js.Consumer(ctx, identity.QueueStream, identity.QueueConsumer)
	if err == nil {
		return q, nil
	}
	for _, none := range []error{jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount} {
		if errors.Is(err, none) {
			return nil, ErrNoQueue
		}
	}
	return nil, fmt.Errorf("finding the queue of the bus: %w", plain(err))
}

// ErrNoQueue says that the bus has no queue yet.
var ErrNoQueue = errors.New("the bus has no queue of jobs yet")

func queueOf(conn Conn) (*Queue, error) {
	c, ok := conn.(*client)
	if !ok {
		return nil, fmt.Errorf("a connection of type %T has no queue; allowed is one that Dial has made", conn)
	}
	js, err := jetstream.New(c.nc)
	if err != nil {
		return nil, fmt.Errorf("opening the queue of the bus: %w", err)
	}
	return &Queue{js: js}, nil
}

// jobSubject returns the subject of a job in the queue.
func jobSubject(sweep, job string) string { return "rw." + sweep + ".job." + job }

// Put puts jobs of a sweep into the queue. Those that are in it stay as they are.
func (q *Queue) Put(ctx context.Context, sweep string, jobs ...string) error {
	// Some are on their way at a time: each is acknowledged when it is on the disk.
	const some = 256
	for len(jobs) > 0 {
		part := jobs[:min(some, len(jobs))]
		jobs = jobs[len(part):]
		if err := q.put(ctx, sweep, part); err != nil {
			return fmt.Errorf("putting jobs into the queue: %w", plain(err))
		}
	}
	return nil
}

func (q *Queue) put(ctx context.Context, sweep string, jobs []string) error {
	var acks []jetstream.PubAckFuture
	for _, job := range jobs {
		ack, err := q.js.PublishAsync(jobSubject(sweep, job), nil)
		if err != nil {
			return err
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			var api *jetstream.APIError
			if !errors.As(err, &api) || api.ErrorCode != streamFull {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Drop takes a job out of the queue, whoever has it.
func (q *Queue) Drop(ctx context.Context, sweep, job string) error {
	return q.purge(ctx, jobSubject(sweep, job))
}

// DropAll takes all jobs of a sweep out of the queue.
func (q *Queue) DropAll(ctx context.Context, sweep string) error {
	return q.purge(ctx, jobSubject(sweep, "*"))
}

func (q *Queue) purge(ctx context.Context, subject string) error {
	if err := q.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return fmt.Errorf("taking jobs out of the queue: %w", plain(err))
	}
	return nil
}

// Left returns the jobs of a sweep that are in the queue, taken or not.
func (q *Queue) Left(ctx context.Context, sweep string) (map[string]bool, error) {
	info, err := q.stream.Info(ctx, jetstream.WithSubjectFilter(jobSubject(sweep, "*")))
	if err != nil {
		return nil, fmt.Errorf("looking what is left in the queue: %w", plain(err))
	}
	left := map[string]bool{}
	for subject := range info.State.Subjects {
		left[subject[strings.LastIndexByte(subject, '.')+1:]] = true
	}
	return left, nil
}

// Taken is a job that a worker has.
type Taken struct {
	Sweep, Job string
	msg        jetstream.Msg
}

// Take returns the next job, or none where there is none for a time. It waits for that time
// whatever ends meanwhile: a job that comes when nobody waits any more would be taken.
func (q *Queue) Take(wait time.Duration) (*Taken, error) {
	batch, err := q.consumer.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, fmt.Errorf("taking a job: %w", plain(err))
	}
	msg, ok := <-batch.Messages()
	if !ok {
		if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
			return nil, fmt.Errorf("taking a job: %w", plain(err))
		}
		return nil, nil
	}
	words := strings.Split(msg.Subject(), ".")
	if len(words) != 4 {
		return nil, fmt.Errorf("taking a job: the subject is %.80q; allowed is one of %s", msg.Subject(), identity.QueueSubjects)
	}
	return &Taken{Sweep: words[1], Job: words[3], msg: msg}, nil
}

// Busy says that the worker still has the job.
func (t *Taken) Busy() error { return plain(t.msg.InProgress()) }

// Done says that the job need not be done again.
func (t *Taken) Done() error { return plain(t.msg.Ack()) }

// Return gives the job back, to be taken after a while.
func (t *Taken) Return(after time.Duration) error { return plain(t.msg.NakWithDelay(after)) }
