package config

import "testing"

// A program that learns goes with some keys alone, and nothing else with a program.
func TestProcess(t *testing.T) {
	whole := []string{"task.model=process", "task.dataset=process", `task.command=["learner", "--deep"]`, "optimizer.directions=philox"}
	if _, err := Parse("a.toml", nil, whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, begins string }{
		{"task.dataset=mnist", "a.toml: task.dataset = \"mnist\": must be \"process\" with task.model = \"process\""},
		{"task.fallback=strokes", "a.toml: task.dataset = \"process\": must be \"process\""},
		{"task.model=logistic", "a.toml: task.dataset = \"process\": must be another with task.model = \"logistic\""},
		{"task.command=[]", "a.toml: task.command = [ ]: must be a program and its arguments"},
		{`task.command=[""]`, "a.toml: task.command = [\"\"]: must be a program and its arguments"},
		{"task.loss=sum", "a.toml: task.loss = \"sum\": must be \"mean\""},
		{"task.partition=dirichlet", "a.toml: task.partition = \"dirichlet\": must be \"iid\""},
		{"optimizer.directions=rademacher", "a.toml: optimizer.directions = \"rademacher\": must be \"philox\""},
		{"experiment.aggregator=heairfed", "a.toml: task.model = \"process\": must be another with experiment.aggregator = \"heairfed\""},
	} {
		_, err := Parse("a.toml", nil, append(whole, c.set))
		wantSentence(t, c.set, err, c.begins, "--set "+c.begins[len("a.toml: "):])
	}
	_, err := Parse("a.toml", nil, []string{`task.command=["learner"]`})
	wantSentence(t, "a command alone", err, "a.toml: task.command = [\"learner\"]: must be an empty list with task.model = \"logistic\"", "--set task.command")
}
