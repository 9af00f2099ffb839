package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"ringwave/radio/boards"
	"ringwave/radio/guard"
)

// guardCommand is the name of the command that startGuard starts.
const guardCommand = "guard"

func newGuardCommand() *cobra.Command {
	program := 0
	cmd := &cobra.Command{
		Use:    guardCommand,
		Short:  "Switch boards off for a program that no longer can",
		Hidden: true, // the program itself starts it
		Long: `Watch over the boards that another ringwave sends with, which starts this and
talks to it over standard input and output, and switch them off when it ends or
stands still.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			guard.Ignore()
			all, err := boards.New(cmd.Context(), boards.Config{EndProgram: func() error { return guard.EndProgram(program) }})
			if err != nil {
				return err
			}
			return guard.Serve(cmd.InOrStdin(), cmd.OutOrStdout(), all.OpenSwitch, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&program, "program", 0, "process that it watches over")
	return cmd
}

// startGuard starts the guard of boards that send, in another process. It ends after ctx,
// when no board needs it.
func startGuard(ctx context.Context) (*guard.Client, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for the program that is the guard of the carriers: %w", err)
	}
	return guard.Start(ctx, program, guardCommand, "--program="+strconv.Itoa(os.Getpid()))
}
