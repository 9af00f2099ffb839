package intake

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// bombs are texts for which the decoder takes minutes, or gigabytes, within a megabyte.
func bombs() map[string]string {
	const n = 1 << 17
	many := func(s string) string { return strings.Repeat(s, n) }
	long := strings.Repeat("k", n)
	return map[string]string{
		"arrays":                many("[") + "",
		"arrays of a key":       "a = " + many("["),
		"closed arrays":         "a = " + many("[") + many("]"),
		"tables":                "a = " + many("{a="),
		"tables in lines":       "a = " + many("{\na="),
		"arrays and tables":     "a = " + many("[{a="),
		"dots":                  many("a.") + "a = 1",
		"spaced dots":           many("a . ") + "a = 1",
		"quoted dots":           many(`"a".`) + "a = 1",
		"header":                "[" + many("a.") + "a]",
		"header of a list":      "[[" + many("a.") + "a]]",
		"dots in a table":       "a = {" + many("a.") + "a = 1}",
		"dots behind a comma":   "a = {b = 1, " + many("a.") + "a = 1}",
		"after strings":         "a = \"\\\"\"\nb = '\\'\nc = '''\n'''\nd = \"\"\n" + strings.Repeat("a.", 9) + "a = 1",
		"behind four quotes":    `a = ["""b"""", ` + many("["),
		"behind five quotes":    "a = ['''b''''', " + many("["),
		"long key":              long + " = 1",
		"long quoted key":       `"` + long + `" = 1`,
		"long header":           "[" + long + "]\n" + strings.Repeat("a = 1\n", 10),
		"long key in a table":   "a = {" + long + " = 1}",
		"long string":           `a = "` + long + `"`,
		"long string of lines":  "a = '''" + many("\n") + "'''",
		"string without an end": "a = '''" + long,
	}
}

// What the decoder takes long for is refused, in one short sentence that names the line.
func TestBombsAreRefused(t *testing.T) {
	for name, text := range bombs() {
		err := CheckTOML(text)
		if err == nil || !strings.HasPrefix(err.Error(), "line ") || !strings.Contains(err.Error(), "allowed") || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]string{
		"a = ['''b''''', [[[[[1":                                    "line 1: the nesting of tables and lists is 5 deep or more; allowed is a depth of 4",
		strings.Repeat("k = 1\n", maxKeys+1):                        "line 131073: the number of keys is more than 131072; allowed is at most 131072",
		strings.Repeat("k.k = 1\n", maxKeys/2) + "k = 1":            "line 65537: the number of keys is more than 131072; allowed is at most 131072",
		"a = 1\n\nb = [[[[[1]]]]]":                                  "line 3: the nesting of tables and lists is 5 deep or more; allowed is a depth of 4",
		"a.b.c.d.e.f = 1":                                           "line 1: the nesting of tables and lists is 5 deep or more; allowed is a depth of 4",
		"\n" + strings.Repeat("k", maxKey+9) + " = 1":               "line 2: the length of the key \"" + strings.Repeat("k", maxShown) + "...\" is 129 bytes or more; allowed is at most 128 bytes",
		"a = 1\nb = \"" + strings.Repeat("s", maxString-1) + "\"\n": "line 2: the length of a string is 16385 bytes; allowed is at most 16384 bytes",
	} {
		if err := CheckTOML(text); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	// The most that is allowed is.
	for _, text := range []string{
		strings.Repeat("k = 1\n", maxKeys), strings.Repeat("k.k = 1\n", maxKeys/2),
		"a = [[[[1]]]]", "a.b.c.d.e = 1", strings.Repeat("k", maxKey) + " = 1", "\"" + strings.Repeat("k", maxKey-2) + "\" = 1", "a = \"" + strings.Repeat("s", maxString-2) + "\"",
	} {
		if err := CheckTOML(text); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// What stands in strings and comments is not nested, nor are numbers and headers.
func TestOthersAreTaken(t *testing.T) {
	for _, text := range []string{
		"", "# [[[[[[ a.a.a.a.a.a\n", `a = "[[[[[[ \" a.a.a.a.a.a"`, `a = '{{{{{{{{\'`,
		"a = \"\"\"[[[[[[\n\" [[[[[\"\"\"", "a = '''{{{{{{\n'''", `"[[[[[[[`, "a = \"\"\"[[[[[[[\n",
		"a = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]\n[[a]]\n[[a]]\n[[a]]\n", "a = 0.1\nb = 0.1\nc = 0.1\nd = 0.1\ne = 0.1\n",
		"x = 192.168.1.10.5.6.7", "[a.b.c.d]\na.b.c = {d.e = [1]}", strings.Repeat(" ", 1<<20) + "a" + strings.Repeat(" ", 1<<20) + "= 1", strings.Repeat("\n", 1<<20),
		"# " + strings.Repeat("k", 1<<18), "a = [" + strings.Repeat("0.25, ", 1<<16) + "]", "]]}}a = 1",
	} {
		if err := CheckTOML(text); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// What passes is decoded into a bounded depth and bounded keys, however it is written.
func FuzzTOML(f *testing.F) {
	for _, text := range bombs() {
		f.Add(text[:min(len(text), 40)])
	}
	f.Add("[a.b]\nc = {d.e = [1, {f = \"\"\"g\"\"\"\"}]}\n[[h]]\n'''i''' = 1")
	f.Fuzz(func(t *testing.T, text string) {
		if CheckTOML(text) != nil {
			return
		}
		var all map[string]any
		if _, err := toml.Decode(text, &all); err != nil {
			return
		}
		// A header, a key in it, and in each of the brackets another key.
		if d := depthOf(t, all); d > (2+maxDepth)*(maxDepth+1)+1 {
			t.Fatalf("%d deep", d)
		}
	})
}

func depthOf(t *testing.T, value any) (depth int) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if len(key) > maxKey {
				t.Fatalf("a key of %d bytes", len(key))
			}
			depth = max(depth, 1+depthOf(t, inner))
		}
	case []map[string]any:
		for _, inner := range v {
			depth = max(depth, 1+depthOf(t, inner))
		}
	case []any:
		for _, inner := range v {
			depth = max(depth, 1+depthOf(t, inner))
		}
	}
	return depth
}
