package session_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// Whatever comes from outside, in whatever order, React neither loops nor
// panics, and a session that is cancelled comes to rest. CORREX_SEED repeats a
// run, CORREX_SOAK=1 makes it long.
func TestRandomSessions(t *testing.T) {
	seed, runs := testenv.Seed(t), 300
	if os.Getenv("CORREX_SOAK") != "" {
		runs = 20000
	}
	var total chaos
	for n := range runs {
		c := chaos{sim: newSim(t), rng: rand.New(rand.NewPCG(seed, uint64(n))), strange: map[uint64]bool{}, lagged: map[uint64]bool{}}
		c.run()
		if t.Failed() {
			t.Fatalf("session %d of CORREX_SEED=%d:\n%s", n, seed, c.print(0))
		}
		total.started, total.completed, total.ran, total.reviewed, total.alarms, total.stale =
			total.started+c.started, total.completed+c.completed, total.ran+c.ran, total.reviewed+c.reviewed, total.alarms+c.alarms, total.stale+c.stale
	}
	said := fmt.Sprintf("%d started, %d completed, %d tools ran, %d of them reviews, %d alarms, %d stale decisions held",
		total.started, total.completed, total.ran, total.reviewed, total.alarms, total.stale)
	t.Log(said)
	// What never happens tests nothing.
	if total.started == 0 || total.completed == 0 || total.ran == 0 || total.reviewed == 0 || total.alarms == 0 || total.stale == 0 {
		t.Error("the sessions are too dull: " + said)
	}
}

// chaos is a sim that random things happen to.
type chaos struct {
	*sim
	rng     *rand.Rand
	strange map[uint64]bool // records that the kernel at hand did not write
	lagged  map[uint64]bool // those among them that another kernel wrote

	started, completed, ran, reviewed, alarms, stale int
}

var everything = []string{"w1", "write", "read", "echo", "shell", "edit", "bomb", "sum", "run", "commit"}

var s1 = session.Key{Session: "s1"}

func (c *chaos) run() {
	c.settings()
	c.offer(everything)
	c.offer([]string{"m1", "model:m"})
	c.wish("session.start", `{"session":"s1","task":"x"`+c.pick("", `,"tools":["echo","write","shell"]`, `,"mode":"auto"`, `,"limits":{"turns":3,"tool_calls":4}`)+`}`)
	for range 30 + c.rng.IntN(90) {
		c.something()
	}
	st := c.states[s1]
	c.alarms += len(st.Alarms)
	for _, i := range st.Tools {
		if i.Status() == session.Completed {
			c.ran++
			if i.Follows() != "" {
				c.reviewed++
			}
		}
	}
	if st.Started != nil {
		c.started++
	}
	if st.Status == session.SessionCompleted {
		c.completed++
	}
	for _, k := range append([]session.Key(nil), c.order...) {
		c.rest(k)
		c.reviewsAreAnswered(k)
	}
	evolvesPurely(c.t, c.log)
	c.queueIsWhatIsOpen()
	c.decidesAlike()
}

// reviewsAreAnswered checks that a tool that only follows up runs as nothing else,
// and that a person said so.
func (c *chaos) reviewsAreAnswered(k session.Key) {
	for _, i := range c.states[k].Tools {
		switch {
		case i.Granted == nil:
		case i.Follows() != "" && i.Granted.By != "person":
			c.t.Errorf("the review %s was granted by %s", i.ID, i.Granted.By)
		case i.Follows() == "" && i.Granted.Tool == "commit":
			c.t.Errorf("%s runs commit, and follows nothing", i.ID)
		}
	}
}

// decidesAlike checks a few decisions again from the log.
func (c *chaos) decidesAlike() {
	for range 5 {
		r := c.log.recs[c.rng.IntN(len(c.log.recs))]
		d, ok := decisionOf(r)
		if !ok || c.strange[r.Seq] && !c.lagged[r.Seq] {
			continue
		}
		if got := decidedOn(c.log, r, d); !among(c.t, c.log, got, r) {
			c.t.Errorf("#%d %s %s is not what React decides: %s", r.Seq, r.Subject, r.Data, texts(got))
		}
	}
}

func (c *chaos) pick(of ...string) string { return of[c.rng.IntN(len(of))] }

