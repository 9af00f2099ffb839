package pluto

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// script is a connection to a board that says what is given, whatever it is asked,
// and then leaves.
type script struct {
	net.Conn
	answer *bytes.Reader
}

func (s script) Read(b []byte) (int, error)  { return s.answer.Read(b) }
func (s script) Write(b []byte) (int, error) { return len(b), nil }
func (s script) SetDeadline(time.Time) error { return nil }
func (s script) Close() error                { return nil }

func said(answer []byte) *link { return newLink(script{answer: bytes.NewReader(answer)}, 0) }

// tap does each command in its turn; the first error of the connection is given.
func tap(ctx context.Context, l *link) (samples int, err error) {
	var all []error
	note := func(err error) { all = append(all, err) }
	_, err = l.version(ctx)
	note(err)
	_, err = l.context(ctx)
	note(err)
	note(l.timeout(ctx, 0))
	_, err = l.read(ctx, attribute{device: "d", name: "a"})
	note(err)
	note(l.write(ctx, attribute{device: "d", name: "a"}, "1"))
	note(l.openDevice(ctx, "d", 16, "00000003"))
	samples, err = l.readBlock(ctx, "d", "00000003", make([]byte, 64))
	note(err)
	note(l.writeBlock(ctx, "d", make([]byte, 64)))
	return samples, errors.Join(all...)
}

const good = "0.25.1234567\n3\nxml\n0\n2\nab\n2\n0\n64\n00000003\n" +
	"0123456789012345678901234567890123456789012345678901234567890123" + "0\n64\n"

