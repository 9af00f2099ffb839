//go:build !soapy || !cgo

package native

import (
	"context"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// New returns a back end that this build has not: everything fails with soapy.ErrNoBuild.
func New() soapy.Backend { return none{} }

type none struct{}

func (none) Find(context.Context, radio.URI, soapy.Args) ([]soapy.Args, error) {
	return nil, soapy.ErrNoBuild
}

func (none) Make(context.Context, radio.URI, soapy.Args) (soapy.Board, error) {
	return nil, soapy.ErrNoBuild
}
