package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is what the paths of this module's packages begin with.
const module = "ringwave/"

// below has the rooms that a room's packages may import from, besides its own:
// radio below phy below crypto below calibration below learner below cmd.
var below = map[string]string{
	"radio":       "",
	"phy":         "radio",
	"crypto":      "radio phy",
	"calibration": "radio phy crypto",
	"learner":     "radio phy crypto calibration",
	"cmd":         "radio phy crypto calibration learner",
}

// leaves are what all rooms may import. They import nothing but each other.
var leaves = strings.Fields("crypto/secret crypto/keystream crypto/vector phy/zq phy/slot radio/intake radio/life radio/nullable")

// table has what each package may import, besides leaves; a name that ends in /... stands
// for all packages of a folder. It is as narrow as what a package promises not to know,
// and no narrower. It is of packages as they are built: tests may import what they like,
// as a bench in memory for a driver, or a trainer for a cipher.
var table = map[string]string{
	"radio":                 "",
	"radio/air":             "",
	"radio/array":           "radio/...",
	"radio/boards":          "radio/...",
	"radio/guard":           "radio",
	"radio/blocks":          "radio/...",
	"radio/feed":            "radio/...",
	"radio/soapy":           "radio/...",
	"radio/soapy/native":    "radio/...",
	"radio/soapy/soapytest": "radio/...",
	"radio/soapy/remote":    "radio radio/soapy",
	"radio/hackrf":          "radio/...",
	"radio/intake":          "",
	"radio/iq":              "",
	"radio/life":            "",
	"radio/loopback":        "radio/...",
	"radio/nullable":        "",
	"radio/pluto":           "radio/...",
	"radio/radiotest":       "radio/...",
	"radio/rtlsdr":          "radio/...",

	"radio/rtltcp":        "radio/...",
	"radio/sigmf":         "radio/...",
	"radio/usb":           "",
	"radio/virtual":       "radio/...",
	"radio/virtual/iiod":  "radio/...",
	"radio/virtual/usbfs": "radio/...",
	"radio/virtual/usbip": "radio/...",

	"phy":              "phy/... radio",
	"phy/bench":        "phy/channel phy/modem radio radio/loopback",
	"phy/channel":      "phy/channel/p676 phy/kernel",
	"phy/channel/p676": "",
	"phy/digit":        "",
	"phy/equalise":     "",
	"phy/frame":        "phy/digit",
	"phy/gains":        "",
	"phy/kernel":       "",
	"phy/lattice":      "",
	"phy/modem":        "phy/kernel",
	"phy/outside":      "",
	"phy/slot":         "",
	"phy/trial":        "phy/... radio radio/loopback",
	"phy/zq":           "",

	"crypto/aggregate":         "",
	"crypto/airhe":             "crypto/aggregate crypto/sampler",
	"crypto/attack":            "crypto/... phy/... radio radio/loopback",
	"crypto/heairfed":          "crypto/aggregate crypto/sampler",
	"crypto/keystream":         "",
	"crypto/lockfile":          "",
	"crypto/mismatch":          "crypto/xmkckks",
	"crypto/round":             "crypto/xmkckks phy",
	"crypto/sampler":           "",
	"crypto/secret":            "",
	"crypto/secret/secrettest": "",
	"crypto/ntt":               "",
	"crypto/vector":            "",
	"crypto/vector/gen":        "",
	"crypto/xmkckks":           "crypto/lockfile crypto/ntt crypto/sampler",

	"calibration":          "",
	"calibration/advice":   "crypto/xmkckks phy/... radio",
	"calibration/bringup":  "calibration/sounder phy/modem radio radio/array",
	"calibration/campaign": "calibration/... phy/bench phy/channel phy/modem radio",
	"calibration/moments":  "phy/channel",
	"calibration/sounder":  "calibration/sounding phy/modem radio",
	"calibration/sounding": "phy/modem",

	"learner":                           "crypto/aggregate learner/dataset learner/model learner/philox",
	"learner/dataset":                   "",
	"learner/experiment":                "calibration/... crypto/... learner learner/dataset learner/experiment/catalogue learner/experiment/chart learner/experiment/config learner/experiment/report learner/experiment/runfolder learner/experiment/setup learner/experiment/uplink learner/external learner/model learner/model/kernel learner/theory learner/weights phy/... radio/...",
	"learner/experiment/experimenttest": "calibration learner/experiment/runfolder radio",
	"learner/experiment/replay":         "crypto/xmkckks learner/experiment learner/experiment/chart learner/experiment/config learner/experiment/runfolder learner/experiment/setup learner/experiment/uplink phy phy/frame radio radio/sigmf",
	"learner/experiment/setup":          "calibration/... crypto/xmkckks learner/dataset learner/experiment/config learner/experiment/memory phy/... radio/...",
	"learner/experiment/sweep":          "learner learner/experiment learner/experiment/config learner/experiment/runfolder",
	"learner/experiment/sweepreport":    "learner/experiment/chart learner/experiment/compare learner/experiment/config learner/experiment/report learner/experiment/runfolder learner/experiment/sweep",
	"learner/experiment/uplink":         "calibration/... crypto/round crypto/xmkckks learner/experiment/chart learner/experiment/config learner/experiment/diagnosis learner/experiment/runfolder learner/experiment/setup phy/... radio/...",
	"learner/paper":                     "crypto/... learner learner/dataset learner/experiment/... learner/theory phy phy/channel",
	"learner/experiment/diagnosis":      "crypto/round phy phy/frame phy/modem phy/lattice phy/slot radio",
	"learner/experiment/chart":          "learner/experiment/runfolder phy/lattice phy/modem",
	"learner/experiment/compare":        "calibration learner/experiment/...",
	"learner/experiment/config":         "",
	"learner/experiment/curves":         "learner/experiment/chart learner/experiment/runfolder phy/channel phy/modem phy/trial",
	"learner/experiment/memory":         "",
	"learner/experiment/report":         "",
	"learner/experiment/catalogue":      "crypto/xmkckks learner/experiment/report learner/experiment/runfolder",
	"learner/experiment/runfolder":      "crypto/lockfile phy/gains",
	"learner/external":                  "learner/dataset learner/model",
	"learner/external/externaltest":     "learner/philox",
	"learner/philox":                    "",
	"learner/hosts/bus":                 "learner/hosts/identity",
	"learner/hosts/bus/bustest":         "learner/hosts/bus learner/hosts/identity",
	"learner/hosts":                     "crypto/lockfile crypto/round crypto/xmkckks learner learner/dataset learner/experiment learner/experiment/runfolder learner/experiment/setup learner/experiment/uplink learner/hosts/... phy radio radio/array radio/boards",
	"learner/hosts/air":                 "learner/hosts/bus learner/hosts/identity learner/hosts/wire phy",
	"learner/hosts/device":              "crypto/xmkckks learner learner/hosts/bus learner/hosts/identity learner/hosts/wire phy radio",
	"learner/hosts/server":              "crypto/round crypto/xmkckks learner/hosts/bus learner/hosts/identity learner/hosts/remote learner/hosts/wire phy radio",
	"learner/hosts/jobs":                "crypto/lockfile learner/experiment/runfolder learner/hosts/bus",
	"learner/hosts/sweeps":              "calibration crypto/lockfile learner learner/dataset learner/experiment learner/experiment/config learner/experiment/runfolder learner/experiment/sweep learner/hosts/bus learner/hosts/identity learner/hosts/jobs learner/paper",
	"learner/hosts/remote":              "radio radio/life",
	"learner/hosts/wire":                "phy phy/modem radio",
	"learner/hosts/hoststest":           "crypto/xmkckks",
	"learner/hosts/identity":            "crypto/lockfile learner/experiment/runfolder",
	"learner/model":                     "learner/dataset learner/model/kernel",
	"learner/model/kernel":              "",
	"learner/watch":                     "",
	"learner/watch/air":                 "learner/experiment/chart learner/watch radio",
	"learner/watch/gate":                "",
	"learner/watch/metrics":             "crypto/round learner/experiment/runfolder learner/watch",
	"learner/watch/page":                "",
	"learner/watch/page/pagetest":       "",
	"learner/watch/scenes":              "calibration/... crypto/round learner learner/experiment/... learner/hosts/jobs learner/hosts/sweeps learner/hosts/wire learner/paper learner/watch/... radio radio/sigmf",
	"learner/weights":                   "learner/model",
	"learner/theory":                    "learner learner/dataset learner/model",

	"cmd/internal/completion": "crypto/attack crypto/xmkckks learner/dataset learner/experiment/config learner/paper",
	"cmd/internal/console":    "",
	"cmd/internal/docs":       "",
	"cmd/internal/layers":     "",
	"cmd/internal/watching":   "learner/experiment learner/experiment/config learner/experiment/curves learner/experiment/sweep learner/hosts/jobs learner/hosts/sweeps learner/hosts/wire learner/paper learner/watch/...",
	"cmd/kernel-bench":        "",
	"cmd/ringwave":            "calibration/... cmd/internal/... crypto/... learner/... phy/... radio/...",
	"cmd/virtual-bench":       "phy/channel radio/...",
}

