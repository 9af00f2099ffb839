package console

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ringwave/radio/intake"
)

// BadFlag returns an error of a flag's value with what is allowed in place of Go's words.
func BadFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	allowed := map[string]string{
		"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a time such as 90s or 1h30m",
		"intSlice": "whole numbers, one or several with commas between", "float64Slice": "numbers, one or several with commas between",
	}[invalid.GetFlag().Value.Type()]
	if allowed == "" {
		return err
	}
	return fmt.Errorf("--%s is %q: allowed is %s", invalid.GetFlag().Name, intake.Sentence(invalid.GetValue()), allowed)
}

// Results is standard output. Commands print there without looking back: what could not
// be written is remembered, and is the program's error in the end.
type Results struct {
	W   io.Writer
	Err error
}

// Write writes as w does, and nothing behind the first error.
func (r *Results) Write(p []byte) (n int, err error) {
	if r.Err != nil {
		return 0, r.Err
	}
	n, r.Err = r.W.Write(p)
	return n, r.Err
}

// Lost returns err, or that results were lost where this is all that went wrong.
func (r *Results) Lost(err error) error {
	if r.Err == nil || err != nil && !errors.Is(err, r.Err) {
		return err
	}
	why := r.Err
	if path := (*fs.PathError)(nil); errors.As(why, &path) {
		why = path.Err
	}
	return fmt.Errorf("writing the results to standard output: %w", why)
}

// UnknownCommand refuses a word that stands where a command's name does and is none, also
// beside --help and help, which cobra answers with another command's.
func UnknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	at := root
	for i, word := range args {
		// The flags of commands that have others below them take no values.
		if !at.HasSubCommands() || strings.HasPrefix(word, cobra.ShellCompRequestCmd) {
			return nil
		}
		if strings.HasPrefix(word, "-") || i == 0 && word == "help" {
			continue
		}
		below := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if below < 0 && strings.Contains(at.Use, " ") {
			return nil // it is an argument
		}
		if below < 0 {
			return intake.UserError(fmt.Errorf("unknown command %q%s: see %s --help", word, meant(at, word), at.CommandPath()))
		}
		at = at.Commands()[below]
	}
	return nil
}

// meant names a command that is spelt nearly so.
func meant(at *cobra.Command, word string) string {
	at.SuggestionsMinimumDistance = 2
	if names := at.SuggestionsFor(word); len(names) > 0 {
		return fmt.Sprintf(", perhaps %s was meant", strings.Join(names, " or "))
	}
	return ""
}
