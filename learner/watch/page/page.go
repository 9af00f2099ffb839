// Package page has the page that package watch serves: HTML, CSS and ES modules as they are
// in its folder assets, written here, with nothing to build and nothing to fetch elsewhere.
package page

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed assets
var files embed.FS

// Assets returns the page's files: index.html, and what it asks for below /assets/.
func Assets() (fs.FS, error) {
	sub, err := fs.Sub(files, "assets")
	if err != nil {
		return nil, fmt.Errorf("the page's files: %w", err)
	}
	return sub, nil
}