// TestImportsRunOneWay reads every file of the module.
func TestImportsRunOneWay(t *testing.T) {
	imports, err := read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(imports["crypto/xmkckks"]) == 0 {
		t.Fatal("crypto/xmkckks imports nothing: these are not the module's files")
	}
	for _, fault := range faults(imports, table) {
		t.Error(fault)
	}
}

// What the table is for is found: a wrong import, a package that it does not have, one
// that is gone, and a row that runs the wrong way.
func TestFaultsAreFound(t *testing.T) {
	for want, change := range map[string]func(imports map[string][]string, rows map[string]string){
		"crypto/round imports learner": func(i map[string][]string, _ map[string]string) {
			i["crypto/round"] = append(i["crypto/round"], "learner")
		},
		"phy imports crypto/sampler":         func(i map[string][]string, _ map[string]string) { i["phy"] = append(i["phy"], "crypto/sampler") },
		"phy/zq imports phy/digit":           func(i map[string][]string, _ map[string]string) { i["phy/zq"] = []string{"phy/digit"} },
		"radio/new is not in the table":      func(i map[string][]string, _ map[string]string) { i["radio/new"] = nil },
		"phy/zq is in the table and is gone": func(i map[string][]string, _ map[string]string) { delete(i, "phy/zq") },
		"room of util":                       func(i map[string][]string, r map[string]string) { i["util"], r["util"] = nil, "" },
		"may import learner, which is not":   func(_ map[string][]string, r map[string]string) { r["crypto/round"] += " learner" },
		"may import learner/..., which is":   func(_ map[string][]string, r map[string]string) { r["calibration"] = "learner/..." },
		"may import calibration, which":      func(_ map[string][]string, r map[string]string) { r["phy"] += " calibration" },
		"leaf phy/zq may import phy/digit":   func(_ map[string][]string, r map[string]string) { r["phy/zq"] = "phy/digit" },
	} {
		imports, rows := map[string][]string{}, maps.Clone(table)
		for pkg := range table {
			imports[pkg] = nil
		}
		change(imports, rows)
		if got := faults(imports, rows); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q: %q", want, got)
		}
	}
}

