package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"ringwave/learner/experiment/config"
)

// keys adds the keys of a configuration's table to list, and the tables themselves.
func keys(list map[string]bool, prefix string, of reflect.Type) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("toml"), ",")
		if name == "" {
			continue
		}
		list[prefix+name] = true
		if inner := of.Field(i).Type; inner.Kind() == reflect.Struct {
			keys(list, prefix+name+".", inner)
		}
	}
}

// key is that of a configuration, in Markdown.
var key = regexp.MustCompile("`([a-z0-9]+)\\.([a-z0-9_]+)(?:`| ?=)")

// files are what a folder has whose names look like keys.
var files = map[string]bool{"calibration.toml": true, "link.secret": true}

// Keys of configurations that Markdown names are keys.
func TestKeysAreThere(t *testing.T) {
	known := map[string]bool{}
	keys(known, "", reflect.TypeFor[config.Config]())
	checked := 0
	for name, file := range readRepository(t, root) {
		if !file || !strings.HasSuffix(name, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] || files[m[1]+"."+m[2]] {
				continue
			}
			checked++
			if !known[m[1]+"."+m[2]] {
				t.Errorf("%s has the key %s.%s; there is none", name, m[1], m[2])
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d keys in all Markdown: there are more", checked)
	}
}
