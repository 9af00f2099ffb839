package hosts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ringwave/learner/hosts/server"
	"ringwave/radio/intake"
)

// leastSilence is the least time that a server may be given, which says every second that it
// is there.
const leastSilence = 3 * time.Second

// checkLives refuses times in which no server could be heard, and rounds that are none.
func (o DeviceOptions) checkLives() error {
	for _, x := range []struct {
		flag string
		time time.Duration
	}{{"--silence", o.Silence}, {"--patience", o.Patience}} {
		if x.time != 0 && x.time < leastSilence {
			return intake.UserError(fmt.Errorf("%s is %v; allowed is %v or more, or 0 for without end", x.flag, x.time, leastSilence))
		}
	}
	if o.ReplayRounds < 0 {
		return intake.UserError(fmt.Errorf("--replay-rounds is %d; allowed is 1 or more, or 0 to replay all", o.ReplayRounds))
	}
	return nil
}

// alone has the bench say that its server is there, and refuses to begin where there is one
// already. The bus in this program has had nobody on it before.
func (b *Bench) alone(ctx context.Context) (err error) {
	b.herald, err = server.NewHerald(server.HeraldConfig{Identity: b.id, Bus: b.conn, Host: b.o.Host, Say: b.o.Say})
	if err != nil || b.nats != nil {
		return err
	}
	return b.herald.Alone(ctx, othersAnswer)
}

// othersAnswer is in what time a server that is there has answered another.
const othersAnswer = 1500 * time.Millisecond

// valid tells of the run's devices that have no valid identity, and refuses to begin where too
// few have one.
func (b *Bench) valid(devices, minimum int, now time.Time) error {
	if minimum == 0 {
		minimum = devices
	}
	why := b.folder.Registry.Unready(devices, now)
	if len(why) == 0 {
		return nil
	}
	told := strings.Join(why[:min(len(why), toldUnready)], "; ")
	if more := len(why) - toldUnready; more > 0 {
		told += fmt.Sprintf("; and so on of %d more", more)
	}
	if left := devices - len(why); left < minimum {
		return intake.UserError(fmt.Errorf("%d of %d devices may connect, and a round takes %d (devices.minimum): %s", left, devices, minimum, told))
	}
	b.o.Say(fmt.Sprintf("%d of %d devices may not connect: %s", len(why), devices, told))
	return nil
}

// toldUnready is of how many devices it is said why they may not connect.
const toldUnready = 3
