package bus

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"ringwave/learner/hosts/identity"
)

// client is a Conn over NATS.
type client struct {
	nc      *nats.Conn
	id      identity.Identity
	options Options
	size    int // of chunks
	first   [8]byte
	count   atomic.Uint64 // of messages
	running sync.WaitGroup
	expiry  *time.Timer // of the identity
	told    func(error) // of troubles
}

// patience bounds the wait for an answer of the server, where the caller has no bound.
const patience = 10 * time.Second

func newClient(nc *nats.Conn, id identity.Identity, o Options) (*client, error) {
	c := &client{nc: nc, id: id, options: o, told: o.Trouble, size: min(mostChunk, int(nc.MaxPayload())-headerSize)}
	if c.size < leastChunk {
		return nil, fmt.Errorf("its max_payload is %d; allowed is at least %d", nc.MaxPayload(), leastChunk+headerSize)
	}
	rand.Read(c.first[:])
	return c, nil
}

// Publish is Conn's.
func (c *client) Publish(subject string, payload []byte) error {
	return c.publish(subject, "", payload)
}

func (c *client) publish(subject, reply string, payload []byte) error {
	if err := checkSubject(subject, false); err != nil {
		return err
	}
	if len(payload) > c.options.Limits.Message {
		return fmt.Errorf("publishing %s: the payload has %d bytes; allowed is at most %d", subject, len(payload), c.options.Limits.Message)
	}
	var id [idSize]byte
	binary.BigEndian.PutUint64(id[copy(id[:], c.first[:]):], c.count.Add(1))
	err := split(payload, id, c.size, func(chunk []byte) error {
		return c.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: chunk})
	})
	if err != nil {
		return fmt.Errorf("publishing %s: %w", subject, plain(err))
	}
	return nil
}

// plain returns NATS' errors of lost connections as this package's.
func plain(err error) error {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionReconnecting):
		return ErrLost
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return ErrClosed
	case errors.Is(err, nats.ErrPermissionViolation):
		return ErrForbidden
	}
	return err
}

// checkSubject refuses what is none, or has wildcards where none may be.
func checkSubject(subject string, wild bool) error {
	words := strings.Split(subject, ".")
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return fmt.Errorf("the subject is %.80q; allowed are words with dots between, without spaces", subject)
		}
		if strings.ContainsAny(w, "*>") && (!wild || w != "*" && (w != ">" || i != len(words)-1)) {
			return fmt.Errorf("the subject is %.80q; allowed is * for a word and > for the last ones, and neither where something is sent", subject)
		}
	}
	return nil
}

// Subscribe is Conn's.
func (c *client) Subscribe(subject string, handle func(Message)) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.subscribe(ctx, subject, handle)
}

func (c *client) subscribe(ctx context.Context, subject string, handle func(Message)) (stop func(), err error) {
	if err := checkSubject(subject, true); err != nil {
		return nil, err
	}
	sub, err := c.nc.SubscribeSync(subject)
	if err != nil {
		return nil, fmt.Errorf("subscribing %s: %w", subject, plain(err))
	}
	if err := c.flushed(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("subscribing %s: %w", subject, err), ignoreClosed(sub.Unsubscribe()))
	}
	// The refusal of the server has come before the answer to Flush. What else may have come is
	// the first message.
	first, err := sub.NextMsg(time.Nanosecond)
	if errors.Is(err, nats.ErrPermissionViolation) {
		return nil, errors.Join(fmt.Errorf("subscribing %s as %s: %w", subject, c.id, ErrForbidden), ignoreClosed(sub.Unsubscribe()))
	}
	r := &receiver{client: c, sub: sub, handle: handle, chunks: newAssembler(c.options.Limits)}
	until, stop := context.WithCancel(context.Background())
	r.stop = stop
	c.running.Go(func() { r.run(until, first) })
	return func() {
		r.stop()
		if err := ignoreClosed(sub.Unsubscribe()); err != nil {
			c.told(fmt.Errorf("ending the subscription of %s: %w", subject, err))
		}
	}, nil
}

// flushed is Flush that waits for a connection that is lost to come back.
func (c *client) flushed(ctx context.Context) error {
	for {
		if err := c.Flush(ctx); !errors.Is(err, ErrLost) || !sleep(ctx, firstPause) {
			return err
		}
	}
}

// ignoreClosed returns errors but those that say that there is nothing left to end.
func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// receiver is a subscription.
type receiver struct {
	client *client
	sub    *nats.Subscription
	handle func(Message)
	chunks *assembler
	stop   func()
}

// run takes in chunks until the subscription ends; first may be nil.
func (r *receiver) run(until context.Context, first *nats.Msg) {
	defer r.stop()
	if first != nil {
		r.take(until, first)
	}
	for {
		msg, err := r.sub.NextMsgWithContext(until)
		switch {
		case err == nil:
			r.take(until, msg)
		case errors.Is(err, nats.ErrSlowConsumer):
			r.client.told(fmt.Errorf("messages for %s were lost: they came faster than they were taken", r.sub.Subject))
		case errors.Is(err, nats.ErrPermissionViolation):
			// After a reconnection: the server has other permissions than before.
			r.client.told(fmt.Errorf("the subscription of %s as %s has ended: %w", r.sub.Subject, r.client.id, ErrForbidden))
			return
		default:
			return // it was stopped, or the connection closed
		}
	}
}

func (r *receiver) take(until context.Context, msg *nats.Msg) {
	message, err := r.chunks.take(msg.Subject, msg.Reply, msg.Data, time.Now())
	if err != nil {
		r.client.told(err)
	}
	if message != nil && until.Err() == nil {
		r.handle(*message)
	}
}

// Ask is Conn's.
func (c *client) Ask(ctx context.Context, subject string, payload []byte) (Message, error) {
	if c.id.Role.Inbox() == "" {
		return Message{}, fmt.Errorf("asking %s as %s: %w: it has no place for answers", subject, c.id, ErrForbidden)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // Flush wants a deadline
	defer cancel()
	inbox, answers := c.nc.NewInbox(), make(chan Message, 1)
	stop, err := c.subscribe(ctx, inbox, func(m Message) {
		select {
		case answers <- m:
		default: // it is not the first
		}
	})
	if err != nil {
		return Message{}, fmt.Errorf("asking %s: %w", subject, err)
	}
	defer stop()
	if err := c.publish(subject, inbox, payload); err != nil {
		return Message{}, err
	}
	select {
	case m := <-answers:
		return m, nil
	case <-ctx.Done():
		return Message{}, fmt.Errorf("asking %s: no answer has come: %w", subject, ctx.Err())
	}
}

// Respond is Conn's. A message may name any subject for its answer, which must not make
// the server publish where it leads devices.
func (c *client) Respond(to Message, payload []byte) error {
	asker := identity.Observer
	if c.id.Role == identity.Sweep {
		asker = identity.Worker
	}
	if !strings.HasPrefix(to.Reply, asker.Inbox()+".") {
		return fmt.Errorf("answering %s: it wants its answer at %.80q; allowed is what begins with %s", to.Subject, to.Reply, asker.Inbox())
	}
	return c.publish(to.Reply, "", payload)
}

// Flush is Conn's.
func (c *client) Flush(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if c.nc.IsReconnecting() {
		return ErrLost
	}
	err := c.nc.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) && !c.nc.IsClosed() {
		return ErrLost // in the meantime
	}
	return plain(err)
}

// Close is Conn's.
func (c *client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.Flush(ctx)
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.nc.Close()
	c.running.Wait()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("closing the connection to the bus: what was published last may be lost: %w", err)
	}
	return nil
}