// What iiod says is understood, in one piece and however it comes.
func TestReplies(t *testing.T) {
	l := said([]byte(good))
	if n, err := tap(t.Context(), l); n != 64 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	// In parts, and with empty lines.
	l = said([]byte("\n\n16\n00000003\n0123456789012345\n48\n" + strings.Repeat("x", 48)))
	if n, err := l.readBlock(t.Context(), "d", "00000003", make([]byte, 64)); n != 64 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	// The end of what there is.
	l = said([]byte("16\n00000003\n01234567890123450\n"))
	if n, err := l.readBlock(t.Context(), "d", "00000003", make([]byte, 64)); n != 16 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	// An error after some.
	l = said([]byte("16\n00000003\n0123456789012345-110\n0\n"))
	if n, err := l.readBlock(t.Context(), "d", "00000003", make([]byte, 64)); n != 16 || !errors.Is(err, Errno(110)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := l.simple(t.Context(), "CLOSE d"); err != nil {
		t.Errorf("a refusal broke the link: %v", err)
	}
}

// An answer that ends anywhere is an error at that command and at all that follow.
func TestHalfWritten(t *testing.T) {
	for k := range len(good) {
		l := said([]byte(good[:k]))
		if _, err := tap(t.Context(), l); !errors.Is(err, ErrDisconnected) {
			t.Errorf("cut after %d bytes: %v", k, err)
		}
	}
}

func TestNotReplies(t *testing.T) {
	for answer, want := range map[string]string{
		"+3\nabc\n":              `a number was due and "+3" came`,
		"3x\nabc\n":              `a number was due and "3x" came`,
		"2147483648\n":           `a number was due and "2147483648" came`,
		"-2147483648\n":          `a number was due and "-2147483648" came`,
		"999999999999999999\n":   `a line of at most 11 bytes was due and "999999999999"... came`,
		"3\nabcd":                `a line feed was due after a text and "d" came`,
		"70000\n":                "a text of at most 65536 bytes was due and one of 70000 came",
		strings.Repeat("\n", 99): "a number was due and 16 empty lines came",
	} {
		l := said([]byte(answer))
		_, err := l.read(t.Context(), attribute{device: "d", name: "a"})
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
	for answer, want := range map[string]string{
		"65\n00000003\n":       "at most 64 bytes of samples were due and 65 came",
		"64\n0000000x\n":       `a mask was due and "0000000x" came`,
		"64\n00000003000000\n": "a line of at most 11 bytes was due",
		"64\n0000000f\n":       "the board sends the channels 0000000f in place of 00000003: another program has opened others",
		"-9\n":                 "the stream is not open on the board (errno 9)",
		"-77\n":                "the board refused (errno 77)",
		"32\n00000003\n01234567890123456789012345678901-5\n": "the board's driver failed (errno 5)",
	} {
		l := said([]byte(answer))
		if _, err := l.readBlock(t.Context(), "d", "00000003", make([]byte, 64)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
	l := said([]byte("0\n32\n"))
	if err := l.writeBlock(t.Context(), "d", make([]byte, 64)); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}

// Two answers come to one exchange, and both are read though the first is a refusal.
func TestAsk(t *testing.T) {
	l := said([]byte("11\n3\n0x4\n-22\n3\n0x5\n7\n"))
	if v, err := l.ask(t.Context(), attribute{device: "d", name: "a"}, "0x80000088"); v != "0x4" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := l.ask(t.Context(), attribute{device: "d", name: "a"}, "0x80000088"); !errors.Is(err, errnoInvalid) {
		t.Error(err)
	}
	if n, err := l.number(); n != 7 || err != nil {
		t.Errorf("the next answer is %d, %v", n, err)
	}
}

// FuzzReply: whatever a board says, commands end, and take no more memory than what
// they asked for.
func FuzzReply(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("-22\n"))
	f.Add([]byte("\n\n16\n00000003\n0123456789012345\n48\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		l := said(answer)
		if n, _ := tap(t.Context(), l); n > 64 {
			t.Errorf("%d bytes of samples", n)
		}
	})
}

// gains are what a path of a transceiver has.
const gains = `<attribute name="hardwaregain"/><attribute name="sampling_frequency"/><attribute name="rf_bandwidth"/>`

const described = `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE context [<!ELEMENT context (device | context-attribute)*>]>
<context name="network" description="Linux">
<context-attribute name="hw_model" value="A &lt;B&gt;" /><context-attribute name="hw_serial" value="12" /><context-attribute name="fw_version" value="v0.38" />
<device id="iio:device1" name="ad9361-phy"><channel id="altvoltage1" name="TX_LO" type="output"><attribute name="frequency" filename="f"/></channel>
<channel id="voltage0" type="input">` + gains + `</channel><channel id="altvoltage0" type="output"><attribute name="frequency"/></channel>
<channel id="voltage0" type="output">` + gains + `</channel></device>
<device id="iio:device4" name="cf-ad9361-lpc"><channel id="temp" type="input"/><channel id="voltage0" type="input"><scan-element index="0" format="le:S12/16&gt;&gt;0"/></channel>
<channel id="voltage1" type="input"><scan-element index="1" format="le:S12/16&gt;&gt;0"/></channel><debug-attribute name="direct_reg_access"/></device>
<device id="iio:device3" name="cf-ad9361-dds-core-lpc"><channel id="altvoltage0" name="TX1_I_F1" type="output"><attribute name="raw"/></channel>
<channel id="voltage0" type="output"><scan-element index="0" format="le:S16/16&gt;&gt;0"/></channel><channel id="voltage1" type="output"><scan-element index="1" format="le:S16/16&gt;&gt;0"/></channel></device></context>`

func TestParseBoard(t *testing.T) {
	b, err := parseBoard([]byte(described), 1)
	if err != nil {
		t.Fatal(err)
	}
	if b.model != "A <B>" || b.serial != "12" || b.firmware != "v0.38" || b.phy != "iio:device1" {
		t.Errorf("%+v", b)
	}
	low, _ := parseFormat("le:S12/16>>0")
	high, _ := parseFormat("le:S16/16>>0")
	// Masks count channels as they are listed.
	if rx := b.ports[radio.Receive]; rx.device != "iio:device4" || rx.mask != "00000006" || rx.format != low || rx.status.String() != "iio:device4 DEBUG direct_reg_access" {
		t.Errorf("%+v", rx)
	}
	if tx := b.ports[radio.Transmit]; tx.device != "iio:device3" || tx.mask != "00000006" || tx.format != high || tx.status.name != "" {
		t.Errorf("%+v", tx)
	}
	if len(b.tones) != 1 || b.tones[0].String() != "iio:device3 OUTPUT altvoltage0 raw" {
		t.Errorf("%v", b.tones)
	}
	many := strings.Replace(described, `<channel id="temp" type="input"/>`, strings.Repeat(`<channel id="temp" type="input"/>`, 31), 1)
	if b, err = parseBoard([]byte(many), 1); err != nil || b.ports[radio.Receive].mask != "0000000180000000" {
		t.Errorf("%v, %+v", err, b)
	}
}

// twice is a board with two transceivers of two paths each, whose samples are all those of
// the first's converters, as one says of itself.
var twice = `<context name="network"><context-attribute name="ad9361-phy,model" value="ad9361"/>
<device id="d2" name="ad9361-phy-B">` + phyChannels + `</device><device id="d1" name="ad9361-phy">` + phyChannels + `</device>
<device id="d7" name="cf-ad9361-B"><channel id="voltage0" type="input"/><channel id="voltage1" type="input"/></device>
<device id="d5" name="cf-ad9361-dds-core-B"><channel id="altvoltage0" type="output"><attribute name="raw"/></channel></device>
<device id="d4" name="cf-ad9361-dds-core-lpc">` + outputs + `<channel id="altvoltage0" type="output"><attribute name="raw"/></channel></device>
<device id="d6" name="cf-ad9361-A">` + inputs + `</device></context>`

const phyChannels = `<channel id="altvoltage1" type="output"><attribute name="frequency"/><attribute name="powerdown"/></channel>
<channel id="altvoltage0" type="output"><attribute name="frequency"/></channel><channel id="voltage3" type="output"><attribute name="raw"/></channel>
<channel id="voltage1" type="output">` + gains + `</channel><channel id="voltage0" type="output">` + gains + `</channel>
<channel id="voltage1" type="input">` + gains + `</channel><channel id="voltage0" type="input">` + gains + `</channel>`

var inputs, outputs = scans("input", "le:S12/16&gt;&gt;0"), scans("output", "le:S16/16&gt;&gt;0")

// scans are eight channels with samples.
func scans(kind, format string) (x string) {
	for i := range 8 {
		x += fmt.Sprintf(`<channel id="voltage%d" type="%s"><scan-element index="%d" format="%s"/></channel>`, i, kind, i, format)
	}
	return x
}

// Each channel has its own way through the board, and all are silenced.
func TestParseChannels(t *testing.T) {
	for number, want := range map[int]struct{ phy, path, mask string }{
		1: {"d1", "voltage0", "00000003"}, 2: {"d1", "voltage1", "0000000c"}, 3: {"d2", "voltage0", "00000030"}, 4: {"d2", "voltage1", "000000c0"},
	} {
		b, err := parseBoard([]byte(twice), number)
		if err != nil {
			t.Fatal(err)
		}
		if b.phy != want.phy || b.model != "ad9361" {
			t.Errorf("channel %d: %+v", number, b)
		}
		for dir, device := range map[radio.Direction]string{radio.Receive: "d6", radio.Transmit: "d4"} {
			if p := b.ports[dir]; p.device != device || p.mask != want.mask {
				t.Errorf("channel %d, %v: %+v", number, dir, p)
			}
			if b.path[dir].id != want.path || b.path[dir].device != want.phy || b.local[dir].device != want.phy {
				t.Errorf("channel %d, %v: %+v %+v", number, dir, b.path[dir], b.local[dir])
			}
		}
		if got := fmt.Sprint(b.attenuators, b.powerdowns, b.tones); got != "[d1 OUTPUT voltage0 hardwaregain d1 OUTPUT voltage1 hardwaregain d2 OUTPUT voltage0 hardwaregain d2 OUTPUT voltage1 hardwaregain]"+
			" [d1 OUTPUT altvoltage1 powerdown d2 OUTPUT altvoltage1 powerdown] [d4 OUTPUT altvoltage0 raw d5 OUTPUT altvoltage0 raw]" {
			t.Errorf("channel %d: %s", number, got)
		}
	}
	if _, err := parseBoard([]byte(twice), 5); err == nil || err.Error() != `the board "ad9361": it has no channel 5 to receive; allowed is channel=1 to channel=4` {
		t.Error(err)
	}
}

// A description that is no Pluto's is refused with what it lacks.
func TestParseBoardRefuses(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"ad9361-phy", "adc081c"}: `the board "A <B>": it has no device "ad9361-phy" and so no AD936x as this driver knows it; it has "adc081c", "cf-ad9361-lpc", "cf-ad9361-dds-core-lpc"`,
		{`type="output">` + gains, `type="output"><attribute name="rssi"/>`}: `the board "A <B>": the channel output voltage0 of its device ad9361-phy has no hardwaregain`,
		{`name="cf-ad9361-dds`, `name="axi-dds`}:                             `it has no device "cf-ad9361-dds-core-"`,

		{"le:S12/16&gt;&gt;0\"/></channel>\n", "le:u12/16\"/></channel>\n"}: "no channels voltage0 and voltage1 that carry I before Q in one format",
		{`index="1" format="le:S12`, `index="0" format="le:S12`}:            "no channels voltage0 and voltage1 that carry I before Q in one format",
		{"S16/16", "S32/32"}:                     `samples have the format "le:S32/32>>0"; allowed is signed in 16 bits`,
		{`id="iio:device4"`, `id="x READ y"`}:    `something named "x READ y"`,
		{"</context>", ""}:                       "its description cannot be read",
		{`id="altvoltage1"`, `id="altvoltage7"`}: "has no channel output altvoltage1",
	} {
		if _, err := parseBoard([]byte(strings.ReplaceAll(described, change[0], change[1])), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", change, err, want)
		}
	}
}

// FuzzBoard: a description is understood or refused, and what is understood makes no
// command but those that are meant.
func FuzzBoard(f *testing.F) {
	f.Add([]byte(described), 1)
	f.Add([]byte(twice), 3)
	f.Fuzz(func(t *testing.T, text []byte, number int) {
		number = 1 + int(uint(number)%maxChannel)
		b, err := parseBoard(text, number)
		if err != nil {
			return
		}
		for _, p := range b.ports {
			if strings.ContainsAny(p.device, " \r\n") || len(p.mask)%8 != 0 || p.mask == "" {
				t.Errorf("%+v", p)
			}
		}
		for _, a := range slices.Concat(b.attenuators, b.powerdowns, b.tones) {
			if strings.Count(a.String(), " ") != 3 || strings.ContainsAny(a.String(), "\r\n") {
				t.Errorf("%q", a)
			}
		}
	})
}

func TestSpans(t *testing.T) {
	for text, want := range map[string][3]float64{
		"[-89.750000 0.250000 0.000000]": {-89.75, 0.25, 0},
		"[70000000 1 6000000000]\n":      {70e6, 1, 6e9},
	} {
		if lo, step, hi, err := parseSpan(text); err != nil || lo != want[0] || step != want[1] || hi != want[2] {
			t.Errorf("%q: %v %v %v, %v", text, lo, step, hi, err)
		}
	}
	// An attenuation in thousandths of a decibel, and the least gain alone, as boards have
	// them, too.
	for _, text := range []string{"[-89.750000 0.250000 0.000000]", "[0 250 89750]", "[-89.750000]"} {
		if lo, step, hi, err := parseAttenuation(text); err != nil || lo != -89.75 || step != 0.25 || hi != 0 {
			t.Errorf("%q: %v %v %v, %v", text, lo, step, hi, err)
		}
	}
	for _, text := range []string{"", "[]", "[x]", "[1 2]", "[90 1 0]"} {
		if _, _, _, err := parseAttenuation(text); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "[1 2]", "[1 x 2]", "[2 1 1]", "[NaN 1 2]", "[1 1 Inf]"} {
		if _, _, _, err := parseSpan(text); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]float64{"71.000000 dB": 71, " 2400000000\n": 2.4e9} {
		if v, err := parseValue(text); err != nil || v != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	if _, err := parseValue("much"); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}

// Bytes written out by hand.
func TestFormats(t *testing.T) {
	for format, codes := range map[string]map[int][2]byte{
		"le:S12/16>>0": {0: {0, 0}, 1: {1, 0}, -1: {0xff, 0xff}, 2047: {0xff, 7}, -2047: {1, 0xf8}},
		"le:S16/16>>0": {0: {0, 0}, 1: {0x10, 0}, -1: {0xf0, 0xff}, 2047: {0xf0, 0x7f}, -2047: {0x10, 0x80}},
		"be:s12/16>>4": {1: {0, 0x10}, -2047: {0x80, 0x10}},
	} {
		f, err := parseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		for code, want := range codes {
			x := []complex64{complex(float32(code)/fullScale, 0)}
			got := make([]byte, 4)
			if clipped := iq.New(f).Encode(got, x).Limited; clipped != 0 || [2]byte(got) != want {
				t.Errorf("%s: %d is % x, want % x; %d clipped", format, code, got[:2], want, clipped)
			}
			back := make([]complex64, 1)
			atLimit := 0
			if code == fullScale || code == -fullScale {
				atLimit = 1
			}
			if clipped := iq.New(f).Decode(back, got).Clipped; back[0] != x[0] || clipped != atLimit {
				t.Errorf("%s: %d comes back as %v, %d clipped", format, code, back, clipped)
			}
		}
	}
	// A 12-bit number whose sign is not extended, and the lowest of all.
	f, _ := parseFormat("le:S12/16>>0")
	x := make([]complex64, 2)
	if clipped := iq.New(f).Decode(x, []byte{0xff, 0x0f, 0, 0, 0, 8, 0, 0}).Clipped; clipped != 1 || real(x[0]) != -1.0/2047 || real(x[1]) != -2048.0/2047 {
		t.Errorf("%v, %d clipped", x, clipped)
	}
	for _, bad := range []string{"", "le:S12", "xx:S12/16>>0", "le:u12/16>>0", "le:S12/16>>5", "le:S8/16>>0", "le:S12/16X2>>0", "le:S17/16>>0"} {
		if _, err := parseFormat(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
