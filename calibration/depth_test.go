package calibration

import (
	"strings"
	"testing"
)

// Deep tables, which the library takes hours for, are refused.
func TestDeepTablesAreRefused(t *testing.T) {
	const n = maxFile / 8
	for name, text := range map[string]string{
		"arrays":        "a = " + strings.Repeat("[", n),
		"tables":        "a = " + strings.Repeat("{a=", n),
		"dots":          strings.Repeat("a.", n) + "a = 1",
		"quoted dots":   strings.Repeat(`"a".`, n) + "a = 1",
		"header":        "[" + strings.Repeat("a.", n) + "a]",
		"after strings": "a = \"\\\"\"\nb = '\\'\nc = '''\n'''\nd = \"\"\n" + strings.Repeat("a.", 9) + "a = 1",
	} {
		if _, err := Parse("c", []byte(text)); err == nil || !strings.Contains(err.Error(), "nested more than 4 deep") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What stands in strings and comments is not nested, nor are numbers and headers.
func TestDepthOfOthers(t *testing.T) {
	for _, text := range []string{
		"# [[[[[[ a.a.a.a.a.a\n", `a = "[[[[[[ \" a.a.a.a.a.a"`, `a = '{{{{{{{{\'`,
		"a = \"\"\"[[[[[[\n\" [[[[[\"\"\"", "a = '''{{{{{{\n'''", `"[[[[[[[`, "a = \"\"\"[[[[[[[\n",
		"a = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]\n[[a]]\n[[a]]\n[[a]]\n", "a = 0.1\nb = 0.1\nc = 0.1\nd = 0.1\ne = 0.1\n",
	} {
		if err := checkDepth(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
