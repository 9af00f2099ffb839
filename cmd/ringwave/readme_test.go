package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment/experimenttest"
)

// repository is the module's root from here.
const repository = "../.."

// readmes returns the text of each Markdown file of the repository by its path.
func readmes(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "runs") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		at, _ := filepath.Rel(repository, name)
		texts[filepath.ToSlash(at)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 6 {
		t.Fatalf("%d files of Markdown: there are more", len(texts))
	}
	return texts
}

var (
	inline  = regexp.MustCompile("`([^`\n]+)`")
	program = regexp.MustCompile(`(?:^|[ /(])ringwave ([a-z-][^|>&;)]*)`)
	// pathOf is what looks like a path below a folder, and not like an example of one.
	pathOf = regexp.MustCompile(`^\.?[a-z][a-z0-9_-]*/[A-Za-z0-9_./-]*[a-z0-9]$`)
)

// commandsOf returns the command lines of ringwave that a text prints, as code in a line or
// as lines of four spaces or more.
func commandsOf(text string) (lines []string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	text = strings.ReplaceAll(text, "go run ./cmd/ringwave ", "ringwave ")
	var code []string
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "    ") {
			code = append(code, strings.TrimSpace(line))
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			code = append(code, m[1])
		}
	}
	for _, c := range code {
		if m := program.FindStringSubmatch(c); m != nil {
			lines = append(lines, m[1])
		}
	}
	return lines
}

// Commands that READMEs print are commands, with flags, arguments and configurations that
// there are.
func TestReadmesPrintCommandsThatThereAre(t *testing.T) {
	count := 0
	for file, text := range readmes(t) {
		for _, line := range commandsOf(text) {
			count++
			words := strings.Fields(strings.ReplaceAll(line, "'", "")) // a shell's quotes
			for i, w := range words {
				if w == "N" {
					words[i] = "1"
				}
			}
			if len(words) == 1 { // a command that is only spoken of
				if err := console.UnknownCommand(newRoot(), words); err != nil {
					t.Errorf("%s: ringwave %s: %v", file, line, err)
				}
				continue
			}
			if _, err := taken(words); err != nil {
				t.Errorf("%s: ringwave %s: %v", file, line, err)
			}
		}
	}
	if count < 50 {
		t.Errorf("%d commands: the READMEs print more", count)
	}
}

// Packages and folders that READMEs name are there, be it below the README's own. (What is
// named as a file, and links, cmd/internal/docs looks at.)
func TestReadmesNameFoldersThatThereAre(t *testing.T) {
	is := func(parts ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{repository}, parts...)...))
		return err == nil
	}
	count := 0
	for file, text := range readmes(t) {
		folder := path.Dir(file)
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			first, _, _ := strings.Cut(m[1], "/")
			if !pathOf.MatchString(m[1]) || first == "runs" || !is(first) && !is(folder, first) {
				continue
			}
			count++
			if !is(m[1]) && !is(folder, m[1]) {
				t.Errorf("%s: there is no %s", file, m[1])
			}
		}
	}
	if count < 30 {
		t.Errorf("%d names: the READMEs have more", count)
	}
}

// README.md stays short, and begins with the command of a first run and that of all tests,
// which are those that must hold before a change lands.
func TestReadmeBeginsWithTwoCommands(t *testing.T) {
	text := readmes(t)["README.md"]
	if lines := strings.Count(text, "\n"); lines > 150 {
		t.Errorf("%d lines: allowed are 150", lines)
	}
	commands := regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(text, 2)
	if len(commands) < 2 || commands[0][1] != "go run ./cmd/ringwave run hw-configs/loopback.toml" || commands[1][1] != "go test ./..." {
		t.Fatalf("the first commands are %q", commands)
	}
	ci, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(ci), "\n")
	for _, end := range []string{" run hw-configs/loopback.toml --out \"$work/run\"", " " + commands[1][1]} {
		if !slices.ContainsFunc(all, func(line string) bool { return strings.HasSuffix(line, end) }) {
			t.Errorf(".ci/run has no line that ends with %q", end)
		}
	}
}

// README.md shows what its first command prints, but for clocks, folders and what it cuts.
func TestReadmeShowsTheFirstResult(t *testing.T) {
	experimenttest.NoData(t)
	stdout, stderr := mustRun(t, "run", filepath.Join(repository, "hw-configs", "loopback.toml"), "--out", filepath.Join(t.TempDir(), "run"))
	_, shown, _ := strings.Cut(readmes(t)["README.md"], "## A first result")
	shown = strings.Split(shown, "```")[1]
	if !strings.Contains(shown, "test accuracy") {
		t.Fatalf("that is no result: %s", shown)
	}
	said := stderr + stdout
	for _, line := range strings.Split(shown, "\n") {
		for _, end := range []string{", about ", " in 0.", "(fallback", "runs/", "..."} {
			line, _, _ = strings.Cut(line, end)
		}
		if !strings.Contains(said, line) {
			t.Errorf("README.md shows %q, and the command printed\n%s", line, said)
		}
	}
}