func (c *chaos) settings() {
	c.announce(c.pick("", "", "", "", "", `{"mode":"auto"}`, `{"mode":"deny"}`, `{"rule_ttl_ns":1}`, `{"policy":{"version":"v2"}}`,
		`{"limits":{"turns":2,"tokens":500}}`, `{"limits":{"wall_time_ns":1000000000}}`, `{"retries":0,"withdraw":1,"stop":2}`,
		`{"policy":{"version":"v1","rules":[{"effect":"ask","tool":"*"}]}}`, `{"limits":{},"stop":0,"withdraw":0}`,
		`{"preview_wait_ns":0,"approval_wait_ns":0,"approval_ttl_ns":0,"offer_wait_ns":0,"rule_ttl_ns":0,"command_wait_ns":0}`))
}

// something is one random outside input.
func (c *chaos) something() {
	switch n := c.rng.IntN(100); {
	case n < 68:
		c.work()
	case n < 82:
		c.anyCommand()
	case n < 86:
		c.pass(c.while())
	case n < 88:
		c.settings()
	case n < 90:
		c.offer([]string{"w2", c.pick("write", "echo", "edit"), c.pick("shell", "sum")})
	case n < 91:
		c.report(events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: c.pick("w1", "w2", "m1")}, Boot: c.pick("b", "other")})
	case n < 93:
		c.offer([]string{"m1", "model:m"})
		c.offer(c.manyModels())
		c.becomes([]string{c.pick("m1", "m2"), c.pick("m", "n", "o"), c.pick("loaded", "unloaded", "crashed", "load_failed")})
		c.offer(everything)
	case n < 97:
		c.lag()
	default:
		c.forge()
	}
}

// while is mostly short.
func (c *chaos) while() time.Duration {
	return time.Duration(1) << c.rng.IntN([]int{35, 35, 35, 43}[c.rng.IntN(4)])
}

func (c *chaos) call() string {
	if c.rng.IntN(3) > 0 {
		return c.pick(`run {"text":"a"}`, `echo {"text":"a"}`, `shell {"text":"a"}`, `sum {"text":"b"}`, `write {"path":"a","content":"b"}`, `read {"path":"a"}`, `edit {"path":"a"}`)
	}
	return c.pick("echo", "write", "shell", "edit", "bomb", "sum", "none", "commit") + " " +
		c.pick(`{"text":"a"}`, `{"text":"a"}`, `{"path":"a","content":"b"}`, `{"path":"b"}`, `{}`, `{"text":"`+strconv.Itoa(c.rng.IntN(99))+`"}`)
}

// work is a worker's: mostly what it should do, sometimes not.
func (c *chaos) work() {
	st := c.states[s1]
	for _, i := range st.Inferences {
		ref := events.Ref{Session: "s1", ID: string(i.ID)}
		switch i.Status() {
		case session.InferenceRequested:
			c.infer(ref, "start", "")
			return
		case session.InferenceStarted:
			switch c.rng.IntN(8) {
			case 0:
				c.infer(ref, "fail", c.pick("overflow", "model_output again", "server again"))
			case 1:
				c.infer(ref, c.pick("lost", "start"), "")
			case 2:
				c.infer(ref, "call", c.call()+" & call "+c.call())
			case 3:
				c.infer(ref, "final", "done")
			default:
				c.infer(ref, "call", c.call())
			}
			return
		}
	}
	if len(st.Tools) > 0 {
		c.workOn(st.Tools[len(st.Tools)-1-c.rng.IntN(min(3, len(st.Tools)))])
	}
}