// faults says what is wrong with the imports, and with the table, in a sentence each.
func faults(imports map[string][]string, rows map[string]string) (list []string) {
	for _, pkg := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, faultsOfRow(pkg, strings.Fields(rows[pkg]))...)
		if _, there := imports[pkg]; !there {
			list = append(list, fmt.Sprintf("%s is in the table and is gone", pkg))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		row, known := rows[pkg]
		if !known {
			list = append(list, fmt.Sprintf("%s is not in the table: give it a row with what it may import", pkg))
			continue
		}
		may := append(strings.Fields(row), leaves...)
		for _, other := range imports[pkg] {
			if !slices.ContainsFunc(may, func(name string) bool { return matches(name, other) }) {
				list = append(list, fmt.Sprintf("%s imports %s: allowed are the leaves and %q", pkg, other, row))
			}
		}
	}
	return list
}

// faultsOfRow says what a row allows that runs the wrong way.
func faultsOfRow(pkg string, may []string) (list []string) {
	lower, known := below[room(pkg)]
	if !known {
		return []string{fmt.Sprintf("there is no room of %s", pkg)}
	}
	for _, name := range may {
		if slices.Contains(leaves, pkg) && !slices.Contains(leaves, name) {
			list = append(list, fmt.Sprintf("the leaf %s may import %s", pkg, name))
		}
		if to := room(name); to != room(pkg) && !slices.Contains(strings.Fields(lower), to) {
			list = append(list, fmt.Sprintf("%s may import %s, which is not below it", pkg, name))
		}
	}
	return list
}

// room returns the first part of a package's path.
func room(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

// matches reports whether a name of the table stands for a package.
func matches(name, pkg string) bool {
	if folder, all := strings.CutSuffix(name, "/..."); all {
		return pkg == folder || strings.HasPrefix(pkg, folder+"/")
	}
	return name == pkg
}

// read returns what the packages below a module's root import of the module, by their
// paths within it.
func read(root string) (map[string][]string, error) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return fs.SkipDir
		}
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(folder)
		of, err := importsOf(file)
		imports[pkg] = append(imports[pkg], of...)
		return err
	})
	return imports, err
}

// importsOf returns what a file imports of the module.
func importsOf(file string) (list []string, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if inside, ok := strings.CutPrefix(name, module); ok {
			list = append(list, inside)
		}
	}
	return list, nil
}
