package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memoryfs/fusefs"
)

// TestHistoryIsReadWithPlainTools: every version of a memory is a file that ls, cat, diff, grep and getfattr read, with the
// log beside them; nothing of it can be changed, and find and grep -r at the mount's root do not wander into it.
func TestHistoryIsReadWithPlainTools(t *testing.T) {
	need(t, "getfattr", "python3")
	w := newWorld(t)
	m := w.mountWith(fusefs.Config{Principal: "agent-104", Session: "run-7", Reason: "the build is red\nsince noon", Conversation: "chat-12"})
	ok(t, m, "sed -i s/green/red/ $M/"+status+" && echo 'more' >> $M/"+status)
	h := m + "/.memory/history/" + status
	equal(t, ok(t, h, "ls $M"), "1.md\n2.md\n3.md\nlog\nlog.jsonl\n")
	equal(t, ok(t, h, "cat $M/1.md; diff $M/1.md $M/2.md || true"), "# Status\n\ngreen\n3c3\n< green\n---\n> red\n")
	equal(t, ok(t, h, "grep -l red $M/*.md | xargs -n1 basename"), "2.md\n3.md\n")
	equal(t, ok(t, h, "cmp $M/3.md $LIVE && stat -c '%a %s' $M/3.md", "LIVE="+m+"/"+status), "444 19\n")
	versions := w.versions("agent-104", status)
	equal(t, ok(t, h, "TZ=UTC stat -c %y $M/2.md"), versions[1].Time.UTC().Format("2006-01-02 15:04:05.000000000 +0000")+"\n")
	attrs := ok(t, h, "getfattr -d --absolute-names $M/2.md")
	for _, want := range []string{`author="agent-104"`, `session="run-7"`, `version="2"`, `approval="direct"`, `write="no"`, "the build is red"} {
		if !strings.Contains(attrs, want) {
			t.Errorf("getfattr lacks %s: %s", want, attrs)
		}
	}
	log := ok(t, h, "cat $M/log")
	for _, want := range []string{"version 3 ", "append  19 bytes (+5)", "agent-104 (agent)", "run-7", "chat-12", "the build is red\n               since noon", "version 1 ", "import"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
	if strings.Index(log, "version 3") > strings.Index(log, "version 1") {
		t.Error("the log is not newest first")
	}
	equal(t, ok(t, h, `python3 -c "
import json,os
for l in open(os.environ['M']+'/log.jsonl'):
    v=json.loads(l); print(v['number'],v['op'],v['principal'],v['session'],v['path'])"`),
		"3 append agent-104 run-7 "+status+"\n2 write agent-104 run-7 "+status+"\n1 import mia import "+status+"\n")
	for _, script := range []string{"echo x > $M/1.md", "rm $M/1.md", "touch $M/x", "mkdir $M/x", "mv $M/1.md $M/x"} {
		fails(t, h, script, "Read-only file system")
	}
	fails(t, h, "cat $M/9.md", "No such file")
	fails(t, h, "cat $M/01.md", "No such file")
	fails(t, h, "cat $M/1.txt", "No such file")
	equal(t, ok(t, m, "find $M -name '*.md' | grep -c history || true"), "0\n")
	equal(t, ok(t, m, "grep -rl 'since noon' $M | wc -l"), "0\n")
}

// TestHistoryFollowsTheMemory: an incident file is written, renamed, moved with its directory and deleted, and so is the
// directory: its history is found under the last path, and says from where it came.
func TestHistoryFollowsTheMemory(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	dir := "projects/billing-redesign/incidents"
	ok(t, m, "cd $M/"+dir+" && mkdir march && echo 'disk full' > march/a.md && mv march/a.md march/disk.md && mv march spring && echo 'solved' >> spring/disk.md && rm spring/disk.md && rmdir spring")
	h := m + "/.memory/history/" + dir
	equal(t, ok(t, h, "ls $M; ls $M/spring $M/spring/disk.md; cat $M/spring/disk.md/1.md $M/spring/disk.md/3.md"),
		"2026-01-01.md\nspring\n"+h+"/spring:\ndisk.md\n\n"+h+"/spring/disk.md:\n1.md\n2.md\n3.md\nlog\nlog.jsonl\ndisk full\ndisk full\nsolved\n")
	log := ok(t, h, "cat $M/spring/disk.md/log")
	for _, want := range []string{"delete", "march/disk.md (from " + dir + "/march/a.md)", dir + "/spring/disk.md"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
	equal(t, len(w.versions("agent-104", dir+"/spring/disk.md")), 4)
	// Two more lives of one name: each has its history.
	ok(t, m, "cd $M/"+dir+" && echo one > x.md && rm x.md && echo two > x.md && rm x.md && echo three > x.md")
	names := strings.Fields(ok(t, h, "ls $M | grep ^x"))
	equal(t, len(names), 3)
	all := ""
	for _, n := range names {
		all += ok(t, h, "cat $M/'"+n+"'/1.md")
	}
	for _, want := range []string{"one", "two", "three"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%s is there %d times: %q", want, strings.Count(all, want), all)
		}
	}
	equal(t, ok(t, h, "cat $M/x.md/1.md"), "three\n")
}

// TestHistoryIsGoverned by today's policy, on the path of now and on the path of then.
func TestHistoryIsGoverned(t *testing.T) {
	w := newWorld(t)
	agent := w.mount("agent-104")
	fails(t, agent, "ls $M/.memory/history/teams/support", "No such file")
	fails(t, agent, "cat $M/.memory/history/teams/support/escalation.md/1.md", "No such file")
	equal(t, ok(t, agent, "ls $M/.memory/history/teams"), "engineering\n")
	// A note of agent-205's own, which it published in the project by mv: the version of then is not agent-104's to read.
	other := w.mount("agent-205")
	inc := "projects/billing-redesign/incidents/note.md"
	ok(t, other, "echo secret > $M/agents/agent-205/n.md && sed -i s/secret/public/ $M/agents/agent-205/n.md && mv $M/agents/agent-205/n.md $M/"+inc)
	equal(t, ok(t, agent, "ls $M/.memory/history/"+inc+"; cat $M/.memory/history/"+inc+"/3.md"), "3.md\nlog\nlog.jsonl\npublic\n")
	fails(t, agent, "cat $M/.memory/history/"+inc+"/1.md", "No such file")
	log := ok(t, agent, "cat $M/.memory/history/"+inc+"/log $M/.memory/history/"+inc+"/log.jsonl")
	if !strings.Contains(log, "version 1 ") || strings.Contains(log, "agents/agent-205") || strings.Contains(log, "sed") {
		t.Errorf("the log tells what it must not: %s", log)
	}
	equal(t, ok(t, other, "cat $M/.memory/history/"+inc+"/1.md"), "secret\n")
	// Taken away: the next look sees nothing of it.
	must(t, os.WriteFile(filepath.Join(w.dir, "policy", "stop.rego"), []byte("package memory.authz\n\nimport rego.v1\n\nverdicts contains \"deny/stop\" if startswith(input.path, \"projects/billing-redesign/incidents\")\n"), 0o600))
	must(t, w.mem.Policy().Reload(ctx(t)))
	fails(t, agent, "cat $M/.memory/history/"+inc+"/3.md", "No such file")
}
