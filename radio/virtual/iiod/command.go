package iiod

import (
	"strconv"
	"strings"
)

// place says where an attribute is.
type place int

const (
	ofDevice place = iota
	ofDebug
	ofBuffer
	ofInput  // of a channel
	ofOutput // of a channel
)

// command is a line of the protocol, taken apart.
type command struct {
	verb    string // upper case
	device  string // id or name
	place   place
	channel string // id or name; for ofInput and ofOutput
	attr    string
	number  int64 // bytes, samples or milliseconds
	mask    string
	cyclic  bool
}

// maxTransfer bounds the bytes of one command: a board has no more memory for
// buffers.
const maxTransfer = 1 << 28

// maxAttribute bounds the bytes of an attribute that is written.
const maxAttribute = 1 << 16

// parseCommand takes a line apart, without its end; it fails with einval.
func parseCommand(line string) (command, error) {
	w := strings.Fields(line)
	if len(w) == 0 {
		return command{}, nil
	}
	c := command{verb: strings.ToUpper(w[0])}
	w = w[1:]
	switch c.verb {
	case "VERSION", "PRINT", "HELP", "EXIT", "QUIT":
		return c, allOf(w, 0)
	case "TIMEOUT":
		return c, c.numbers(w, maxTransfer)
	}
	if len(w) == 0 {
		return c, einval
	}
	c.device, w = w[0], w[1:]
	switch c.verb {
	case "CLOSE", "GETTRIG":
		return c, allOf(w, 0)
	case "SETTRIG":
		return c, allOf(w, min(len(w), 1))
	case "READBUF", "WRITEBUF":
		return c, c.numbers(w, maxTransfer)
	case "SET":
		if len(w) != 2 || strings.ToUpper(w[0]) != "BUFFERS_COUNT" {
			return c, einval
		}
		return c, c.numbers(w[1:], maxBlocks)
	case "OPEN":
		return c, c.open(w)
	case "READ":
		return c, c.attribute(w)
	case "WRITE":
		if len(w) == 0 {
			return c, einval
		}
		if err := c.numbers(w[len(w)-1:], maxAttribute); err != nil {
			return c, err
		}
		return c, c.attribute(w[:len(w)-1])
	}
	return c, einval
}

// allOf fails unless there are n words.
func allOf(w []string, n int) error {
	if len(w) != n {
		return einval
	}
	return nil
}

func (c *command) numbers(w []string, most int64) error {
	if len(w) != 1 {
		return einval
	}
	n, err := strconv.ParseInt(w[0], 10, 64)
	if err != nil || n < 0 || n > most {
		return einval
	}
	c.number = n
	return nil
}

func (c *command) open(w []string) error {
	if len(w) == 3 && strings.ToUpper(w[2]) == "CYCLIC" {
		c.cyclic = true
		w = w[:2]
	}
	if len(w) != 2 {
		return einval
	}
	c.mask = w[1]
	return c.numbers(w[:1], maxTransfer)
}

func (c *command) attribute(w []string) error {
	if len(w) > 0 {
		switch strings.ToUpper(w[0]) {
		case "DEBUG":
			c.place, w = ofDebug, w[1:]
		case "BUFFER":
			c.place, w = ofBuffer, w[1:]
		case "INPUT", "OUTPUT":
			if len(w) < 2 {
				return einval
			}
			c.place = ofInput
			if strings.ToUpper(w[0]) == "OUTPUT" {
				c.place = ofOutput
			}
			c.channel, w = w[1], w[2:]
		}
	}
	if len(w) != 1 {
		return einval // no word stands for all attributes, which no tool here asks for
	}
	c.attr = w[0]
	return nil
}