func (c *chaos) workOn(i session.Invocation) {
	ref := events.Ref{Session: "s1", ID: string(i.ID)}
	switch {
	case c.rng.IntN(20) == 0 && i.Requested != nil:
		c.tool(ref, c.pick("preview", "start", "done", "fail", "reject", "lost", "recovered"), "")
	case i.Status() == session.Requested:
		c.tool(ref, "preview", c.pick("", `{"valid":false,"reason":"bad"}`, `{"tier":"T3"}`, `{"tier":"T4"}`, `{"base":[{"path":"a","sha256":"x"}]}`))
	case i.Status() == session.ApprovalRequested:
		c.wish("tool.approve", `{"session":"s1","invocation":"`+ref.ID+`","digest":"`+i.Asked.Digest+`"`+c.pick("", `,"scope":"session"`)+`}`)
	case i.Status() == session.Approved:
		c.tool(ref, c.pick("start", "start", "start", "reject"), "")
	case i.Status() == session.Started, i.Status() == session.CancelRequested:
		if c.rng.IntN(3) == 0 {
			c.tool(ref, "asks", c.pick(`commit {"text":"a"}`, `commit {"text":"a"}`, `commit {"text":"a"}`, `commit {}`, `shell {"text":"a"}`, "none {}", "bomb null"))
			return
		}
		c.tool(ref, c.pick("done", "done", "done", "fail", "lost"), "")
	}
}

// anyCommand is a command, sensible or not.
func (c *chaos) anyCommand() {
	id := fmt.Sprintf("t%d-%d", 1+c.rng.IntN(4), c.rng.IntN(2)) + c.pick("", "", "-c")
	switch c.rng.IntN(12) {
	case 0, 1, 2:
		c.wish("session.say", `{"session":"s1","text":"well"}`)
	case 3:
		c.wish("session.pause", `{"session":"s1"}`)
	case 4, 5, 6:
		c.wish("session.resume", `{"session":"s1"}`)
	case 7:
		c.wish("tool.approve", `{"session":"s1","invocation":"`+id+`","digest":"no"}`)
	case 8:
		c.wish("tool.reject", `{"session":"s1","invocation":"`+id+`"}`)
	case 9:
		c.wish("tool.cancel", `{"session":"`+c.pick("s1", "system")+`","invocation":"`+id+`"}`)
	case 10:
		tool := c.call()
		for k := range tool {
			if tool[k] == ' ' {
				c.wish("tool.request", `{`+c.pick("", `"session":"s1",`)+`"tool":"`+tool[:k]+`","parameters":`+tool[k+1:]+`}`)
				break
			}
		}
	default:
		c.wish("session.start", `{"session":"s1","task":"again"}`)
	}
}

// lag is a kernel that is behind and whose clock is wrong: it offers the log
// what it thinks has to happen.
func (c *chaos) lag() {
	n := max(1, len(c.log.recs)-c.rng.IntN(4)*c.rng.IntN(3))
	old := at(c.t, c.log, n, c.now.Add(time.Duration(c.rng.IntN(4)-1)*time.Duration(1)<<c.rng.IntN(43)))
	for _, d := range session.React(old.state(s1), old.world, old.now).Decisions {
		r, err := c.log.append(c.now, d.Fact, d.After)
		if err != nil {
			continue
		}
		c.strange[r.Seq], c.lagged[r.Seq] = true, true
		c.fold()
		for _, a := range c.states[s1].Alarms {
			if a.Seq == r.Seq {
				c.t.Errorf("stale #%d %s is an alarm: %s", r.Seq, r.Subject, a.Reason)
			}
		}
		c.stale++
	}
	c.settle()
}

// forge is a record of nobody's, with whatever in it.
func (c *chaos) forge() {
	types := events.FactTypes()
	typ := types[c.rng.IntN(len(types))]
	id := c.pick("main", "t1", "t2", "t3", "t1-0", "t2-0", "t5-0", "t1-0-c", "t2-0-c")
	subject := "evt.s1." + string(typ.Name.Kind()) + "." + id + "." + typ.Name.Token() + c.pick("", "", ".echo", ".m", ".shell")
	body := c.pick("", "null", "{", `[]`, `{"session":"s1","id":"`+id+`"}`, `{"session":"s1","id":"`+id+`","attempt":1,"nonce":"n","worker":"w"}`,
		`{"session":"s1","id":"`+id+`","model_token":"m","tool_token":"echo","request":{"tool_name":"echo","parameters":{}}}`, `{"session":"s2","id":"`+id+`"}`, `{"session":"s1","id":"`+id+`","receipt":1,"reply":2,"reason":3}`)
	var h events.Header
	if c.rng.IntN(5) == 0 {
		h = events.Header{events.HeaderNatsStream: {"EVENTS"}}
	}
	r := c.log.put(c.now, subject, h, []byte(body))
	c.strange[r.Seq] = true
	c.settle()
}
